# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Feature discovery: labels, rules, and objects that workers and the master write."""

from __future__ import annotations

import dataclasses
import types

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import host, log, mount
from fleet_agent.kubelet import process
from fleet_agent.programs import nfd_features, nfd_master, tables

NFD = "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"
FEATURES = "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/ns/nodefeatures"


def worker(*without):
    mounts = {
        "sys": mount("sys", "/host-sys"),
        "os": mount("os", "/host-etc/os-release"),
        "conf": mount("conf", "/etc/kubernetes/node-feature-discovery"),
    }
    fields = [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    return {
        "volumes": [
            host("sys", "/sys", ""),
            host("os", "/etc/os-release", ""),
            {"name": "conf", "configMap": {"name": "conf"}},
        ],
        "containers": [
            {
                "name": "w",
                "image": NFD,
                "command": ["nfd-worker"],
                "env": [f for f in fields if f["name"] not in without],
                "volumeMounts": [m for k, m in mounts.items() if k not in without],
            }
        ],
    }


def published(world, config="", spec=None):
    world.store.data[("configmap", "ns", "conf")] = {"nfd-worker.conf": config} if config else {}
    node = world.nodes.get("n0") or world.node()
    pod = world.pod(node, spec or worker())
    world.until(lambda: world.api.has(f"{FEATURES}/n0") or pod.main[0].restarts)
    return pod, world.api.at(f"{FEATURES}/n0") if world.api.has(f"{FEATURES}/n0") else {}


def reads(world, path):
    return sum((method, requested) == ("GET", path) for _user, method, requested, _body in world.api.requests)


def test_a_machine_without_pci_devices_has_no_pci_labels(world):
    world.node(gpu=None)
    pod, item = published(world)
    assert not [k for k in item["spec"]["labels"] if k.startswith("pci-")]
    assert "failed to detect" not in log(pod.main[0])


@pytest.mark.parametrize(
    ("config", "label"),
    [
        ("", "pci-0302_10de.present"),
        ("sources: {pci: {deviceLabelFields: [vendor]}}", "pci-10de.present"),
        ("sources: {pci: {deviceLabelFields: [vendor], deviceClassWhitelist: ['0302']}}", "pci-10de.present"),
    ],
)
def test_worker_labels_gpus_by_its_configuration(world, config, label):
    _pod, item = published(world, config)
    assert item["spec"]["labels"][label] == "true"
    assert item["spec"]["labels"]["kernel-version.full"] == "6.8.0-106-generic"
    assert item["spec"]["labels"]["system-os_release.ID"] == "ubuntu"
    assert item["metadata"]["labels"] == {"nfd.node.kubernetes.io/node-name": "n0"}


def test_worker_without_its_mounts_detects_nothing(world):
    pod, item = published(world, spec=worker("sys", "os"))
    assert not [k for k in item["spec"]["labels"] if k.startswith(("pci-", "system-"))]
    assert "failed to detect PCI devices: open /host-sys/bus/pci/devices: no such file or directory" in log(pod.main[0])


def test_worker_reads_its_configuration_and_its_owner_once(world):
    """NFD v0.19.0 reads them only at its start (Run and configure in pkg/nfd-worker/nfd-worker.go)."""
    pod, _item = published(world, "core: {ownerRefs: [node]}\nsources: {pci: {deviceLabelFields: [vendor]}}")
    pod.volumes.refresh("configmap", "conf", {"nfd-worker.conf": "sources: {pci: {deviceLabelFields: [class]}}"})
    world.until(lambda: reads(world, f"{FEATURES}/n0") >= 3)
    assert "pci-10de.present" in world.api.at(f"{FEATURES}/n0")["spec"]["labels"]
    assert reads(world, "/api/v1/nodes/n0") == 1


def test_the_white_list_and_the_owner_are_configurable(world):
    _pod, item = published(world, "core: {labelWhiteList: 'pci-', ownerRefs: [node]}")
    assert set(item["spec"]["labels"]) == {"pci-0302_10de.present"}
    assert item["metadata"]["ownerReferences"][0]["kind"] == "Node"


@pytest.mark.parametrize(
    ("forbidden", "config", "words"),
    [
        (rf"POST {FEATURES}", "", 'failed to create NodeFeature object "n0"'),
        (rf"GET {FEATURES}/n0", "", "failed to get NodeFeature object"),
        (r"GET /api/v1/nodes/n0", "core: {ownerRefs: [node]}", 'cannot resolve Node owner reference "n0"'),
    ],
)
def test_worker_without_a_permission_fails_with_its_name(world, forbidden, config, words):
    world.node()
    world.api.forbidden.append(forbidden)
    pod, item = published(world, config)
    assert not item
    world.until(lambda: pod.main[0].restarts)
    assert words in log(pod.main[0])
    assert "is forbidden" in log(pod.main[0])


def test_worker_without_a_node_name_fails(world):
    pod, _item = published(world, spec=worker("NODE_NAME"))
    assert "failed to get NodeFeature object: resource name may not be empty" in log(pod.main[0])


def test_a_garbage_collector_without_permissions_logs_errors_and_is_healthy(world):
    """Healthz in pkg/nfd-gc/nfd-gc.go always answers "ok"."""
    world.api.forbidden.append(r"GET /api/v1/nodes")
    probe = {"httpGet": {"path": "/healthz", "port": 8080}}
    pod = world.pod(
        world.node(), {"containers": [{"name": "gc", "image": NFD, "command": ["nfd-gc"], "readinessProbe": probe}]}
    )
    world.until(lambda: "failed to list *v1.Node" in log(pod.main[0]))
    world.until(lambda: pod.main[0].ready)


FOUND = {
    "flags": {},
    "attributes": {"kernel.version": {"elements": {"full": "6.8.0-106-generic", "major": "6"}}},
    "instances": {
        "pci.device": {
            "elements": [
                {"attributes": {"vendor": "10de", "class": "0302"}},
                {"attributes": {"vendor": "8086", "class": "0200"}},
            ]
        }
    },
}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (
            {
                "feature": "pci.device",
                "matchExpressions": {
                    "vendor": {"op": "In", "value": ["10de"]},
                    "class": {"op": "In", "value": ["0302"]},
                },
            },
            True,
        ),
        (
            {
                "feature": "pci.device",
                "matchExpressions": {
                    "vendor": {"op": "In", "value": ["10de"]},
                    "class": {"op": "In", "value": ["0200"]},
                },
            },
            False,
        ),
        ({"feature": "kernel.version", "matchExpressions": {"major": {"op": "Gt", "value": ["5"]}}}, True),
        ({"feature": "kernel.version", "matchExpressions": {"full": {"op": "InRegexp", "value": ["^6[.]8"]}}}, True),
        ({"feature": "kernel.version", "matchExpressions": {"none": {"op": "Exists"}}}, False),
        ({"feature": "kernel.version", "matchExpressions": {"none": {"op": "DoesNotExist"}}}, True),
        ({"feature": "kernel.config", "matchExpressions": {"X": {"op": "Exists"}}}, False),
    ],
)
def test_rules_match_features(term, expected):
    output = nfd_features.rule_output(
        {"name": "r", "labels": {"a.example/b": "@kernel.version.major"}, "matchFeatures": [term]}, FOUND
    )
    assert (output is not None) == expected
    if output:
        assert output["labels"] == {"a.example/b": "6"}


