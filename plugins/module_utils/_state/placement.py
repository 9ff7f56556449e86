# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node matches a pod template, by the rules of the DaemonSet controller."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

Obj = c.Mapping[str, t.Any]

#: The DaemonSet controller adds tolerations for these.
_DAEMON_TOLERATED = ("node.kubernetes.io/",)


@dataclasses.dataclass(frozen=True)
class Obstacle:
    """path: of the field in the template's `spec` that excludes the node. why: the requirement that the node does not meet, or the missing toleration."""

    path: tuple[str, ...]
    why: str


def fits(node: Obj, template: Obj) -> bool:
    """Node selector, required node affinity and taints that exclude pods."""
    return obstacle(node, template) is None


def obstacle(node: Obj, template: Obj) -> Obstacle | None:
    """The first field of a pod template that excludes a node, None if the node matches."""
    spec = template.get("spec") or {}
    metadata = node.get("metadata") or {}
    labels = metadata.get("labels") or {}
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return Obstacle(("nodeSelector",), f"it requires {key}={value}")
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    terms = affinity.get("nodeSelectorTerms")
    if terms and not any(_term_matches(term, labels, str(metadata.get("name"))) for term in terms):
        return Obstacle(
            ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), _unmet(terms, labels)
        )
    for taint in (node.get("spec") or {}).get("taints") or ():
        if not _tolerated(taint, spec.get("tolerations") or ()):
            value = f"={taint['value']}" if taint.get("value") else ""
            return Obstacle(
                ("tolerations",),
                f"it does not tolerate the node's taint {taint.get('key')}{value}:{taint.get('effect')}",
            )
    return None


def _unmet(terms: c.Iterable[Obj], labels: c.Mapping[str, str]) -> str:
    """The unmet requirements of the term that matches best."""
    unmet = [
        [entry for entry in term.get("matchExpressions") or () if not _expression_matches(entry, labels)]
        for term in terms
    ]
    nearest = min(unmet, key=len)
    phrases = [
        " ".join(
            [
                str(one.get("key")),
                str(one.get("operator")),
                *([f"({', '.join(map(str, one['values']))})"] if one.get("values") else []),
            ]
        )
        for one in nearest
    ]
    return f"it requires {' and '.join(phrases)}" if phrases else "none of its terms matches the node"


def _term_matches(term: Obj, labels: c.Mapping[str, str], name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_expression_matches(entry, labels) for entry in expressions) and all(
        _expression_matches(entry, {"metadata.name": name}) for entry in fields
    )


def _expression_matches(entry: Obj, labels: c.Mapping[str, str]) -> bool:
    key, operator, values = entry.get("key", ""), entry.get("operator"), list(entry.get("values") or ())
    value = labels.get(key)
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    try:
        left, right = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right if operator == "Lt" else False


def _tolerated(taint: Obj, tolerations: c.Iterable[Obj]) -> bool:
    if taint.get("effect") == "PreferNoSchedule" or str(taint.get("key")).startswith(_DAEMON_TOLERATED):
        return True
    return tolerates(tolerations, taint)


def tolerates(tolerations: c.Iterable[Obj], taint: Obj) -> bool:
    key, effect = str(taint.get("key")), taint.get("effect")
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", effect):
            continue
        if not toleration.get("key"):
            if toleration.get("operator") == "Exists":
                return True
        elif toleration["key"] == key and (
            toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")
        ):
            return True
    return False
