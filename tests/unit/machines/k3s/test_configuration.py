# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of K3s' configuration, as https://docs.k3s.io/cli/server and /cli/agent document their options."""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, places, role

_MACHINES = [
    {"host": name, "node": name, "address": f"10.0.0.{number}", "role": kind, "serves": kind == "server"}
    for name, number, kind in (("s1", 11, "server"), ("s2", 12, "server"), ("s3", 13, "server"), ("a1", 21, "agent"))
]
SETTINGS: dict[str, t.Any] = {
    "host": "s1",
    "node": "s1",
    "address": "10.0.0.11",
    "role": "server",
    "serves": True,
    "labels": {},
    "taints": [],
    "board_labels": {},
    "machines": _MACHINES,
    "version": "1.36.4+k3s1",
    "endpoint": "10.0.0.1:6443",
    "programs": [],
    "images": [],
    "image_list": "",
    "registries": {},
    "embedded_registry": False,
    "system_default_registry": "",
    "pause_image": "",
    "datastore": "",
    "datastore_endpoint": "",
    "has_token": True,
    "migrates": False,
    "adopt": False,
    "pod_network": "10.42.0.0/16",
    "service_network": "10.43.0.0/16",
    "dns_domain": "cluster.local",
    "flannel_backend": "vxlan",
    "disable": ["traefik"],
    "secrets_encryption": True,
    "snapshot_schedule": "0 */12 * * *",
    "snapshot_retention": 5,
    "snapshot_s3": {},
    "engine": "containerd",
    "default_runtime": "",
    "names": ["api.example.com"],
    "hardening": "",
    "configuration": {"kubelet-arg": ["max-pods=200"]},
    "server_configuration": {"kube-apiserver-arg": ["audit-log-maxage=30"]},
}


def read(**changed: t.Any) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", yaml.safe_load(configuration.text({**SETTINGS, **changed})))


def test_a_server_has_everything_that_servers_must_have_in_common() -> None:
    assert read() == {
        "agent-token-file": places.AGENT_TOKEN,
        "cluster-cidr": "10.42.0.0/16",
        "cluster-dns": "10.43.0.10",
        "cluster-domain": "cluster.local",
        "disable": ["traefik"],
        "etcd-snapshot-retention": 5,
        "etcd-snapshot-schedule-cron": "0 */12 * * *",
        "flannel-backend": "vxlan",
        "kube-apiserver-arg": ["audit-log-maxage=30"],
        "kubelet-arg": ["max-pods=200"],
        "node-ip": "10.0.0.11",
        "node-name": "s1",
        "secrets-encryption": True,
        "service-cidr": "10.43.0.0/16",
        "tls-san": ["10.0.0.1", "api.example.com"],
        "write-kubeconfig-mode": "0600",
    }


def test_an_agent_has_only_options_of_agents() -> None:
    taints = [{"key": "gpu", "value": "a100", "effect": "NoSchedule"}, {"key": "edge", "effect": "NoExecute"}]
    found = read(role="agent", serves=False, node="a1", address="10.0.0.21", taints=taints, default_runtime="nvidia")
    assert found == {
        "default-runtime": "nvidia",
        "kubelet-arg": ["max-pods=200"],
        "node-ip": "10.0.0.21",
        "node-name": "a1",
        "node-taint": ["gpu=a100:NoSchedule", "edge:NoExecute"],
    }


def test_a_host_name_is_no_node_ip_and_in_the_certificate() -> None:
    found = read(address="s1.example.com")
    assert "node-ip" not in found
    assert found["tls-san"] == ["10.0.0.1", "s1.example.com", "api.example.com"]


def test_a_node_ip_that_is_given_counts() -> None:
    assert read(configuration={"node-ip": "10.0.0.11,fd00::11"})["node-ip"] == "10.0.0.11,fd00::11"


def test_encryption_of_secrets_is_not_switched_off() -> None:
    """The API server could not read them."""
    (fault,) = configuration.kept(configuration.text(SETTINGS), {**SETTINGS, "secrets_encryption": False})
    assert "the encryption of Secrets of the cluster is True, and False is set" in str(fault)


def test_two_stacks_have_an_address_of_dns_in_each_network() -> None:
    found = read(service_network="10.43.0.0/16,fd00:43::/112", pod_network="10.42.0.0/16,fd00:42::/56")
    assert found["cluster-dns"] == "10.43.0.10,fd00:43::a"
    # Which the inventory does not have.
    assert "node-ip" not in found


@pytest.mark.parametrize(
    ("servers", "datastore", "etcd"), [(1, "", False), (1, "etcd", True), (3, "", True), (3, "etcd", True)]
)
def test_several_servers_have_etcd_and_a_lone_one_sqlite(servers: int, datastore: str, etcd: bool) -> None:
    settings = {**SETTINGS, "machines": [*_MACHINES[:servers], _MACHINES[3]], "datastore": datastore}
    assert configuration.embedded(settings) == etcd
    assert ("etcd-snapshot-retention" in configuration.settings_of(settings)) == etcd


@pytest.mark.parametrize(
    ("what", "token", "servers", "expected"),
    [
        ("init", "", 3, {"cluster-init": True}),
        ("init", "given", 1, {"token-file": places.TOKEN}),
        ("join", "K10", 3, {"token-file": places.TOKEN, "server": "https://10.0.0.1:6443"}),
        ("rejoin", "K10", 3, {"token-file": places.OWN_TOKEN, "server": "https://10.0.0.1:6443"}),
    ],
)
def test_how_a_machine_comes_to_its_cluster(what: str, token: str, servers: int, expected: dict[str, t.Any]) -> None:
    settings = {**SETTINGS, "machines": _MACHINES[:servers]}
    text = role.configured(settings, _MACHINES[0], {"token": token}, what)
    assert yaml.safe_load(text) == expected
    assert "K10" not in text


def test_docker_and_a_registry_are_options() -> None:
    found = read(
        engine="docker", system_default_registry="registry.example.com", pause_image="registry.example.com/pause:3"
    )
    assert found["docker"] is True
    assert (found["system-default-registry"], found["pause-image"]) == (
        "registry.example.com",
        "registry.example.com/pause:3",
    )


def test_every_reserved_option_is_refused() -> None:
    for name in configuration.RESERVED:
        (fault,) = configuration.faults({**SETTINGS, "configuration": {name: "x"}})
        assert f"{name} cannot be set there" in str(fault)
