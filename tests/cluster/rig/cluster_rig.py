# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines for clusters that kubeadm makes: with its programs and images, and with a network between their pods. Nothing of Kubernetes is installed.

with contextlib.closing(ClusterRig(say)) as rig:
    machine = rig.machine("cp1")
    machine.sh(f"install {PROGRAMS}/kubeadm {PROGRAMS}/kubelet /usr/local/bin")
    rig.play("some_playbook", {"control_plane": {"cp1": {}}})
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import json
import pathlib
import shutil

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.images import ensure_images, ensure_nft, ensure_plugins
from ansible_collections.hwaccel.gpu.tests.cluster.rig.programs import VERSION, Programs, ensure_programs
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import POD_NETWORK, pod_network
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY
from ansible_collections.hwaccel.gpu.tests.tools.settings import enough_instances

#: Folders on each machine: kubeadm and kubelet with SHA256SUMS, and the archives images.NODE and images.CONTROL_PLANE.
PROGRAMS, IMAGES = "/opt/programs", "/opt/images"
#: Networks of the rig's pods and Services. Each machine's pods have the part of the former in its port.
POD_SUBNET, SERVICE_SUBNET = "10.244.0.0/16", "10.96.0.0/16"


@dataclasses.dataclass(frozen=True)
class Parts:
    """What machines get of one version of Kubernetes. images: folder with the archives. plugins: the archive of CNI plugins."""

    programs: Programs
    images: pathlib.Path
    plugins: pathlib.Path

    def shares(self, suffix: str = "") -> dict[str, str]:
        """Mounts of a machine. suffix: of the paths in it, for a second version."""
        return {str(self.programs.installed): PROGRAMS + suffix, str(self.images): IMAGES + suffix}


def ensure_parts(say: c.Callable[[str], None], version: str = VERSION) -> Parts:
    """The parts of a version, from the cache or made now. Raises what ensure_programs does."""
    busybox = shutil.which("busybox")
    assert busybox, "the rig requires busybox"
    programs = ensure_programs(say, version)
    archives = ensure_images(programs, ensure_nft(say), pathlib.Path(busybox), say)
    return Parts(programs, archives, ensure_plugins(say))


class NodesRig(BootRig):
    """With as many instances of inotify as several nodes on one kernel need. Hosts and playbooks are those of BootRig."""

    def __init__(self, say: c.Callable[[str], None]) -> None:
        with contextlib.ExitStack() as opened:
            opened.enter_context(enough_instances(cache_folder()))
            super().__init__(say)
            self._opened = opened.pop_all()

    def close(self) -> None:
        with self._opened:
            super().close()


class ClusterRig(NodesRig):
    """rig.machine("cp1"): a machine that can become a node."""

    def __init__(self, say: c.Callable[[str], None]) -> None:
        self.parts = ensure_parts(say)
        super().__init__(say)

    def machine(self, name: str, shares: dict[str, str] | None = None) -> Machine:
        """Boots a machine with programs, images and the network of pods. It installs packages from the rig's repository."""
        machine = super().machine(name, {**self.parts.shares(), **(shares or {})})
        # Nothing listens there, so names fail at once. CoreDNS ends if the file has no server for other names than the cluster's.
        machine.write("/etc/resolv.conf", f"nameserver {GATEWAY}\n")
        machine.write(POD_NETWORK, json.dumps(pod_network(machine.port)))
        return machine
