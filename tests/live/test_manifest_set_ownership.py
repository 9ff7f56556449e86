# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""manifest_set on a real API server: objects of others, pruning, two runs at once."""

from __future__ import annotations

import threading
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import Holder
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound, UnknownKind
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.manifest_sets import (
    Sets,
    actions,
    config_map,
    crd,
    custom,
    deployment,
    workload,
)
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_alike, await_filled, snapshot

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
RUNTIME_CLASS = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
SPACE = "owner"


def test_objects_of_others_are_neither_changed_nor_deleted(sets: Sets, name: str, sandbox: t.Any) -> None:
    client = sets.client()
    foreign = [
        (
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": f"{name}-rc"},
                "handler": "nvidia",
            },
            RUNTIME_CLASS,
        ),
        (crd("foreigns", "Foreign", f"{name}.example"), CRD),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{name}-ns"}}, NAMESPACE),
    ]
    for body, resource in foreign:
        client.create(body, resource, field_manager="k3s")
    audit = AuditLog(sandbox.audit_log)
    report = sets(name, [*[body for body, _resource in foreign], config_map(f"{name}-a", SPACE)])
    assert report.failure is not None
    assert len(report.failure.faults) == 3
    assert all("does not belong to this set" in fault.what and "k3s" in fault.why for fault in report.failure.faults)
    assert audit.our_writes() == []
    sets.remove(name)
    for body, resource in foreign:
        client.get(resource, body["metadata"]["name"])
        client.delete(resource, body["metadata"]["name"])


def test_adopted_objects_are_released_and_not_deleted(sets: Sets, name: str) -> None:
    client = sets.client()
    body = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": f"{name}-rc"},
        "handler": "nvidia",
    }
    client.create(body, RUNTIME_CLASS, field_manager="k3s")
    definition = [
        body | {"metadata": {"name": f"{name}-rc", "labels": {"mine": "yes"}}},
        config_map(f"{name}-a", SPACE),
    ]
    planned = sets.apply(name, definition, adopt=True, check=True)
    report = sets.apply(name, definition, adopt=True)
    assert actions(report) == actions(planned)
    assert actions(report)[f"RuntimeClass.node.k8s.io {name}-rc"] == "adopted"
    assert not sets.apply(name, definition).changed
    released = sets.apply(name, definition[1:])
    assert actions(released)[f"RuntimeClass.node.k8s.io {name}-rc"] == "released"
    live = client.get(RUNTIME_CLASS, f"{name}-rc")
    assert live["handler"] == "nvidia"
    assert not live["metadata"].get("labels")
    client.delete(RUNTIME_CLASS, f"{name}-rc")


def test_an_adopted_object_keeps_our_fields_that_it_requires(sets: Sets, name: str) -> None:
    client = sets.client()
    body = deployment(f"{name}-d", SPACE, 1)
    deployments = client.resource("apps/v1", "Deployment")
    client.create(body, deployments, field_manager="kubectl-create")
    definition = deployment(f"{name}-d", SPACE, 1)
    definition["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.9"
    refused = sets(name, [definition], adopt=True)
    assert refused.failure is not None
    assert "kubectl-create" in str(refused.failure)
    sets.apply(name, [definition], adopt=True, force_conflicts=True)
    planned = sets.apply(name, None, state="absent", check=True)
    assert actions(planned) == actions(sets.remove(name))
    live = client.get(deployments, f"{name}-d", SPACE)
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.k8s.io/pause:3.9"
    assert "labels" not in live["metadata"]
    assert not any(entry["manager"].startswith("hwaccel.gpu/") for entry in live["metadata"]["managedFields"])
    client.delete(deployments, f"{name}-d", SPACE)


def test_one_object_in_two_sets_is_an_error(sets: Sets, name: str) -> None:
    definition = [config_map(f"{name}-a", SPACE)]
    sets.apply(name, definition)
    other = sets(f"{name}-other", definition, adopt=True)
    assert other.failure is not None
    assert "is in another set" in str(other.failure)
    assert name in str(other.failure)


def test_an_object_that_another_user_recreated_is_not_changed(sets: Sets, name: str) -> None:
    client = sets.client()
    definition = [config_map(f"{name}-a", SPACE), config_map(f"{name}-b", SPACE)]
    sets.apply(name, definition)
    client.delete(CONFIG_MAP, f"{name}-a", SPACE)
    client.create(config_map(f"{name}-a", SPACE, {"theirs": "1"}), CONFIG_MAP, field_manager="kubectl-create")
    report = sets(name, definition)
    assert report.failure is not None
    assert "the set's object was deleted and another one was created" in str(report.failure)
    sets.remove(name)
    assert client.get(CONFIG_MAP, f"{name}-a", SPACE)["data"] == {"theirs": "1"}
    client.delete(CONFIG_MAP, f"{name}-a", SPACE)


def test_pruning_and_its_limits(sets: Sets, name: str, sandbox: t.Any) -> None:
    definition = [config_map(f"{name}-{index}", SPACE) for index in range(10)]
    sets.apply(name, definition)
    audit = AuditLog(sandbox.audit_log)
    refused = sets(name, definition[:7])
    assert refused.failure is not None
    assert "3 of 10 members would be deleted" in str(refused.failure)
    assert {row.action for row in refused.rows.values()} == {"unchanged"}
    assert audit.our_writes() == []
    everything = sets(name, [config_map(f"{name}-new", SPACE)], max_prune="100%")
    assert everything.failure is not None
    assert "never removes all" in str(everything.failure)
    planned = sets.apply(name, definition[:8], check=True)
    report = sets.apply(name, definition[:8])
    assert actions(planned) == actions(report)
    assert sorted(key for key, action in actions(report).items() if action == "deleted") == [
        f"ConfigMap {SPACE}/{name}-8",
        f"ConfigMap {SPACE}/{name}-9",
    ]
    with pytest.raises(NotFound):
        sets.client().get(CONFIG_MAP, f"{name}-9", SPACE)
    assert not sets.apply(name, definition[:8]).changed
    kept = sets.apply(name, definition[:5], prune=False)
    assert sorted(actions(kept).values()).count("kept") == 3


def test_namespace_and_crd_are_not_pruned_and_absent_keeps_those_with_objects_of_others(sets: Sets, name: str) -> None:
    client = sets.client()
    group = f"{name}.example"
    kind = crd("gadgets", "Gadget", group)
    definition = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{name}-ns"}},
        kind,
        config_map(f"{name}-a", f"{name}-ns"),
    ]
    sets.apply(name, definition)
    pruned = sets.apply(name, definition[2:], max_prune="100%")
    assert actions(pruned)[f"Namespace {name}-ns"] == "kept"
    client.create(config_map("theirs", f"{name}-ns"), CONFIG_MAP)
    until(lambda: served(client, f"{group}/v1", "Gadget"), "discovery to contain the kind")
    gadgets = client.resource(f"{group}/v1", "Gadget")
    client.create(custom("Gadget", "theirs", SPACE, 1, group), gadgets)
    planned = sets.apply(name, None, state="absent", check=True)
    report = sets.remove(name)
    assert actions(report) == actions(planned)
    assert actions(report)[f"Namespace {name}-ns"] == "kept"
    assert actions(report)[f"CustomResourceDefinition.apiextensions.k8s.io gadgets.{group}"] == "kept"
    assert "ConfigMap" in next(row.reason for key, row in report.rows.items() if key.kind == "Namespace")
    assert not sets.remove(name).changed
    client.delete(CONFIG_MAP, "theirs", f"{name}-ns")
    client.delete(gadgets, "theirs", SPACE)
    assert sets.remove(name).changed
    with pytest.raises(NotFound):
        client.get(CRD, f"gadgets.{group}")


