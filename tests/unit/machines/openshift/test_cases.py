# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of install-config with the verdict and the keys of the installer's own code, which checked each of them, and what we refuse beyond that."""

from __future__ import annotations

import copy
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import reading, role
from ansible_collections.hwaccel.gpu.tests.unit.machines.openshift.sites import (
    BASE,
    CERTIFICATE,
    ED25519,
    PRIVATE_KEY,
    SETTINGS,
    config,
    pem,
    told,
)

GONE = object()
NETWORKING = BASE["networking"]
V6 = {"clusterNetwork": "fd01::/48", "machineNetwork": "fd00:33::/64", "serviceNetwork": "fd02::/112"}
DUAL: dict[str, t.Any] = {
    "clusterNetwork": [*NETWORKING["clusterNetwork"], {"cidr": V6["clusterNetwork"], "hostPrefix": 64}],
    "machineNetwork": [*NETWORKING["machineNetwork"], {"cidr": V6["machineNetwork"]}],
    "serviceNetwork": [*NETWORKING["serviceNetwork"], V6["serviceNetwork"]],
}
MIRROR = {"source": "quay.io/openshift-release-dev/ocp-release", "mirrors": ["mirror.example.com:5000/ocp"]}
FULL = ["marketplace", "OperatorLifecycleManager", "Ingress", "NodeTuning", "Build", "ImageRegistry"]


def changed(changes: dict[str, t.Any]) -> dict[str, t.Any]:
    """The valid file with other values, by their path. GONE removes one."""
    found = copy.deepcopy(BASE)
    for path, value in changes.items():
        *above, last = path.split(".")
        place: t.Any = found
        for name in above:
            place = place[int(name)] if name.isdigit() else place.setdefault(name, {})
        if value is GONE:
            del place[last]
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return found


def case(name: str, changes: dict[str, t.Any], *keys: str, ours: tuple[str, ...] = (), **more: t.Any) -> t.Any:
    """keys: at which the installer reports an error, none if it accepts the file. ours: names of our rules that refuse it."""
    return pytest.param(changes, set(keys), set(ours), more, id=name)


