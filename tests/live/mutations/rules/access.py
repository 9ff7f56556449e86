# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights at the API server: no more and no less than the calls of the programs, and bindings that give them to accounts that exist."""

from __future__ import annotations

import collections.abc as c

import yaml

from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests, tables, where
from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent import manifests
from fleet_agent.programs.tables import Table

#: Whether the rule is the cluster's, group, resource and verb.
Right = tuple[bool, str, str, str]
#: Operations of admission by verb.
_OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}


def calls(found: Manifests) -> c.Iterator[Finding]:
    """An account may send the requests that its programs send by their sources (vars/rights.yml), and no others."""
    for role in found.by_role:
        rows = tables(role).get("api_calls", [])
        accounts = {item["metadata"]["name"] for item in found.by_role[role] if item.get("kind") == "ServiceAccount"}
        known = {row["account"] for row in rows}
        yield from (
            f"ServiceAccount {name}: metadata.name is of no account in the table of calls" for name in accounts - known
        )
        for account in sorted(accounts & known):
            needed = {
                (bool(call["cluster"]), call["group"], call["resource"], call["verb"])
                for row in rows
                if row["account"] == account
                for call in row["calls"]
            }
            given = dict(_granted(found.by_role[role], account))
            for right in sorted(given.keys() - needed):
                yield f"{given[right]} gives {account} {_told(right)}, which no program of it calls: not needed"
            for right in sorted(needed - given.keys()):
                yield f"rules, roleRef or subjects of {account}: cannot {_told(right)}, which its program calls"


def _told(right: Right) -> str:
    cluster, group, resource, verb = right
    return f'{verb or repr(verb)} resource "{resource}" in API group "{group}" {"of the cluster" if cluster else "of its namespace"}'


def _granted(objects: list[Obj], account: str) -> c.Iterator[tuple[Right, str]]:
    rules = {(item["kind"], item["metadata"]["name"]): item["rules"] for item in objects if "rules" in item}
    for item in objects:
        if item.get("kind") not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        if account not in [subject.get("name") for subject in item.get("subjects") or ()]:
            continue
        ref = item["roleRef"]
        for index, rule in enumerate(rules.get((ref["kind"], ref["name"]), ())):
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for verb in rule.get("verbs") or ():
                        yield (
                            (item["kind"] == "ClusterRoleBinding", group, resource, verb),
                            f"{ref['kind']} {ref['name']}: rules[{index}]",
                        )


def settings(found: Manifests) -> c.Iterator[Finding]:
    """The rights are for the settings in the manifests: another one makes a program send other requests (fleet_agent/data/programs)."""
    known = manifests.Manifests(found.all)
    for workload, spec, container in known.containers():
        account = spec["serviceAccountName"]
        for one in known.programs(spec, container):
            for verb, group, resource in sorted(known.calls(spec, container, one) - known.granted(account)):
                what = f'cannot {verb} resource "{resource}" in API group "{group}"'
                yield f"{workload}: {what}, which {one.table.program} sends if {_because(one.table, resource)}"


def _because(table: Table, resource: str) -> str:
    """Settings on which the requests for a resource depend, by their names in the configuration and as variables."""
    names = {name for call in table.calls if call.resource == resource for name, _value in call.condition}
    told = [
        f"{name} ({', '.join(table.by_name[name].env)})" if name in table.by_name else name for name in sorted(names)
    ]
    return f"args, env or {table.program}.conf say so by {', '.join(told)}"


def bindings(found: Manifests) -> c.Iterator[Finding]:
    """Every role is bound, and every binding names a role and accounts that exist. A subject without a namespace is of the binding's own."""
    known, bound = found.names("ServiceAccount"), set[tuple[str, str]]()
    roles = {kind: {name for _namespace, name in found.names(kind)} for kind in ("Role", "ClusterRole")}
    for item in found.of("RoleBinding", "ClusterRoleBinding"):
        ref, own = item["roleRef"], item["metadata"].get("namespace") or ""
        bound.add((ref.get("kind"), ref.get("name")))
        if ref.get("name") not in roles.get(str(ref.get("kind")), ()):
            yield f"{where(item)} roleRef.name: there is no {ref.get('kind')} {ref.get('name')}"
        if not item.get("subjects"):
            yield f"{where(item)} subjects are none, so it gives nobody rights"
        for index, subject in enumerate(item.get("subjects") or ()):
            account = subject.get("namespace") or own, subject.get("name")
            if account not in known:
                yield f"{where(item)} subjects[{index}].namespace or name: there is no ServiceAccount {account[0]}/{account[1]}"
    for kind, names in roles.items():
        lost = [name for name in sorted(names) if (kind, name) not in bound]
        yield from (f"{kind} {name}: metadata.name is in no binding, so nobody has its rules" for name in lost)


def accounts(found: Manifests) -> c.Iterator[Finding]:
    """Every pod of a controller has an account, which exists in its namespace, and every account has pods. A token is mounted where a program calls."""
    known, used = found.names("ServiceAccount"), set[tuple[str, str]]()
    bound = {
        (str(subject.get("namespace") or item["metadata"].get("namespace") or ""), str(subject.get("name")))
        for item in found.of("RoleBinding", "ClusterRoleBinding")
        for subject in item.get("subjects") or ()
    }
    for one in found.workloads:
        key = (one.namespace, str(one.spec.get("serviceAccountName") or ""))
        used.add(key)
        if one.item["kind"] != "Pod" and key not in known:
            yield f"{one.where}spec.serviceAccountName: there is no ServiceAccount {'/'.join(key)}"
        if (one.spec.get("automountServiceAccountToken") is False) != (key not in bound):
            yield f"{one.where}spec.automountServiceAccountToken: a pod has a token if its account has rights, and none otherwise"
    yield from (
        f"ServiceAccount {name}: metadata.name is in no pod of {namespace}" for namespace, name in sorted(known - used)
    )


