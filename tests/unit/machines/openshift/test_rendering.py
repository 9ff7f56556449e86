# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""install-config.yaml and agent-config.yaml of each topology, from the inventory, compared by their contents."""

from __future__ import annotations

import hashlib
import json
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import inventory, role
from ansible_collections.hwaccel.gpu.tests.unit.machines.openshift.sites import (
    AGENT,
    BOOTSTRAP,
    CERTIFICATE,
    ED25519,
    IN_PLACE,
    MASTERS,
    RSA,
    SETTINGS,
    WORKERS,
)

AMD64 = {"architecture": "amd64", "hyperthreading": "Enabled"}
NETWORKING = {
    "networkType": "OVNKubernetes",
    "machineNetwork": [{"cidr": "10.33.3.0/24"}],
    "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
    "serviceNetwork": ["172.30.0.0/16"],
}
SCHEDULER = "manifests/cluster-scheduler-02-config.yml"


def files(settings: dict[str, t.Any]) -> dict[str, t.Any]:
    """By path, as the installer reads them."""
    return {one["path"]: yaml.safe_load(one["content"]) for one in role.inputs(settings)}


def expected(masters: int, workers: int = 0, **more: t.Any) -> dict[str, t.Any]:
    return {
        "apiVersion": "v1",
        "baseDomain": "example.com",
        "metadata": {"name": "dgxpod"},
        "controlPlane": {"name": "master", "replicas": masters, **AMD64},
        "compute": [{"name": "worker", "replicas": workers, **AMD64}],
        "networking": NETWORKING,
        "platform": {"none": {}},
        "pullSecret": SETTINGS["pull_secret"],
        "sshKey": ED25519,
        **more,
    }


def test_with_a_bootstrap_machine_workers_join_by_themselves_and_masters_are_not_schedulable() -> None:
    made = files(SETTINGS)
    assert made["install-config.yaml"] == expected(3)
    assert list(made) == ["install-config.yaml", SCHEDULER]
    assert made[SCHEDULER] == {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": {"name": "cluster"},
        "spec": {"mastersSchedulable": False, "policy": {"name": ""}},
        "status": {},
    }
    assert role.checked(SETTINGS)["schedulable"] is False


@pytest.mark.parametrize("masters", [3, 1])
def test_without_workers_masters_stay_schedulable(masters: int) -> None:
    compact = {**SETTINGS, "machines": [BOOTSTRAP, *MASTERS[:masters]]}
    assert files(compact) == {"install-config.yaml": expected(masters)}
    assert role.checked(compact)["schedulable"] is True


def test_in_place_one_machine_installs_itself_on_its_disk() -> None:
    disk = {"installationDisk": "/dev/disk/by-path/pci-0"}
    assert files(IN_PLACE) == {"install-config.yaml": expected(1, bootstrapInPlace=disk)}


def test_in_place_it_needs_the_disk_and_one_machine() -> None:
    found = role.checked({**IN_PLACE, "machines": [{**one, "install_device": ""} for one in MASTERS]})["faults"]
    assert {(one["key"], one["ours"]) for one in found} == {
        ("bootstrapInPlace.installationDisk", False),
        ("controlPlane.replicas", False),
    }


#: Of the first host in the test below.
FIRST = {
    "hostname": "master-0",
    "role": "master",
    "interfaces": [{"name": "eno1", "macAddress": "52:54:00:33:03:32"}],
    "rootDeviceHints": {"wwn": "0x5000"},
    "networkConfig": {
        "interfaces": [
            {
                "name": "eno1",
                "type": "ethernet",
                "state": "up",
                "mac-address": "52:54:00:33:03:32",
                "mtu": 9000,
                "ipv4": {"enabled": True, "dhcp": False, "address": [{"ip": "10.33.3.50", "prefix-length": 24}]},
                "ipv6": {"enabled": False},
            }
        ],
        "dns-resolver": {"config": {"server": ["10.33.3.2"]}},
        "routes": {
            "config": [
                {
                    "destination": "0.0.0.0/0",
                    "next-hop-address": "10.33.3.1",
                    "next-hop-interface": "eno1",
                    "table-id": 254,
                }
            ]
        },
    },
}


