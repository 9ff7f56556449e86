# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the machines of a cluster need from elsewhere."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_bundle import cluster_bundle

SUM = f"sha256:{'a' * 64}"
SETTINGS: dict[str, t.Any] = {
    "version": "1.36.4",
    "programs": [
        {"name": "kubeadm", "source": "/files/kubeadm", "checksum": SUM, "architecture": "x86_64"},
        {"name": "kubeadm", "source": "https://mirror.example.com/kubeadm", "checksum": SUM, "architecture": "aarch64"},
    ],
    "images": [{"source": "/files/node.tar", "checksum": SUM}],
    "cni_plugins": [{"source": "/files/cni-plugins.tgz", "checksum": SUM}],
    "runtime_packages": ["containerd"],
    "packages": ["kubectl"],
    "pause_image": "registry.k8s.io/pause:3.10.2",
    "image_repository": "",
    "proxy_mode": "nftables",
    "skipped_phases": [],
}
NETWORK = {
    "kind": "DaemonSet",
    "metadata": {"name": "flannel"},
    "spec": {
        "template": {
            "spec": {
                "initContainers": [{"name": "plugin", "image": "example.com/plugin:1"}],
                "containers": [{"name": "flannel", "image": "example.com/flannel:2"}],
            }
        }
    },
}


def images(settings: dict[str, t.Any], **more: t.Any) -> list[str]:
    found = cluster_bundle(settings, "cluster_kubeadm", **more)["needs"]
    return [one["name"] for one in found if one["kind"] == "image"]


def test_everything_is_listed_with_source_checksum_and_size() -> None:
    found = cluster_bundle(
        SETTINGS, "cluster_kubeadm", network=NETWORK, sizes={"/files/kubeadm": 3 << 20, "/files/node.tar": 2 << 30}
    )
    rows = {(one["kind"], one["name"], one["architecture"]): one for one in found["needs"]}
    assert rows["program", "kubeadm", "x86_64"]["bytes"] == 3 << 20
    assert rows["program", "kubeadm", "aarch64"]["bytes"] is None
    assert rows["archive", "node.tar", ""]["checksum"] == SUM
    assert rows["archive", "cni-plugins.tgz", ""]["source"] == "/files/cni-plugins.tgz"
    assert rows["package", "containerd", ""]["source"] == "repositories of the machines"
    text = "\n".join(found["lines"])
    assert "3 MiB" in text and "2.0 GiB" in text and "unknown" in text and SUM in text
    assert "Sizes of 2 of 4 files are known: 2.0 GiB." in text


@pytest.mark.parametrize(
    "network",
    [NETWORK, [NETWORK], yaml.safe_dump(NETWORK, sort_keys=False), [yaml.safe_dump(NETWORK, sort_keys=False)]],
)
def test_images_of_the_network_plugin_are_found_in_every_form(network: t.Any) -> None:
    assert images(SETTINGS, network=network)[-2:] == ["example.com/plugin:1", "example.com/flannel:2"]


def test_without_kubeadm_only_what_follows_from_the_version_has_a_tag() -> None:
    found = images(SETTINGS)
    assert found == [
        *(f"registry.k8s.io/kube-{name}:v1.36.4" for name in ("apiserver", "controller-manager", "scheduler", "proxy")),
        "registry.k8s.io/etcd",
        "registry.k8s.io/coredns/coredns",
        "registry.k8s.io/pause:3.10.2",
    ]
    notes = [one["note"] for one in cluster_bundle(SETTINGS, "cluster_kubeadm")["needs"] if one["kind"] == "image"]
    assert [bool(note) for note in notes] == [False] * 4 + [True] * 2 + [False]


def test_what_kubeadm_names_goes_before_without_phases_that_are_skipped() -> None:
    listed = ["m.example.com/kube-proxy:v1.36.4", "m.example.com/coredns/coredns:v1.14.2", "m.example.com/pause:3.10.2"]
    settings = SETTINGS | {"image_repository": "m.example.com", "proxy_mode": "none"}
    assert images(settings, listed=listed) == listed[1:]
    assert images(settings | {"skipped_phases": ["addon/coredns"]}, listed=listed) == listed[2:]


def test_manifests_that_are_no_yaml_are_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="cluster_kubeadm_network"):
        cluster_bundle(SETTINGS, "cluster_kubeadm", network="- [\n")


K3S: dict[str, t.Any] = {
    "version": "1.36.4+k3s1",
    "programs": [{"source": "https://mirror.example.com/k3s-arm64", "checksum": SUM, "architecture": "aarch64"}],
    "images": [{"source": "/files/k3s-airgap-images-arm64.tar.zst", "checksum": SUM, "architecture": "aarch64"}],
    "pause_image": "",
    "system_default_registry": "",
    "disable": ["traefik"],
}
LISTED = [
    "docker.io/rancher/klipper-helm:v0.9.14",
    "docker.io/rancher/klipper-lb:v0.4.15",
    "docker.io/rancher/mirrored-pause:3.6",
]


def test_k3s_needs_its_program_archives_and_the_images_of_its_release() -> None:
    found = cluster_bundle(K3S, "cluster_k3s", network=NETWORK, listed=LISTED)["needs"]
    assert [(one["kind"], one["name"], one["source"]) for one in found] == [
        ("program", "k3s-arm64", "https://mirror.example.com/k3s-arm64"),
        ("archive", "k3s-airgap-images-arm64.tar.zst", "/files/k3s-airgap-images-arm64.tar.zst"),
        ("image", LISTED[1], "docker.io"),
        ("image", LISTED[2], "docker.io"),
        ("image", "example.com/plugin:1", "example.com"),
        ("image", "example.com/flannel:2", "example.com"),
    ]


def test_without_its_list_only_names_of_images_are_known() -> None:
    found = cluster_bundle(K3S, "cluster_k3s")["needs"][2:]
    assert [one["name"] for one in found][:2] == ["pause", "coredns-coredns"] and len(found) == 6
    assert all("cluster_k3s_image_list" in one["note"] for one in found)


def test_a_default_registry_and_another_pause_image_take_their_place() -> None:
    changed = {**K3S, "system_default_registry": "registry.example.com:5000", "pause_image": "quay.io/pause:3.10"}
    found = cluster_bundle(changed, "cluster_k3s", listed=LISTED)["needs"][2:]
    assert [one["name"] for one in found] == [
        "quay.io/pause:3.10",
        "registry.example.com:5000/rancher/klipper-lb:v0.4.15",
    ]
