# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restores etcd of this server from a snapshot, on the machine, step by step. Nothing is deleted.

restore.py look SNAPSHOTS      prints in JSON what the server holds of its cluster, and the snapshots in this folder
restore.py stop                ends the static pods of the control plane, of which the kubelet, which has to be stopped, would start none again
restore.py keep FOLDER         moves the data of etcd, and the manifests that would start it without data, into this folder
restore.py restore SNAPSHOT    makes the data of a cluster with this server as its only member, by etcdutl of etcd's image
restore.py release FOLDER      moves the manifests back

A manifest without data would start an etcd, and an API server, without any objects, whose kubelets would end all their pods.
Kubernetes needs revisions that never decrease, so they are increased, and marked as compacted: informers read everything again
(https://etcd.io/docs/v3.6/op-guide/recovery/#restoring-with-revision-bump).
Needs Python 3.6 or newer, and nothing else.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

#: Tests have another one.
ROOT = ""
KUBERNETES, DATA = "/etc/kubernetes", "/var/lib/etcd"
MANIFESTS = KUBERNETES + "/manifests"
#: Without them the server cannot serve, and let no other one join.
NEEDED = ("admin.conf", "kubelet.conf", "pki/ca.crt", "pki/ca.key", "pki/etcd/ca.crt", "pki/etcd/ca.key")
MOVED = ("etcd.yaml", "kube-apiserver.yaml")
PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
#: The kernel's names of processes have at most so many characters.
NAME = 15
#: Below the folder of the data, which may be a file system of its own.
MADE = "restoring"
#: As the documentation of etcd recommends it: more than what a week of 1500 writes in a second takes.
REVISIONS = 1000000000
#: Seconds for a process to end, and for a restoration.
PATIENCE, LONG = 60, 1800


def read(path):
    try:
        with open(ROOT + path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def manifest():
    """Text of the manifest of etcd, also where an earlier run has moved it."""
    kept = sorted(glob.glob(f"{ROOT}{DATA}-before-*/etcd.yaml"))
    return read(MANIFESTS + "/etcd.yaml") or (read(kept[-1][len(ROOT) :]) if kept else "")


def member(text):
    """Name, address and image of this server's member."""
    patterns = {
        "name": r"^ +- --name=(\S+)$",
        "peer": r"^ +- --initial-advertise-peer-urls=(\S+)$",
        "image": r"^ +image: (\S+)$",
    }
    found = {key: re.search(pattern, text, re.M) for key, pattern in patterns.items()}
    return {key: one.group(1) for key, one in found.items() if one}


def look(snapshots):
    paths = sorted(glob.glob(f"{ROOT}{snapshots}/*.db"))
    found = {
        "authority": read(KUBERNETES + "/pki/ca.crt"),
        "missing": [name for name in NEEDED if not os.path.exists(f"{ROOT}{KUBERNETES}/{name}")],
        "member": member(manifest()),
        # Names of keys of Secrets.
        "keys": re.findall(r"^ +- name: (\S+)$", read(KUBERNETES + "/pki/secrets-encryption.yaml"), re.M),
        "data": os.path.exists(f"{ROOT}{DATA}/member"),
        "snapshots": {path[len(ROOT) :]: os.path.getsize(path) for path in paths},
        "record": json.loads(read(os.path.dirname(snapshots) + "/restore.json") or "{}"),
    }
    print(json.dumps(found))


def processes():
    """Those of the static pods that kubeadm has made, by their process IDs."""
    found = {}
    for path in glob.glob(ROOT + "/proc/[0-9]*"):
        name = read(path[len(ROOT) :] + "/comm").strip()
        mine = [pod for pod in PODS if name == pod[:NAME]]
        if mine and KUBERNETES + "/" in read(path[len(ROOT) :] + "/cmdline"):
            found[int(os.path.basename(path))] = mine[0]
    return found


def stop():
    ended = time.time() + PATIENCE
    number = signal.SIGTERM
    told = set()
    while True:
        found = processes()
        for pid, name in found.items():
            if name not in told:
                print(f"stop {name}")
            told.add(name)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if not found:
            return 0
        if time.time() > ended + PATIENCE:
            print(f"{', '.join(sorted(found.values()))} does not end")
            return 1
        number = signal.SIGKILL if time.time() > ended else signal.SIGTERM
        time.sleep(1)


def free(path):
    """A path that does not exist yet."""
    names = [path] + [f"{path}-{number}" for number in range(2, 1000)]
    return next(one for one in names if not os.path.lexists(one))


def move(source, target):
    """Also to another file system, where it is there as a whole or not at all."""
    part = target + ".part"
    if os.path.isdir(part):
        shutil.rmtree(part)
    shutil.move(source, part)
    os.rename(part, target)
    print(f"move {source} to {target}")


def keep(folder):
    # Manifests first: nothing may start without its data.
    for path in [f"{MANIFESTS}/{name}" for name in MOVED] + [DATA + "/member"]:
        if os.path.exists(ROOT + path):
            os.makedirs(ROOT + folder, mode=0o700, exist_ok=True)
            move(ROOT + path, free(f"{ROOT}{folder}/{os.path.basename(path)}"))


def command(snapshot, found):
    """With the program of etcd's own version: since 3.6 it is etcdutl, before it was etcdctl."""
    release = re.search(r":v?(\d+)\.(\d+)", found["image"])
    newer = not release or (int(release.group(1)), int(release.group(2))) >= (3, 6)
    program = "etcdutl" if newer else "etcdctl"
    options = [
        "snapshot",
        "restore",
        snapshot,
        f"--name={found['name']}",
        f"--initial-cluster={found['name']}={found['peer']}",
        f"--initial-advertise-peer-urls={found['peer']}",
        # Of members of the time before, none can take this one for a member of its cluster.
        f"--initial-cluster-token=restored-{int(time.time())}",
        f"--data-dir={DATA}/{MADE}",
        f"--bump-revision={REVISIONS}",
        "--mark-compacted",
    ]
    return program, options


def restore(snapshot):
    found = member(manifest())
    made = f"{ROOT}{DATA}/{MADE}"
    # Of a run that was killed.
    shutil.rmtree(made, ignore_errors=True)
    os.makedirs(ROOT + DATA, mode=0o700, exist_ok=True)
    program, options = command(snapshot, found)
    mounts = []
    for path, how in ((DATA, "rw"), (snapshot, "ro")):
        mounts += ["--mount", f"type=bind,src={path},dst={path},options=rbind:{how}"]
    name = f"hwaccel-restore-{os.getpid()}-{int(time.time())}"
    argv = ["ctr", "--namespace", "k8s.io", "run", "--rm", *mounts, found["image"], name, "/usr/local/bin/" + program]
    try:
        subprocess.run(argv + options, check=True, timeout=LONG, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "output", None) or b"").decode("utf-8", "replace").strip()
        print(f"{program} of the image {found['image']} has failed: {said[-1000:] or error}")
        return 1
    os.rename(made + "/member", f"{ROOT}{DATA}/member")
    shutil.rmtree(made)
    print(f"restore {DATA} from {snapshot}")
    return 0


def release(folder):
    for name in MOVED:
        if os.path.exists(f"{ROOT}{folder}/{name}"):
            # The kubelet reads no hidden files.
            hidden = f"{ROOT}{MANIFESTS}/.{name}"
            shutil.copy2(f"{ROOT}{folder}/{name}", hidden)
            os.replace(hidden, f"{ROOT}{MANIFESTS}/{name}")
            print(f"put {name} back")


def main(what, *arguments):
    does = {one.__name__: one for one in (look, stop, keep, restore, release)}
    return does[what](*arguments) or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
