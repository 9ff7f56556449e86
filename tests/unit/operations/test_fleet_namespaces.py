# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of namespaces: the set that created them, their pod security level, and ConfigMaps and Secrets for pods."""

from __future__ import annotations

import itertools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.fleet_namespaces import namespaces
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import DELETED_AT, Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request

ENFORCE = "pod-security.kubernetes.io/enforce"


def cluster(**found: dict[str, t.Any]) -> Cluster:
    """Namespaces by name, each with two ConfigMaps and two Secrets."""
    result = Cluster()
    for namespace, metadata in found.items():
        result.put({"kind": "Namespace", "metadata": {"name": namespace, **metadata}})
        for kind, letter in itertools.product(("ConfigMap", "Secret"), "ba"):
            named = {"name": f"{namespace}-{kind}-{letter}", "namespace": namespace}
            result.put({"kind": kind, "metadata": named, "data": {"a": "1"}})
    return result


def deny_secrets_of_the_team(request: Request) -> None:
    if request.namespace == "team":
        raise Forbidden("no right to secrets")


def test_namespaces_have_their_set_and_pod_security_level() -> None:
    ours = {
        "managedFields": [{"manager": "kubectl"}, {"manager": "hwaccel.gpu/driver"}],
        "labels": {ENFORCE: "privileged"},
    }
    result = cluster(ours=ours, team={}, going={"deletionTimestamp": DELETED_AT}, hidden={})
    result.fail(Forbidden("no right to hidden"), "get", name="hidden")
    result.on("list", deny_secrets_of_the_team, kind="Secret")
    assert namespaces(result, ["team", "ours", "ours", "going", "hidden", "nowhere"]) == [
        {
            "name": "ours",
            "set": "driver",
            "pod_security": "privileged",
            "config_maps": ["ours-ConfigMap-a", "ours-ConfigMap-b"],
            "secrets": ["ours-Secret-a", "ours-Secret-b"],
        },
        {
            "name": "team",
            "set": "",
            "pod_security": "",
            "config_maps": ["team-ConfigMap-a", "team-ConfigMap-b"],
            "secrets": None,
        },
    ]
    assert all(request.metadata_only for request in result.requests), "no value of a Secret is read"
