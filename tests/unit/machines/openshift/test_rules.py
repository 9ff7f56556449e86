# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the installer does not check and we do: each rule with settings that break it, and the same settings without that check."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import role, rules
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
    machine,
)

MIRRORS = [{"source": "quay.io/openshift-release-dev/ocp-release", "mirrors": ["mirror.example.com:5000/ocp"]}]
PULLS = '{"auths":{"mirror.example.com:5000":{"auth":"aWQ6cGFzcwo="},"quay.io":{"auth":"aWQ6cGFzcwo="}}}'
PROXY = {"http": "http://proxy.example.com:3128", "no_proxy": [".example.com"]}


def machines(**more: t.Any) -> list[dict[str, t.Any]]:
    """With other values of the first worker."""
    return [BOOTSTRAP, *MASTERS, {**WORKERS[0], **more}]


def case(rule: str, key: str, *, of: dict[str, t.Any] = SETTINGS, says: str = "", **given: t.Any) -> t.Any:
    return pytest.param(rule, key, {**of, **given}, says, id=f"{rule} {key}")


CASES = [
    case("unknown_keys", "networkng", install_config={"networkng": {}}, says="did you mean networking?"),
    case(
        "unknown_keys",
        "networking.encryption",
        install_config={"networking": {"encryption": []}},
        says="the installer would ignore it",
    ),
    case("unknown_keys", "hosts[0].host", of=AGENT, agent_config={"hosts": [{"host": "x"}]}),
    case(
        "host_prefix",
        "networking.clusterNetwork[0].hostPrefix",
        install_config={"networking": {"clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 31}]}},
    ),
    case(
        "ip_families", "networking.clusterNetwork[0].cidr", cluster_network=["fd01::/48"], says="not a network of IPv4"
    ),
    case("ip_families", "networking.machineNetwork", service_network=["fd02::/112"], says="no machine network of IPv6"),
    case(
        "node_networks",
        "networking.clusterNetwork",
        cluster_network=["10.128.0.0/22"],
        says="parts for 2 nodes, and the inventory has 5",
    ),
    case("platform", "platform", install_config={"platform": {"external": {}}}, says="external and none"),
    case("platform", "platform.aws", install_config={"platform": {"none": None, "aws": {}}}),
    case("network_type", "networking.networkType", network_type="Calico"),
    case(
        "internal_networks",
        "cluster_openshift_internal_networks.transit",
        internal_networks={"transit": "10.33.0.0/16"},
    ),
    case(
        "internal_networks",
        "cluster_openshift_internal_networks.masquerade",
        internal_networks={"join": "100.65.0.0/16", "masquerade": "100.65.3.0/24"},
        says="the join network",
    ),
    case(
        "capabilities",
        "capabilities",
        capabilities={"baseline": "v4.16", "additional": []},
        install_config={
            "capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Ingress"]}
        },
        says="NodeTuning",
    ),
    case("ssh_keys", "sshKey", ssh_keys=[ED25519, "ssh-ed25519 AAAA"], says="line 2"),
    case(
        "registry",
        "pullSecret",
        pull_secret='{"auths":{"registry.example.com":{"auth":"aWQ6cGFzcwo="}}}',
        says="no credentials of quay.io",
    ),
    case(
        "registry",
        "pullSecret",
        mirrors=MIRRORS,
        trust_bundle=CERTIFICATE,
        says="no credentials of mirror.example.com:5000",
    ),
    case(
        "registry",
        "pullSecret",
        release={"image": "registry.ci.example.com/ocp/release@sha256:0"},
        says="registry.ci.example.com",
    ),
    case(
        "registry", "pullSecret", pull_secret='{"auths":{"quay.io":{"auth":"!"}}}', says="not base64 of user:password"
    ),
    case("mirror_trust", "additionalTrustBundle", mirrors=MIRRORS, pull_secret=PULLS),
    case(
        "mirror_trust",
        "additionalTrustBundlePolicy",
        mirrors=MIRRORS,
        pull_secret=PULLS,
        trust_bundle=CERTIFICATE,
        trust_bundle_policy="Proxyonly",
        says="Always",
    ),
    case("no_proxy", "proxy.noProxy", of=AGENT, proxy=PROXY, says="10.33.3.0/24"),
    case("node_names", "hwaccel_node_name of worker-0", domain=f"{'d' * 53}.example.com", says="characters"),
    case("node_names", "hosts[1].hostname", of=AGENT, agent_config={"hosts": [{"hostname": "a"}, {"hostname": "a"}]}),
    case("node_names", "hosts[0].hostname", of=AGENT, agent_config={"hosts": [{"hostname": "localhost.localdomain"}]}),
    case(
        "machine_addresses",
        "hwaccel_address of worker-0",
        machines=machines(address="10.33.4.9"),
        says="in no machine network",
    ),
    case(
        "machine_addresses",
        "hwaccel_address of worker-0",
        machines=machines(address="172.30.0.9"),
        says="in the network 172.30.0.0/16",
    ),
    case(
        "machine_addresses",
        "hwaccel_address of worker-0",
        machines=machines(address="10.33.3.54"),
        says="that of the load balancer",
    ),
    case("load_balancer", "hwaccel_load_balancer_address", balancers={"hwaccel_load_balancer_address": "172.30.0.1"}),
    case("load_balancer", "hwaccel_ingress_address", balancers={"hwaccel_ingress_address": "10.128.0.1"}),
    case(
        "load_balancer",
        "hwaccel_api_int_address",
        balancers={"hwaccel_api_int_address": "100.64.0.1"},
        says="join network",
    ),
    case("masters", "controlPlane.replicas", machines=[BOOTSTRAP, *MASTERS[:2]], says="etcd needs an odd number"),
    case(
        "masters", "controlPlane.replicas", install_config={"controlPlane": {"replicas": 1}}, says="the inventory has 3"
    ),
    case(
        "masters",
        "controlPlane.replicas",
        machines=[BOOTSTRAP, *MASTERS, *(machine(f"m{one}", "master", one) for one in (60, 61))],
        says="not documented for this method",
    ),
    case("compute_replicas", "compute[0].replicas", install_config={"compute": [{"name": "worker", "replicas": 2}]}),
    case(
        "compute_replicas",
        "compute[0].replicas",
        of=AGENT,
        install_config={"compute": [{"name": "worker", "replicas": 3}]},
    ),
    case("bootstrap", "group bootstrap", machines=MASTERS, says="there is no bootstrap machine"),
    case(
        "bootstrap",
        "group bootstrap",
        machines=[BOOTSTRAP, machine("b2", "bootstrap", 60), *MASTERS],
        says="2 bootstrap machines",
    ),
    case(
        "bootstrap",
        "group bootstrap",
        of=AGENT,
        machines=[BOOTSTRAP, *MASTERS],
        says="bootstrap-0 is a bootstrap machine",
    ),
    case("bootstrap", "group bootstrap", of=IN_PLACE, machines=[BOOTSTRAP, MASTERS[0]]),
    case("roles", "hwaccel_role of gpu-0", of=AGENT, machines=[*MASTERS, machine("gpu-0", "gpu", 60)]),
    case(
        "architectures",
        "hwaccel_architecture of worker-0",
        machines=machines(architecture="aarch64"),
        release={"architecture": "amd64"},
    ),
    case(
        "architectures",
        "hwaccel_architecture of master-1",
        machines=[BOOTSTRAP, MASTERS[0], {**MASTERS[1], "architecture": "aarch64"}, MASTERS[2]],
        release={"architecture": "multi"},
        says="masters have amd64",
    ),
    case("architectures", "controlPlane.architecture", release={"architecture": "arm64"}),
    case("rendezvous", "rendezvousIP", of=AGENT, rendezvous_address="10.33.3.44", says="that of the worker worker-0"),
    case(
        "rendezvous",
        "rendezvousIP",
        of=AGENT,
        rendezvous_address="10.33.3.99",
        says="no machine of the inventory has it",
    ),
    case(
        "static_networks",
        "hosts[0].networkConfig",
        of=AGENT,
        machines=[{**MASTERS[0], "network": {"interfaces": [{"name": "eno1"}]}}, *MASTERS[1:]],
        says="no interface boot0",
    ),
    case(
        "static_networks",
        "hosts[0].networkConfig",
        of=AGENT,
        machines=[{**MASTERS[0], "network": {"routes": []}}, *MASTERS[1:]],
        says="not a state of nmstate",
    ),
    case(
        "install_disks",
        "hwaccel_install_device of worker-0",
        machines=machines(install_device="/dev/sda", disks=["/dev/sda", "/dev/sdb"]),
    ),
    case(
        "install_disks",
        "hwaccel_install_device of worker-0",
        machines=machines(install_device="/dev/nvme0n1"),
        disks={"worker": [{"device": "/dev/disk/by-id/b", "mount": "/var/lib/containers"}]},
    ),
    case("network_mtu", "cluster_openshift_network_mtu", network_mtu=100),
    case(
        "network_mtu",
        "cluster_openshift_network_mtu",
        network_mtu=9000,
        network_type="Calico",
        skipped_checks=["network_type"],
    ),
    case("clocks", "clock", clock_offset=61.0, says="61 s"),
]
NOTES = [
    case("docker_bridge", "networking.machineNetwork[0]", machine_network=["172.17.3.0/24", "10.33.3.0/24"]),
    case("install_disks", "hwaccel_install_device of worker-0", machines=machines(install_device="/dev/sda")),
    case("registry_storage", "image registry"),
]


