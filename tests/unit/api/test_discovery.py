# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Discovery of kinds, on new and old servers."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import UnknownKind
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, ReceivedRequest, status


def _kind(kind: str, plural: str, scope: str = "Namespaced") -> dict:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": scope,
        "verbs": ["get", "list"],
    }


CORE = {
    "metadata": {},
    "versions": [{"version": "v1", "resources": [_kind("Node", "nodes", "Cluster"), _kind("Pod", "pods")]}],
}
GROUP = {
    "metadata": {"name": "example.com"},
    "versions": [
        {"version": "v1", "resources": [_kind("Thing", "things")]},
        {"version": "v1beta1", "resources": [_kind("Thing", "things"), _kind("Old", "olds")]},
    ],
}


def aggregated(request: ReceivedRequest) -> Answer:
    items = {"/api": [CORE], "/apis": [GROUP]}[request.path]
    return Answer(body={"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})


def old_server(request: ReceivedRequest) -> Answer:
    versions = [{"groupVersion": f"example.com/{version}", "version": version} for version in ("v1beta1", "v1")]
    answers = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {
            "kind": "APIGroupList",
            "groups": [{"name": "example.com", "versions": versions, "preferredVersion": versions[1]}],
        },
        "/api/v1": {
            "resources": [
                {"name": "nodes", "kind": "Node", "namespaced": False},
                {"name": "nodes/status", "kind": "Node", "namespaced": False},
            ]
        },
        "/apis/example.com/v1": {
            "resources": [{"name": "things", "kind": "Thing", "namespaced": True, "verbs": ["get"]}]
        },
        "/apis/example.com/v1beta1": {"resources": [{"name": "olds", "kind": "Old", "namespaced": True}]},
    }
    return Answer(body=answers[request.path]) if request.path in answers else status(404)


@pytest.mark.parametrize("server", [aggregated, old_server])
def test_kinds_of_new_and_old_servers_are_discovered(fake: Fake, client: Client, server: object) -> None:
    fake.answers = server  # type: ignore[assignment]
    node = client.resource("v1", "Node")
    assert (node.plural, node.namespaced, node.path("", "n")) == ("nodes", False, "/api/v1/nodes/n")
    thing = client.resource("example.com/v1", "Thing")
    assert thing.path("ns", "t", "status") == "/apis/example.com/v1/namespaces/ns/things/t/status"
    assert client.resource_by_group("example.com", "Thing").version == "v1"
    assert client.resource_by_group("example.com", "Old").version == "v1beta1"


def test_discovery_needs_two_requests(fake: Fake, client: Client) -> None:
    fake.answers = aggregated
    for _attempt in range(3):
        client.resource("v1", "Pod")
        client.resource("example.com/v1beta1", "Old")
    assert fake.paths() == ["GET /api", "GET /apis"]
    assert "apidiscovery.k8s.io;v=v2" in fake.received[0].headers["Accept"]


def test_discovery_of_the_core_group_needs_one_request(fake: Fake, client: Client) -> None:
    fake.answers = aggregated
    client.resource("v1", "Pod")
    assert fake.paths() == ["GET /api"]


@pytest.mark.parametrize(
    ("api_version", "kind", "why"),
    [
        ("nowhere.com/v1", "Thing", "it has no API group 'nowhere.com'"),
        ("example.com/v2", "Thing", "it has example.com in v1, v1beta1 only"),
        ("example.com/v1", "Old", "its group has no such kind"),
        ("v1", "Thing", "its group has no such kind"),
        ("v2", "Pod", "it has the core group in v1 only"),
    ],
)
def test_an_unknown_kind_is_reported_with_the_known_versions(
    fake: Fake, client: Client, api_version: str, kind: str, why: str
) -> None:
    fake.answers = aggregated
    with pytest.raises(UnknownKind) as caught:
        client.resource(api_version, kind)
    assert caught.value.faults[0].why == why
    assert "install the CRD" in caught.value.faults[0].next_step


def test_a_new_kind_is_found_after_the_cache_is_cleared(fake: Fake, client: Client) -> None:
    fake.answers = aggregated
    client.resource("example.com/v1", "Thing")
    more = {
        "kind": "APIGroupDiscoveryList",
        "items": [
            GROUP,
            {"metadata": {"name": "new.com"}, "versions": [{"version": "v1", "resources": [_kind("New", "news")]}]},
        ],
    }
    fake.answers = [Answer(body=more)]
    with pytest.raises(UnknownKind):
        client.resource("new.com/v1", "New")
    client.forget_discovery()
    assert client.resource("new.com/v1", "New").plural == "news"