def test_agents_get_their_hosts_with_addresses_disks_and_networks() -> None:
    given = {
        **AGENT,
        "machines": [
            {**MASTERS[0], "hints": {"wwn": "0x5000"}, "interface": "eno1"},
            *MASTERS[1:],
            {**WORKERS[0], "network": {"interfaces": [{"name": "boot0", "type": "bond"}]}},
        ],
        "time_servers": ["10.33.3.1", "time.example.com"],
        "boot_artifacts_url": "http://10.33.3.18/agent",
        "static_networks": [{"network": "10.33.3.0/24", "router": "10.33.3.1", "dns": ["10.33.3.2"], "mtu": 9000}],
    }
    made = files(given)
    assert made["install-config.yaml"] == expected(3, 1)
    assert SCHEDULER not in made
    agent = made["agent-config.yaml"]
    hosts = agent.pop("hosts")
    assert agent == {
        "apiVersion": "v1beta1",
        "kind": "AgentConfig",
        "metadata": {"name": "dgxpod"},
        "rendezvousIP": "10.33.3.50",
        "additionalNTPSources": ["10.33.3.1", "time.example.com"],
        "bootArtifactsBaseURL": "http://10.33.3.18/agent",
    }
    assert [(one["hostname"], one["role"]) for one in hosts] == [
        *((f"master-{number}", "master") for number in range(3)),
        ("worker-0", "worker"),
    ]
    assert hosts[0] == FIRST
    assert hosts[1]["rootDeviceHints"] == {"deviceName": "/dev/disk/by-path/pci-0"}
    assert hosts[3]["networkConfig"] == {"interfaces": [{"name": "boot0", "type": "bond"}]}


def test_a_static_network_of_ipv6_has_no_other_addresses() -> None:
    given = {
        **AGENT,
        "machine_network": ["fd00:33::/64"],
        "cluster_network": ["fd01::/48"],
        "service_network": ["fd02::/112"],
        "machines": [{**one, "address": f"fd00:33::{number}"} for number, one in enumerate(MASTERS, start=1)],
        "balancers": {},
        "static_networks": [{"network": "fd00:33::/64", "router": "fd00:33::ffff"}],
    }
    made = files(given)
    assert made["install-config.yaml"]["networking"]["clusterNetwork"] == [{"cidr": "fd01::/48", "hostPrefix": 64}]
    (link,) = made["agent-config.yaml"]["hosts"][0]["networkConfig"]["interfaces"]
    address = [{"ip": "fd00:33::1", "prefix-length": 64}]
    assert link["ipv6"] == {"enabled": True, "dhcp": False, "autoconf": False, "address": address}
    assert link["ipv4"] == {"enabled": False}
    (route,) = made["agent-config.yaml"]["hosts"][0]["networkConfig"]["routes"]["config"]
    assert route["destination"] == "::/0"


def test_a_machine_elsewhere_has_its_address_by_dhcp() -> None:
    made = files({**AGENT, "static_networks": [{"network": "10.44.0.0/24", "router": "10.44.0.1"}]})
    assert all("networkConfig" not in host for host in made["agent-config.yaml"]["hosts"])


#: Of a site that needs all of it.
SITE = {
    **SETTINGS,
    "ssh_keys": [RSA, ED25519],
    "fips": True,
    "fips_host": True,
    "trust_bundle": CERTIFICATE,
    "proxy": {
        "http": "http://proxy:3128",
        "https": "http://proxy:3129",
        "no_proxy": [".example.com", "10.0.0.0/8"],
    },
    "mirrors": [
        {
            "source": "quay.io/openshift-release-dev/ocp-release",
            "mirrors": ["quay.io/mirrored"],
            "policy": "NeverContactSource",
        }
    ],
    "capabilities": {"baseline": "vCurrent", "additional": ["Ingress"]},
    "internal_networks": {"join": "100.65.0.0/16", "transit": "100.89.0.0/16", "masquerade": "169.253.0.0/17"},
    "network_mtu": 8900,
}


def test_all_that_a_site_may_need_is_in_the_file() -> None:
    made = files(SITE)
    config = made["install-config.yaml"]
    assert {name: config[name] for name in config.keys() - expected(3).keys()} == {
        "fips": True,
        "additionalTrustBundle": CERTIFICATE.strip(),
        "additionalTrustBundlePolicy": "Proxyonly",
        "proxy": {
            "httpProxy": "http://proxy:3128",
            "httpsProxy": "http://proxy:3129",
            "noProxy": ".example.com,10.0.0.0/8",
        },
        "imageDigestSources": [
            {
                "source": "quay.io/openshift-release-dev/ocp-release",
                "mirrors": ["quay.io/mirrored"],
                "sourcePolicy": "NeverContactSource",
            }
        ],
        "capabilities": {"baselineCapabilitySet": "vCurrent", "additionalEnabledCapabilities": ["Ingress"]},
    }
    assert config["sshKey"] == f"{RSA}\n{ED25519}"
    assert config["networking"]["ovnKubernetesConfig"] == {"ipv4": {"internalJoinSubnet": "100.65.0.0/16"}}
    network = made["manifests/cluster-network-03-config.yml"]
    assert (network["apiVersion"], network["kind"]) == ("operator.openshift.io/v1", "Network")
    assert network["spec"]["defaultNetwork"] == {
        "ovnKubernetesConfig": {
            "mtu": 8900,
            "ipv4": {"internalTransitSwitchSubnet": "100.89.0.0/16"},
            "gatewayConfig": {"ipv4": {"internalMasqueradeSubnet": "169.253.0.0/17"}},
        }
    }


