# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stage monitoring on a real control plane: exporters on GPU nodes, again without a write, with and without the Prometheus Operator, away again.

Its namespaces were created by an administrator, with a pull secret in each: site uses them, teardown leaves them.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import UnknownKind
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import readiness
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.life import plain
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import until
from ansible_collections.hwaccel.gpu.tests.live.support.prometheus import KINDS, kind_of
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_filled, differences

AGENTS = "hwaccel-gpu"
PREPARED = (AGENTS, "hwaccel-gpu-system")
GPU = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559}
MACHINE = {"kernel": "6.8.0-134-generic", "os_image": "Ubuntu 24.04.3 LTS", "gpu": GPU}
#: A node whose driver never loads, which is tolerated.
BROKEN = "broken-0"
FLEET = {
    "time_scale": 0.02,
    "pools": [
        {"name": "training", "count": 2, "labels": {"pool": "training"}, **MACHINE},
        {"name": "more", "count": 1, **MACHINE},
        {"name": "general", "count": 1},
        {"name": "broken", "count": 1, **MACHINE, "nodes": {BROKEN: {"faults": ["driver_load_failure"]}}},
    ],
}
#: Kinds as the operator's CRDs name them; what is in them is its business.


def prepare(client: Client) -> None:
    for name in PREPARED:
        client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, client.resource("v1", "Namespace")
        )
        metadata = {"name": "mirror", "namespace": name}
        client.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "b"}},
            client.resource("v1", "Secret"),
        )


def prepared(client: Client) -> list[str]:
    """Uids of the namespaces and of their pull secrets."""
    namespaces = [client.get(client.resource("v1", "Namespace"), name) for name in PREPARED]
    secrets = [client.get(client.resource("v1", "Secret"), "mirror", name) for name in PREPARED]
    return [item["metadata"]["uid"] for item in namespaces + secrets]


def ready(client: Client, app: str) -> dict[str, dict[str, t.Any]]:
    """Metadata of the ready pod by node."""
    found = client.list(client.resource("v1", "Pod"), AGENTS, label_selector=f"app={app}").items
    passed = [
        one
        for one in found
        if any(row["type"] == "Ready" and row["status"] == "True" for row in one["status"].get("conditions", ()))
    ]
    return {one["spec"]["nodeName"]: one["metadata"] for one in passed}


def exporters(client: Client) -> dict[str, str]:
    """DaemonSet of the ready exporter by node."""
    return {
        node: metadata["ownerReferences"][0]["name"] for node, metadata in ready(client, "nvidia-dcgm-exporter").items()
    }


def served(client: Client, kind: str) -> bool:
    client.forget_discovery()
    try:
        client.resource_by_group("monitoring.coreos.com", kind)
    except UnknownKind:
        return False
    return True


def ours(client: Client, kind: str) -> list[str]:
    items = client.list(client.resource_by_group("monitoring.coreos.com", kind)).items
    return [item["metadata"]["name"] for item in items]


def left(world: dict[str, t.Any]) -> list[str]:
    """What differs from the empty cluster but the operator's kinds, which are not ours."""
    return [line for line in differences(world["empty"], plain(world["client"])) if "monitoring.coreos.com" not in line]


@pytest.fixture(scope="module")
def world(make_sandbox: c.Callable[..., Sandbox]) -> dict[str, t.Any]:
    """A cluster after site, monitored without an operator, then with one, and what it was before."""
    sandbox = make_sandbox(FLEET)
    client = connect({"kubeconfig": sandbox.kubeconfig}, check_mode=False)
    pools = [{"name": "training", "selector": "pool=training", "gpu": GPU}]
    host = site.cluster(
        sandbox.kubeconfig,
        hwaccel_pools=pools,
        hwaccel_wait_timeout=240,
        hwaccel_max_failed=1,
        hwaccel_image_pull_secrets=["mirror"],
    )
    clusters = {"one": host}
    prepare(client)
    refused = site.playbook("preflight", {"one": host | {"hwaccel_image_pull_secrets": ["miror"]}})
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    client.patch(client.resource("v1", "Namespace"), AGENTS, "", label)
    await_filled(client)
    empty, uids = plain(client), prepared(client)
    brought = site.playbook("site", clusters)
    assert brought.summary["one"]["failed_nodes"] == [BROKEN], brought.stdout[-6000:]
    audit = AuditLog(sandbox.audit_log)
    planned = site.playbook("monitoring", clusters, "--check", "--diff")
    written = [str(request) for request in audit.our_writes()]
    done = site.playbook("monitoring", clusters)
    return {
        "client": client,
        "clusters": clusters,
        "refused": refused,
        "brought": brought,
        "empty": empty,
        "uids": uids,
        "audit": audit,
        "planned": planned,
        "written": written,
        "done": done,
    }


def test_a_prepared_namespace_that_does_not_fit_is_refused(world: dict[str, t.Any]) -> None:
    assert world["refused"].rc != 0
    message = "\n".join(world["refused"].failures)
    assert "Secret hwaccel-gpu/miror does not exist (hwaccel_image_pull_secrets)" in message
    assert "kubectl label --overwrite namespace hwaccel-gpu pod-security.kubernetes.io/enforce=privileged" in message


def test_a_prepared_namespace_is_used(world: dict[str, t.Any]) -> None:
    assert "namespace hwaccel-gpu exists and is used unchanged" in world["brought"].stdout
    assert prepared(world["client"]) == world["uids"]


