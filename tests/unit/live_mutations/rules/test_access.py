# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights, bindings, tokens and admission policies."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import access
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import container, pod, put, without

POLICY, KIND = "hwaccel-gpu-nfd-worker-own-node", "ValidatingAdmissionPolicy"
RULE = ("spec", "matchConstraints", "resourceRules", 0)
ROWS: list[sets.Row] = [
    (access.restricted, "ConfigMap", "nfd-master-conf", put("data", {}), "nodeFeatureNamespaceSelector"),
    (
        access.restricted,
        "ConfigMap",
        "nfd-master-conf",
        put("data", "nfd-master.conf", "enableTaints: falsex"),
        "enableTaints",
    ),
    (
        access.settings,
        "DaemonSet",
        "nvidia-driver",
        container(put("env", 3, "value", "true"), 0, "initContainers"),
        'cannot create resource "pods/eviction"',
    ),
    (
        access.calls,
        "ClusterRole",
        "hwaccel-gpu-nfd-gc",
        put("rules", 0, "verbs", ["list", "watch", "get"]),
        "not needed",
    ),
    (
        access.calls,
        "ClusterRole",
        "hwaccel-gpu-nfd-gc",
        put("rules", 0, "verbs", ["list"]),
        'cannot watch resource "nodes"',
    ),
    (access.calls, "ClusterRoleBinding", "hwaccel-gpu-nfd-gc", put("subjects", []), 'cannot list resource "nodes"'),
    (access.calls, "ServiceAccount", "nfd-gc", put("metadata", "name", "x"), "no account in the table"),
    (access.bindings, "RoleBinding", "nfd-worker", put("roleRef", "name", "x"), "there is no Role x"),
    (access.bindings, "RoleBinding", "nfd-worker", put("subjects", []), "gives nobody rights"),
    (
        access.bindings,
        "RoleBinding",
        "nfd-worker",
        put("subjects", 0, "namespace", "x"),
        "no ServiceAccount x/nfd-worker",
    ),
    (access.bindings, "Role", "nfd-worker", put("metadata", "name", "x"), "in no binding"),
    (
        access.accounts,
        "Deployment",
        "nfd-gc",
        pod(put("serviceAccountName", "x")),
        "no ServiceAccount gpu-controllers/x",
    ),
    (
        access.accounts,
        "DaemonSet",
        "nvidia-device-plugin",
        pod(without("automountServiceAccountToken")),
        "automountServiceAccountToken",
    ),
    (access.accounts, "ServiceAccount", "nfd-gc", put("metadata", "name", "x"), "in no pod of gpu-controllers"),
    (access.guarded, KIND, POLICY, put(*RULE, "operations", ["CREATE", "DELETE"]), "has UPDATE"),
    (access.guarded, KIND, POLICY, put("spec", "failurePolicy", "Ignore"), "failurePolicy Fail"),
    (access.guarded, f"{KIND}Binding", POLICY, put("spec", "validationActions", ["Audit"]), "of other nodes"),
    (access.policies, f"{KIND}Binding", POLICY, put("spec", "validationActions", ["Deny", "Audit"]), "do not deny"),
    (access.policies, f"{KIND}Binding", POLICY, put("spec", "policyName", "x"), "has no effect"),
    (access.policies, KIND, POLICY, put("spec", "failurePolicy", "Ignore"), "allows the write"),
    (access.policies, KIND, POLICY, put("spec", "validations", 1, "message", ""), "spec.validations[1].message"),
    (access.policies, KIND, POLICY, put(*RULE, "apiVersions", ["v2"]), "apiVersions ['v2']"),
    (access.policies, KIND, POLICY, put(*RULE, "operations", ["CREATE", "CONNECT"]), "['CONNECT'] are no writes"),
]


test_what_is_wrong_is_said = sets.checked(ROWS)
