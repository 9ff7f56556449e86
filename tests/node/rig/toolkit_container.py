# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container of our toolkit's DaemonSet on a machine without a kubelet, which would not talk to every containerd: started and ended by hand.

Start script, command, environment and mounts are the manifest's; image and installer are those of the rig, where NVIDIA's programs are the real ones.
What the pod waits for, the validator's file, is written here. containerd is restarted from here too, not by the installer's signal: that is for the
process whose credentials come with containerd's first bytes, but is asked for only after the connection (v1.20.1, containerd_linux.go). On a busy machine
the bytes can be there before, without a process, and the signal is the installer's own end; a kubelet would start it anew.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import typing as t

from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

_NAME = "nvidia-container-toolkit"
_FOLDER, _LOG = "/rig/toolkit", "/run/toolkit.log"
_CTR = ("ctr", "--namespace=k8s.io")
#: containerd, however often it has been: systemd would not start it more than five times in ten seconds.
RESTART = "systemctl reset-failed containerd 2>/dev/null || :; systemctl restart containerd"
#: As kubelet ends it. containerd 2 lets go by itself of what has ended while it did not run.
_END = f"""
process=$(cat /run/nvidia/toolkit/toolkit.pid); kill -TERM "$process"; while [ -e "/proc/$process" ]; do sleep 0.1; done
{RESTART}
{" ".join(_CTR)} tasks list --quiet | xargs --no-run-if-empty {" ".join(_CTR)} tasks delete
{" ".join(_CTR)} containers delete {_NAME}; rm {_LOG}
"""
#: Of a driver on the host itself (gpu-operator v26.3, cmd/nvidia-validator: createStatusFileWithContent).
_DRIVER_READY = "IS_HOST_DRIVER=true\nNVIDIA_DRIVER_ROOT=/\nDRIVER_ROOT_CTR_PATH=/host\nNVIDIA_DEV_ROOT=/\nDEV_ROOT_CTR_PATH=/host\n"


def image() -> str:
    """What the DaemonSet names."""
    return str(_container()["image"])


def install(machine: Machine) -> None:
    """What the container finds on the machine."""
    machine.write("/run/nvidia/validations/driver-ready", _DRIVER_READY)
    for name, text in _object("ConfigMap", f"{_NAME}-entrypoint")["data"].items():
        machine.write(f"{_FOLDER}/entrypoint/{name}", text)
    machine.sh(f"mkdir -p {' '.join(source for source, _inside, _options in _mounts())}")


@contextlib.contextmanager
def running(machine: Machine) -> c.Iterator[None]:
    """From when it has configured containerd until it has put back what it does at its end. containerd is restarted at both, and has read its files then."""
    container = _container()
    environment = [
        *(f"--env={entry['name']}={entry['value']}" for entry in container["env"]),
        "--env=RUNTIME_RESTART_MODE=none",
    ]
    bound = [
        f"--mount=type=bind,src={source},dst={inside},options=rbind:{options}" for source, inside, options in _mounts()
    ]
    machine.execute(
        *_CTR,
        "run",
        "--detach",
        f"--log-uri=file://{_LOG}",
        "--privileged",
        "--with-ns=pid:/proc/1/ns/pid",
        *environment,
        *bound,
        container["image"],
        _NAME,
        *container["command"],
    )
    try:
        machine.wait("the toolkit waits for its end", lambda: "Waiting for signal" in machine.read(_LOG))
        machine.sh(RESTART)
        yield
    finally:
        machine.sh(_END)


def _object(kind: str, name: str) -> dict[str, t.Any]:
    (found,) = (one for one in stack.manifests("driver") if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


def _pod() -> dict[str, t.Any]:
    return dict(_object("DaemonSet", _NAME)["spec"]["template"]["spec"])


def _container() -> dict[str, t.Any]:
    (found,) = _pod()["containers"]
    return dict(found)


def _mounts() -> list[tuple[str, str, str]]:
    """Path on the machine, path in the container, ro or rw. What is no path of the host has one of its own."""
    sources = {
        volume["name"]: volume.get("hostPath", {}).get("path", f"{_FOLDER}/{volume['name']}")
        for volume in _pod()["volumes"]
    }
    return [
        (sources[mount["name"]], mount["mountPath"], "ro" if mount.get("readOnly") else "rw")
        for mount in _container()["volumeMounts"]
    ]
