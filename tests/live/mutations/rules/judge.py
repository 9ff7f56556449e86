# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All rules, and what they say of a set of objects."""

from __future__ import annotations

import collections.abc as c
import contextlib
import copy

import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import common
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Mutant, Obj, mutated
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import (
    access,
    commands,
    containers,
    network,
    operation,
    ownership,
    placement,
    upstream,
    volumes,
)
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests
from fleet_agent.programs.flags import Refused

Rule = c.Callable[[Manifests], c.Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    ownership.owned,
    ownership.of_driver,
    ownership.configured,
    ownership.default_container,
    ownership.named,
    ownership.selecting,
    access.calls,
    access.settings,
    access.bindings,
    access.accounts,
    access.restricted,
    access.guarded,
    access.policies,
    containers.on_the_host,
    containers.confined,
    containers.users,
    containers.levels,
    volumes.paths,
    volumes.used,
    volumes.read_only,
    volumes.shared,
    volumes.propagation,
    network.probed,
    network.probes,
    network.services,
    network.dashboards,
    network.prometheus,
    network.counted,
    placement.nodes,
    placement.alone,
    placement.taints,
    placement.preferred,
    placement.boards,
    commands.commanded,
    commands.shells,
    commands.scripts,
    commands.known,
    commands.asked,
    commands.gated,
    commands.read,
    commands.repeated,
    operation.pulled,
    operation.updated,
    operation.ranked,
    operation.handlers,
    operation.once,
    operation.given,
    operation.switched,
    operation.ended,
    operation.patient,
    operation.lasting,
    operation.linked,
    operation.single,
    operation.digests,
    upstream.like_theirs,
)
#: What a rule raises for an object without a field that every object of its kind has, for configuration that is no YAML, and for a command line that its
#: program refuses: the API server refuses such an object, or a gate sees the program end.
_INCOMPLETE = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    IndexError,
    AssertionError,
    yaml.YAMLError,
    Refused,
)


def of_mutant(objects: dict[str, list[Obj]], mutant: Mutant) -> str:
    """What rules say of the objects with a mutation, one finding a line; "" if nothing is wrong."""
    found = [*objects[mutant.role]]
    found[mutant.index] = mutated(found[mutant.index], mutant)
    if mutant.kind == "ConfigMap":
        # The collection computes the hash of a ConfigMap from its content, whatever that is: it must not tell of a mutation.
        found = [copy.deepcopy(item) if item.get("kind") in ("DaemonSet", "Deployment") else item for item in found]
        with contextlib.suppress(*_INCOMPLETE):
            common.stamp(found)
    return "\n".join(judged(objects | {mutant.role: found}))


def judged(objects: dict[str, list[Obj]]) -> list[Finding]:
    """What is wrong with the objects of all roles. A rule says nothing of objects that are incomplete."""
    found, said = Manifests(objects), list[Finding]()
    for rule in RULES:
        try:
            said.extend(rule(found))
        except _INCOMPLETE:
            continue
    return list(dict.fromkeys(said))
