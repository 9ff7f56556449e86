# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration that kubeadm gets."""

from __future__ import annotations

import json
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.authority import key_hash
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import documents, places
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import PEM

SETTINGS: dict[str, t.Any] = {
    "version": "1.36.4",
    "endpoint": "10.0.0.1:6443",
    "pod_network": "10.244.0.0/16",
    "service_network": "10.96.0.0/12",
    "dns_domain": "cluster.local",
    "names": ["api.example.com", "10.0.0.1"],
    "image_repository": "",
    "proxy_mode": "nftables",
    "cgroup_driver": "systemd",
    "ignored_errors": ["NumCPU"],
    "skipped_phases": ["addon/coredns"],
    "runtime_socket": "",
    "secrets_encryption": False,
    "configuration": {},
}
MACHINE = {"node": "cp1", "address": "10.0.0.11", "serves": True, "taints": []}
SECRETS = {"token": "abcdef.0123456789abcdef", "certificate_key": "f" * 64, "certificate": PEM}
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def parsed(text: str) -> dict[str, dict[str, t.Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def test_an_upgrade_skips_the_add_ons_that_init_has_skipped_and_holds_no_secret() -> None:
    given = {**SETTINGS, "proxy_mode": "none", "skipped_phases": ["addon/coredns", "mark-control-plane"]}
    (found,) = parsed(documents.upgrade(given, MACHINE, {})).values()
    shared = {"ignorePreflightErrors": ["NumCPU"], "skipPhases": ["addon/coredns", "addon/kube-proxy"]}
    assert found == {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "UpgradeConfiguration",
        "apply": {"kubernetesVersion": "v1.36.4", **shared},
        "node": shared,
    }


def test_an_upgrade_may_leave_the_kubelet_alone() -> None:
    (found,) = parsed(documents.reconfigure(SETTINGS, MACHINE, {})).values()
    assert found["apply"]["skipPhases"] == found["node"]["skipPhases"] == ["addon/coredns", "kubelet-config"]


def _applied(**cluster: t.Any) -> dict[str, t.Any]:
    given = {**SETTINGS, "configuration": {"ClusterConfiguration": cluster}}
    return t.cast("dict[str, t.Any]", json.loads(documents.applied(given, MACHINE, {})))


@pytest.mark.parametrize(
    ("configuration", "machine", "kept"),
    [
        ({}, {"same_etcd": True, "applied": _applied()}, True),
        ({}, {"same_etcd": True, "applied": _applied(apiServer={"timeoutForControlPlane": "9m"})}, True),
        ({}, {"same_etcd": False, "applied": _applied()}, False),
        ({}, {"same_etcd": True, "applied": {}}, False),
        ({}, {"same_etcd": True, "applied": _applied(etcd={"local": {"dataDir": "/srv"}})}, False),
        ({}, {"same_etcd": True, "applied": _applied(imageRepository="registry.example.com")}, False),
        ({}, {"same_etcd": True, "applied": _applied(certificatesDir="/srv")}, False),
        ({"UpgradeConfiguration": {"node": {}}}, {"same_etcd": True, "applied": _applied()}, False),
    ],
    ids=["same", "other part", "other version", "unknown", "other etcd", "registry", "folder", "of the user"],
)
@pytest.mark.parametrize("write", [documents.upgrade, documents.reconfigure])
def test_an_etcd_that_would_only_be_restarted_runs_on(
    write: t.Any, configuration: t.Any, machine: dict[str, t.Any], kept: bool
) -> None:
    given = {**SETTINGS, "configuration": configuration}
    (found,) = parsed(write(given, {**MACHINE, **machine}, {})).values()
    assert [found[how].get("etcdUpgrade") for how in ("apply", "node")] == [False if kept else None] * 2


def test_certificates_with_more_names_are_issued_elsewhere() -> None:
    given = {**SETTINGS, "configuration": {"ClusterConfiguration": {"featureGates": {"A": True}}}}
    found = parsed(documents.names(given, MACHINE, {**SECRETS, "folder": "/run/pki"}))["ClusterConfiguration"]
    usual = parsed(documents.init(given, MACHINE, SECRETS))["ClusterConfiguration"]
    assert found == {**usual, "certificatesDir": "/run/pki"}


def test_what_a_machine_runs_with_is_recorded_without_its_version() -> None:
    server = json.loads(documents.applied(SETTINGS, MACHINE, {}))
    assert list(server) == ["ClusterConfiguration", "KubeProxyConfiguration", "KubeletConfiguration"]
    assert server == json.loads(documents.applied({**SETTINGS, "version": "1.36.5"}, MACHINE, {}))
    assert list(json.loads(documents.applied(SETTINGS, {"serves": False}, {}))) == ["KubeletConfiguration"]
    assert "KubeProxyConfiguration" not in documents.components({**SETTINGS, "proxy_mode": "none"})


def test_a_cluster_is_initialized_with_all_that_is_set() -> None:
    found = parsed(documents.init(SETTINGS, MACHINE, SECRETS))
    assert list(found) == [
        "InitConfiguration",
        "ClusterConfiguration",
        "KubeletConfiguration",
        "KubeProxyConfiguration",
    ]
    assert found["InitConfiguration"] == {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "bootstrapTokens": [{"token": SECRETS["token"], "ttl": "15m", "description": "hwaccel.gpu"}],
        "certificateKey": SECRETS["certificate_key"],
        "localAPIEndpoint": {"advertiseAddress": "10.0.0.11"},
        "nodeRegistration": {
            "name": "cp1",
            "kubeletExtraArgs": [{"name": "node-ip", "value": "10.0.0.11"}],
            "ignorePreflightErrors": ["NumCPU"],
            "taints": [TAINT],
        },
        "skipPhases": ["addon/coredns"],
    }
    assert found["ClusterConfiguration"] == {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": "v1.36.4",
        "controlPlaneEndpoint": "10.0.0.1:6443",
        "networking": {"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/12", "dnsDomain": "cluster.local"},
        "apiServer": {"certSANs": ["10.0.0.1", "api.example.com"]},
    }
    assert found["KubeletConfiguration"]["cgroupDriver"] == "systemd"
    assert found["KubeProxyConfiguration"]["mode"] == "nftables"


@pytest.mark.parametrize("mode", ["nftables", "iptables"])
def test_kube_proxy_has_the_mode_that_is_set(mode: str) -> None:
    found = parsed(documents.init({**SETTINGS, "proxy_mode": mode}, MACHINE, SECRETS))
    assert found["KubeProxyConfiguration"]["mode"] == mode


def test_without_kube_proxy_its_phase_is_skipped() -> None:
    found = parsed(documents.init({**SETTINGS, "proxy_mode": "none"}, MACHINE, SECRETS))
    assert "mode" not in found["KubeProxyConfiguration"]
    assert found["InitConfiguration"]["skipPhases"] == ["addon/coredns", "addon/kube-proxy"]


@pytest.mark.parametrize(("configuration", "requests"), [({}, True), ({"serverTLSBootstrap": False}, False)])
def test_kubelets_request_serving_certificates_of_the_cluster(configuration: dict[str, t.Any], requests: bool) -> None:
    given = {**SETTINGS, "configuration": {"KubeletConfiguration": configuration}}
    found = parsed(documents.init(given, MACHINE, SECRETS))["KubeletConfiguration"]
    assert found["serverTLSBootstrap"] is requests and found["cgroupDriver"] == "systemd"
    applied = json.loads(documents.applied(given, {"serves": False}, {}))
    assert applied["KubeletConfiguration"]["serverTLSBootstrap"] is requests


def test_servers_join_with_the_key_and_agents_without_it() -> None:
    server = parsed(documents.join(SETTINGS, MACHINE, SECRETS))["JoinConfiguration"]
    assert server["discovery"]["bootstrapToken"] == {
        "apiServerEndpoint": "10.0.0.1:6443",
        "token": SECRETS["token"],
        "caCertHashes": [key_hash(PEM)],
    }
    assert server["controlPlane"] == {
        "certificateKey": SECRETS["certificate_key"],
        "localAPIEndpoint": {"advertiseAddress": "10.0.0.11"},
    }
    own = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    text = documents.join(SETTINGS, {**MACHINE, "serves": False, "taints": [own]}, SECRETS)
    agent = parsed(text)["JoinConfiguration"]
    assert "controlPlane" not in agent
    assert SECRETS["certificate_key"] not in text
    assert agent["nodeRegistration"]["taints"] == [own]


def test_configuration_of_the_user_is_merged_by_kind() -> None:
    configuration = {
        "KubeletConfiguration": {"maxPods": 250, "cgroupDriver": "cgroupfs"},
        "ClusterConfiguration": {
            "networking": {"dnsDomain": "example.com"},
            "etcd": {"external": {"endpoints": ["x"]}},
        },
        "JoinConfiguration": {"timeouts": {"discovery": "1m"}},
    }
    found = parsed(documents.init({**SETTINGS, "configuration": configuration}, MACHINE, SECRETS))
    assert found["KubeletConfiguration"]["maxPods"] == 250
    assert found["KubeletConfiguration"]["cgroupDriver"] == "cgroupfs"
    networking = found["ClusterConfiguration"]["networking"]
    assert networking == {"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/12", "dnsDomain": "example.com"}
    assert found["ClusterConfiguration"]["etcd"]["external"]["endpoints"] == ["x"]
    joined = parsed(documents.join({**SETTINGS, "configuration": configuration}, MACHINE, SECRETS))
    assert joined["JoinConfiguration"]["timeouts"] == {"discovery": "1m"}


def test_what_is_not_set_is_left_to_kubeadm_and_what_is_replaced_is_skipped() -> None:
    changed = {
        **SETTINGS,
        "proxy_mode": "none",
        "runtime_socket": "unix:///run/x.sock",
        "image_repository": "mirror.example.com",
    }
    found = parsed(documents.init(changed, MACHINE, SECRETS))
    assert found["InitConfiguration"]["skipPhases"] == ["addon/coredns", "addon/kube-proxy"]
    assert "mode" not in found["KubeProxyConfiguration"]
    assert found["InitConfiguration"]["nodeRegistration"]["criSocket"] == "unix:///run/x.sock"
    assert found["ClusterConfiguration"]["imageRepository"] == "mirror.example.com"


def test_an_ipv6_endpoint_is_a_name_of_the_certificate_without_brackets() -> None:
    found = parsed(documents.init({**SETTINGS, "endpoint": "[fd00::1]:6443", "names": []}, MACHINE, SECRETS))
    assert found["ClusterConfiguration"]["apiServer"]["certSANs"] == ["fd00::1"]


@pytest.mark.parametrize("given", [[], [{"name": "audit-log-path", "value": "/var/log/audit.log"}]])
def test_secrets_are_encrypted_whatever_other_arguments_a_user_gives(given: list[dict[str, str]]) -> None:
    settings = {**SETTINGS, "secrets_encryption": True}
    if given:
        settings["configuration"] = {"ClusterConfiguration": {"apiServer": {"extraArgs": given}}}
    wanted = [*given, {"name": "encryption-provider-config", "value": places.ENCRYPTION}]
    for found in (parsed(documents.init(settings, MACHINE, SECRETS)), documents.components(settings)):
        assert found["ClusterConfiguration"]["apiServer"]["extraArgs"] == wanted
        assert "10.0.0.1" in found["ClusterConfiguration"]["apiServer"]["certSANs"]
    without = documents.components({**settings, "secrets_encryption": False})["ClusterConfiguration"]["apiServer"]
    assert without.get("extraArgs", []) == given
