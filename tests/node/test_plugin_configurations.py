# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's device plugin behind its config-manager, as NVIDIA's chart deploys both: the node's label selects another configuration than the default.

It offers the GPUs of the node a second time, under the name of shared ones, so that the plugin of our role can stay.
"""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import WHOLE
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import defaults

SHARED, LABEL, NAME = f"{WHOLE}.shared", "nvidia.com/device-plugin.config", "configured"
_RBAC = "rbac.authorization.k8s.io"
ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts", True)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
ROLE = Resource(_RBAC, "v1", "ClusterRole", "clusterroles", False)
BINDING = Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False)


def configuration(replicas: int) -> str:
    sharing = {"renameByDefault": True, "resources": [{"name": WHOLE, "replicas": replicas}]}
    return json.dumps({"version": "v1", "sharing": {"timeSlicing": sharing}})


def objects() -> list[tuple[Resource, dict[str, t.Any]]]:
    """What the pod needs: its rights, and a file for each value of the label."""
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": "default"}
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    role = {"kind": "ClusterRole", "name": NAME, "apiGroup": _RBAC}
    files = {"two": configuration(2), "four": configuration(4)}
    parts: list[tuple[Resource, dict[str, t.Any]]] = [
        (ACCOUNT, {}),
        (CONFIG_MAP, {"data": files}),
        (ROLE, {"rules": rules}),
        (BINDING, {"roleRef": role, "subjects": [subject]}),
    ]
    return [
        (
            kind,
            {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"name": NAME} | ({"namespace": "default"} if kind.namespaced else {}),
                **content,
            },
        )
        for kind, content in parts
    ]


MOUNTS = [{"name": "config", "mountPath": "/config"}, {"name": "available", "mountPath": "/available-configs"}]


def manager(name: str, image: str, oneshot: bool) -> dict[str, t.Any]:
    """A container of config-manager."""
    values = {
        "NODE_LABEL": LABEL,
        "CONFIG_FILE_SRCDIR": "/available-configs",
        "CONFIG_FILE_DST": "/config/config.yaml",
        "PROCESS_TO_SIGNAL": "nvidia-device-plugin",
        # It takes the first value before it knows the node's label, which is then a change.
        "DEFAULT_CONFIG": "two",
        "ONESHOT": str(oneshot).lower(),
        "SEND_SIGNAL": str(not oneshot).lower(),
    }
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    env = [node, *({"name": key, "value": value} for key, value in values.items())]
    return {"name": name, "image": image, "command": ["config-manager"], "env": env, "volumeMounts": MOUNTS}


def pod() -> dict[str, t.Any]:
    """Containers and their variables are those of NVIDIA's chart (k8s-device-plugin v0.19.0, templates/daemonset-device-plugin.yml)."""
    image = defaults("device_plugin")["device_plugin_image"]
    host = {"driver": "/run/nvidia/driver", "device-plugins": "/var/lib/kubelet/device-plugins"}
    plugin = {
        "name": "plugin",
        "image": image,
        "command": ["nvidia-device-plugin"],
        "env": [
            {"name": "CONFIG_FILE", "value": "/config/config.yaml"},
            {"name": "DEVICE_LIST_STRATEGY", "value": "envvar"},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
        ],
        "securityContext": {"privileged": True},
        "volumeMounts": [
            # config.yaml is a link to the selected file.
            *MOUNTS,
            {"name": "driver", "mountPath": "/driver-root", "mountPropagation": "HostToContainer"},
            {"name": "device-plugins", "mountPath": "/var/lib/kubelet/device-plugins"},
        ],
    }
    volumes = [
        *({"name": name, "hostPath": {"path": path}} for name, path in host.items()),
        {"name": "available", "configMap": {"name": NAME}},
        {"name": "config", "emptyDir": {}},
    ]
    spec = {
        "nodeName": REAL,
        "serviceAccountName": NAME,
        "runtimeClassName": "nvidia",
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": 5,
        "initContainers": [manager("init", image, True)],
        "containers": [plugin, manager("sidecar", image, False)],
        "volumes": volumes,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "namespace": "default"}, "spec": spec}


def select(cluster: Cluster, value: str | None) -> None:
    cluster.client.patch(NODE, REAL, "", {"metadata": {"labels": {LABEL: value}}})


def shared(cluster: Cluster) -> str:
    return str(cluster.client.get(NODE, REAL)["status"]["allocatable"].get(SHARED, ""))


@pytest.fixture(scope="module")
def configured(cluster: Cluster, enabled: Enabled) -> c.Iterator[None]:
    for kind, content in objects():
        cluster.client.create(content, kind)
    cluster.client.create(pod(), POD)
    yield
    cluster.client.delete(POD, NAME, "default")
    for kind, _content in objects():
        cluster.client.delete(kind, NAME, "default" if kind.namespaced else "")
    select(cluster, None)
    cluster.wait("the plugin is gone", lambda: shared(cluster) in ("", "0"))


@pytest.mark.slow
def test_the_label_selects_the_configuration_and_a_change_restarts_the_plugin(
    cluster: Cluster, configured: None
) -> None:
    cluster.wait("two replicas of each GPU are allocatable, by default", lambda: shared(cluster) == "4")
    select(cluster, "four")
    cluster.wait("four replicas of each GPU are allocatable", lambda: shared(cluster) == "8")
    log = cluster.client.logs("default", NAME, "plugin", tail_lines=1000)
    assert "Received SIGHUP, restarting." in log
    assert f"Starting to serve '{SHARED}' on /var/lib/kubelet/device-plugins/nvidia-gpu.shared.sock" in log
    assert "Successfully updated to config: four" in cluster.client.logs("default", NAME, "sidecar", tail_lines=1000)
    assert cluster.gpus(REAL) == ("2", "2")


@pytest.mark.slow
def test_a_shared_gpu_reaches_its_container_by_a_variable(cluster: Cluster, configured: None) -> None:
    cluster.wait("GPUs are allocatable", lambda: shared(cluster) not in ("", "0"))
    container = {
        "name": "main",
        "image": BUSYBOX,
        "command": ["sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES"],
        "resources": {"limits": {SHARED: 1}},
    }
    spec = {"restartPolicy": "Never", "nodeName": REAL, "containers": [container]}
    metadata = {"name": "user-of-a-share", "namespace": "default"}
    cluster.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, POD)
    try:
        cluster.wait(
            "the pod has ended",
            lambda: (
                cluster.client.get(POD, "user-of-a-share", "default")["status"].get("phase") in ("Succeeded", "Failed")
            ),
        )
        assert cluster.client.logs("default", "user-of-a-share", "main").startswith("GPU-")
    finally:
        cluster.client.delete(POD, "user-of-a-share", "default")
