# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client against a real API server."""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import pathlib
import time
import typing as t
import uuid

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import bearer, endpoint
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog

Obj = dict[str, t.Any]


@pytest.fixture
def namespace(client: Client) -> c.Iterator[str]:
    name = f"api-{uuid.uuid4().hex[:8]}"
    kind = client.resource("v1", "Namespace")
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, kind)
    yield name
    client.delete(kind, name)


def config_map(namespace: str, name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def test_an_object_is_applied_changed_and_deleted(client: Client, namespace: str) -> None:
    maps = client.resource("v1", "ConfigMap")
    created = client.apply(config_map(namespace, "a", x="1"), maps, field_manager="one").object
    assert (
        client.apply(config_map(namespace, "a", x="1"), maps, field_manager="one").object["metadata"]["resourceVersion"]
        == created["metadata"]["resourceVersion"]
    )
    with pytest.raises(e.Conflict) as conflict:
        client.apply(config_map(namespace, "a", x="2"), maps, field_manager="two")
    assert conflict.value.body["details"]["causes"][0]["field"] == ".data.x"
    assert client.apply(config_map(namespace, "a", x="2"), maps, field_manager="two", force=True, dry_run=True).object[
        "data"
    ] == {"x": "2"}
    assert client.get(maps, "a", namespace)["data"] == {"x": "1"}
    with pytest.raises(e.Conflict):
        client.replace(
            config_map(namespace, "a") | {"metadata": {"name": "a", "namespace": namespace, "resourceVersion": "1"}},
            maps,
        )
    assert client.patch(maps, "a", namespace, {"data": {"y": "3"}}).object["data"] == {"x": "1", "y": "3"}
    assert "data" not in client.get(maps, "a", namespace, metadata_only=True)
    with pytest.raises(e.Conflict):
        client.delete(maps, "a", namespace, uid="00000000-0000-0000-0000-000000000000")
    client.delete(maps, "a", namespace, uid=created["metadata"]["uid"])
    with pytest.raises(e.NotFound):
        client.get(maps, "a", namespace)


def test_two_discovery_requests_return_every_kind(client: Client) -> None:
    for api_version, kind in (
        ("v1", "Node"),
        ("apps/v1", "DaemonSet"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("node.k8s.io/v1", "RuntimeClass"),
    ):
        assert client.resource(api_version, kind).kind == kind
    assert client.requests == 2
    with pytest.raises(e.UnknownKind, match="it has apps in v1 only"):
        client.resource("apps/v1beta1", "DaemonSet")


def test_threads_share_a_client(client: Client, namespace: str) -> None:
    maps = client.resource("v1", "ConfigMap")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda number: client.apply(config_map(namespace, f"m{number}", x="1"), maps, field_manager="one"),
                range(60),
            )
        )
    names = {item["metadata"]["name"] for item in client.list(maps, namespace, metadata_only=True).items}
    assert {f"m{number}" for number in range(60)} <= names


def test_a_list_of_several_pages_and_a_watch_from_it(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible_collections.hwaccel.gpu.plugins.module_utils._api.client.PAGE_SIZE", 3)
    maps = client.resource("v1", "ConfigMap")
    for number in range(7):
        client.create(config_map(namespace, f"m{number}"), maps)
    pages = list(client.pages(maps, namespace))
    assert len(pages) >= 3
    assert len({page.resource_version for page in pages}) == 1

    client.patch(maps, "m3", namespace, {"metadata": {"labels": {"changed": "yes"}}})
    events = []
    for event in client.watch(
        maps, namespace, resource_version=pages[0].resource_version, deadline=time.monotonic() + 240, metadata_only=True
    ):
        events.append((event.type, event.object["metadata"].get("name", "")))
        if events[-1] == ("MODIFIED", "m3"):
            # The watch returns changes before its start as well as during its course.
            client.delete(maps, "m4", namespace)
        if event.type == "DELETED":
            break
    assert [entry for entry in events if entry[1].startswith("m")] == [("MODIFIED", "m3"), ("DELETED", "m4")]


def test_a_watch_continues_after_a_restart_of_the_api_server(make_sandbox: t.Any) -> None:
    """The watch reconnects to the restarted server, and a caller that lists again after Gone misses no object."""
    sandbox = make_sandbox()
    client, other = connect({"kubeconfig": sandbox.kubeconfig}), connect({"kubeconfig": sandbox.kubeconfig})
    maps = client.resource("v1", "ConfigMap")
    page = client.list(maps, "default")
    observed = {item["metadata"]["name"] for item in page.items}

    def interrupt() -> None:
        other.create(config_map("default", "before"), maps)
        sandbox.kill("kube-apiserver")
        # Within this second, connections are refused, and not only closed.
        time.sleep(1)
        sandbox.start()
        other.create(config_map("default", "after"), maps)

    deadline = time.monotonic() + 240
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        interrupted = pool.submit(interrupt)
        while "after" not in observed and time.monotonic() < deadline:
            try:
                for event in client.watch(maps, "default", resource_version=page.resource_version, deadline=deadline):
                    observed.add(event.object["metadata"].get("name", ""))
                    if "after" in observed:
                        break
            except e.Gone:
                # The cache of the restarted server starts at a later resource version.
                page = client.list(maps, "default")
                observed |= {item["metadata"]["name"] for item in page.items}
        interrupted.result()
    assert {"before", "after"} <= observed


def test_a_missing_right_is_reported(sandbox: t.Any, namespace: str) -> None:
    nobody = connect(
        {"kubeconfig": sandbox.kubeconfig, "impersonate_user": "nobody", "impersonate_groups": ["system:authenticated"]}
    )
    maps = nobody.resource("v1", "ConfigMap")
    with pytest.raises(e.Forbidden) as caught:
        nobody.apply(config_map(namespace, "a"), maps, field_manager="one")
    assert (
        caught.value.faults[0].next_step
        == f"allow nobody to patch configmaps in namespace {namespace}, with a Role or ClusterRole and its binding"
    )
    assert nobody.allowed("patch", maps, namespace) is False
    assert connect({"kubeconfig": sandbox.kubeconfig}).allowed("patch", maps, namespace) is True


def test_a_valid_token_is_accepted_and_an_invalid_one_is_not(
    sandbox: t.Any, client: Client, namespace: str, tmp_path: pathlib.Path
) -> None:
    token = bearer(client, namespace, "robot")
    host, authority = endpoint(sandbox.kubeconfig)
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority)
    options = {"host": host, "ca_cert": str(ca)}
    robot = connect(options | {"api_key": token})
    with pytest.raises(e.Forbidden, match=f"system:serviceaccount:{namespace}:robot"):
        robot.list(robot.resource("v1", "Secret"), namespace)
    with pytest.raises(e.Unauthorized, match="has not expired") as caught:
        connect(options | {"api_key": token[:-8] + "planted0"}).resource("v1", "Secret")
    assert "planted0" not in str(caught.value)


def test_the_audit_log_identifies_our_client(sandbox: t.Any, namespace: str) -> None:
    audit = AuditLog(sandbox.audit_log)
    client = connect({"kubeconfig": sandbox.kubeconfig})
    client.apply(config_map(namespace, "audited"), client.resource("v1", "ConfigMap"), field_manager="one")
    deadline = time.monotonic() + 240
    while not (writes := audit.our_writes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [(request.verb, request.name) for request in writes] == [("patch", "audited")]
