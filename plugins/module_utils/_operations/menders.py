# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effect of the quarantine taint: DaemonSets that can recover a node must be able to create pods there.

The collection's DaemonSets tolerate every NoSchedule taint. Those of the GPU Operator, of upstream charts and of most clouds do not tolerate the quarantine:
once deleted or evicted, their driver pod is never recreated, and the node can never pass. The DaemonSet controller only evaluates NoSchedule and NoExecute
(Kubernetes 1.36.4, pkg/controller/daemon/daemon_controller.go 1404, predicates), and for the scheduler PreferNoSchedule is only a preference
(pkg/scheduler/framework/plugins/tainttoleration).
"""

from __future__ import annotations

import collections.abc as c
import functools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import placement

#: Parts that a gate waits for on a node. It does not wait for an exporter.
_MENDING = frozenset({parts.NFD_WORKER, parts.DRIVER, parts.TOOLKIT, parts.VALIDATOR, parts.PLUGIN, parts.DISCOVERY})
_DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
#: A toleration with another value matches no gate.
_MARK = {"key": names.QUARANTINE, "value": "", "effect": quarantine.HARD}

Obj = dict[str, t.Any]


class Menders:
    """DaemonSets of the chain that NoSchedule would stop, in all namespaces, read on first use."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def effect(self, node: Obj) -> str:
        """Effect of the taint for this Node. If DaemonSets may not be listed, it is PreferNoSchedule, which blocks no recovery."""
        stopped = self._stopped
        open_node = quarantine.without_mark(node)
        return (
            quarantine.SOFT
            if stopped is None or any(placement.fits(open_node, template) for template in stopped)
            else quarantine.HARD
        )

    @functools.cached_property
    def _stopped(self) -> list[Obj] | None:
        try:
            return [
                template
                for page in self._client.pages(_DAEMON_SET)
                for template in _templates(page.items)
                if _is_stopped(template)
            ]
        except Forbidden:
            return None


def _templates(daemon_sets: c.Iterable[Obj]) -> c.Iterator[Obj]:
    return (item["spec"]["template"] for item in daemon_sets)


def _is_stopped(template: Obj) -> bool:
    spec = template.get("spec") or {}
    return parts.role_of(template) in _MENDING and not placement.tolerates(spec.get("tolerations") or (), _MARK)
