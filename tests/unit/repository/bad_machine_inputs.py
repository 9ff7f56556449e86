# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs of the roles on machines as tables: invalid ones with parts of the expected messages, and valid ones."""

from __future__ import annotations

import typing as t

SUM = f"sha256:{'0' * 64}"


def service(**changes: t.Any) -> list[dict[str, t.Any]]:
    return [{"name": "web", "port": 80, "members": [{"name": "m0", "address": "10.0.0.11"}], **changes}]


def network(**changes: t.Any) -> list[dict[str, t.Any]]:
    return [{"network": "10.77.0.0/24", "router": "10.77.0.1", **changes}]


def profile(**changes: t.Any) -> list[dict[str, t.Any]]:
    return [{"role": "worker", "kernel": "os/kernel", "initramfs": "os/initramfs", **changes}]


def artifact(**changes: t.Any) -> list[dict[str, t.Any]]:
    return [{"path": "os/kernel", "source": "https://mirror.example.com/kernel", "checksum": SUM, **changes}]


def program(**changes: t.Any) -> list[dict[str, t.Any]]:
    return [{"name": "kubelet", "source": "https://mirror.example.com/kubelet", "checksum": SUM, **changes}]


#: By role: the variable without the role's prefix, its value, and parts of the expected messages.
BAD: dict[str, list[tuple[str, t.Any, tuple[str, ...]]]] = {
    "cluster_kubeadm": [
        ("version", "v1.36.4", ("'v1.36.4' is not a version of Kubernetes",)),
        ("version", "1.36", ("'1.36' is not a version of Kubernetes",)),
        ("version", 1.36, ("1.36 is not a version of Kubernetes",)),
        ("version", ["1.36.4"], ("a list is not a version of Kubernetes",)),
        ("programs", program(checksum="abc"), ("'abc' is not a checksum",)),
        ("programs", program(checksum=None), ("checksum",)),
        ("programs", program(source="ftp://a b"), ("source",)),
        ("programs", program(source="relative/kubelet"), ("source",)),
        ("programs", program(sources="x"), ("sources",)),
        ("programs", program(architecture="arm"), ("'arm' is unknown",)),
        ("programs", "kubelet", ("cluster_kubeadm_programs",)),
        ("programs", program(name="../kubelet"), ("not a name",)),
        ("images", [{"source": "/files/a.tar"}], ("checksum",)),
        ("images", [{"source": "/files/a.tar", "checksum": "sha1:0"}], ("'sha1:0' is not a checksum",)),
        ("images", ["/files/a.tar"], ("cluster_kubeadm_images",)),
        ("packages", ["kubelt"], ("'kubelt' is unknown", "did you mean kubelet?")),
        ("runtime_packages", [{"name": "containerd"}], ("cluster_kubeadm_runtime_packages",)),
        ("runtime_socket", ["unix:///run/x.sock"], ("cluster_kubeadm_runtime_socket",)),
        ("pause_image", ["pause"], ("cluster_kubeadm_pause_image",)),
        ("cgroup_driver", "sytemd", ("'sytemd' is unknown", "did you mean systemd?")),
        ("proxy_mode", "ipvs", ("'ipvs' is unknown",)),
        ("pod_network", "10.244.0.0", ("'10.244.0.0' is not a network",)),
        ("pod_network", "any", ("'any' is not a network",)),
        ("service_network", "10.96.0.0/12 fd00::/112", ("is not a network",)),
        ("service_network", ["10.96.0.0/12"], ("a list is not a network",)),
        ("dns_domain", "Cluster_Local", ("'Cluster_Local' is not a DNS name",)),
        ("image_repository", {"host": "x"}, ("cluster_kubeadm_image_repository",)),
        ("names", [["api"]], ("cluster_kubeadm_names",)),
        ("ignored_errors", [{"x": 1}], ("cluster_kubeadm_ignored_errors",)),
        ("skipped_phases", [{"x": 1}], ("cluster_kubeadm_skipped_phases",)),
        ("configuration", "words", ("cluster_kubeadm_configuration",)),
        ("configuration", {"KubeletConfig": {}}, ("KubeletConfig",)),
        ("configuration", {"KubeletConfiguration": []}, ("cluster_kubeadm_configuration.KubeletConfiguration",)),
        ("snapshot", ["cp1:/a.db"], ("a list",)),
        ("skipped_checks", ["swop"], ("'swop' is unknown", "did you mean swap?")),
        ("timeout", 5, ("5 is not a number of seconds above 29",)),
        ("timeout", "10m", ("'10m' is not a number of seconds above 29",)),
    ],
    "load_balancer": [
        ("stats_port", "eighty", ("'eighty' is not a port", "(load_balancer_stats_port)")),
        ("stats_port", 0, ("0 is not a port",)),
        ("health_port", 70000, ("70000 is not a port",)),
        ("health_port", "", ("load_balancer_health_port is empty",)),
        ("stats_port", [8404], ("a list is not a port",)),
        ("drain_timeout", "5m", ("'5m' is not a number of seconds",)),
        ("drain_timeout", -1, ("-1 is not a number of seconds",)),
        ("maxconn", "many", ("'many' is not a whole number",)),
        ("maxconn", -5, ("-5 is no",)),
        ("tunnel_timeout", "4 hours", ("'4 hours' is not a duration",)),
        ("hard_stop_after", ["4h"], ("a list is not a duration",)),
        ("stats_address", "10.0.0.300", ("'10.0.0.300' is not an IP address",)),
        ("stats_address", ["10.0.0.3"], ("a list is not an IP address",)),
        ("stats_user", ["ops"], ("a list is not a string",)),
        ("stats_password", ["planted"], ("a list is not a string", "load_balancer_stats_password")),
        ("router_id", 256, ("from 1 to 255",)),
        ("router_id", "first", ("'first' is no",)),
        ("unicast", "maybe", ("'maybe' is neither true nor false",)),
        ("replace", 7, ("7 is neither",)),
        (
            "virtual_addresses",
            ["10.0.0.5"],
            ("'10.0.0.5' is not an address with a prefix length", "virtual_addresses[0]"),
        ),
        ("virtual_addresses", {"a": "10.0.0.5/24"}, ("a dictionary is not a list",)),
        ("interface", "eth0 eth1", ("not the name of a network interface",)),
        ("peers", [{"name": "lb-0", "address": ["10.0.0.3"]}], ("a list is not a string", "peers[0].address")),
        ("peers", [{"name": "a"}], ("address is missing",)),
        ("services", "web", ("'web' is not a dictionary",)),
        ("services", service(port="http"), ("'http' is not a port", "services[0].port")),
        ("services", service(prot=80), ("unknown: prot", "did you mean port?")),
        ("services", service(members="m0"), ("'m0' is not a dictionary",)),
        ("services", service(mode=["tcp"]), ("a list is unknown", "choose one of tcp, http")),
        ("services", service(sources="10.0.0.1/24"), ("it has host bits set",)),
        ("services", service(check={"type": "icmp"}), ("'icmp' is unknown",)),
        ("services", service(check={"rise": 0}), ("0 is no", "check.rise")),
        ("services", service(check={"interval": "soon"}), ("'soon' is not a duration",)),
        ("services", service(roles={"a": 1}), ("a dictionary is not a string",)),
        ("machines", "m0", ("it", "load_balancer_machines[0]")),
        ("clusters", [{"name": "a", "profile": ["k3s"]}], ("a list is not a string", "[0].profile")),
        ("extra", ["frontend a"], ("a list is not a string", "load_balancer_extra")),
    ],
    "dns_pxe": [
        ("http_port", "web", ("'web' is not a port",)),
        ("http_port", -1, ("-1 is not a port",)),
        ("address", "10.77.0.2/24", ("not an IP address", "without a prefix length")),
        ("address", 10.77, ("10.77 is not an IP address",)),
        ("interfaces", [["eth0"]], ("a list is not the name of a network interface", "interfaces[0]")),
        ("interfaces", {"eth0": True}, ("a dictionary is not a list",)),
        ("dhcp", "perhaps", ("'perhaps' is neither true nor false",)),
        ("clients", ["10.77.0.2/24"], ("it has host bits set", "clients[0]")),
        ("clients", ["all"], ("'all' is not a network",)),
        ("forwarders", ["dns.example.com"], ("not an IP address", "forwarders[0]")),
        ("forwarders", [8], ("8 is not an IP address",)),
        ("networks", ["10.77.0.0/24"], ("is not a dictionary", "networks[0]")),
        ("networks", network(gateway="10.77.0.1"), ("unknown: gateway",)),
        ("networks", network(mtu="jumbo"), ("'jumbo' is no",)),
        ("networks", network(mtu=9), ("9 is no", "networks[0].mtu")),
        ("networks", network(lease=["12h"]), ("a list is not a lease time",)),
        ("networks", network(pool={"first": 1}), ("a dictionary is not an IP address",)),
        ("networks", [{"router": "10.77.0.1"}], ("network is missing",)),
        ("networks", network(network="10.77.0.0/33"), ("is not a network",)),
        ("ipxe", "sometimes", ("'sometimes' is unknown", "choose one of never, clients, always")),
        ("ipxe", True, ("true is unknown",)),
        ("loaders", ["/srv/httpx64.efi"], ("a list is not a dictionary",)),
        ("loaders", {"httpx64.efi": "httpx64.efi"}, ("is not an absolute path", "loaders.httpx64.efi")),
        ("skipped_checks", ["other_dhpc"], ("'other_dhpc' is unknown", "did you mean other_dhcp?")),
        ("dnsmasq_extra", [{"a": 1}], ("a dictionary is not a string",)),
        ("profiles", profile(kernal="x"), ("unknown: kernal", "did you mean kernel?")),
        ("profiles", profile(architecture="arm"), ("'arm' is unknown",)),
        ("profiles", profile(arguments={"console": "ttyS0"}), ("a dictionary is not a string",)),
        ("profiles", [{"role": "worker"}], ("kernel is missing",)),
        ("profiles", profile(answer={"kind": "autoyast"}), ("'autoyast' is unknown", "user is missing")),
        ("profiles", profile(answer="kickstart"), ("is not a dictionary",)),
        ("artifacts", artifact(checksum="md5:1"), ("is not a checksum", "artifacts[0].checksum")),
        ("artifacts", artifact(source=["/a"]), ("a list is neither",)),
        ("artifacts", artifact(source="kernel"), ("'kernel' is neither an address nor an absolute path",)),
        ("artifacts", artifact(keyring="a"), ("absolute path",)),
        ("ignitions", [{"path": "worker.ign"}], ("source is missing",)),
        ("ignitions", "worker.ign", ("is not a dictionary",)),
        ("extra_hosts", [{"address": "10.77.0.9", "names": ["FILES"]}], ("'FILES' is not a DNS name",)),
        ("machines", [{"mac": ["a"]}], ("a list is not a string",)),
        ("machines", [{"name": "m0", "install": "later"}], ("'later' is neither true nor false",)),
        ("clusters", [{"name": "a", "api": "api.example.com"}], ("[0].api",)),
        ("self_test", [True], ("a list is neither true nor false",)),
        ("install_again", [{"name": "m0"}], ("a dictionary is not a string",)),
    ],
    "machine_boot": [
        ("boot", "pxe", ("'pxe' is unknown", "choose one of network, disk, media")),
        ("power", "reset", ("'reset' is unknown",)),
        ("power", 1, ("1 is unknown",)),
        ("provider", "bmc", ("'bmc' is unknown",)),
        ("bmc_timeout", "30s", ("'30s' is not a number of seconds",)),
        ("bmc_timeout", 0, ("0 is no",)),
        ("bmc_retries", "twice", ("'twice' is no",)),
        ("bmc_retries", -1, ("-1 is no",)),
        ("power_timeout", "2m", ("'2m' is not a number of seconds",)),
        ("timeout", 0, ("0 is not a number of seconds above 0",)),
        ("timeout", ["1200"], ("a list is no",)),
        ("interval", 0, ("0 is not a number of seconds above 0",)),
        ("interval", "often", ("'often' is no",)),
        ("shutdown_timeout", -120, ("-120 is not a number of seconds",)),
        ("shutdown_timeout", "2m", ("'2m' is no",)),
        ("wait_for", "installed", ("'installed' is unknown",)),
        ("http", "uefi", ("'uefi' is neither true nor false",)),
        ("bmc_verify", "never", ("'never' is neither",)),
        ("media_url", "/srv/agent.iso", ("not the address of an image",)),
        ("media_url", ["http://10.0.0.2/a.iso"], ("a list is not the address of an image",)),
        ("bmc_address", ["10.0.0.111"], ("a list is not a string",)),
        ("bmc_address", {"host": "a"}, ("a dictionary is not a string",)),
        ("bmc_system", [1], ("a list is not a string",)),
        ("bmc_password", ["planted"], ("a list is not a string",)),
        ("bmc_ca", "ca.pem", ("is not an absolute path",)),
        ("ipmi_cipher", "strong", ("'strong' is no",)),
        ("ipmi_cipher", 42, ("from 0 to 17",)),
        ("vm_memory", "16 GiB", ("'16 GiB' is no",)),
        ("vm_memory", -1, ("-1 is no",)),
        ("vm_vcpus", 2.5, ("2.5 is no",)),
        ("vm_disk", "big", ("'big' is no",)),
        ("vm_disk_path", "disk.qcow2", ("is not an absolute path",)),
        ("vm_bridge", ["br0"], ("a list is not the name of a network",)),
        ("vm_secure_boot", "strict", ("'strict' is neither",)),
        ("web_log", "access.log", ("is not an absolute path",)),
        ("marks", "run", ("is not an absolute path",)),
        ("mac", ["52:54:00:77:00:11"], ("a list is not a string",)),
        ("address", {"ip": "10.0.0.11"}, ("a dictionary is not a string",)),
        ("named", {"m0": True}, ("named",)),
        ("servers", {"boot": True}, ("a dictionary is not a list",)),
        ("connection", "planted", ("a connection is not a string",)),
    ],
    "node_runtime": [
        ("provider", "nvidia", ("'nvidia' is unknown", "choose one of , hwaccel, container, existing")),
        ("provider", ["hwaccel"], ("a list is unknown",)),
        ("engines", ["podman"], ("'podman' is unknown", "engines[0]")),
        ("engines", "containerd, dockr", ("'dockr' is unknown", "did you mean docker?")),
        ("engines", {"containerd": True}, ("a dictionary is not a list",)),
        ("default_runtime", "maybe", ("neither true nor false",)),
        ("cdi", 2, ("2 is neither",)),
        ("mode", "hook", ("'hook' is unknown",)),
        ("handler", "nvidia cdi", ("not the name of a runtime",)),
        ("handler", ["nvidia"], ("a list is not the name of a runtime",)),
        ("containerd_config", "config.toml", ("is not an absolute path",)),
        ("containerd_config", {"path": "/a"}, ("a dictionary is not an absolute path",)),
        ("drain", "sometimes", ("'sometimes' is unknown",)),
        ("drain_timeout", "10m", ("'10m' is not a number of seconds", "set 600")),
        ("drain_timeout", -1, ("-1 is not a number of seconds",)),
        ("min_disk_gib", "ten", ("'ten' is not a number",)),
        ("min_disk_gib", -10, ("-10 is not a number",)),
        ("min_disk_gib", "10G", ("'10G' is not a number",)),
        ("skipped_checks", ["swp"], ("'swp' is unknown", "did you mean swap?")),
        ("restart", "later", ("'later' is",)),
        ("toolkit_source", "internet", ("'internet' is unknown",)),
        ("toolkit_version", "latest", ("'latest' is not a package version",)),
        ("toolkit_version", ["1.20.1"], ("a list",)),
        ("repository_url", "mirror.example.com", ("not the address of a web server",)),
        ("repository_url", "ftp://mirror.example.com", ("not the address of a web server",)),
        ("repository_password", ["planted"], ("a list is not a string",)),
        ("repository_key", ["planted"], ("a list is not a string",)),
        ("archive", "toolkit.tar.gz", ("neither an address nor an absolute path",)),
        ("archive_checksum", "sha256:12", ("is not a checksum",)),
        ("archive_checksum", "0" * 64, ("is not a checksum",)),
        ("node", ["worker-1"], ("a list is not a string",)),
        ("cluster", ["ocp"], ("a list is not a string",)),
    ],
}
#: Values as surveys, INI inventories and the command line give them, and as the documentation has them.
GOOD: dict[str, list[dict[str, t.Any]]] = {
    "cluster_kubeadm": [
        {"version": "1.36.4", "programs": program(architecture="aarch64"), "timeout": "900"},
        {
            "programs": program(source="/files/kubelet"),
            "images": [{"source": "https://a.example.com/a.tar", "checksum": SUM}],
        },
        {
            "pod_network": "10.244.0.0/16,fd00::/56",
            "names": "api.example.com",
            "runtime_packages": "containerd.io, runc",
            "packages": "kubeadm, kubelet",
        },
        {"configuration": {"KubeletConfiguration": {"maxPods": 250}}, "skipped_checks": "swap, clock"},
    ],
    "load_balancer": [
        {
            "stats_port": "8404",
            "unicast": "yes",
            "maxconn": 2000,
            "virtual_addresses": "10.0.0.5/24, 10.0.0.6/24",
            "stats_address": "::1",
        },
        {
            "services": service(
                check={"type": "http", "path": "/ready", "status": "200|401"},
                roles=["worker"],
                member_port="8080",
                address="*",
            )
        },
        {
            "extra": "frontend a\n    bind :1\n",
            "stats_password": "ab c",
            "tunnel_timeout": "500ms",
            "peers": [{"name": "lb-0", "address": "lb-0.example.com"}],
        },
        {
            "services": [{"name": "ingress-http", "cluster": "ocp", "state": "absent"}],
            "machines": [{"name": "m0", "role": "master", "address": "10.0.0.1"}],
        },
    ],
    "dns_pxe": [
        {
            "http_port": "8080",
            "networks": network(pool=["10.77.0.200", "10.77.0.250"], mtu="9000", lease="infinite", dns="10.77.0.2"),
            "ipxe": "always",
        },
        {
            "artifacts": artifact(source="/files/kernel", signature="https://a.example.com/sig", keyring="/keys.gpg"),
            "profiles": profile(
                arguments="quiet",
                answer={"kind": "preseed", "user": "operator", "ssh_keys": "ssh-ed25519 AAAA", "packages": ["chrony"]},
            ),
        },
        {
            "clients": "10.77.0.0/24",
            "forwarders": ["fd00::1"],
            "extra_hosts": [{"address": "10.77.0.9", "names": "files.example.com"}],
            "dns": "true",
        },
        {
            "clusters": [
                {
                    "name": "ocp",
                    "domain": "ocp.example.com",
                    "api": ["10.0.0.5", "10.0.0.6"],
                    "machine_networks": "10.77.0.0/24",
                    "srv": "no",
                }
            ]
        },
    ],
    "machine_boot": [
        {
            "power": True,
            "vm_memory": "16384",
            "bmc_address": "10.0.0.111:8443",
            "mac": "52-54-00-77-00-11",
            "wait_for": "",
            "named": "m0, m1",
        },
        {
            "power": "cycle",
            "bmc_timeout": "30",
            "ipmi_cipher": 3,
            "media_url": "nfs://10.0.0.2/srv/a.iso",
            "shutdown_timeout": 0,
            "servers": ["boot"],
        },
    ],
    "node_runtime": [
        {
            "engines": "containerd, k3s",
            "min_disk_gib": "0.5",
            "toolkit_version": "1.20.1~rc.2-1",
            "archive": "https://mirror.example.com/a.tar.gz",
        },
        {"drain_timeout": "600", "provider": "", "node": "gpu_host1", "restart": 0},
        {"repository_key": "-----BEGIN\nabc\n", "toolkit_version": "", "archive_checksum": SUM},
    ],
}