def found(settings: dict[str, t.Any], rule: str, of: str = "faults") -> list[dict[str, t.Any]]:
    return [one for one in role.checked(settings)[of] if one.get("rule") == rule]


@pytest.mark.parametrize(("rule", "key", "settings", "says"), CASES)
def test_it_is_refused_unless_its_check_is_skipped(rule: str, key: str, settings: dict[str, t.Any], says: str) -> None:
    told = [one for one in found(settings, rule) if one["key"] == key]
    assert told and all(one["ours"] for one in told), role.checked(settings)["faults"]
    assert says in " ".join(one["text"] for one in told), told
    assert all(one["next_step"] and one["where"] for one in told)
    skipped = {**settings, "skipped_checks": [*settings["skipped_checks"], rule]}
    assert found(skipped, rule) == []


@pytest.mark.parametrize(("rule", "key", "settings", "says"), NOTES)
def test_it_is_only_noted(rule: str, key: str, settings: dict[str, t.Any], says: str) -> None:
    assert key in [one["key"] for one in found(settings, rule, "notes")]
    assert found(settings, rule) == []
    assert found({**settings, "skipped_checks": [rule]}, rule, "notes") == []


def test_every_rule_of_ours_is_documented() -> None:
    page = (pathlib.Path(__file__).parents[4] / "docs" / "openshift.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("## What is checked")[2], re.MULTILINE)
    assert rows == list(rules.SKIPPABLE)


def test_every_rule_of_ours_is_tried() -> None:
    tried = {one.values[0] for one in [*CASES, *NOTES]}
    assert tried == set(rules.SKIPPABLE) == {rule.name for rule in rules.RULES if rule.ours}


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        AGENT,
        IN_PLACE,
        {**SETTINGS, "release": {"architecture": "multi"}, "machines": machines(architecture="aarch64")},
        {**SETTINGS, "clock_offset": -59.0, "fips": True, "fips_host": True, "ssh_keys": [RSA]},
        {**SETTINGS, "mirrors": MIRRORS, "pull_secret": PULLS, "trust_bundle": CERTIFICATE},
        {**SETTINGS, "proxy": PROXY, "mirrors": MIRRORS, "pull_secret": PULLS, "trust_bundle": CERTIFICATE},
        {**AGENT, "proxy": {**PROXY, "no_proxy": ["10.33.0.0/16"]}},
        {
            **SETTINGS,
            "internal_networks": {"join": "100.65.0.0/16", "transit": "100.89.0.0/16", "masquerade": "169.253.0.0/17"},
        },
        {**AGENT, "machines": [*MASTERS, machine("m4", "master", 60), machine("m5", "master", 61)]},
        {**SETTINGS, "network_mtu": 8900},
    ],
)
def test_what_fits_is_accepted(settings: dict[str, t.Any]) -> None:
    assert role.checked(settings)["faults"] == []
