# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_info, as a playbook calls it, on simulated fleets."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU

FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "training",
            "count": 3,
            "kernel": "6.8.0-45-generic",
            "gpu": GPU,
        },
        {
            "name": "edge",
            "count": 2,
            "architecture": "arm64",
            "kernel": "5.15.148-tegra",
            "os_image": "Ubuntu 22.04.5 LTS",
            "container_runtime": "containerd://1.7.0",
        },
        {"name": "cpu", "count": 2, "container_runtime": "cri-o://1.32.1"},
    ],
}
DECLARED = [
    {
        "name": "training",
        "nodes": ["training-0", "training-1", "training-2"],
        "gpu": GPU,
    }
]


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> t.Any:
    return make_sandbox(FLEET)


def test_pools_and_classes(client: Client) -> None:
    summary = fleet.summary(client, DECLARED, rows=True)
    assert [(pool["name"], pool["declared"], pool["nodes"], pool["ready"]) for pool in summary["pools"]] == [
        ("training", True, 3, 3),
        ("cpu", False, 2, 2),
        ("default", False, 2, 2),
    ]
    by_pool = {entry["pool"]: entry for entry in summary["classes"]}
    training, edge, cpu = by_pool["training"], by_pool["default"], by_pool["cpu"]
    # The nodes have no labels of NFD yet, so the declared GPUs are assumed, and reported as such.
    assert (training["gpu_present"], training["gpu_assumed"], training["count"], training["ready"]) == (
        False,
        True,
        3,
        3,
    )
    assert (training["kernel"], training["architecture"]) == ("6.8.0-45-generic", "amd64")
    assert (edge["architecture"], edge["kernel"], edge["os_id"], edge["os_version"], edge["gpu_present"]) == (
        "arm64",
        "5.15.148-tegra",
        "ubuntu",
        "22.04",
        True,
    )
    assert (cpu["runtime"], cpu["runtime_version"], cpu["gpu_present"]) == ("cri-o", "1.32.1", False)
    assert [row["name"] for row in summary["nodes"]] == [
        "cpu-0",
        "cpu-1",
        "edge-0",
        "edge-1",
        "training-0",
        "training-1",
        "training-2",
    ]
    assert summary["platform"]["distribution"] == "kubernetes" and summary["platform"]["version"].startswith("v1.")
    assert summary["existing"] == {
        "nfd": [],
        "device_plugin": [],
        "driver": [],
        "cluster_policy": [],
        "runtime_class": [],
        "dcgm_exporter": [],
        "prometheus_operator": [],
    }
    assert summary["cluster_uid"] == client.get(fleet.NAMESPACE, "kube-system")["metadata"]["uid"]


def test_labels_take_precedence_and_selectors_select(client: Client) -> None:
    labels = {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/cuda.driver-version.full": "580.178.04",
    }
    client.patch(fleet.NODE, "training-1", "", {"metadata": {"labels": labels}})
    try:
        summary = fleet.summary(client, [], label_selector="nvidia.com/gpu.count=8")
        assert summary["pools"] == [
            {
                "name": "default",
                "declared": False,
                "nodes": 1,
                "ready": 1,
                "gpu": GPU,
            }
        ]
        assert (summary["classes"][0]["gpu_present"], summary["classes"][0]["driver_version"]) == (True, "580.178.04")
    finally:
        client.patch(fleet.NODE, "training-1", "", {"metadata": {"labels": dict.fromkeys(labels)}})


def test_overlapping_pools_are_reported_and_unknown_nodes_are_a_warning(client: Client) -> None:
    with pytest.raises(ManyFaults, match="overlap"):
        fleet.summary(client, [*DECLARED, {"name": "other", "nodes": ["training-1"]}])
    warnings: list[str] = []
    fleet.summary(client, [{"name": "new", "nodes": ["not-here-yet"]}], warn=warnings.append)
    assert len(warnings) == 1 and "not-here-yet" in warnings[0]


def test_deployments_of_others_are_detected_and_ours_are_not(client: Client) -> None:
    sets = client.resource("apps/v1", "DaemonSet")
    images = {
        "nfd-w": ("worker", "mirror.example.com:5000/x/node-feature-discovery:v0.16.0"),
        "plugin": ("ctr", "nvcr.io/nvidia/k8s-device-plugin@sha256:" + "0" * 64),
        "gfd": ("gpu-feature-discovery", "nvcr.io/nvidia/k8s-device-plugin:v0.17.0"),
        "drv": ("nvidia-driver-ctr", "registry.example.com/driver:580.1-ubuntu24.04"),
        "csi": ("csi", "registry.example.com/driver:1"),
    }
    try:
        for name, (container, image) in images.items():
            client.create(_daemon_set(name, container, image), sets)
        client.apply(
            _daemon_set("ours", "worker", "registry.example.com/node-feature-discovery:v1"),
            sets,
            field_manager="hwaccel.gpu/feature-discovery",
        )
        existing = fleet.summary(client)["existing"]
    finally:
        for name in (*images, "ours"):
            client.delete(sets, name, "default")
    assert {
        component: [(entry["kind"], entry["name"]) for entry in entries] for component, entries in existing.items()
    } == {
        "nfd": [("DaemonSet", "nfd-w")],
        "device_plugin": [("DaemonSet", "plugin")],
        "driver": [("DaemonSet", "drv")],
        "cluster_policy": [],
        "runtime_class": [],
        "dcgm_exporter": [],
        "prometheus_operator": [],
    }


