# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster can be upgraded to the version that is set, from those that its members run. Pure."""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import SERVER, Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Version, version_text

#: Data of a newer version may be unknown to an older API server, and kubeadm refuses both
#: (https://kubernetes.io/releases/version-skew-policy/, cmd/kubeadm/app/phases/upgrade/policy.go).
_DOWNGRADE = "Kubernetes cannot be downgraded: its data may be unknown to an older API server"
#: An agent that was missed by upgrades follows as long as its kubelet may join the control plane.
_KUBELET_SKEW = 3
_SKIP = "only one minor version at a time can be upgraded"


def faults(machines: c.Sequence[Machine], wanted: Version) -> list[Fault]:
    """One for each version from which no upgrade leads to the one that is set."""
    runs: dict[Version, list[str]] = {}
    for machine in machines:
        for version, minors in _versions(machine).items():
            if not _leads(version, wanted, minors):
                runs.setdefault(version, []).append(machine.host)
    return [_fault(hosts, version, wanted) for version, hosts in sorted(runs.items())]


def _versions(machine: Machine) -> dict[Version, int]:
    """Those of a member, with the number of minor versions that each may be older: an interrupted upgrade leaves two."""
    if not machine.found or not machine.joined:
        return {}
    kubelet = 1 if machine.role == SERVER and not machine.found.control_plane else _KUBELET_SKEW
    control_plane = {machine.found.control_plane: 1} if machine.found.control_plane else {}
    return {machine.found.version: kubelet, **control_plane}


def _leads(version: Version, wanted: Version, minors: int) -> bool:
    return bool(version) and version <= wanted and version[0] == wanted[0] and wanted[1] - version[1] <= minors


def _fault(hosts: list[str], version: Version, wanted: Version) -> Fault:
    verb = "runs" if len(hosts) == 1 else "run"
    runs, set_to = version_text(version), version_text(wanted)
    what = f"{some(hosts)} {verb} Kubernetes {runs or 'of an unknown version'}, and {set_to} is set"
    if version > wanted:
        return Fault(what, "", _DOWNGRADE, f"set {runs}, or restore a snapshot that the older version has made")
    if version and version[0] == wanted[0]:
        path = [f"{wanted[0]}.{minor}" for minor in range(version[1] + 1, wanted[1])]
        return Fault(what, "", _SKIP, f"upgrade to {path[0]} first; the path is {', '.join((*path, set_to))}")
    return Fault(what, "", "no upgrade between these is known", "set the version that runs")