def served(client: t.Any, api_version: str, kind: str) -> bool:
    client.forget_discovery()
    try:
        client.resource(api_version, kind)
    except UnknownKind:
        return False
    return True


def test_the_second_of_two_runs_waits_or_reports_the_holder(sets: Sets, name: str) -> None:
    definition = [config_map(f"{name}-{index}", SPACE) for index in range(3)]
    sets.apply(name, definition)
    alive = Holder("other-host pid 7 (x y z t)", lambda identity: False)
    blocked = _BlockedClient(sets.client())
    definition[0]["data"] = {"a": "first"}
    first = threading.Thread(target=lambda: sets.apply(name, definition, client=blocked, holder=alive))
    first.start()
    assert blocked.holding.wait(240)
    second = [*definition[1:], config_map(f"{name}-0", SPACE, {"a": "second"})]
    try:
        refused = sets(name, second, lock_timeout=1)
        assert refused.failure is not None
        assert "other-host pid 7" in str(refused.failure)
        sliced = sets(name, second, clock=Clock(deadline=time.monotonic() + 0.5))
        assert sliced.pending is not None
        assert sliced.pending["phase"] == "start"
        assert "is held by other-host pid 7" in sliced.progress[0]
    finally:
        blocked.released.set()
    report = sets.apply(name, second, resume=sliced.pending)
    first.join()
    assert report.changed
    assert sets.client().get(CONFIG_MAP, f"{name}-0", SPACE)["data"] == {"a": "second"}


def test_the_lock_of_a_dead_holder_is_taken_over(sets: Sets, name: str) -> None:
    definition = [config_map(f"{name}-a", SPACE)]
    sets.apply(name, definition)
    client = sets.client()
    # The time stamps are from the clock of another host, and are not compared with ours.
    stamp = {
        "hwaccel.gpu/held-by": "host pid 7 (x y z t)",
        "hwaccel.gpu/held-renewed": "2026-01-01T00:00:00.000000Z",
        "hwaccel.gpu/held-seconds": "90",
    }
    definition[0]["data"] = {"a": "2"}
    client.patch(CONFIG_MAP, name, "hwaccel-gpu-records", {"metadata": {"annotations": stamp}})
    assert sets(name, definition, lock_timeout=0).failure is not None
    slept: list[float] = []
    clock = Clock(monotonic=lambda: sum(slept), sleep=slept.append)
    assert sets.apply(name, definition, clock=clock).changed
    assert 90 <= sum(slept) < 92


class _BlockedClient:
    """A client whose applies block until `released` is set, except dry runs."""

    def __init__(self, client: t.Any) -> None:
        self._client = client
        self.holding, self.released = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> t.Any:
        return getattr(self._client, name)

    def apply(self, *args: t.Any, dry_run: bool = False, **options: t.Any) -> t.Any:
        if not dry_run:
            self.holding.set()
            assert self.released.wait(240)
        return self._client.apply(*args, dry_run=dry_run, **options)


def test_removal_leaves_nothing(make_sandbox: t.Any) -> None:
    sandbox = make_sandbox({"time_scale": 0.02, "pools": [{"name": "cpu", "count": 1}]})
    sets = Sets(sandbox.kubeconfig)
    client = sets.client()
    await_filled(client)
    before = snapshot(client)
    definition = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "whole"}},
        crd("samples", "Sample"),
        custom("Sample", "one", "whole", 1),
        config_map("a", "whole"),
        deployment("d", "whole", 1),
        workload("DaemonSet", "ds", "whole"),
    ]
    sets.apply("whole", definition, wait=True)
    sets.remove("whole")
    client.forget_discovery()
    # The API server removes its APIService of a deleted group a moment later.
    await_alike(before, lambda: snapshot(client))
