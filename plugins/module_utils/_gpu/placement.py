# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a DaemonSet selects: pools, GPUs and component labels as node selector terms.

A term holds requirements that must all be met, one term of several is enough.
"""

from __future__ import annotations

import collections.abc as c
import itertools
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import CPU, DEFAULT, Pool

Requirement = dict[str, t.Any]
Term = tuple[Requirement, ...]

HOSTNAME = "kubernetes.io/hostname"
ARCHITECTURE = "kubernetes.io/arch"
#: Values of a label that disable a component. Without the label it runs.
PAUSED = ("false", "paused-for-driver-upgrade", "paused-for-mig-change")
#: More terms than this in one affinity show that the selectors should be simpler.
MOST_TERMS = 64


class TooManyTerms(ValueError):
    """The pools' selectors combine into an affinity with too many terms to be readable."""


def need(key: str, operator: str, *values: str) -> Requirement:
    return {"key": key, "operator": operator, **({"values": sorted(values)} if values else {})}


def switch(component: str, *more: str) -> Requirement:
    """The requirement that the GPU Operator's label does not disable a component; more: additional values that disable it."""
    return need(f"{names.VENDOR}gpu.deploy.{component}", "NotIn", *PAUSED, *more)


OPERANDS = need(names.OPERANDS_LABEL, "NotIn", "false")


def gpu_present(*, foreign_nfd: bool, integrated: bool = True) -> list[Term]:
    """Terms for "has a GPU". The collection's NFD writes one form of the PCI label, another NFD may write any; integrated: Tegra, not on a PCI bus."""
    labels = names.PCI_LABELS if foreign_nfd else names.PCI_LABELS[:1]
    terms: list[Term] = [(need(label, "In", "true"),) for label in labels]
    if integrated:
        terms += [
            (need(names.INTEGRATED_LABEL, "In", "true"),),
            (need(names.CPU_VENDOR_LABEL, "In", names.TEGRA_CPU_VENDOR),),
        ]
    return terms


def gpu_nodes(*, foreign_nfd: bool, integrated: bool = True) -> list[Term]:
    """Terms for "has a GPU, and is not opted out"."""
    return both(gpu_present(foreign_nfd=foreign_nfd, integrated=integrated), [(OPERANDS,)])


def pool_terms(pool: Pool) -> list[Term]:
    """Terms for "is in this declared pool"."""
    terms: list[Term] = []
    if pool.selector:
        terms.append(tuple(_requirement(one) for one in selectors.parse(pool.selector)))
    if pool.nodes:
        terms.append((need(HOSTNAME, "In", *pool.nodes),))
    return terms or [()]


def outside(pools: c.Iterable[Pool]) -> list[Term]:
    """Terms for "is in none of these pools"."""
    terms: list[Term] = [()]
    for pool in pools:
        if not pool.selector and not pool.nodes:
            continue
        for term in pool_terms(pool):
            terms = both(terms, [(negated(requirement),) for requirement in term])
    return terms


def of_pool(name: str, pools: c.Sequence[Pool]) -> list[Term]:
    """Terms for a pool by name: a declared pool by its selector, the default pool as outside of all others."""
    declared = next((pool for pool in pools if pool.name == name), None)
    if declared is not None and (declared.selector or declared.nodes):
        return pool_terms(declared)
    return outside(pool for pool in pools if pool.name not in (DEFAULT, CPU))


def both(one: c.Sequence[Term], other: c.Sequence[Term]) -> list[Term]:
    """Terms that match if one term of each list matches."""
    joined = [_merged(left + right) for left, right in itertools.product(one, other)]
    if len(joined) > MOST_TERMS:
        raise TooManyTerms(f"{len(joined)} combinations")
    return joined


def affinity(terms: c.Sequence[Term]) -> dict[str, t.Any]:
    """`nodeAffinity` of terms; none if they require nothing."""
    stated = [{"matchExpressions": list(term)} for term in terms if term]
    if len(stated) < len(terms):
        return {}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": stated}}


def place(manifest: dict[str, t.Any], terms: c.Sequence[Term]) -> None:
    """Sets the terms as a workload's node affinity. Its pod affinities are kept."""
    spec = manifest["spec"]["template"]["spec"]
    node_affinity = affinity(terms)
    if node_affinity:
        spec.setdefault("affinity", {})["nodeAffinity"] = node_affinity


def nfd_value(kernel: str) -> str:
    """A kernel's name as NFD writes it into a label: invalid characters become "_", and "-_." at both ends are removed."""
    return re.sub(r"[^-A-Za-z0-9_.]", "_", kernel).strip("-_.")


def _requirement(one: selectors.Requirement) -> Requirement:
    return need(one.key, one.operator, *one.values)


def negated(requirement: Requirement) -> Requirement:
    """The requirement that matches exactly the other nodes."""
    opposite = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}[
        requirement["operator"]
    ]
    return {**requirement, "operator": opposite}


def _merged(term: Term) -> Term:
    """Without repetitions, in a fixed order."""
    seen: dict[str, Requirement] = {}
    for requirement in term:
        seen.setdefault(repr(sorted(requirement.items(), key=str)), requirement)
    return tuple(sorted(seen.values(), key=lambda one: (one["key"], one["operator"], one.get("values", []))))
