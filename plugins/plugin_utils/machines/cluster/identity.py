# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether machines and the endpoint belong to one cluster. A second one is never made. Pure."""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.authority import short
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import (
    FOREIGN,
    MEMBER,
    SERVER,
    Answer,
    Machine,
)


def faults(machines: c.Sequence[Machine], answer: Answer) -> list[Fault]:
    """Machines of other distributions, of several clusters, in another role, and an endpoint of another cluster."""
    # Then machines have the old authority, the new one, or both.
    owners = _rotating(machines) or [*_several(machines), *_endpoint(machines, answer)]
    return [*_foreign(machines), *_roles(machines), *owners, *_unlike(machines), *_rekeying(machines)]


def authorities(machines: c.Iterable[Machine]) -> dict[str, list[str]]:
    """Names of machines by the fingerprint of their cluster's certificate authority."""
    owners: dict[str, list[str]] = {}
    for one in machines:
        if one.found and one.found.authority and one.state != FOREIGN:
            owners.setdefault(one.found.authority, []).append(one.host)
    return owners


def _foreign(machines: c.Iterable[Machine]) -> list[Fault]:
    next_step = "uninstall it there, or take the machine out of this cluster's groups"
    return [
        Fault(f"{one.host} belongs to something else", one.address, one.found.why, next_step)
        for one in machines
        if one.found and one.state == FOREIGN
    ]


def _unlike(machines: c.Iterable[Machine]) -> list[Fault]:
    """A server that is to join others with other settings would end at once."""
    servers = [one for one in machines if one.role == SERVER and one.found and not one.retired]
    if len({one.alike for one in servers}) < 2:
        return []
    shown = "; ".join(f"{one.host}: {', '.join(one.alike) or 'none'}" for one in servers)
    next_step = "set them for all servers by the role's variables, and remove them from these files"
    return [Fault("servers have different settings in files of others", shown, "they must have the same", next_step)]


def _rotating(machines: c.Iterable[Machine]) -> list[Fault]:
    begun = [one.host for one in machines if one.found and one.found.rotating]
    if not begun:
        return []
    what = f"the certificate authority of the cluster is being replaced, which is not completed on {some(begun)}"
    return [Fault(what, "", "", "complete it by the entry rotate_ca of the role that has installed the cluster")]


def _rekeying(machines: c.Iterable[Machine]) -> list[Fault]:
    """A server that joins or is upgraded meanwhile could miss a key."""
    begun = [one.host for one in machines if one.found and one.found.rekeying]
    if not begun:
        return []
    what = f"the key with which Secrets are encrypted is being replaced, which is not completed on {some(begun)}"
    return [
        Fault(
            what, "", "", "complete it by the entry rotate_encryption_keys of the role that has installed the cluster"
        )
    ]


def _several(machines: c.Iterable[Machine]) -> list[Fault]:
    owners = authorities(machines)
    if len(owners) < 2:
        return []
    which = "; ".join(f"{short(authority)} on {some(hosts)}" for authority, hosts in owners.items())
    next_step = "give each cluster machines of its own by hwaccel_cluster, or reset those that were of another cluster"
    return [Fault(f"the machines are of {len(owners)} clusters", "certificate authorities", which, next_step)]


def _roles(machines: c.Iterable[Machine]) -> list[Fault]:
    """A node cannot change its role: it has to be taken out first."""
    found = []
    for one in machines:
        if one.found and one.state == MEMBER and one.found.serves != (one.role == SERVER):
            is_now, wanted = ("a server", "an agent") if one.found.serves else ("an agent", "a server")
            next_step = "move it to the group that fits, or reset the machine first"
            found.append(
                Fault(f"{one.host} is {is_now} of the cluster and {wanted} in the inventory", "", "", next_step)
            )
    return found


def _endpoint(machines: c.Sequence[Machine], answer: Answer) -> list[Fault]:
    if not answer.answers:
        return []
    owners = authorities(machines)
    # A machine that was begun may have the authority of a cluster that it does not serve.
    members = any(one.joined or one.has_data for one in machines)
    if not members and all(one.found for one in machines if one.role == SERVER):
        what = "the endpoint answers, and no machine of the group is a member"
        why = f"its certificate authority is {short(answer.authority)}" if answer.authority else ""
        next_step = "set an endpoint that nothing uses yet, or add a server of that cluster to the group control_plane"
        return [Fault(what, "hwaccel_api_endpoint", why, next_step)]
    if answer.authority and len(owners) == 1 and answer.authority not in owners:
        mine = next(iter(owners))
        why = f"it is {short(answer.authority)}, and that of {some(owners[mine])} is {short(mine)}"
        next_step = "correct hwaccel_api_endpoint, or the members of its load balancer"
        return [Fault("the endpoint is that of another cluster", "hwaccel_api_endpoint", why, next_step)]
    return []
