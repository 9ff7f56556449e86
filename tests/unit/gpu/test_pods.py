# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the chain that a pod is, from its programs and its owner."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s

N = "training-0"


def owned(pod: s.Obj, kind: str, name: str = "x", *, phase: str = "") -> s.Obj:
    """`kind`: kind of the owner, "" for a bare pod."""
    pod["metadata"]["ownerReferences"] = [{"kind": kind, "name": name, "controller": True}] if kind else []
    pod["status"]["phase"] = phase or pod["status"]["phase"]
    return pod


@pytest.mark.parametrize(
    ("owner", "phase"),
    [
        ("ClusterPolicy", "Succeeded"),
        ("ClusterPolicy", "Running"),
        ("", "Running"),
        ("Job", "Running"),
        ("DaemonSet", "Succeeded"),
    ],
)
@pytest.mark.parametrize("create", [s.validator, s.driver, s.toolkit, s.plugin, s.discovery, s.exporter, s.worker])
def test_a_pod_without_a_daemon_set_is_no_part_of_the_chain(
    create: t.Callable[..., s.Obj], owner: str, phase: str
) -> None:
    """For example nvidia-cuda-validator pods of the operator: the ClusterPolicy owns them, and their container has the name of the validator's."""
    assert pods.reduce_pod(owned(create(N), "DaemonSet")).role != pods.OTHER
    assert pods.reduce_pod(owned(create(N), owner, phase=phase)).role == pods.OTHER


def test_the_owner_of_a_pod_is_its_controller() -> None:
    pod = s.validator(N)
    pod["metadata"]["ownerReferences"] = [
        {"kind": "ConfigMap", "name": "c"},
        {"kind": "DaemonSet", "name": "validator", "controller": True},
    ]
    facts = pods.reduce_pod(pod)
    assert (facts.role, facts.owner) == (pods.VALIDATOR, "validator")


@pytest.mark.parametrize(
    ("container", "inits", "part"),
    [
        (
            {
                "name": "mps-control-daemon-ctr",
                "image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
                "command": ["mps-control-daemon"],
            },
            [],
            pods.OTHER,
        ),
        (
            {"name": "nvidia-gpu-device-plugin", "image": "gcr.io/gke-release/nvidia-gpu-device-plugin@sha256:0"},
            [],
            pods.PLUGIN,
        ),
        (
            {"name": "nvidia-gpu-device-plugin", "image": "gcr.io/gke-release/nvidia-gpu-device-plugin@sha256:0"},
            ["gke-nvidia-installer:fixed"],
            pods.PLUGIN,
        ),
        (
            {"name": "pause", "image": "gke.gcr.io/pause:3.8"},
            ["cos-nvidia-installer:fixed", "gcr.io/gke-release/nvidia-partition-gpu"],
            pods.DRIVER,
        ),
        ({"name": "pause", "image": "gke.gcr.io/pause:3.8"}, [], pods.OTHER),
        (
            {
                "name": "w",
                "image": "registry.redhat.io/openshift4/ose-node-feature-discovery-rhel9@sha256:0",
                "command": ["nfd-worker"],
            },
            [],
            pods.NFD_WORKER,
        ),
        ({"name": "m", "image": "old/nfd-master:v0.6"}, [], pods.NFD_MASTER),
        (
            {
                "name": "t",
                "image": "registry.k8s.io/nfd/node-feature-discovery:v0.19.0",
                "command": ["nfd-topology-updater"],
            },
            [],
            pods.OTHER,
        ),
        ({"name": "secrets-store", "image": "mirror/driver:1.4"}, [], pods.OTHER),
        ({"name": "nvidia-driver-ctr", "image": "mirror/driver:580"}, [], pods.DRIVER),
        (
            {"name": "nvidia-mig-manager", "image": "nvcr.io/nvidia/cloud-native/k8s-mig-manager:v0.15.0"},
            ["gpu-operator:v26.7.0"],
            pods.OTHER,
        ),
    ],
)
def test_parts_are_identified_by_programs_of_other_deployers(container: s.Obj, inits: list[str], part: str) -> None:
    template = {
        "spec": {"initContainers": [{"name": "x", "image": image} for image in inits], "containers": [container]}
    }
    assert pods.role_of(template) == part


@pytest.mark.parametrize(
    ("program", "part"), [("nfd-master", pods.NFD_MASTER), ("nfd-gc", pods.NFD_GC), ("nfd-worker", pods.OTHER)]
)
def test_pods_of_deployments_are_parts_only_if_they_serve_the_whole_cluster(program: str, part: str) -> None:
    metadata = {"ownerReferences": [{"kind": "ReplicaSet", "name": "one-5d4f", "controller": True}]}
    container = {"name": "main", "image": "registry.k8s.io/nfd/node-feature-discovery:v0.18.3", "command": [program]}
    assert pods.reduce_pod({"metadata": metadata, "spec": {"containers": [container]}}).role == part


@pytest.mark.parametrize(
    "junk",
    [
        {},
        {"metadata": None, "spec": None, "status": None},
        {"spec": {"containers": "x"}, "status": {"conditions": [1]}},
    ],
)
def test_incomplete_pods_have_empty_facts(junk: s.Obj) -> None:
    facts = pods.reduce_pod(junk)
    assert (facts.name, facts.role, facts.ready) == ("", "other", False)


def test_feature_discovery_is_not_mistaken_for_the_plugin() -> None:
    pod = s.discovery(N)
    assert pods.reduce_pod(pod).role != "plugin"
