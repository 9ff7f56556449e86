# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the configuration of a cluster has to become, and what of it cannot change."""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import documents
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.configuration import Change, change
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_documents import SETTINGS

_KEYS = {"kubeadm-config": "ClusterConfiguration", "kubelet-config": "kubelet", "kube-proxy": "config.conf"}
#: What kubeadm adds to what it was given (`kubeadm config print init-defaults`).
_DEFAULTS: dict[str, dict[str, t.Any]] = {
    "ClusterConfiguration": {
        "kubernetesVersion": "v1.36.4",
        "certificatesDir": "/etc/kubernetes/pki",
        "clusterName": "kubernetes",
        "controllerManager": {},
        "etcd": {"local": {"dataDir": "/var/lib/etcd"}},
    },
    "KubeletConfiguration": {"clusterDNS": ["10.96.0.10"], "syncFrequency": "0s", "maxPods": 0},
    "KubeProxyConfiguration": {"clusterCIDR": "10.244.0.0/16"},
}
_ARGUMENT = [{"name": "event-ttl", "value": "2h"}]


def wanted(**changed: t.Any) -> dict[str, t.Any]:
    return documents.components({**SETTINGS, **changed})


def given(kind: str, **fields: t.Any) -> dict[str, t.Any]:
    return wanted(configuration={kind: fields})


def cluster(of: dict[str, t.Any] | None = None, **more: t.Any) -> dict[str, t.Any]:
    """What `member.py observe` prints, of its ConfigMaps, for a cluster that kubeadm has made of this."""
    found: dict[str, t.Any] = {}
    for (name, key), kind in zip(_KEYS.items(), _DEFAULTS, strict=True):
        document = documents.merged(_DEFAULTS[kind], (of or wanted()).get(kind, {}))
        found[name] = {"version": "7", "annotations": {}, "data": {key: yaml.safe_dump(document)}}
    return {**found, **more}


def written(found: Change) -> dict[str, dict[str, t.Any]]:
    return {one["name"]: yaml.safe_load(one["text"]) for one in found.maps}


def test_a_cluster_that_is_as_it_is_set_has_no_change() -> None:
    assert change(cluster(), wanted(), wanted()) == Change()
    # Nor one that others have made, and that has all that is set.
    assert change(cluster(), {}, wanted()) == Change()


def test_what_is_set_anew_is_written_beside_what_kubeadm_has_added() -> None:
    new = given("ClusterConfiguration", apiServer={"extraArgs": _ARGUMENT})
    found = change(cluster(), wanted(), new)
    assert found.why == ("ClusterConfiguration (apiServer.extraArgs)",)
    (one,) = found.maps
    assert (one["name"], one["key"], one["version"], one["restarts"]) == (
        "kubeadm-config",
        "ClusterConfiguration",
        "7",
        False,
    )
    body = yaml.safe_load(one["text"])
    assert body["apiServer"] == {"certSANs": ["10.0.0.1", "api.example.com"], "extraArgs": _ARGUMENT}
    assert body["kubernetesVersion"] == "v1.36.4"
    # The next run finds it.
    assert change(cluster(new), wanted(), new).maps == ()


def test_what_is_not_set_any_more_is_removed_and_what_others_have_set_stays() -> None:
    before = given("KubeletConfiguration", maxPods=50, evictionHard={"memory.available": "1Gi", "pid.available": "5%"})
    now = given("KubeletConfiguration", evictionHard={"memory.available": "1Gi"})
    found = cluster(
        {**before, "KubeletConfiguration": {**before["KubeletConfiguration"], "imageGCHighThresholdPercent": 90}}
    )
    made = change(found, before, now)
    assert made.why == ("KubeletConfiguration (evictionHard.pid.available, maxPods)",)
    body = written(made)["kubelet-config"]
    assert "maxPods" not in body
    assert (body["evictionHard"], body["imageGCHighThresholdPercent"]) == ({"memory.available": "1Gi"}, 90)


def test_a_change_by_others_is_put_right() -> None:
    found = cluster(given("KubeletConfiguration", cgroupDriver="cgroupfs"))
    assert written(change(found, wanted(), wanted()))["kubelet-config"]["cgroupDriver"] == "systemd"


@pytest.mark.parametrize(
    ("is_now", "to_be", "same"),
    [
        ("1m0s", "60s", True),
        ("1h30m0s", "1.5h", True),
        ("1m0s", "61s", False),
        ("1m0s", "60", False),
        ("60", "60s", False),
        (3, 3, True),
    ],
)
def test_kubeadm_writes_durations_in_a_form_of_its_own(is_now: t.Any, to_be: t.Any, same: bool) -> None:
    old = cluster(given("KubeletConfiguration", streamingConnectionIdleTimeout=is_now))
    new = given("KubeletConfiguration", streamingConnectionIdleTimeout=to_be)
    assert (change(old, new, new).maps == ()) == same


