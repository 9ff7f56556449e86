# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container of our toolkit's DaemonSet on a machine without a kubelet, because the kubelet does not support every containerd.

Start script, command, environment and mounts are those of the manifest; image and installer are those of the rig, with NVIDIA's real programs.
The validator's file, for which the pod waits, is written here. containerd is restarted here as well, instead of by the installer's signal: the
installer reads the process of containerd from the credentials of its first bytes, but requests credentials only after the connection (v1.20.1,
containerd_linux.go). On a busy machine these bytes can arrive earlier, without a process, and the signal ends the installer, which a kubelet would restart.
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
#: Restarts containerd without the limit of systemd, which allows five starts in ten seconds.
RESTART = "systemctl reset-failed containerd 2>/dev/null || :; systemctl restart containerd"
#: Ends the container like the kubelet. containerd 2 itself deletes tasks that have ended while it did not run.
_END = f"""
process=$(cat /run/nvidia/toolkit/toolkit.pid); kill -TERM "$process"; while [ -e "/proc/$process" ]; do sleep 0.1; done
{RESTART}
{" ".join(_CTR)} tasks list --quiet | xargs --no-run-if-empty {" ".join(_CTR)} tasks delete
{" ".join(_CTR)} containers delete {_NAME}; rm {_LOG}
"""
#: Contents of the validator's file for a driver on the host (gpu-operator v26.3, cmd/nvidia-validator: createStatusFileWithContent).
_DRIVER_READY = "IS_HOST_DRIVER=true\nNVIDIA_DRIVER_ROOT=/\nDRIVER_ROOT_CTR_PATH=/host\nNVIDIA_DEV_ROOT=/\nDEV_ROOT_CTR_PATH=/host\n"


def image() -> str:
    """The image of the DaemonSet."""
    return str(_container()["image"])


def install(machine: Machine) -> None:
    """Creates the files and folders on the machine that the container requires."""
    machine.write("/run/nvidia/validations/driver-ready", _DRIVER_READY)
    for name, text in _object("ConfigMap", f"{_NAME}-entrypoint")["data"].items():
        machine.write(f"{_FOLDER}/entrypoint/{name}", text)
    machine.sh(f"mkdir -p {' '.join(source for source, _inside, _options in _mounts())}")


@contextlib.contextmanager
def running(machine: Machine) -> c.Iterator[None]:
    """The container runs during the context: it has configured containerd, and restores the configuration at its end. containerd is restarted both times."""
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
        machine.wait("the toolkit has configured containerd", lambda: "Waiting for signal" in machine.read(_LOG))
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
    """Path on the machine, path in the container, ro or rw. Volumes without a path on the host get one."""
    sources = {
        volume["name"]: volume.get("hostPath", {}).get("path", f"{_FOLDER}/{volume['name']}")
        for volume in _pod()["volumes"]
    }
    return [
        (sources[mount["name"]], mount["mountPath"], "ro" if mount.get("readOnly") else "rw")
        for mount in _container()["volumeMounts"]
    ]
