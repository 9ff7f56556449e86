# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of a cluster: what the inventory says of each, and what was found there. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Version

SERVER, AGENT = "server", "agent"
#: absent: nothing of any cluster. member: a node that runs or can run. half: begun and not completed. foreign: another distribution, or a lone kubelet.
ABSENT, MEMBER, HALF, FOREIGN = "absent", "member", "half made", "foreign"


#: Fields of Found that facts of Ansible hold as lists.
_TUPLES = ("version", "control_plane", "behind")


@dataclasses.dataclass(frozen=True)
class Found:
    """What a look at a machine has shown, in the form that a distribution's `observed` returns and facts of Ansible can hold.

    state: see above; why: what shows it, for messages. serves: whether it is a server. data: whether it has data of the datastore.
    authority: fingerprint of the cluster's certificate authority, empty if it has none; certificate: the same in PEM.
    endpoint: URL of the API server that its kubelet uses. version: of the installed kubelet. running: whether its unit runs.
    control_plane: the lowest version of a server's control plane. days: until the first certificate of a server expires, None if there is none.
    expired: whether one has, and an installer can renew it: until then nothing trusts the server.
    behind: why a member does not run as it is set. begun: whether an earlier run has begun to change that.
    rotating: whether it is about to get another certificate authority. rekeying: whether it is about to get another key of Secrets.
    """

    state: str = ABSENT
    why: str = ""
    serves: bool = False
    data: bool = False
    authority: str = ""
    certificate: str = ""
    endpoint: str = ""
    version: Version = ()
    control_plane: Version = ()
    running: bool = False
    days: int | None = None
    expired: bool = False
    behind: tuple[str, ...] = ()
    begun: bool = False
    rotating: bool = False
    rekeying: bool = False

    def as_dict(self) -> dict[str, t.Any]:
        lists = {name: list(getattr(self, name)) for name in _TUPLES}
        return {**dataclasses.asdict(self), **lists}

    @classmethod
    def of(cls, given: c.Mapping[str, t.Any]) -> Found:
        return cls(**{**given, **{name: tuple(given[name]) for name in _TUPLES}})


@dataclasses.dataclass(frozen=True)
class Machine:
    """host: its name in the inventory. node: of its Node. role: SERVER or AGENT. found: None if it could not be observed.

    identity: by the name of the property (machine-id, product UUID, host name), what must differ between machines.
    alike: settings in files of others that servers must have in common.
    retired: whether it is to leave the cluster. left: whether anything of the installer is on it then. lost: whether it is gone for good.
    """

    host: str
    node: str
    address: str
    role: str
    found: Found | None = None
    identity: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: tuple[c.Mapping[str, str], ...] = ()
    retired: bool = False
    left: bool = False
    lost: bool = False
    alike: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        return self.found.state if self.found else ""

    @property
    def joined(self) -> bool:
        return self.state == MEMBER

    @property
    def serves(self) -> Version:
        """Version of a server's control plane."""
        return (self.found.control_plane or self.found.version) if self.found else ()

    @property
    def has_data(self) -> bool:
        return bool(self.found and self.found.data)


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the endpoint of the cluster answers: whether anything does, and the fingerprint of the cluster that it claims to be."""

    answers: bool = False
    authority: str = ""


def unique(machines: c.Sequence[Machine]) -> list[Fault]:
    """Problems of machines that are copies of one another: Kubernetes and network plugins tell nodes apart by these.

    Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/#verify-mac-address.
    """
    faults = []
    for name in dict.fromkeys(key for machine in machines for key in machine.identity):
        owners: dict[str, list[str]] = {}
        for machine in machines:
            if value := machine.identity.get(name, ""):
                owners.setdefault(value, []).append(machine.host)
        for value, hosts in owners.items():
            if len(hosts) > 1:
                why = "they are copies of one disk or virtual machine" if name != "node name" else ""
                next_step = _REMEDIES.get(name, f"give each a {name} of its own")
                faults.append(Fault(f"{len(hosts)} machines have the {name} {value}", ", ".join(hosts), why, next_step))
    return faults


_REMEDIES = {
    "machine-id": "remove /etc/machine-id and run systemd-machine-id-setup on each but one, then reboot",
    "node name": "set hwaccel_node_name of each",
}