def test_what_is_empty_kubeadm_leaves_out() -> None:
    new = given("ClusterConfiguration", dns={"disabled": False}, featureGates={})
    assert change(cluster(), new, new).maps == ()
    # It may have another default, so that it counts once it is changed.
    assert change(cluster(), wanted(), new).why == ("ClusterConfiguration (dns, featureGates)",)


def test_kube_proxy_is_restarted_for_its_configuration_also_by_a_later_run() -> None:
    new = given("KubeProxyConfiguration", mode="iptables")
    found = change(cluster(), wanted(), new)
    assert [(one["name"], one["restarts"]) for one in found.maps] == [("kube-proxy", True)]
    left = cluster(new)
    left["kube-proxy"]["annotations"] = {"hwaccel.gpu/pending": "true"}
    found = change(left, new, new)
    assert found.why == ("kube-proxy has not loaded its configuration",)
    assert [one["text"] for one in found.maps] == [left["kube-proxy"]["data"]["config.conf"]]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"pod_network": "10.128.0.0/14"},
            "the network of pods of a cluster cannot be changed (cluster_kubeadm_pod_network): it is 10.244.0.0/16, and 10.128.0.0/14 is set",
        ),
        ({"pod_network": ""}, "it is 10.244.0.0/16, and none is set"),
        ({"service_network": "10.112.0.0/12"}, "the network of Services of a cluster cannot be changed"),
        ({"dns_domain": "example.org"}, "the DNS domain of a cluster cannot be changed"),
        ({"endpoint": "10.0.0.2:6443"}, "set hwaccel_api_endpoint to what the cluster has, or make another cluster"),
        (
            {"configuration": {"ClusterConfiguration": {"etcd": {"local": {"dataDir": "/data"}}}}},
            "the folder of etcd of a cluster cannot be changed",
        ),
        (
            {
                "configuration": {
                    "ClusterConfiguration": {"etcd": {"external": {"endpoints": ["https://10.0.0.7:2379"]}}}
                }
            },
            "it is none, and https://10.0.0.7:2379 is set",
        ),
        ({"proxy_mode": "none"}, "the cluster has a kube-proxy (cluster_kubeadm_proxy_mode)"),
    ],
)
def test_what_cannot_be_changed_is_a_fault(changed: dict[str, t.Any], told: str) -> None:
    (fault,) = change(cluster(), wanted(), wanted(**changed)).faults
    assert told in str(fault)


def test_a_cluster_without_kube_proxy_gets_none_by_a_variable() -> None:
    without = cluster(**{"kube-proxy": None})
    assert change(without, {}, wanted(proxy_mode="none")).faults == ()
    (fault,) = change(without, {}, wanted()).faults
    assert "the cluster has no kube-proxy" in str(fault)


def _arguments(found: Change) -> list[dict[str, str]]:
    return list(written(found)["kubeadm-config"]["apiServer"]["extraArgs"])


def test_encryption_is_turned_on_beside_arguments_of_others() -> None:
    encrypts = {"name": "encryption-provider-config", "value": "/etc/kubernetes/pki/secrets-encryption.yaml"}
    encrypted, others = (
        wanted(secrets_encryption=True),
        given("ClusterConfiguration", apiServer={"extraArgs": _ARGUMENT}),
    )
    assert _arguments(change(cluster(), wanted(), encrypted)) == [encrypts]
    # A cluster that others have made, and what the next run finds of it.
    assert _arguments(change(cluster(others), {}, encrypted)) == [*_ARGUMENT, encrypts]
    both = wanted(
        configuration={"ClusterConfiguration": {"apiServer": {"extraArgs": _ARGUMENT}}}, secrets_encryption=True
    )
    assert change(cluster(both), encrypted, encrypted) == change(cluster(both), both, both) == Change()
    # What was set before and is not any more is removed.
    assert _arguments(change(cluster(both), both, encrypted)) == [encrypts]


def test_encryption_is_not_turned_off() -> None:
    encrypted = wanted(secrets_encryption=True)
    (fault,) = change(cluster(encrypted), encrypted, wanted()).faults
    assert "would not be any more" in str(fault) and "set cluster_kubeadm_secrets_encryption: true" in str(fault)
    assert change(cluster(encrypted), encrypted, encrypted) == Change()
