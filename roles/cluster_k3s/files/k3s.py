# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for K3s, or removes it, on its machine.

k3s.py await UNIT SECONDS   ends with status 0 once the unit has said that it is ready. Prints why it is not, and ends with status 1, if it has ended
                            ATTEMPTS times, or is not ready after so many seconds
k3s.py stop                 stops K3s with all containers that it has started
k3s.py reset                does so, and removes what K3s has made: data, mounts, sockets, tokens. Archives of images stay
k3s.py remove [PATH...]     removes these, too, but none of these paths

Units notify systemd when they serve (sd_notify in pkg/cli of K3s). Containers outlive K3s, so that it can be restarted, and have to be ended by
their shims. Needs Python 3.6 or newer, and nothing else.
"""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

#: Tests have another one.
ROOT = ""
UNITS = ("k3s", "k3s-agent")
#: Of a start that systemd repeats. The first ones may fail, for instance while another server joins etcd.
ATTEMPTS = 3
#: Below these, mounts are those of pods.
MOUNTS = ("/run/k3s/", "/run/netns/cni-", "/var/lib/kubelet/", "/var/lib/rancher/k3s/")
#: Folders, and files that only an initialization or a join writes.
MADE = (
    "/etc/rancher/k3s/agent-token",
    "/etc/rancher/k3s/config.yaml.d/55-hwaccel-gpu-cluster.yaml",
    "/etc/rancher/k3s/k3s.yaml",
    "/etc/rancher/k3s/token",
    "/etc/rancher/node",
    "/run/flannel",
    "/run/k3s",
    # Addresses that pods had, by the name of K3s' network.
    "/var/lib/cni/networks/cbr0",
    "/var/lib/cni/flannel",
    "/var/lib/kubelet",
    "/var/lib/rancher/k3s",
)
IMAGES = "/var/lib/rancher/k3s/agent/images"
#: What distinguishes shims of K3s' own containerd from those of others.
SHIM, SOCKET = b"containerd-shim", b"/run/k3s/containerd/"
#: Where it is said that containers are Docker's, and the label that cri-dockerd gives them (core/docker_service.go).
CONFIGURATION, ON_DOCKER = "/etc/rancher/k3s/config.yaml.d/50-hwaccel-gpu.yaml", "docker: true\n"
LABEL = "io.kubernetes.docker.type"
#: Seconds between two looks, for a program, and for processes to end.
PAUSE, PATIENCE = 1, 120


def show(unit):
    """Properties of a unit by their names."""
    names = "ActiveState,SubState,NRestarts,Result,Job"
    printed = subprocess.check_output(["systemctl", "show", "--property=" + names, unit], timeout=PATIENCE)
    return dict(line.split("=", 1) for line in printed.decode("utf-8", "replace").splitlines() if "=" in line)


def wait(unit, seconds):
    until, before = time.monotonic() + float(seconds), None
    while True:
        now = show(unit)
        # A job that is queued has not stopped the process of before yet.
        idle = now.get("Job", "0") in ("", "0") or now.get("ActiveState") == "activating"
        count = int(now.get("NRestarts") or 0)
        before = count if before is None else before
        if idle and now.get("ActiveState") == "active":
            return 0
        if count - before >= ATTEMPTS or now.get("ActiveState") == "failed":
            print(f"{unit} has ended {count - before or 1} times ({now.get('Result', '')})")
            return 1
        if time.monotonic() > until:
            print(f"{unit} is not ready after {seconds} s ({now.get('ActiveState')}, {now.get('SubState')})")
            return 1
        time.sleep(PAUSE)


def processes():
    """Process ID, that of its parent, and its command line."""
    for path in glob.glob(ROOT + "/proc/[0-9]*"):
        try:
            with open(path + "/cmdline", "rb") as file:
                command = file.read()
            with open(path + "/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            # It has ended.
            continue
        yield int(os.path.basename(path)), parent, command


def family():
    """Shims of K3s, with all processes that they have started."""
    found = list(processes())
    wanted = {number for number, _parent, command in found if SHIM in command.split(b"\0")[0] and SOCKET in command}
    while True:
        more = {number for number, parent, _command in found if parent in wanted} - wanted
        if not more:
            return wanted
        wanted |= more


def end():
    until = time.monotonic() + PATIENCE
    while True:
        left = family()
        if not left:
            return
        for number in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if time.monotonic() > until:
            raise OSError(f"processes of containers do not end: {sorted(left)}")
        time.sleep(PAUSE)


def end_on_docker():
    """Removes containers of pods, if Docker runs them. Others, and all images, stay."""
    try:
        with open(ROOT + CONFIGURATION, encoding="utf-8") as file:
            if ON_DOCKER not in file.read():
                return
    except FileNotFoundError:
        return
    ask = ["docker", "ps", "--all", "--quiet", "--no-trunc", f"--filter=label={LABEL}"]
    containers = subprocess.check_output(ask, timeout=PATIENCE).decode("ascii").split()
    if containers:
        remove_them = ["docker", "rm", "--force", "--volumes", *containers]
        subprocess.check_call(remove_them, stdout=subprocess.DEVNULL, timeout=PATIENCE)


def mounted():
    """What is mounted where pods and K3s mount, the innermost first."""
    with open(ROOT + "/proc/self/mounts", encoding="utf-8") as file:
        points = [line.split()[1].replace("\\040", " ") for line in file]
    # The kernel shows where a link leads.
    below = tuple(
        os.path.realpath(ROOT + one.rstrip("/"))[len(ROOT) :] + ("/" if one.endswith("/") else "") for one in MOUNTS
    )
    return sorted((one for one in points if one.startswith(below)), reverse=True)


def unmount():
    tried = set()
    # A point is listed as often as something is mounted there, and goes with others that are shared.
    while True:
        point = next((one for one in mounted() if one not in tried), None)
        if point is None:
            break
        tried.add(point)
        if subprocess.call(["umount", point], stderr=subprocess.DEVNULL, timeout=PATIENCE) != 0 and point in mounted():
            subprocess.call(["umount", "--lazy", point], stderr=subprocess.DEVNULL, timeout=PATIENCE)
        print(f"unmount {point}")
        if point.startswith("/run/netns/") and os.path.exists(point):
            os.unlink(point)
    left = mounted()
    if left:
        # What is below belongs to someone else.
        raise OSError(f"still mounted: {', '.join(left)}")


def stop():
    for unit in UNITS:
        if os.path.exists(f"{ROOT}/etc/systemd/system/{unit}.service"):
            if subprocess.call(["systemctl", "is-active", "--quiet", unit], timeout=PATIENCE) == 0:
                print(f"stop {unit}")
            subprocess.check_call(["systemctl", "disable", "--now", unit], stderr=subprocess.DEVNULL, timeout=PATIENCE)
    end()
    end_on_docker()
    return 0


def remove(keeps):
    stop()
    unmount()
    for path in MADE:
        if clear(ROOT + path, keeps):
            print(f"remove {path}")
    return 0


def clear(path, keeps):
    """Whether there was anything. A folder that is a file system of its own stays, without what is in it, and so does a path of `keeps`."""
    if not os.path.isdir(path):
        there = os.path.lexists(path)
        if there:
            os.unlink(path)
        return there
    if path in keeps:
        return False
    gone = False
    for name in os.listdir(path):
        one = os.path.join(path, name)
        if any(kept.startswith(one) for kept in keeps):
            gone = clear(one, keeps) or gone
            continue
        if os.path.isdir(one) and not os.path.islink(one):
            shutil.rmtree(one)
        else:
            os.unlink(one)
        gone = True
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return gone


def main(what, *arguments):
    if what == "await":
        return wait(*arguments)
    if what == "stop":
        return stop()
    return remove([ROOT + path for path in ([IMAGES] if what == "reset" else arguments)])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
