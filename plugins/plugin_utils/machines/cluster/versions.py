# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster can have the version that is set, from those that its members run. Pure."""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Version

#: Data of a newer version may be unknown to an older API server, and kubeadm refuses both
#: (https://kubernetes.io/releases/version-skew-policy/, cmd/kubeadm/app/phases/upgrade/policy.go).
_DOWNGRADE = "Kubernetes cannot be downgraded: its data may be unknown to an older API server"
_SKIP = "only one minor version at a time can be upgraded"


def faults(machines: c.Sequence[Machine], wanted: Version) -> list[Fault]:
    """One for each version that members run beside the one that is set: what runs is not changed by the way."""
    runs: dict[Version, list[str]] = {}
    for machine in machines:
        if machine.found and machine.joined and machine.found.version != wanted:
            runs.setdefault(machine.found.version, []).append(machine.host)
    return [_fault(hosts, version, wanted) for version, hosts in sorted(runs.items())]


def _fault(hosts: list[str], version: Version, wanted: Version) -> Fault:
    verb = "runs" if len(hosts) == 1 else "run"
    what = f"{some(hosts)} {verb} Kubernetes {_text(version)}, and {_text(wanted)} is set"
    if version > wanted:
        return Fault(
            what, "", _DOWNGRADE, f"set {_text(version)}, or restore a snapshot that the older version has made"
        )
    if path := _between(version, wanted):
        return Fault(what, "", _SKIP, f"upgrade to {path[0]} first; the path is {', '.join((*path, _text(wanted)))}")
    return Fault(what, "", "", f"set the version that runs, or upgrade the cluster to {_text(wanted)} first")


def _between(version: Version, wanted: Version) -> list[str]:
    """The minor versions that lie between both, which an upgrade has to pass. Empty without a known version, and between major versions."""
    if len(version) < 2 or version[0] != wanted[0]:
        return []
    return [f"{wanted[0]}.{minor}" for minor in range(version[1] + 1, wanted[1])]


def _text(version: Version) -> str:
    return ".".join(map(str, version)) or "of an unknown version"
