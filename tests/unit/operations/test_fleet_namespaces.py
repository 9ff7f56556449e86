# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of namespaces: who made them, which pods they admit, and what pods may ask for in them."""

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
    made = Cluster()
    for namespace, metadata in found.items():
        made.put({"kind": "Namespace", "metadata": {"name": namespace, **metadata}})
        for kind, letter in itertools.product(("ConfigMap", "Secret"), "ba"):
            named = {"name": f"{namespace}-{kind}-{letter}", "namespace": namespace}
            made.put({"kind": kind, "metadata": named, "data": {"a": "1"}})
    return made


def no_secrets_of_theirs(request: Request) -> None:
    if request.namespace == "theirs":
        raise Forbidden("no right to secrets")


def test_namespaces_tell_their_maker_and_their_level() -> None:
    ours = {
        "managedFields": [{"manager": "kubectl"}, {"manager": "hwaccel.gpu/driver"}],
        "labels": {ENFORCE: "privileged"},
    }
    made = cluster(ours=ours, theirs={}, going={"deletionTimestamp": DELETED_AT}, hidden={})
    made.fail(Forbidden("no right to hidden"), "get", name="hidden")
    made.on("list", no_secrets_of_theirs, kind="Secret")
    assert namespaces(made, ["theirs", "ours", "ours", "going", "hidden", "nowhere"]) == [
        {
            "name": "ours",
            "set": "driver",
            "pod_security": "privileged",
            "config_maps": ["ours-ConfigMap-a", "ours-ConfigMap-b"],
            "secrets": ["ours-Secret-a", "ours-Secret-b"],
        },
        {
            "name": "theirs",
            "set": "",
            "pod_security": "",
            "config_maps": ["theirs-ConfigMap-a", "theirs-ConfigMap-b"],
            "secrets": None,
        },
    ]
    assert all(request.metadata_only for request in made.requests), "no value of a Secret is read"
