# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs of the role cluster_openshift as tables, like those in bad_machine_inputs.py."""

from __future__ import annotations

import typing as t

SUM = f"sha256:{'0' * 64}"


def archive(**changes: t.Any) -> dict[str, t.Any]:
    return {"url": "https://mirror.example.com/openshift-install-linux.tar.gz", "checksum": SUM, **changes}


def static(**changes: t.Any) -> list[dict[str, t.Any]]:
    return [{"network": "10.33.3.0/24", "router": "10.33.3.1", **changes}]


def disk(**changes: t.Any) -> dict[str, t.Any]:
    return {"worker": [{"device": "/dev/disk/by-id/a", "mount": "/var/lib/containers", **changes}]}


#: The variable without the role's name, its value, and parts of the expected messages. Several texts hold "planted", which no message may show.
BAD: list[tuple[str, t.Any, tuple[str, ...]]] = [
    ("method", "UPI", ("'UPI' is unknown", "did you mean upi?")),
    ("method", True, ("true is unknown", "choose one of upi, in_place, agent")),
    ("domain", ["ocp.example.com"], ("a list is not a string",)),
    ("domain", "ocp.example.com\x00", ("a line break or a control character",)),
    ("machine_network", {"cidr": "10.33.3.0/24"}, ("a dictionary is not a list",)),
    ("machine_network", [["10.33.3.0/24"]], ("a list is not a string", "machine_network[0]")),
    ("cluster_network", [{"cidr": "10.128.0.0/14", "hostPrefix": 23}], ("a dictionary is not a string",)),
    ("host_prefix", "/23", ("'/23' is not a whole number",)),
    ("host_prefix", 64, ("64 is not a whole number from 1 to 30",)),
    ("service_network", [None], ("null is not a string", "service_network[0]")),
    ("network_type", {"type": "OVNKubernetes"}, ("a dictionary is not a string",)),
    ("internal_networks", {"joint": "100.65.0.0/16"}, ("unknown: joint", "did you mean join?")),
    ("internal_networks", {"join": 100.65}, ("100.65 is not a network",)),
    ("network_mtu", "jumbo", ("'jumbo' is not the MTU of a network",)),
    ("network_mtu", 9000.5, ("9000.5 is not the MTU of a network",)),
    ("pull_secret", ["planted"], ("the pull secret is neither text nor a dictionary",)),
    ("pull_secret", 7, ("the pull secret is neither text nor a dictionary",)),
    ("ssh_keys", [{"key": "planted"}], ("a dictionary is not a string", "ssh_keys[0]")),
    ("trust_bundle", ["planted"], ("a list is not a string",)),
    ("trust_bundle_policy", ["Always"], ("a list is not a string",)),
    ("proxy", "http://user:planted@proxy.example.com:3128", ("is not a dictionary",)),
    ("proxy", {"httpProxy": "http://user:planted@proxy.example.com:3128"}, ("unknown: httpProxy",)),
    ("mirrors", [{"source": "quay.io/a"}], ("mirrors is missing", "mirrors[0]")),
    ("mirrors", [{"source": "quay.io/a", "mirrors": ["m/a"], "policy": "Never"}], ("'Never' is unknown",)),
    ("fips", "perhaps", ("'perhaps' is neither true nor false",)),
    ("capabilities", {"set": "None"}, ("unknown: set",)),
    ("capabilities", ["NodeTuning"], ("is not a dictionary",)),
    ("rendezvous_address", "10.33.3.11/24", ("is not an IP address", "without a prefix length")),
    ("rendezvous_address", 10.33, ("10.33 is not an IP address",)),
    ("boot_artifacts_url", ["http://boot.example.com"], ("a list is not a string",)),
    ("static_networks", static(gateway="10.33.3.1"), ("unknown: gateway", "static_networks[0]")),
    ("static_networks", static(network="10.33.3.1/24"), ("host bits", "static_networks[0].network")),
    ("static_networks", static(mtu="jumbo"), ("'jumbo' is no",)),
    ("static_networks", static(router="fd00:33::1"), ("fd00:33::1 is not in 10.33.3.0/24", "[0].router")),
    ("time_servers", [{"server": "ntp.example.com"}], ("a dictionary is neither an address nor a name",)),
    ("time_servers", ["ntp.example.com iburst"], ("'ntp.example.com iburst' is neither", "time_servers[0]")),
    ("time_servers", ["n" * 300], ("is neither an address nor a name",)),
    ("kernel_arguments", ["iommu=pt"], ("is not a dictionary",)),
    ("kernel_arguments", {"Workers": ["iommu=pt"]}, ("'Workers' is not the name of a pool",)),
    ("kernel_arguments", {"worker": ["iommu=pt\nrd.break"]}, ("a line break or a control character",)),
    ("disks", disk(format="xfs"), ("unknown: format", "disks.worker[0]")),
    ("disks", disk(filesystem="zfs"), ("'zfs' is unknown",)),
    ("disks", {"worker": [{"device": "/dev/sdb"}]}, ("mount is missing",)),
    ("manifests", [7], ("7 is neither a dictionary nor YAML", "manifests[0]")),
    ("machine_configs", [["planted"]], ("a list is neither a dictionary nor YAML",)),
    ("install_config", ["networking"], ("a list is neither a dictionary nor YAML",)),
    ("agent_config", 7, ("7 is neither a dictionary nor YAML",)),
    ("skipped_checks", ["install_disk"], ("'install_disk' is unknown", "did you mean install_disks?")),
    ("release", {"tag": "4.20.3"}, ("unknown: tag",)),
    ("release", "4.20.3", ("is not a dictionary",)),
    ("folder", "installations/ocp", ("'installations/ocp' is not an absolute path",)),
    ("folder", f"/srv/{'a' * 5000}", ("is not an absolute path",)),
    ("installer", "openshift-install", ("is neither an absolute path nor an archive",)),
    ("installer", ["/usr/bin/openshift-install"], ("a list is neither",)),
    ("installer", archive(url="ftp://mirror.example.com/a"), ("is not the address of a web server", "installer.url")),
    ("installer", archive(checksum="md5:1"), ("'md5:1' is not a checksum", "installer.checksum")),
    ("installer", {"url": "https://mirror.example.com/a", "sha256": SUM}, ("unknown: sha256", "checksum is missing")),
    ("own_approver", 2, ("2 is neither true nor false",)),
    ("architecture", "amd64", ("'amd64' is unknown",)),
    ("stream", ["rhel-10"], ("a list is not a string",)),
    ("artifacts_mirror", "mirror.example.com", ("is not the address of a web server",)),
    ("adopt", "perhaps", ("'perhaps' is neither",)),
    ("regenerate", ["yes"], ("a list is neither true nor false",)),
    ("regenerate_named", [{"name": "w0"}], ("a dictionary is not a string",)),
    ("margin", "12h", ("'12h' is not a number of seconds", "set 43200")),
    ("margin", -1, ("-1 is not a number of seconds",)),
    ("timeout", 0, ("0 is not a number of seconds above 0",)),
    ("api_timeout", "20m", ("'20m' is not a number of seconds above 0",)),
    ("bootstrap_timeout", ["3600"], ("a list is not a number of seconds",)),
    ("nodes_timeout", float("inf"), ("inf is not a number of seconds",)),
    ("install_timeout", "", ("cluster_openshift_install_timeout is empty",)),
    ("allow_rejoin", {"w0.ocp.example.com": True}, ("a dictionary is not a list",)),
    ("clock_offset", "fast", ("'fast' is not a number",)),
]
#: Values as surveys, INI inventories and the command line give them, and as the documentation has them.
GOOD: list[dict[str, t.Any]] = [
    {"host_prefix": "24", "network_mtu": "8900", "fips": "true", "machine_network": "10.33.3.0/24, fd00:33::/64"},
    {"installer": "/usr/local/bin/openshift-install", "folder": "/srv/installations/ocp", "margin": "0"},
    {"installer": archive(signature="https://mirror.example.com/a.sig", keyring="/etc/keys/redhat.gpg")},
    {
        "pull_secret": {"auths": {}},
        "mirrors": [{"source": "quay.io/a", "mirrors": "m.example.com/a"}],
        "ssh_keys": "ssh-ed25519 AAAA operator",
        "proxy": {"http": "http://user:secret@proxy.example.com:3128", "no_proxy": ".example.com"},
    },
    {"manifests": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: gpu\n", "skipped_checks": "clocks, ssh_keys"},
    {"install_config": "networking:\n  networkType: OVNKubernetes\n", "agent_config": {}, "timeout": "1800"},
    {"allow_rejoin": "w0.ocp.example.com", "regenerate_named": '["w0", "w1"]', "rendezvous_address": "fd00:33::11"},
]
#: Every variable with a value that is used.
GIVEN: dict[str, t.Any] = {
    "method": "agent",
    "domain": "ocp.example.com",
    "machine_network": ["10.33.3.0/24"],
    "cluster_network": ["10.128.0.0/14"],
    "service_network": ["172.30.0.0/16"],
    "internal_networks": {"join": "100.65.0.0/16"},
    "pull_secret": '{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzd29yZA=="}}}',
    "ssh_keys": ["ssh-ed25519 AAAA operator"],
    "trust_bundle": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "trust_bundle_policy": "Always",
    "proxy": {"http": "http://proxy.example.com:3128", "no_proxy": [".example.com"]},
    "mirrors": [{"source": "quay.io/a", "mirrors": ["m.example.com/a"], "policy": "NeverContactSource"}],
    "capabilities": {"baseline": "None", "additional": ["NodeTuning"]},
    "rendezvous_address": "10.33.3.11",
    "boot_artifacts_url": "http://boot.example.com:8080/ocp",
    "static_networks": static(dns=["10.33.3.1"], mtu=9000),
    "time_servers": ["ntp.example.com"],
    "kernel_arguments": {"worker": ["iommu=pt"]},
    "disks": disk(filesystem="xfs", label="containers", start_mib=25000),
    "manifests": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu"}}],
    "install_config": {"networking": {"networkType": "OVNKubernetes"}},
    "skipped_checks": ["clocks"],
    "folder": "/srv/installations/ocp",
    "installer": archive(),
    "stream": "rhel-10",
    "artifacts_mirror": "https://mirror.example.com/coreos",
    "allow_rejoin": ["w0.ocp.example.com"],
}
