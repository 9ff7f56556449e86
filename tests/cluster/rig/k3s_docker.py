# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines for K3s on Docker: Debian's, which runs, with the cri-dockerd that K3s contains.

with contextlib.closing(DockerRig(say)) as rig:
    site = K3sSite(rig, ("s1",), ("a1",), shares=rig.shares)
    site.variables["cluster_k3s_engine"] = "docker"
"""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig, ensure_cri_dockerd
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import FIRST_PROGRAMS
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

#: The rig's machines may not lower the score with which the kernel chooses processes to end, and have not all capabilities. cri-dockerd asks for the former,
#: and Docker gives all of the latter to privileged containers, where containerd gives those that it has. The name by which it is called says whether it is
#: NVIDIA's.
_RUNC = """#!/usr/bin/python3
import json, os, sys
# By their numbers (include/uapi/linux/capability.h).
CAPABILITIES = '''
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK
IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE
AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE'''.split()
arguments = sys.argv[1:]
path = ""
if "create" in arguments:
    path = arguments[arguments.index("--bundle") + 1] + "/config.json"
elif "exec" in arguments and "--process" in arguments:
    path = arguments[arguments.index("--process") + 1]
if path:
    with open(path) as file:
        config = json.load(file)
    process = config.get("process", config)
    process.pop("oomScoreAdj", None)
    with open("/proc/self/status") as file:
        bounding = next(int(line.split()[1], 16) for line in file if line.startswith("CapBnd"))
    lacking = {"CAP_" + name for number, name in enumerate(CAPABILITIES) if not bounding >> number & 1}
    for name, given in process.get("capabilities", {}).items():
        process["capabilities"][name] = [one for one in given if one not in lacking]
    if os.path.basename(sys.argv[0]) == "nvidia":
        process["env"].append("RUNTIME=nvidia")
    with open(path, "w") as file:
        json.dump(config, file)
first = "@FIRST@/runc"
os.execv(first if os.path.exists(first) else "/usr/sbin/runc", ["runc", *arguments])
""".replace("@FIRST@", FIRST_PROGRAMS)
#: The rig's machines have control groups below which no systemd is.
DAEMON: dict[str, t.Any] = {"exec-opts": ["native.cgroupdriver=cgroupfs"]}
#: With a substitute of NVIDIA's runtime.
WITH_NVIDIA = {
    **DAEMON,
    "runtimes": {"nvidia": {"path": "/rig/docker/nvidia"}},
    "default-runtime": "nvidia",
}
_UNIT = f"[Service]\nEnvironment=PATH=/rig/docker:{FIRST_PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"


class DockerRig(K3sRig):
    """daemon: settings of Docker. Raises what ensure_programs does."""

    def __init__(self, say: c.Callable[[str], None], daemon: dict[str, t.Any], *versions: str) -> None:
        cri_dockerd = ensure_cri_dockerd(say)
        self.shares = {str(cri_dockerd): "/usr/local/bin/cri-dockerd"}
        self._daemon = daemon
        super().__init__(say, *versions)

    def without_engine(self, machine: Machine) -> None:
        for name in ("runc", "nvidia"):
            machine.write(f"/rig/docker/{name}", _RUNC, "0755")
        machine.write("/etc/docker/daemon.json", json.dumps(self._daemon))
        for unit in ("docker", "containerd"):
            machine.write(f"/etc/systemd/system/{unit}.service.d/rig.conf", _UNIT)
        machine.sh("systemctl daemon-reload && systemctl start docker")
        # A container of somebody else.
        machine.sh(
            "tar --create --directory=/ bin/busybox | docker import - mine && docker run --detach --name=mine mine /bin/busybox sleep 100000"
        )