def restricted(found: Manifests) -> c.Iterator[Finding]:
    """nfd-master takes features from the namespace of the agents alone, and makes neither taints nor resources of them: who writes NodeFeatures elsewhere
    labels no node (reason nfd-master-conf of tests/upstream).
    """
    agents = {one.namespace for one in found.workloads if one.name == "nfd-worker"}
    for item in found.of("ConfigMap"):
        if item["metadata"]["name"] != "nfd-master-conf":
            continue
        config = yaml.safe_load((item.get("data") or {}).get("nfd-master.conf") or "") or {}
        limits = config.get("restrictions") or {}
        for expression in (limits.get("nodeFeatureNamespaceSelector") or {}).get("matchExpressions") or [{}]:
            if expression.get("key") != "kubernetes.io/metadata.name" or {*expression.get("values", ())} != agents:
                yield f"{where(item)} data.nfd-master.conf: nodeFeatureNamespaceSelector does not select {sorted(agents)} alone"
        if config.get("enableTaints") is not False or limits.get("disableExtendedResources") is not True:
            yield f"{where(item)} data.nfd-master.conf: enableTaints is not false, or disableExtendedResources not true"


def guarded(found: Manifests) -> c.Iterator[Finding]:
    """What a node agent writes, an admission policy compares with the node of its token; if the policy fails, it denies."""
    agents = {
        (one.namespace, one.spec.get("serviceAccountName"))
        for one in found.workloads
        if one.item["kind"] == "DaemonSet"
    }
    denied = dict(_denied(found))
    for namespace, account in sorted((a, str(b)) for a, b in agents):
        for role in found.by_role:
            for (_cluster, group, resource, verb), place in _granted(found.by_role[role], account):
                what = (f"{namespace}:{account}", group, resource, _OPERATIONS.get(verb, ""))
                if what[3] and what not in denied:
                    where_not = (
                        f"no policy that denies and has failurePolicy Fail has {what[3]} of it in matchConstraints"
                    )
                    yield f"{place}: {account} may {verb} {resource} of other nodes: {where_not} (apiGroups, resources, operations)"


def _denied(found: Manifests) -> c.Iterator[tuple[tuple[str, str, str, str], str]]:
    denying = {
        item["spec"].get("policyName")
        for item in found.of("ValidatingAdmissionPolicyBinding")
        if item["spec"].get("validationActions") == ["Deny"]
    }
    for item in found.of("ValidatingAdmissionPolicy"):
        spec = item["spec"]
        if item["metadata"]["name"] not in denying or spec.get("failurePolicy", "Fail") != "Fail":
            continue
        users = [
            one["expression"].rpartition("system:serviceaccount:")[2].strip('"') for one in spec["matchConditions"]
        ]
        for rule in spec["matchConstraints"]["resourceRules"]:
            for user in users:
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        for operation in rule["operations"]:
                            yield (user, group, resource, operation), item["metadata"]["name"]


def policies(found: Manifests) -> c.Iterator[Finding]:
    """A policy is bound once and denies, matches versions that are served, fails closed, and says in a message what it denies."""
    bound = [item["spec"].get("policyName") for item in found.of("ValidatingAdmissionPolicyBinding")]
    for item in found.of("ValidatingAdmissionPolicyBinding"):
        if item["spec"].get("validationActions") != ["Deny"]:
            yield f"{where(item)} spec.validationActions do not deny"
    for item in found.of("ValidatingAdmissionPolicy"):
        spec, name = item["spec"], item["metadata"]["name"]
        if bound.count(name) != 1:
            yield f"{where(item)} metadata.name is in no policyName of a binding, so the policy has no effect"
        if spec.get("failurePolicy", "Fail") != "Fail":
            yield f"{where(item)} spec.failurePolicy is not Fail, so an expression that fails allows the write"
        if not spec.get("matchConditions"):
            yield f"{where(item)} spec.matchConditions are none, so it is for every account, and would deny the writes of all if it fails"
        for index, one in enumerate(spec["validations"]):
            if not one.get("message"):
                yield f"{where(item)} spec.validations[{index}].message is missing: a user who is refused reads an expression"
        yield from _matched(item, spec, found)


def _matched(item: Obj, spec: Obj, found: Manifests) -> c.Iterator[Finding]:
    """An operation that no write of the account needs tells of a mistake: what a policy matches are writes, of all versions that are served."""
    for index, rule in enumerate(spec["matchConstraints"]["resourceRules"]):
        at = f"{where(item)} spec.matchConstraints.resourceRules[{index}]"
        for group in rule["apiGroups"]:
            if not set(rule["apiVersions"]) & _served(group, found):
                yield f"{at}.apiVersions {rule['apiVersions']} match no version of the group {group!r}"
        unknown = set(rule["operations"]) - set(_OPERATIONS.values())
        if unknown:
            yield f"{at}.operations {sorted(unknown)} are no writes"


def _served(group: str, found: Manifests) -> set[str]:
    kinds = [item for item in found.of("CustomResourceDefinition") if item["spec"].get("group") == group]
    versions = {version.get("name") for item in kinds for version in item["spec"]["versions"]}
    return {"*", *(versions or {"v1"})}