CLUSTER_0, MACHINE_0, SERVICE_0 = (
    f"networking.{name}[0]" for name in ("clusterNetwork", "machineNetwork", "serviceNetwork")
)
CIDR, PREFIX = f"{CLUSTER_0}.cidr", f"{CLUSTER_0}.hostPrefix"
N = "networking"
JOIN = f"{N}.ovnKubernetesConfig.ipv4.internalJoinSubnet"
#: As CERTIFICATE, with a body of 300 bytes.
LARGE = bytes((0x30, 0x82, 1, 0x36, 0x30, 0x82, 1, 0x2C)) + bytes(300) + bytes((0x30, 0, 0x03, 2, 0, 0))
CASES = [
    case("as it is", {}),
    case("apiVersion absent", {"apiVersion": GONE}, "apiVersion"),
    case("apiVersion v2", {"apiVersion": "v2"}, "apiVersion"),
    case("unknown key", {"networkng": {"networkType": "OVNKubernetes"}}, ours=("unknown_keys",)),
    case("unknown key below", {f"{N}.clusterNetworks2": []}, ours=("unknown_keys",)),
    case("name with capitals", {"metadata.name": "DgxPod"}, "metadata.name"),
    case("name of 55", {"metadata.name": "a" * 55}, "metadata.name"),
    case("name of 54", {"metadata.name": "a" * 54}),
    case("name with a dot", {"metadata.name": "dgx.pod"}),
    case(
        "name with a dot on baremetal",
        {
            "metadata.name": "dgx.pod",
            "platform": {"baremetal": {"apiVIPs": ["10.33.3.8"], "ingressVIPs": ["10.33.3.9"], "hosts": [{}]}},
        },
        "metadata.name",
        ours=("platform",),
    ),
    case("name with a digit first", {"metadata.name": "1pod"}),
    case("domain with an underscore", {"baseDomain": "example_com"}, "baseDomain"),
    case("domain with a trailing dot", {"baseDomain": "example.com."}),
    case("domain too long", {"baseDomain": ".".join(["a" * 49] * 5)}, "baseDomain"),
    case("OpenShiftSDN", {f"{N}.networkType": "OpenShiftSDN"}, f"{N}.networkType"),
    case("Kuryr", {f"{N}.networkType": "Kuryr"}, f"{N}.networkType"),
    case("Calico", {f"{N}.networkType": "Calico"}, ours=("network_type",)),
    case("clusterNetworkMTU", {f"{N}.clusterNetworkMTU": 8900}, f"{N}.clusterNetworkMTU"),
    case("machine network with host bits", {f"{N}.machineNetwork.0.cidr": "10.33.3.5/24"}, MACHINE_0),
    case("machine network in the cluster network", {f"{N}.machineNetwork.0.cidr": "10.130.0.0/24"}, CIDR),
    case("service network in the cluster network", {f"{N}.serviceNetwork.0": "10.130.0.0/16"}, CIDR),
    case("service network in the machine network", {f"{N}.machineNetwork.0.cidr": "172.30.0.0/16"}, SERVICE_0),
    case("service network too large", {f"{N}.serviceNetwork.0": "172.0.0.0/8"}, SERVICE_0),
    case("two service networks", {f"{N}.serviceNetwork": ["172.30.0.0/16", "172.31.0.0/16"]}, f"{N}.serviceNetwork"),
    case(
        "machine networks twice",
        {f"{N}.machineNetwork": [{"cidr": "10.33.3.0/24"}, {"cidr": "10.33.0.0/16"}]},
        f"{N}.machineNetwork[1]",
    ),
    case(
        "cluster networks twice",
        {f"{N}.clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}] * 2},
        f"{N}.clusterNetwork[1].cidr",
    ),
    case("machine network in the join network", {f"{N}.machineNetwork.0.cidr": "100.64.3.0/24"}, MACHINE_0),
    case("machine network in the transit network", {f"{N}.machineNetwork.0.cidr": "100.88.3.0/24"}, MACHINE_0),
    case("machine network in the masquerade network", {f"{N}.machineNetwork.0.cidr": "169.254.3.0/24"}, MACHINE_0),
    case("service network in the join network", {f"{N}.serviceNetwork.0": "100.64.0.0/16"}, SERVICE_0),
    case("join network", {f"{N}.ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.65.0.0/16"}}}),
    case(
        "join network set elsewhere",
        {
            f"{N}.ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.65.0.0/16"}},
            f"{N}.machineNetwork.0.cidr": "100.64.3.0/24",
        },
    ),
    case(
        "join network too small",
        {f"{N}.ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.65.0.0/28"}}},
        f"{N}.ovnKubernetesConfig.ipv4.internalJoinSubnet",
    ),
    case(
        "join network with host bits",
        {f"{N}.ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.65.0.1/16"}}},
        f"{N}.ovnKubernetesConfig.ipv4.internalJoinSubnet",
    ),
    case(
        "join network is the machine network",
        {f"{N}.ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "10.33.0.0/16"}}},
        f"{N}.ovnKubernetesConfig.ipv4.internalJoinSubnet",
    ),
    case("machine network no network", {f"{N}.machineNetwork.0.cidr": "300.33.3.0/24"}, MACHINE_0),
    case("machine network without a prefix", {f"{N}.machineNetwork.0.cidr": "10.33.3.0"}, MACHINE_0),
    case("machine network with a mask", {f"{N}.machineNetwork.0.cidr": "10.33.3.0/255.255.255.0"}, MACHINE_0),
    case("machine network absent in its entry", {f"{N}.machineNetwork.0": {}}, MACHINE_0),
    case("machine network without an address", {f"{N}.machineNetwork.0.cidr": "0.0.0.0/24"}, MACHINE_0),
    case("join network of IPv6", {f"{N}.ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "fd00::/64"}}}, JOIN),
    case(
        "join network of another plugin",
        {f"{N}.ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.65.0.0/16"}}, f"{N}.networkType": "Calico"},
        f"{N}.networkType",
        ours=("network_type",),
    ),
    case(
        "a service network of IPv6 too large",
        {N: {**NETWORKING, **DUAL, "serviceNetwork": ["172.30.0.0/16", "fd02::/107"]}},
        f"{N}.serviceNetwork[1]",
    ),
    case(
        "the largest service network of IPv6",
        {N: {**NETWORKING, **DUAL, "serviceNetwork": ["172.30.0.0/16", "fd02::/108"]}},
    ),
    case(
        "three service networks of two stacks",
        {N: {**NETWORKING, **DUAL, "serviceNetwork": [*DUAL["serviceNetwork"], "172.31.0.0/16"]}},
        f"{N}.serviceNetwork",
    ),
    case(
        "an arbiter on platform none",
        {"arbiter": {"name": "arbiter", "replicas": 1}, "controlPlane.replicas": 2},
        "arbiter.platform",
        ours=("masters",),
    ),
    case("proxy with half an address", {"proxy": {"httpProxy": "http://[fd00::1"}}, "proxy.httpProxy"),
    case("SSH key that is cut off", {"sshKey": f"{ED25519.split()[0]} AAA"}, "sshKey"),
    case("SSH key of another type", {"sshKey": f"ssh-rsa {ED25519.split()[1]}"}, "sshKey"),
    case("SSH key with options and a comment before it", {"sshKey": f'# ours\nfrom="10.0.0.0/8" {ED25519} a'}),
    case("trust bundle of real size", {"additionalTrustBundle": pem("CERTIFICATE", LARGE)}),
    case(
        "trust bundle that is cut off",
        {"additionalTrustBundle": pem("CERTIFICATE", LARGE[:-1])},
        "additionalTrustBundle",
    ),
    case(
        "trust bundle no base64", {"additionalTrustBundle": CERTIFICATE.replace("MAg", "M%g")}, "additionalTrustBundle"
    ),
    case("trust bundle of text", {"additionalTrustBundle": pem("CERTIFICATE", b"text")}, "additionalTrustBundle"),
    case("hostPrefix 13", {f"{N}.clusterNetwork.0.hostPrefix": 13}, PREFIX),
    case("hostPrefix absent", {f"{N}.clusterNetwork.0.hostPrefix": GONE}, PREFIX),
    case(
        "hostPrefix absent, another plugin",
        {f"{N}.clusterNetwork.0.hostPrefix": GONE, f"{N}.networkType": "Calico"},
        ours=("network_type",),
    ),
    case("hostPrefix 33", {f"{N}.clusterNetwork.0.hostPrefix": 33}, ours=("host_prefix",)),
    case(
        "two sizes of nodes' networks",
        {
            f"{N}.clusterNetwork": [
                {"cidr": "10.128.0.0/14", "hostPrefix": 23},
                {"cidr": "10.132.0.0/14", "hostPrefix": 24},
            ]
        },
        f"{N}.clusterNetwork[1].hostPrefix",
    ),
    case("a cluster network for one node", {f"{N}.clusterNetwork.0.cidr": "10.128.0.0/23"}),
    case("two stacks", {N: {**NETWORKING, **DUAL}}),
    case(
        "two stacks, no machine network of IPv6",
        {N: {**NETWORKING, **DUAL, "machineNetwork": NETWORKING["machineNetwork"]}},
        f"{N}.machineNetwork",
    ),
    case(
        "two stacks, IPv6 first",
        {N: {**NETWORKING, **DUAL, "serviceNetwork": DUAL["serviceNetwork"][::-1]}},
        f"{N}.serviceNetwork",
    ),
    case(
        "two stacks, hostPrefix of IPv6",
        {
            N: {
                **NETWORKING,
                **DUAL,
                "clusterNetwork": [DUAL["clusterNetwork"][0], {"cidr": "fd01::/48", "hostPrefix": 60}],
            }
        },
        f"{N}.clusterNetwork[1].hostPrefix",
    ),
    case(
        "names of old releases",
        {
            N: {
                "machineCIDR": "10.33.3.0/24",
                "type": "OVNKubernetes",
                "serviceCIDR": "172.30.0.0/16",
                "clusterNetworks": [{"cidr": "10.128.0.0/14", "hostSubnetLength": 9}],
            }
        },
    ),
    case("masters 0", {"controlPlane.replicas": 0}, "controlPlane.replicas", ours=("masters",)),
    case("masters 1", {"controlPlane.replicas": 1}),
    case("masters 4", {"controlPlane.replicas": 4}, ours=("masters",)),
    case("masters 2", {"controlPlane.replicas": 2}, "controlPlane.fencing.credentials", ours=("masters",)),
    case("masters negative", {"controlPlane.replicas": -1}, "controlPlane.replicas", ours=("masters",)),
    case("compute replicas 2", {"compute.0.replicas": 2}, ours=("compute_replicas",)),
    case("control plane of another name", {"controlPlane.name": "control-plane"}),
    case("compute of another name", {"compute.0.name": "gpu"}, "compute[0].name"),
    case("compute edge", {"compute.0.name": "edge"}, "compute[0].name"),
    case("compute twice", {"compute": BASE["compute"] * 2}, "compute[1].name"),
    case("architectures differ", {"compute.0.architecture": "arm64"}, "compute[0].architecture"),
    case("architecture arm64", {"compute.0.architecture": "arm64", "controlPlane.architecture": "arm64"}),
    case(
        "architecture riscv",
        {"compute.0.architecture": "riscv", "controlPlane.architecture": "riscv"},
        "compute[0].architecture",
        "controlPlane.architecture",
    ),
    case("hyperthreading Maybe", {"controlPlane.hyperthreading": "Maybe"}, "controlPlane.hyperthreading"),
    case("pull secret no JSON", {"pullSecret": "secret"}, "pullSecret"),
    case("pull secret without auths", {"pullSecret": "{}"}, "pullSecret"),
    case("pull secret, entry without auth", {"pullSecret": '{"auths":{"r":{}}}'}, "pullSecret"),
    case("pull secret absent", {"pullSecret": GONE}, "pullSecret"),
    case("SSH key nonsense", {"sshKey": "ssh-rsa nonsense"}, "sshKey"),
    case("SSH key absent", {"sshKey": GONE}),
    case("two SSH keys", {"sshKey": f"{ED25519} a\n{ED25519} b"}),
    case("an SSH key and another line", {"sshKey": f"{ED25519} a\nssh-rsa nonsense"}, ours=("ssh_keys",)),
    case("trust bundle no PEM", {"additionalTrustBundle": "certificate"}, "additionalTrustBundle"),
    case(
        "trust bundle with a private key", {"additionalTrustBundle": CERTIFICATE + PRIVATE_KEY}, "additionalTrustBundle"
    ),
    case(
        "trust bundle with text after it",
        {"additionalTrustBundle": f"{CERTIFICATE}\n# the end\n"},
        "additionalTrustBundle",
    ),
    case("trust bundle", {"additionalTrustBundle": f"# ours\n{CERTIFICATE}{CERTIFICATE}"}),
    case("policy Sometimes", {"additionalTrustBundlePolicy": "Sometimes"}, "additionalTrustBundlePolicy"),
    case("FIPS with ed25519 on another host", {"fips": True}, "sshKey", "fips", fips_host=False),
    case("FIPS with ed25519", {"fips": True}, "sshKey", fips_host=True),
    case("https as httpProxy", {"proxy": {"httpProxy": "https://proxy.example.com:3128"}}, "proxy.httpProxy"),
    case("proxy in the service network", {"proxy": {"httpProxy": "http://172.30.0.9:3128"}}, "proxy.httpProxy"),
    case("proxy in the cluster network", {"proxy": {"httpsProxy": "http://10.129.0.9:3128"}}, "proxy.httpsProxy"),
    case("proxy no address", {"proxy": {"httpProxy": "proxy.example.com"}}, "proxy.httpProxy"),
    case("proxy of nothing", {"proxy": {"noProxy": "example.com"}}, "proxy"),
    case("proxy", {"proxy": {"httpProxy": "http://user:pa55@proxy.example.com:3128", "noProxy": "*"}}),
    case(
        "noProxy with a wildcard", {"proxy": {"httpProxy": "http://p:1", "noProxy": "*.example.com"}}, "proxy.noProxy"
    ),
    case(
        "noProxy with a space",
        {"proxy": {"httpProxy": "http://p:1", "noProxy": "example.com, 10.0.0.0/8"}},
        "proxy.noProxy",
    ),
    case("noProxy", {"proxy": {"httpProxy": "http://p:1", "noProxy": ".example.com,10.0.0.0/8,10.33.3.1"}}),
    case(
        "mirror with a tag",
        {"imageDigestSources": [{**MIRROR, "source": f"{MIRROR['source']}:latest"}]},
        "imageDigestSources[0].source",
        ours=("mirror_trust",),
    ),
    case(
        "mirror of nothing",
        {"imageDigestSources": [{**MIRROR, "mirrors": ["mirror.example.com/UPPER"]}]},
        "imageDigestSources[0].mirrors[0]",
        ours=("mirror_trust",),
    ),
    case(
        "mirrors by both names",
        {"imageDigestSources": [MIRROR], "imageContentSources": [MIRROR]},
        "imageContentSources",
        ours=("mirror_trust",),
    ),
    case(
        "mirror is a registry",
        {"imageDigestSources": [{**MIRROR, "mirrors": ["mirror.example.com:5000"]}]},
        ours=("mirror_trust",),
    ),
    case("publish Internal", {"publish": "Internal"}, "publish"),
    case("publish Sometimes", {"publish": "Sometimes"}, "publish"),
    case("credentialsMode", {"credentialsMode": "Manual"}, "credentialsMode"),
    case(
        "capabilities None", {"capabilities": {"baselineCapabilitySet": "None"}}, "capabilities", ours=("capabilities",)
    ),
    case(
        "capabilities None and marketplace",
        {"capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["marketplace"]}},
        "capabilities",
        "additionalEnabledCapabilities",
        ours=("capabilities",),
    ),
    case(
        "capabilities None and what is needed",
        {"capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": FULL}},
    ),
    case("capabilities of a release", {"capabilities": {"baselineCapabilitySet": "v4.18"}}),
    case(
        "capabilities of an old release",
        {"capabilities": {"baselineCapabilitySet": "v4.13"}},
        "capabilities",
        "additionalEnabledCapabilities",
        ours=("capabilities",),
    ),
    case(
        "capability unknown",
        {"capabilities": {"baselineCapabilitySet": "vCurrent", "additionalEnabledCapabilities": ["GPU"]}},
        "capabilities.additionalEnabledCapabilities[0]",
    ),
    case(
        "capability set unknown",
        {"capabilities": {"baselineCapabilitySet": "some"}},
        "capabilities.baselineCapabilitySet",
    ),
    case("no platform", {"platform": {}}, "platform"),
    case("platforms none and external", {"platform": {"none": {}, "external": {}}}, ours=("platform",)),
    case(
        "platform baremetal",
        {"platform": {"baremetal": {}}},
        "platform.baremetal.apiVIPs",
        "platform.baremetal.ingressVIPs",
        "platform.baremetal.hosts",
        "platform.baremetal.Hosts",
        ours=("platform",),
    ),
    case("in place", {"bootstrapInPlace": {"installationDisk": "/dev/disk/by-id/x"}, "controlPlane.replicas": 1}),
    case("featureSet", {"featureSet": "TechPreviewNoUpgrade"}),
    case("featureSet unknown", {"featureSet": "Preview"}, "featureSet"),
    case("featureGates without their set", {"featureGates": ["A=true"]}, "featureGates"),
    case("cpuPartitioningMode", {"cpuPartitioningMode": "AllNodes"}),
    case(
        "three at once",
        {f"{N}.networkType": "OpenShiftSDN", "metadata.name": "DgxPod", "pullSecret": "x"},
        f"{N}.networkType",
        "metadata.name",
        "pullSecret",
    ),
    case("a number for text", {"baseDomain": 1.1}, "baseDomain"),
    case("text for a number", {"controlPlane.replicas": "3"}, "controlPlane.replicas"),
    case("a list for a dictionary", {N: []}, N),
]
#: Without an inventory these have nothing to compare with: the file has three masters, and the pull secret is one for tests.
OF_INVENTORY = {"masters", "bootstrap", "registry", "node_networks"}


