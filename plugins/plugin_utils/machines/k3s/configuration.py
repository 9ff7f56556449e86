# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of K3s, as files. Pure.

Sources: https://docs.k3s.io/cli/server, https://docs.k3s.io/cli/agent, pkg/cli/cmds of K3s 1.36.
"""

from __future__ import annotations

import collections.abc as c
import ipaddress
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import SERVER
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import (
    engine,
    external,
    hardening,
    networks,
    options,
    places,
    snapshots,
)

Settings = c.Mapping[str, t.Any]
HEAD = "# Written by the role hwaccel.gpu.cluster_k3s, which writes it anew: changes are lost.\n"
#: What the role decides, as machines would not be one cluster otherwise, or another variable is for it; and credentials, which would be in clear.
RESERVED = {
    "agent-token": "cluster_k3s_agent_token",
    "agent-token-file": "cluster_k3s_agent_token",
    "cluster-cidr": "cluster_k3s_pod_network",
    "cluster-dns": "cluster_k3s_service_network",
    "cluster-domain": "cluster_k3s_dns_domain",
    "cluster-init": "cluster_k3s_datastore",
    "cluster-reset": "",
    "cluster-reset-restore-path": "",
    "data-dir": "",
    "datastore-endpoint": "cluster_k3s_datastore_endpoint",
    "disable": "cluster_k3s_disable",
    "disable-agent": "",
    "disable-apiserver": "",
    "disable-etcd": "",
    "flannel-backend": "cluster_k3s_flannel_backend",
    "embedded-registry": "cluster_k3s_embedded_registry",
    "etcd-s3-access-key": "",
    "etcd-s3-secret-key": "",
    # Where a restoration looks for snapshots.
    "etcd-snapshot-dir": "",
    "node-label": "hwaccel_node_labels",
    "node-name": "hwaccel_node_name",
    "node-taint": "hwaccel_node_taints",
    "secrets-encryption": "cluster_k3s_secrets_encryption",
    "server": "hwaccel_api_endpoint",
    "service-cidr": "cluster_k3s_service_network",
    "system-default-registry": "cluster_k3s_system_default_registry",
    "tls-san": "cluster_k3s_names",
    "token": "cluster_k3s_token",
    "token-file": "cluster_k3s_token",
    "vpn-auth": "",
    "write-kubeconfig": "",
    "write-kubeconfig-mode": "",
}
#: Options that agents do not know, among those that are compared.
OF_SERVERS = options.names("""
    cluster-cidr cluster-dns cluster-domain disable disable-agent disable-apiserver disable-cloud-controller disable-controller-manager
    disable-etcd disable-helm-controller disable-kube-proxy disable-network-policy disable-scheduler egress-selector-mode embedded-registry
    flannel-backend flannel-external-ip flannel-ipv6-masq https-listen-port secrets-encryption secrets-encryption-provider service-cidr
    service-node-port-range supervisor-metrics
    """)
#: Which servers must have in common (CriticalControlArgs in pkg/daemons/config/types.go), and which users may set.
CRITICAL = options.names("""
    disable-cloud-controller disable-helm-controller disable-network-policy egress-selector-mode flannel-external-ip flannel-ipv6-masq
    supervisor-metrics
    """)
#: Kept by a cluster for its life, with the name for messages.
_FIXED = {
    "cluster-cidr": "network of pods",
    "service-cidr": "network of Services",
    "cluster-dns": "address of the cluster's DNS",
    "cluster-domain": "domain of Services",
    # An API server without it cannot read what is encrypted.
    "secrets-encryption": "encryption of Secrets",
}


def settings_of(settings: Settings) -> dict[str, t.Any]:
    """What the file of a machine says, by the names of K3s' options."""
    found = given(settings)
    return hardening.added(found, settings["role"] == SERVER) if hardening.on(settings) else found


def given(settings: Settings) -> dict[str, t.Any]:
    """The same without what hardens it."""
    common: dict[str, t.Any] = {"node-name": settings["node"]}
    # With two stacks a node needs an address of each, which K3s finds.
    if _is_address(settings["address"]) and not networks.dual(settings):
        common["node-ip"] = settings["address"]
    if settings["taints"]:
        # Only a node that registers takes them.
        common["node-taint"] = [_taint(one) for one in settings["taints"]]
    if settings["board_labels"]:
        common["node-label"] = [f"{name}={value}" for name, value in settings["board_labels"].items()]
    if settings["default_runtime"]:
        common["default-runtime"] = settings["default_runtime"]
    if engine.is_docker(settings):
        common["docker"] = True
    if settings["pause_image"]:
        common["pause-image"] = settings["pause_image"]
    common |= settings["configuration"]
    return {**common, **_of_server(settings)} if settings["role"] == SERVER else common


