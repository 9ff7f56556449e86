# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who knows something of an installation of OpenShift, and what each is asked: boot servers, load balancers and hypervisors of an inventory. Pure."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import approving, inventory, machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import domain
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.place import MEMORY, WISHES, WRITTEN
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import SOCKETS
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import inventory as openshift

Row = c.Mapping[str, t.Any]
BOOT_SERVER, LOAD_BALANCER, HYPERVISOR = "boot server", "load balancer", "hypervisor"
#: Variables of boot servers, with the defaults of the role machine_boot.
LOGS = {
    "marks": ("machine_boot_marks", "/run/hwaccel-gpu/machine_boot"),
    "dhcp": ("machine_boot_dhcp_log", "dnsmasq"),
    "web": ("machine_boot_web_log", "/var/log/nginx/access.log"),
}
#: Variables of a boot server with its address, as the role dns_pxe has them.
_OF_SERVER = ("dns_pxe_address", "hwaccel_address", "ansible_host")
_CONFIG_PORT = 22623


def read(groups: Groups, hostvars: Variables, cluster: str) -> dict[str, t.Any]:
    """cluster: its name. machines: each with host, name (of its node), label (as boot servers and load balancers name it), role, address and mac.

    witnesses: each with host, kind, reads, the input of witness.py, and requests, what a machine would request, as self_test.py of dns_pxe takes it, or {}.
    """
    names = list(groups.get("gpu_clusters", ()))
    lone, variables = names[0] if len(names) == 1 else "", hostvars[cluster]
    found = [
        _machine(name, hostvars[name], role, str(variables.get("hwaccel_domain") or ""))
        for group, role in openshift.GROUPS.items()
        for name in groups.get(group, ())
        if (hostvars[name].get("hwaccel_cluster") or lone) == cluster and not inventory.leaves(hostvars[name])
    ]
    balancers = _serving("load_balancers", groups, hostvars, cluster)
    servers = _serving("boot_servers", groups, hostvars, cluster)
    return {
        "cluster": cluster,
        "machines": found,
        "witnesses": [
            *(_boot_server(name, hostvars[name], variables, found, bool(balancers)) for name in servers),
            *(_witness(name, LOAD_BALANCER, {"sockets": list(SOCKETS.values())}) for name in balancers),
            *(
                _witness(name, HYPERVISOR, {"tails": [domain.console(one) for one in hosted]})
                for name, hosted in _hosted(groups, hostvars, found).items()
            ),
        ],
    }


def _machine(host: str, variables: Row, role: str, domain_name: str) -> dict[str, t.Any]:
    return {
        "host": host,
        "name": approving.node_name(host, variables, domain_name),
        "label": str(variables.get("hwaccel_node_name") or host),
        "role": role,
        "address": str(variables.get("hwaccel_address") or variables.get("ansible_host") or ""),
        # In the form that logs have.
        "mac": str(variables.get("hwaccel_mac") or "").strip().lower().replace("-", ":"),
    }


def _serving(group: str, groups: Groups, hostvars: Variables, cluster: str) -> list[str]:
    return [name for name in groups.get(group, ()) if cluster in inventory.clusters_of(groups, hostvars, name)]


def _hosted(groups: Groups, hostvars: Variables, found: c.Iterable[Row]) -> dict[str, list[str]]:
    """Machines by their hypervisor, as far as it is in the inventory."""
    by_host: dict[str, list[str]] = {}
    for machine in found:
        name = str(hostvars[machine["host"]].get("hwaccel_hypervisor") or "")
        if name in groups.get("hypervisors", ()):
            by_host.setdefault(name, []).append(machine["host"])
    return by_host


def _witness(host: str, kind: str, reads: Row, requests: Row | None = None) -> dict[str, t.Any]:
    return {"host": host, "kind": kind, "reads": dict(reads), "requests": dict(requests or {})}


def _boot_server(host: str, own: Row, cluster: Row, found: c.Iterable[Row], balanced: bool) -> dict[str, t.Any]:
    # A host in two groups is one machine.
    known = dict.fromkeys((one["mac"], one["address"]) for one in found if _addresses(one["address"]))
    logs = {key: str(own.get(name) or default) for key, (name, default) in LOGS.items()}
    reads = {**logs, "machines": [list(one) for one in known], "files": [MEMORY, WISHES, WRITTEN]}
    return _witness(host, BOOT_SERVER, reads, _requests(own, cluster, balanced))


def _requests(own: Row, cluster: Row, balanced: bool) -> dict[str, t.Any]:
    """Names and a port as machines request them. balanced: whether the role load_balancer serves the port: others may refuse it until a member does."""
    name = str(cluster.get("hwaccel_domain") or "")
    common = _addresses(cluster.get("hwaccel_load_balancer_address"))
    api = _addresses(cluster.get("hwaccel_api_int_address")) or common
    ingress = _addresses(cluster.get("hwaccel_ingress_address")) or common
    server = next((one for key in _OF_SERVER if (one := str(own.get(key) or ""))), "")
    answers = name and machines.truth(own.get("dns_pxe_dns", True)) and _addresses(server)
    names = [*_records(f"api-int.{name}", api), *_records(f"any.name.apps.{name}", ingress)] if answers else []
    port = {"name": f"api-int.{name}", "port": _CONFIG_PORT, "there": True}
    apis = [{**port, "address": str(one)} for one in (api if balanced else ())]
    nothing: dict[str, list[t.Any]] = {"tftp": [], "http": [], "refused": []}
    return {"server": server, "names": names, "apis": apis, **nothing} if names or apis else {}


def _records(name: str, addresses: c.Iterable[machines.Address]) -> list[tuple[str, str, list[str]]]:
    found: dict[str, list[str]] = {}
    for one in addresses:
        found.setdefault("A" if one.version == 4 else "AAAA", []).append(str(one))
    return [(name, kind, sorted(values)) for kind, values in found.items()]


def _addresses(given: t.Any) -> list[machines.Address]:
    """What is no address is reported by the roles that use it."""
    found = []
    for one in given if isinstance(given, (list, tuple)) else [given]:
        try:
            found.append(ipaddress.ip_address(str(one)))
        except ValueError:
            continue
    return found