def discovery_pod(world):
    node = world.node(host_driver="580.178.04", host_toolkit=True)
    names = {"NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name", "NAMESPACE": "metadata.namespace"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in names.items()]
    image = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
    main = {
        "name": "g",
        "image": image,
        "command": ["gpu-feature-discovery"],
        "env": [*env, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
        "securityContext": {"privileged": True},
    }
    return world.pod(node, {"runtimeClassName": "nvidia", "containers": [main]})


def test_gpu_feature_discovery_reads_its_owner_once(world):
    """newOutputer resolves it only at the start (k8s-device-plugin v0.20.0, internal/lm/output.go)."""
    pod = discovery_pod(world)
    world.until(lambda: reads(world, f"{FEATURES}/nvidia-features-for-n0") >= 3)
    assert reads(world, f"/api/v1/namespaces/ns/pods/{pod.name}") == 1


def another_kernel(node):
    node.host.spec = dataclasses.replace(node.host.spec, kernel="6.9.0-1-generic")


def another_driver(node):
    node.host.modules["nvidia"] = "590.44.01"


@pytest.mark.parametrize(
    ("name", "start", "change", "label", "value"),
    [
        ("n0", published, another_kernel, "kernel-version.full", "6.9.0-1-generic"),
        ("nvidia-features-for-n0", discovery_pod, another_driver, "nvidia.com/cuda.driver-version.full", "590.44.01"),
    ],
)
def test_workers_read_their_object_rarely_and_write_changes_immediately(world, name, start, change, label, value):
    """The interval is in time of the API server, independent of the speed of simulated nodes."""
    world.quiet = 3600.0
    path = f"{FEATURES}/{name}"
    start(world)
    world.until(lambda: world.api.has(path))
    world.pass_time(600)
    assert reads(world, path) == 1
    change(world.nodes["n0"])
    world.until(lambda: world.api.at(path)["spec"]["labels"][label] == value)
    assert reads(world, path) == 2


def test_the_master_rejects_invalid_label_names():
    given = {
        "plain": "1",
        "nvidia.com/gpu.count": "8",
        "kubernetes.io/x": "1",
        "node-role.kubernetes.io/y": "",
        "sub.feature.node.kubernetes.io/z": "1",
        "bad": "a b",
    }
    assert set(nfd_features.qualified(given)) == {
        "feature.node.kubernetes.io/plain",
        "nvidia.com/gpu.count",
        "sub.feature.node.kubernetes.io/z",
    }


@pytest.mark.parametrize("ends", ["reboot", "deleted", "power cut"])
def test_a_master_stops_its_watches_when_it_ends(world, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    """A thread that outlives the master would continue to send requests without permissions."""
    watching: list[str] = []

    class Watch:
        def __init__(self, _api: object, path: str, *_arguments: object, **_options: object) -> None:
            self.path = path

        def start(self) -> None:
            watching.append(self.path)

        def stop(self) -> None:
            watching.remove(self.path)

    monkeypatch.setattr(process, "Informer", Watch)
    node = world.node()
    pod = world.pod(node, {"containers": [{"name": "master", "image": NFD, "command": ["nfd-master"]}]})
    world.until(lambda: len(watching) == 2)
    if ends == "reboot":
        world.loop.spawn(node.reboot())
        world.until(lambda: not node.up)
        assert watching == []
        world.until(lambda: len(watching) == 2)
    elif ends == "deleted":
        world.delete(pod)
        world.until(lambda: not watching)
    else:
        pod.power_cut()
        assert watching == []


def test_a_master_names_an_invalid_configuration(world) -> None:
    world.store.data["configmap", "ns", "conf"] = {"nfd-master.conf": "restrictions:\n  a: 1\n    b: 2\n"}
    spec = {
        "volumes": [{"name": "conf", "configMap": {"name": "conf"}}],
        "containers": [
            {
                "name": "master",
                "image": NFD,
                "command": ["nfd-master"],
                "volumeMounts": [mount("conf", "/etc/kubernetes/node-feature-discovery")],
            }
        ],
    }
    pod = world.pod(world.node(), spec)
    world.until(lambda: pod.main[0].restarts, seconds=60)
    assert '"error while running" err="failed to parse config file: mapping values are not allowed' in log(pod.main[0])


def test_a_master_uses_only_selected_namespaces_and_allowed_resources(world) -> None:
    pod = world.pod(world.node(), {"containers": [{"name": "master", "image": NFD, "command": ["nfd-master"]}]})
    table = tables.table_of("nfd-master")
    assert table is not None
    state = nfd_master.Master(types.SimpleNamespace(pod=pod, settings=tables.read(table, ["nfd-master"], {})))
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["agents"]}]}
    rule = {"name": "r", "labels": {"by-rule": "1"}, "extendedResources": {"example.com/r": "1"}, "matchFeatures": []}
    state.rules["rule"] = {"spec": {"rules": [rule]}}
    for namespace in ("agents", "users"):
        state._take(
            "Namespace",
            "ADDED",
            {"metadata": {"name": namespace, "labels": {"kubernetes.io/metadata.name": namespace}}},
        )
        labels = {"nfd.node.kubernetes.io/node-name": "n0"}
        found = {
            "metadata": {"name": "n0", "namespace": namespace, "labels": labels},
            "spec": {"labels": {f"feature.node.kubernetes.io/{namespace}": "1"}},
        }
        state._take("NodeFeature", "ADDED", found)

    def desired() -> tuple[set[str], set[str]]:
        result = state.desired("n0")
        return {key.rpartition("/")[2] for key in result["labels"]}, set(result["resources"])

    assert desired() == ({"agents", "users", "by-rule"}, {"example.com/r"})
    state.config = {"restrictions": {"nodeFeatureNamespaceSelector": selector, "disableExtendedResources": True}}
    assert desired() == ({"agents", "by-rule"}, set())
    assert len(state.kinds()) == 3