def test_check_mode_writes_nothing_and_the_run_succeeds(world: dict[str, t.Any]) -> None:
    assert (world["planned"].rc, world["done"].rc) == (0, 0), (
        world["planned"].stdout[-4000:] + world["done"].stdout[-6000:]
    )
    assert world["written"] == []
    assert world["planned"].changed() == world["done"].changed() > 0


def test_each_gpu_node_has_the_exporter_of_its_pool(world: dict[str, t.Any]) -> None:
    assert exporters(world["client"]) == {
        "more-0": "nvidia-dcgm-exporter",
        "training-0": "nvidia-dcgm-exporter-training",
        "training-1": "nvidia-dcgm-exporter-training",
    }


def test_a_node_without_driver_holds_nothing_up_and_is_told_with_its_cause(world: dict[str, t.Any]) -> None:
    (gate,) = world["done"].results("node_gate")
    assert (gate["nodes"], [row["node"] for row in gate["held"]]) == (
        {"passed": 3, "waiting": 0, "failed": 0, "unknown": 0},
        [BROKEN],
    )
    (told,) = [
        line
        for line in world["done"].stdout.splitlines()
        if f"{BROKEN} (pool default) held at gate exporters, driver: " in line
    ]
    assert "nvidia-driver-ctr" in told


def test_a_second_run_changes_and_writes_nothing(world: dict[str, t.Any]) -> None:
    world["audit"].mark()
    again = site.playbook("monitoring", world["clusters"])
    assert (again.rc, again.changed()) == (0, 0), again.stdout[-4000:]
    assert [str(request) for request in world["audit"].our_writes()] == []


def test_an_exporter_leaves_before_the_driver_is_loaded_anew_and_comes_back(world: dict[str, t.Any]) -> None:
    client: Client = world["client"]
    apps = ("nvidia-driver", "nvidia-dcgm-exporter")
    before = {app: ready(client, app) for app in apps}
    client.delete(client.resource("v1", "Pod"), before["nvidia-driver"]["more-0"]["name"], AGENTS)
    until(
        lambda: all(
            ready(client, app).get("more-0", before[app]["more-0"])["uid"] != before[app]["more-0"]["uid"]
            for app in apps
        ),
        "another driver and another exporter on more-0",
    )
    assert ready(client, apps[1])["training-0"]["uid"] == before[apps[1]]["training-0"]["uid"]


def test_a_node_that_somebody_keeps_from_the_exporters_is_no_success(world: dict[str, t.Any]) -> None:
    """The field is not ours to mend, so the set leaves it, and the gate counts against the nodes that the set was to take."""
    client: Client = world["client"]
    daemon_sets, nodes, name = (
        client.resource("apps/v1", "DaemonSet"),
        client.resource("v1", "Node"),
        "nvidia-dcgm-exporter-training",
    )
    client.patch(nodes, "training-0", "", {"metadata": {"labels": {"rack": "a"}}}, field_manager="people")
    client.patch(
        daemon_sets,
        name,
        AGENTS,
        {"spec": {"template": {"spec": {"nodeSelector": {"rack": "a"}}}}},
        field_manager="people",
    )
    run = site.playbook("monitoring", {"one": world["clusters"]["one"] | {"monitoring_wait_timeout": 20}})
    (gate,) = run.results("node_gate")
    assert gate["failed_nodes"] == ["training-1"], run.stdout[-4000:]
    (fault,) = gate["faults"]
    for part in (f"spec.template.spec.nodeSelector of DaemonSet {AGENTS}/{name}", "written by people", "rack=a"):
        assert part in fault["reason"], fault
    client.patch(
        daemon_sets, name, AGENTS, {"spec": {"template": {"spec": {"nodeSelector": None}}}}, field_manager="people"
    )
    client.patch(nodes, "training-0", "", {"metadata": {"labels": {"rack": None}}}, field_manager="people")
    until(lambda: readiness.judge(client.get(daemon_sets, name, AGENTS), "apps", "DaemonSet", {}).ready, "the rollout")
    until(lambda: "training-1" in exporters(client), "the exporter of training-1 to be back")


def test_where_the_operator_comes_later_it_takes_over_and_goes_again(world: dict[str, t.Any]) -> None:
    """In a run with a change of the exporters, which reaches them beside a node without driver."""
    client: Client = world["client"]
    before = ready(client, "nvidia-dcgm-exporter")
    for plural, kind in KINDS.items():
        made = kind_of(plural, kind)
        client.create(made, client.resource(made["apiVersion"], made["kind"]))
    until(lambda: all(served(client, kind) for kind in KINDS.values()), "the kinds to be served")
    run = site.playbook("monitoring", {"one": world["clusters"]["one"] | {"monitoring_profiling": True}})
    assert run.rc == 0, run.stdout[-6000:]
    after = ready(client, "nvidia-dcgm-exporter")
    assert after.keys() == before.keys()
    assert not {row["uid"] for row in after.values()} & {row["uid"] for row in before.values()}
    assert (ours(client, "ServiceMonitor"), ours(client, "PrometheusRule")) == (
        ["nvidia-dcgm-exporter"],
        ["hwaccel-gpu"],
    )
    maps = [item["metadata"]["name"] for item in client.list(client.resource("v1", "ConfigMap"), AGENTS).items]
    assert "hwaccel-gpu-prometheus" not in maps
    gone = site.playbook("teardown", world["clusters"])
    assert gone.rc == 0, gone.stdout[-6000:]
    # What feature discovery has brought is no kind any more.
    client.forget_discovery()
    assert [ours(client, kind) for kind in KINDS.values()] == [[], []]
    until(lambda: not left(world), "controllers to clean up", seen=lambda: left(world))
    assert prepared(client) == world["uids"], "teardown leaves what was there before"