def _daemon_set(name: str, container: str, image: str) -> dict[str, t.Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeSelector": {"nowhere": "true"}, "containers": [{"name": container, "image": image}]},
            },
        },
    }


def query(options: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    return [
        {"hwaccel.gpu.node_info": options, "register": "info"},
        {"ansible.builtin.debug": {"msg": "RESULT {{ info.result | to_json }}"}},
    ]


def play(
    sandbox: t.Any,
    folder: pathlib.Path,
    tasks: list[dict[str, t.Any]],
    *arguments: str,
    environ: dict[str, str] | None = None,
) -> tuple[int, str]:
    content = [
        {
            "hosts": "all",
            "connection": "local",
            "gather_facts": False,
            "tasks": tasks,
            "module_defaults": {
                "group/hwaccel.gpu.cluster": {"kubeconfig": sandbox.kubeconfig, "context": "", "validate_certs": ""}
            },
        }
    ]
    (folder / "play.yml").write_text(yaml.safe_dump(content))
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("K8S_AUTH_", "KUBE", "ANSIBLE_"))
    }
    program = pathlib.Path(sys.executable).with_name("ansible-playbook")
    done = subprocess.run(
        [program, "-i", "cluster,", *arguments, "play.yml"],
        cwd=folder,
        env=clean
        | {
            "ANSIBLE_COLLECTIONS_PATH": _collections(),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "ANSIBLE_NOCOLOR": "1",
        }
        | (environ or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def _collections() -> str:
    import ansible_collections.hwaccel.gpu as package

    return str(pathlib.Path(next(iter(package.__path__))).parents[2])


def test_a_query_in_a_playbook_writes_nothing(sandbox: t.Any, tmp_path: pathlib.Path) -> None:
    audit = AuditLog(sandbox.audit_log)
    code, output = play(sandbox, tmp_path, query({"query": "nodes[?architecture=='arm64'].name"}), "--check")
    assert code == 0, output
    assert json.dumps(["edge-0", "edge-1"]) in output.replace("\\", "")
    assert audit.our_writes() == []


HOSTILE: list[tuple[dict[str, t.Any], str]] = [
    ({"query": "nodes["}, "the query cannot be evaluated"),
    ({"pools": [{"name": "a", "nodes": "x"}, {"selector": "=="}]}, "'x' is not a list"),
    ({"label_selector": "a in ("}, "unable to parse requirement"),
    ({"kubeconfig": "/nowhere/config"}, "the kubeconfig does not exist"),
    ({"kubeconfig": {"clusters": 3}}, "clusters of the kubeconfig is malformed"),
    ({"kubeconfig": 7}, "the kubeconfig does not exist"),
    ({"kubeconfig": {"users": [{"name": "u", "user": {"token": "planted-secret"}}]}}, "no current context"),
    ({"host": "https://127.0.0.1:1", "kubeconfig": "", "api_key": "planted-secret"}, "Connection refused"),
    ({"proxy": "http://user:planted-secret@127.0.0.1:1"}, "the proxy http://127.0.0.1:1"),
    ({"impersonate_user": "nobody"}, "cannot list resource"),
    ({"context": "elsewhere"}, "has no context named"),
]


def test_every_wrong_option_is_reported_in_a_readable_message(sandbox: t.Any, tmp_path: pathlib.Path) -> None:
    """One playbook run for all cases: each task is rescued, and its message is shown."""
    (tmp_path / "vars.yml").write_text(yaml.safe_dump({"cases": [options for options, _expected in HOSTILE]}))
    blocks = [
        {
            "block": [{"hwaccel.gpu.node_info": {name: f"{{{{ cases[{number}].{name} }}}}" for name in options}}],
            "rescue": [{"ansible.builtin.debug": {"msg": f"CASE {number}: {{{{ ansible_failed_result.msg }}}}"}}],
        }
        for number, (options, _expected) in enumerate(HOSTILE)
    ]
    code, output = play(sandbox, tmp_path, blocks, "-vvv", "-e", "@vars.yml")
    assert code == 0, output
    messages = {
        line.split("CASE ")[1].split(":", maxsplit=1)[0]: line
        for line in output.splitlines()
        if "CASE " in line and '"msg"' in line
    }
    missing = [
        expected for number, (_options, expected) in enumerate(HOSTILE) if expected not in messages.get(str(number), "")
    ]
    assert not missing, messages
    assert "Traceback" not in output and "MODULE FAILURE" not in output
    assert "planted-secret" not in output


def test_awx_credentials_are_read_from_the_environment(sandbox: t.Any, tmp_path: pathlib.Path) -> None:
    environ = {"K8S_AUTH_KUBECONFIG": sandbox.kubeconfig, "K8S_AUTH_VERIFY_SSL": "True", "K8S_AUTH_API_KEY": ""}
    code, output = play(sandbox, tmp_path, query({"kubeconfig": "", "query": "pools[].name"}), environ=environ)
    assert code == 0, output
    assert "training" not in output and "default" in output