@pytest.mark.parametrize(("changes", "keys", "ours", "more"), CASES)
def test_the_verdict_is_that_of_the_installer(
    changes: dict[str, t.Any], keys: set[str], ours: set[str], more: dict[str, t.Any]
) -> None:
    found = told(changed(changes), **more)
    assert {one.finding.key for one in found if not one.ours} == keys
    beyond = {one.rule for one in found if one.ours and not one.note}
    assert beyond - OF_INVENTORY == ours - OF_INVENTORY, [one.finding for one in found if one.ours]
    for one in found:
        fault = one.finding.fault()
        assert fault.next_step and fault.where and one.finding.key in fault.where, fault


def test_all_cases_take_less_than_a_second() -> None:
    began = time.process_time()
    for one in CASES:
        changes, _keys, _ours, more = one.values
        told(changed(changes), **more)
    assert time.process_time() - began < 1


def test_an_empty_file_lacks_its_version_only() -> None:
    assert [one.finding.key for one in told({})] == ["apiVersion"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("baseDomain: a\nx:\n  b: 1\nbaseDomain: c\n", ("key baseDomain occurs twice", "line 4", "in line 1 already")),
        ("networking:\n  networkType: a\n  networkType: b\n", ("key networkType occurs twice", "line 3")),
        ("metadata: [a, b\nname: x", ("not valid YAML", "line 2")),
        ("- a\n- b\n", ("not a dictionary",)),
        ("a: 1\n---\nb: 2\n", ("2 documents",)),
        ("a: &a [*a]\n", ("refer",)),
        ("a: \x00\n", ("not valid YAML",)),
    ],
)
def test_text_that_is_no_document_is_told_with_its_line(text: str, parts: tuple[str, ...]) -> None:
    read, faults = reading.mapping(text, "cluster_openshift_install_config")
    assert read == {} and faults
    assert all(part in " ".join(map(str, faults)) for part in parts), faults


