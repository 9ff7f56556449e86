# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What host roles ask of a machine, and their plans from what it answers: each role by its name."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed, of_role
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import installed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import role as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import role as k3s
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import role as kubeadm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import role as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import idle, predicted
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import role as node_runtime

Settings = dict[str, t.Any]
#: State of a machine that teardown restores.
ABSENT = "absent"
REQUESTS: dict[str, t.Callable[[Settings], host.Request]] = {
    "cluster_k3s": k3s.requested,
    "cluster_kubeadm": kubeadm.requested,
    "dns_pxe": dns_pxe.requested,
    "load_balancer": load_balancer.requested,
    "node_runtime": node_runtime.requested,
}
PLANS: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "cluster_k3s": k3s.planned,
    "cluster_kubeadm": kubeadm.planned,
    "dns_pxe": dns_pxe.planned,
    "load_balancer": load_balancer.planned,
    "node_runtime": node_runtime.planned,
}
RESTORED: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "cluster_k3s": k3s.restored,
    "cluster_kubeadm": kubeadm.restored,
    "dns_pxe": dns_pxe.restored,
    "load_balancer": load_balancer.restored,
    "node_runtime": node_runtime.restored,
}
#: Collections with modules for firewalls and SELinux. Preflight names those that a machine needs and that are missing.
_COLLECTIONS = ("ansible.posix", "community.general")


def request(role: str, settings: Settings) -> str:
    """The argument of look.py, in JSON: files, units, programs and facts that the role needs for its plan."""
    ask = of_role("machine_look", role, REQUESTS)
    return t.cast("str", computed("machine_look", lambda given: ask(given).as_text(), settings))


def plan(printed: str, role: str, settings: Settings, found: dict[str, t.Any] | None, state: str) -> dict[str, t.Any]:
    """As machine_look documents it. printed: the output of look.py. Raises AnsibleError if it is not complete."""
    if state == ABSENT:
        compute, given, more = of_role("machine_look", role, RESTORED), settings, []
    else:
        compute, more = of_role("machine_look", role, PLANS), [] if found is None else [found]
        given = {**settings, "collections": installed(*_COLLECTIONS)}

    def with_lines(printed: str, given: Settings, *more: dict[str, t.Any]) -> dict[str, t.Any]:
        computed_plan = compute(printed, given, *more)
        lines = predicted(computed_plan, absent=state == ABSENT, restarts=bool(given.get("restart", True)))
        return {**computed_plan, "predicted": lines, "idle": idle(computed_plan, lines)}

    return t.cast("dict[str, t.Any]", computed("machine_look", with_lines, printed, given, *more))