def test_a_trust_bundle_without_a_proxy_is_for_all_machines() -> None:
    assert (
        files({**SETTINGS, "trust_bundle": CERTIFICATE})["install-config.yaml"]["additionalTrustBundlePolicy"]
        == "Always"
    )


def test_overrides_are_merged_key_by_key_and_checked_again() -> None:
    given = {
        **SETTINGS,
        "install_config": "networking: {networkType: OVNKubernetes}\ncontrolPlane: {hyperthreading: Disabled}",
    }
    config = files(given)["install-config.yaml"]
    assert config["controlPlane"] == {**expected(3)["controlPlane"], "hyperthreading": "Disabled"}
    assert config["networking"] == NETWORKING
    removed = files({**SETTINGS, "install_config": {"sshKey": None}})["install-config.yaml"]
    assert "sshKey" not in removed
    with pytest.raises(ManyFaults, match="Maybe"):
        files({**SETTINGS, "install_config": {"controlPlane": {"hyperthreading": "Maybe"}}})
    agent = files({**AGENT, "agent_config": {"minimalISO": True}})["agent-config.yaml"]
    assert agent["minimalISO"] is True and len(agent["hosts"]) == 5


def test_a_pull_secret_that_became_a_dictionary_is_text_again() -> None:
    made = files({**SETTINGS, "pull_secret": json.loads(SETTINGS["pull_secret"])})
    assert json.loads(made["install-config.yaml"]["pullSecret"]) == json.loads(SETTINGS["pull_secret"])


#: In a manifest and a MachineConfig, at places where users put them.
PLANTED: list[dict[str, t.Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "n"},
        "stringData": {"a": "pl4nted"},
        "data": {"b": "cGw0bnRlZDpwbDRudGVk", "c": 12345678},
    },
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"},
        "data": {
            "tls.pem": "-----BEGIN PRIVATE KEY-----\npl4nted\n-----END PRIVATE KEY-----\n",
            "clientSecret": "pl4nted",
            "url": "https://user:pl4n'ted@registry.example.com",
            "file": "data:;base64,cGw0bnRlZDpwbDRudGVk",
        },
    },
    {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": "m", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {
            "config": {
                "ignition": {"version": "3.2.0"},
                "passwd": {"users": [{"name": "core", "passwordHash": "$6$pl4nted"}]},
                "storage": {"files": [{"path": "/etc/k", "contents": {"source": "data:;base64,cGw0bnRlZDpwbDRudGVk"}}]},
                "systemd": {"units": [{"name": "a.service", "contents": "[Service]\nEnvironment=TOKEN=pl4nted\n"}]},
            }
        },
    },
]
_URL = "http://user:pl4nted{}pl4nted@proxy:3128"


def planted() -> dict[str, t.Any]:
    fencing = {
        "credentials": [{"hostname": "a", "password": "pl4nted"}, {"hostname": "b", "password": 12345678}],
    }
    return {
        **SETTINGS,
        "manifests": PLANTED[:2],
        "machine_configs": PLANTED[2:],
        "pull_secret": '{"auths":{"quay.io":{"auth":"cGw0bnRlZDpwbDRudGVk"}}}',
        "proxy": {"http": _URL.format("?"), "https": _URL.format("'")},
        "install_config": {"controlPlane": {"fencing": fencing}, "additionalTrustBundle": "pl4nted"},
    }


SHOWN = ("pl4nted", "pl4n'ted", "cGw0bnRlZDpwbDRudGVk", "12345678", "$6$")