def _of_server(settings: Settings) -> dict[str, t.Any]:
    endpoint = settings["endpoint"].rpartition(":")[0].strip("[]")
    # K3s adds addresses of servers itself, and not their names.
    own = [] if _is_address(settings["address"]) else [settings["address"]]
    names = dict.fromkeys([*filter(None, (endpoint, *own)), *settings["names"]])
    found: dict[str, t.Any] = {
        "agent-token-file": places.AGENT_TOKEN,
        "cluster-cidr": settings["pod_network"],
        "cluster-dns": dns(settings),
        "cluster-domain": settings["dns_domain"],
        "disable": [*settings["disable"], *engine.disabled(settings)],
        "flannel-backend": settings["flannel_backend"],
        "secrets-encryption": settings["secrets_encryption"],
        "service-cidr": settings["service_network"],
        "tls-san": list(names),
        "write-kubeconfig-mode": "0600",
        **settings["server_configuration"],
    }
    if external.is_set(settings):
        found[external.OPTION] = settings["datastore_endpoint"]
    if embedded(settings):
        found |= snapshots.settings_of(settings)
    if settings["embedded_registry"]:
        found["embedded-registry"] = True
    if settings["system_default_registry"]:
        found["system-default-registry"] = settings["system_default_registry"]
    return found


def embedded(settings: Settings) -> bool:
    """Whether servers have etcd. One of them alone has SQLite if nothing else is set (pkg/cluster/managed.go)."""
    servers = sum(one["serves"] for one in settings["machines"])
    return settings["datastore"] == "etcd" or (not settings["datastore"] and servers > 1)


def dns(settings: Settings) -> str:
    """Tenth address of each network of Services, as K3s takes them (pkg/cli/server/server.go)."""
    return ",".join(str(network[10]) for network in networks.read(settings["service_network"]))


def entry(settings: Settings, what: str, *, token: bool) -> str:
    """The file that says how a machine comes to its cluster. token: whether it has one.

    what: init, if it makes the cluster; join; or rejoin, for a server that has made it: a member of etcd that was removed from it, and is started again,
    would make a second cluster without a server (Register in pkg/etcd/etcd.go). migrate, for a server whose SQLite becomes etcd, and stay, if it does not.
    """
    if external.is_set(settings) and settings["role"] == SERVER:
        return as_text({"token-file": places.TOKEN})
    found: dict[str, t.Any] = {"token-file": places.OWN_TOKEN if what == "rejoin" else places.TOKEN} if token else {}
    if what in ("join", "rejoin"):
        found["server"] = f"https://{settings['endpoint']}"
    elif what == "migrate" or (what == "init" and embedded(settings)):
        found["cluster-init"] = True
    return as_text(found)


def text(settings: Settings) -> str:
    return as_text(settings_of(settings))


def registries(settings: Settings) -> str:
    """Empty if there are none. It may hold credentials."""
    return as_text(settings["registries"]) if settings["registries"] else ""


def as_text(found: Settings) -> str:
    return HEAD + yaml.safe_dump(dict(found), sort_keys=True, width=160)


def faults(settings: Settings) -> list[Fault]:
    """Options that other variables are for."""
    found = []
    for variable in ("configuration", "server_configuration"):
        for name in sorted(key.rstrip("+") for key in settings[variable]):
            if name in RESERVED:
                next_step = f"set {RESERVED[name]} instead" if RESERVED[name] else "remove it"
                why = "the role decides it"
                found.append(Fault(f"{name} cannot be set there", f"cluster_k3s_{variable}", why, next_step))
    return [
        *found,
        *networks.faults(settings),
        *external.faults(settings),
        *_registry(settings),
        *snapshots.faults(settings, embedded=embedded(settings) or settings["role"] != SERVER),
    ]


def _registry(settings: Settings) -> list[Fault]:
    """Images that nodes share: each serves those that it has for registries that are mirrored (pkg/spegel, run in pkg/agent/run.go)."""
    found = []
    where = "cluster_k3s_embedded_registry"
    if settings["embedded_registry"] and not settings["registries"].get("mirrors"):
        what, next_step = (
            "nodes would share no images",
            "set mirrors in cluster_k3s_registries, such as {docker.io: {}} or {'*': {}}",
        )
        found.append(Fault(what, where, "only images of registries that are mirrored are shared", next_step))
    if settings["embedded_registry"] and engine.is_docker(settings):
        found.append(Fault("Docker cannot share images", where, "K3s shares those of its own containerd", "unset it"))
    return found


def kept(there: str, settings: Settings) -> list[Fault]:
    """Changes of what a cluster keeps for its life. there: the file of a server that is a member."""
    try:
        now = yaml.safe_load(there)
    except yaml.YAMLError:
        return []
    if not isinstance(now, dict) or networks.faults(settings):
        return []
    wanted = settings_of(settings)
    return [
        Fault(
            f"the {what} of the cluster is {now[name]}, and {wanted[name]} is set",
            f"cluster_k3s_{_VARIABLES[name]}",
            "a cluster keeps it for its life",
            f"set {now[name]}, or make another cluster",
        )
        for name, what in _FIXED.items()
        if name in now and name in wanted and str(now[name]) != str(wanted[name])
    ]


_VARIABLES = {
    "cluster-cidr": "pod_network",
    "service-cidr": "service_network",
    "cluster-dns": "service_network",
    "cluster-domain": "dns_domain",
    "secrets-encryption": "secrets_encryption",
}


def _taint(one: Settings) -> str:
    value = f"={one['value']}" if one.get("value") else ""
    return f"{one['key']}{value}:{one['effect']}"


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