def test_aliases_that_would_expand_without_end_are_told() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]" for number in range(1, 10)]
    read, faults = reading.mapping("\n".join(lines), "cluster_openshift_install_config")
    assert read == {} and len(faults) == 1
    assert reading.mapping("a: b\n" * 10**6, "x")[1][0].what == "the text is too large"


def test_text_that_looks_like_a_date_stays_text() -> None:
    assert reading.mapping("baseDomain: 2026-01-01", "x")[0] == {"baseDomain": "2026-01-01"}


def test_no_message_has_a_secret() -> None:
    planted = "pl4nted"
    given = changed(
        {
            "pullSecret": f'{{"auths":{{"r":{{"token":"{planted}"}}}}}}',
            "additionalTrustBundle": planted,
            "proxy": {"httpProxy": f"https://u:{planted}@172.30.0.1", "httpsProxy": f"ftp://u:{planted}@x"},
        }
    )
    found = told(given)
    assert {"pullSecret", "additionalTrustBundle", "proxy.httpProxy", "proxy.httpsProxy"} <= {
        one.finding.key for one in found
    }
    assert planted not in str([one.as_dict() for one in found])
    assert planted not in str(role.checked({**SETTINGS, "install_config": given}))


@pytest.mark.parametrize("sign", ["?", "#", '"', " ", "/", "\\"])
def test_a_password_of_a_proxy_has_to_be_encoded(sign: str) -> None:
    """The installer reads it as another address, or not at all."""
    found = [one.finding for one in told(changed({"proxy": {"httpProxy": f"http://u:pl4nted{sign}pl4nted@p:3128"}}))]
    (wrong,) = [one for one in found if one.key == "proxy.httpProxy"]
    assert wrong.what == "'http://(redacted)@p:3128' is not an address"