@pytest.mark.parametrize("sign", ["", "?", "#", "'", '"', " ", "/", "@"])
def test_what_is_shown_has_no_secret_and_tells_two_apart(sign: str) -> None:
    given = planted()
    given["proxy"]["http"] = _URL.format(sign)
    shown = role.checked(given)
    assert [one for one in SHOWN if one in str(shown)] == []
    texts = {one["path"]: one["shown"] for one in shown["files"]}
    other = {**given["proxy"], "https": _URL.format("0ther")}
    assert str(role.checked({**given, "proxy": other})) != str(shown)
    assert "httpProxy: http://(redacted)@proxy:3128 (hash " in texts["install-config.yaml"].replace("'http", "http")
    assert "metadata:\n  name: s\n" in texts["openshift/99_hwaccel-gpu-002-secret-s.yaml"]
    secrets = {one["path"] for one in shown["files"] if one["secret"]}
    assert secrets >= {"install-config.yaml", "openshift/99_hwaccel-gpu-002-secret-s.yaml"}


def test_a_secret_that_is_a_number_is_not_shown_where_it_is_refused() -> None:
    for key in ("pullSecret", "additionalTrustBundle"):
        told = [one["text"] for one in role.checked({**SETTINGS, "install_config": {key: 12345678}})["faults"]]
        assert any(one.startswith(f"the value is not text ({key}") for one in told), told
        assert "12345678" not in str(told)


def test_hashes_are_those_of_the_next_run_and_cannot_be_computed_without_the_pull_secret() -> None:
    """Otherwise a weak password could be guessed from its hash in a log."""
    given = planted()

    def hashed(**changed: t.Any) -> str:
        (text,) = [
            one["shown"] for one in role.checked({**given, **changed})["files"] if one["path"].endswith("secret-s.yaml")
        ]
        return str(yaml.safe_load(text)["stringData"]["a"])

    assert hashed() == hashed()
    assert hashed() != hashed(pull_secret='{"auths":{"quay.io":{"auth":"b3RoZXI6b3RoZXI="}}}')
    assert hashed(pull_secret="") != hashed(pull_secret=""), "nothing is known that could be the salt"
    plain = hashlib.sha256(b"pl4nted").hexdigest()
    assert hashed()[5:13] not in plain


GROUPS = {
    "gpu_clusters": ["dgxpod", "other"],
    "bootstrap": ["b0"],
    "control_plane": ["m0", "m1"],
    "workers": ["w0", "w1"],
    "edge_nodes": ["e0"],
}
MINE = {"hwaccel_cluster": "dgxpod"}
HOSTVARS: dict[str, dict[str, t.Any]] = {
    "dgxpod": {"hwaccel_load_balancer_address": "10.33.3.54", "hwaccel_ingress_address": ["10.33.3.55", "fd00::55"]},
    "other": {},
    "b0": {**MINE, "ansible_host": "10.33.3.49"},
    "m0": {
        **MINE,
        "hwaccel_address": "10.33.3.50",
        "hwaccel_node_name": "master-0",
        "hwaccel_mac": "52:54:00:33:03:50",
    },
    "m1": {"hwaccel_cluster": "other", "ansible_host": "10.33.4.50"},
    "w0": {
        **MINE,
        "ansible_host": "10.33.3.44",
        "hwaccel_root_device_hints": {"wwn": "0x5"},
        "hwaccel_network_config": {"interfaces": []},
        "hwaccel_interface": "eno1",
        "hwaccel_disks": ["/dev/a"],
        "hwaccel_hypervisor": "kvm",
        "hwaccel_install_device": "/dev/disk/by-id/a",
    },
    "w1": {**MINE, "ansible_host": "10.33.3.45", "hwaccel_retired": "true"},
    "e0": {**MINE, "ansible_host": "10.33.3.46", "hwaccel_role": "gpu"},
}


def test_the_machines_of_a_cluster_are_those_of_the_inventory() -> None:
    found = inventory.read(GROUPS, HOSTVARS, "dgxpod")
    assert found["balancers"] == {
        "hwaccel_load_balancer_address": "10.33.3.54",
        "hwaccel_ingress_address": "10.33.3.55",
    }
    assert [(one["host"], one["name"], one["role"], one["address"]) for one in found["machines"]] == [
        ("b0", "b0", "bootstrap", "10.33.3.49"),
        ("m0", "master-0", "master", "10.33.3.50"),
        ("w0", "w0", "worker", "10.33.3.44"),
        ("e0", "e0", "gpu", "10.33.3.46"),
    ]
    worker = found["machines"][2]
    assert {
        name: worker[name] for name in ("hints", "network", "interface", "disks", "hypervisor", "install_device")
    } == {
        "hints": {"wwn": "0x5"},
        "network": {"interfaces": []},
        "interface": "eno1",
        "disks": ["/dev/a"],
        "hypervisor": "kvm",
        "install_device": "/dev/disk/by-id/a",
    }
