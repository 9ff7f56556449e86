# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of this collection as it applies them to a plain cluster of one class of nodes, with all defaults."""

from __future__ import annotations

import functools
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack
from ansible_collections.hwaccel.gpu.tests.upstream.objects import Fields, Object, fields, rights

#: The Prometheus Operator is there, because others' manifests configure Prometheus by its kinds only.
_EXISTING = {
    "prometheus_operator": [
        {
            "kind": "CustomResourceDefinition",
            "namespace": "",
            "name": "servicemonitors.monitoring.coreos.com",
            "image": "",
        }
    ]
}
#: Objects that the API server makes the same of for each project, and whose values are in the rows of their accounts.
BINDINGS = ("Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


@functools.cache
def objects(role: str) -> list[Object]:
    """Those of teardown as well."""
    fleet = stack.fleet(stack.node_class(pool=""), existing=_EXISTING)
    plan = stage_objects(stack.texts(role), role, stack.settings(role), fleet)
    assert plan["faults"] == [], plan["faults"]
    apart = [one for text in stack.texts(role, apart=True) for one in yaml.safe_load_all(text) if one]
    return [*plan["objects"], *apart]


def of(pair: t.Mapping[str, t.Any]) -> Fields:
    """Fields of our side of a pair, none where we have no such object."""
    ours = pair.get("ours") or {}
    if "defaults" in ours:
        return {theirs: stack.defaults(pair["role"])[name] for theirs, name in ours["defaults"].items()}
    if "account" in ours:
        return account(pair["role"], ours["account"])
    if not ours:
        return {}
    found = {path: masked(path, value) for path, value in fields(one(pair["role"], ours["kind"], ours["name"])).items()}
    return part(found, ours["part"]) if "part" in ours else found


def masked(path: str, value: t.Any) -> t.Any:
    """The value that is compared. Digests of the manifests themselves would change with every line of these."""
    return "a digest" if path.endswith(("config-hash", "[DRIVER_CONFIG_DIGEST]")) else value


def part(found: Fields, prefix: str) -> Fields:
    return {path.removeprefix(prefix): value for path, value in found.items() if path.startswith(prefix)}


def one(role: str, kind: str, name: str) -> Object:
    """name: of the object, or the beginning of it that ends with an asterisk, where the rest follows from nodes."""
    (found,) = [
        one
        for one in objects(role)
        if one["kind"] == kind
        and (one["metadata"]["name"] == name or (name[-1] == "*" and one["metadata"]["name"].startswith(name[:-1])))
    ]
    return found


def account(role: str, name: str) -> Fields:
    """Rights of a ServiceAccount, and its name."""
    found = objects(role)
    rules = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in found if "rules" in one}
    given = [
        (one["kind"] == "ClusterRoleBinding", rule)
        for one in found
        if one["kind"] in ("RoleBinding", "ClusterRoleBinding")
        if name in [subject["name"] for subject in one["subjects"]]
        for rule in rules[one["roleRef"]["kind"], one["roleRef"]["name"]]
    ]
    assert [one for one in found if one["kind"] == "ServiceAccount" and one["metadata"]["name"] == name]
    return {"name": name, **rights(given)}


def unpaired(role: str, pairs: t.Iterable[t.Mapping[str, t.Any]]) -> list[str]:
    """Objects of the role that no pair compares, as "kind name"."""
    paired = {
        id(one(role, pair["ours"]["kind"], pair["ours"]["name"]))
        for pair in pairs
        if pair["role"] == role and "kind" in (pair.get("ours") or {})
    }
    return sorted(
        f"{one['kind']} {one['metadata']['name']}"
        for one in objects(role)
        if id(one) not in paired and one["kind"] not in BINDINGS
    )