@pytest.mark.parametrize("password", ["pl4nted'pl4nted", "a@b", "a%20b", "a:b", ""])
def test_a_password_of_a_proxy_that_can_be_read(password: str) -> None:
    found = told(changed({"proxy": {"httpProxy": f"http://u:{password}@p:3128"}}))
    assert [one for one in found if one.finding.key.startswith("proxy")] == []


def test_a_message_tells_what_may_be_set() -> None:
    (only,) = [one for one in told(changed({"compute.0.name": "gpu"})) if one.rule == "compute"]
    (many,) = [one for one in told(changed({"featureSet": "TechPreview"})) if one.rule == "featureSet"]
    assert (
        str(only.finding.fault()) == "'gpu' is not supported (compute[0].name of install-config.yaml). Next: set worker"
    )
    assert str(many.finding.fault()) == (
        "'TechPreview' is not supported (featureSet of install-config.yaml): did you mean TechPreviewNoUpgrade? "
        "Next: choose one of CustomNoUpgrade, DevPreviewNoUpgrade, TechPreviewNoUpgrade"
    )


def test_defaults_are_those_of_the_installer() -> None:
    site, typing = config({"apiVersion": "v1", "additionalTrustBundle": CERTIFICATE})
    pool = {"replicas": 3, "architecture": "amd64", "hyperthreading": "Enabled"}
    assert typing == [] and site.config == {
        "apiVersion": "v1",
        "additionalTrustBundle": CERTIFICATE,
        "additionalTrustBundlePolicy": "Proxyonly",
        "publish": "External",
        "controlPlane": {"name": "master", **pool},
        "compute": [{"name": "worker", **pool}],
        "networking": {
            "networkType": "OVNKubernetes",
            "machineNetwork": [{"cidr": "10.0.0.0/16"}],
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
            "serviceNetwork": ["172.30.0.0/16"],
        },
    }
