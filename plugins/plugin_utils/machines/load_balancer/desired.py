# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters, machines and services of the role's variables as services with members."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines as inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import profiles
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.services import (
    ANY,
    Reader,
    Service,
    collisions,
    read_service,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import BOOTSTRAP, MASTER, WORKER, Machine

#: Value of load_balancer_machine_config_clients that lets all of the cluster's network connect. Otherwise only its machines may.
MACHINE_NETWORK = "machine_network"
_CLUSTER_KEYS = ("name", "profile", "address", "machine_network", "bootstrap_complete")
Given = c.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class DesiredServices:
    """messages: decisions on bootstrap machines, in sentences."""

    services: tuple[Service, ...]
    faults: tuple[Fault, ...]
    messages: tuple[str, ...]


def desired(settings: Given, present: str) -> DesiredServices:
    """All services of profiles and of load_balancer_services, with all problems. present: the existing configuration."""
    faults: list[Fault] = []
    reader = Reader(faults)
    messages: list[str] = []
    known, wrong = inventory.read(settings["machines"], "load_balancer_machines")
    faults += wrong
    given: list[tuple[dict[str, t.Any], list[Machine]]] = []
    names = [cluster.get("name", "") for cluster in settings["clusters"]]
    for twice in sorted({name for name in names if names.count(name) > 1}):
        reader.fault(f"cluster {twice}", "two clusters have this name", "rename one of them")
    own: dict[tuple[str, str], Given] = {}
    for service in settings["services"]:
        key = service.get("cluster", ""), service.get("name", "")
        if key in own:
            reader.fault(f"service {key[1]}", "another service has this name", "rename one of them")
        own[key] = service
    serving = {cluster.get("name", ""): _serving(cluster, known, present, messages) for cluster in settings["clusters"]}
    for cluster in settings["clusters"]:
        for service in _of_profile(cluster, serving[cluster.get("name", "")], settings, reader, messages):
            changes = own.pop((service["cluster"], service["name"]), {})
            given.append(({**service, **changes}, serving[service["cluster"]]))
    for service in own.values():
        if service.get("cluster") and service["cluster"] not in names:
            reader.fault(
                f"service {service.get('name', '')}",
                f"its cluster {service['cluster']} does not exist",
                f"name one of {', '.join(names) or 'none'}",
            )
        given.append((dict(service), serving.get(service.get("cluster", ""), [])))
    for machine in known:
        if machine.cluster not in names:
            reader.fault(
                f"machine {machine.name}",
                f"its cluster {machine.cluster or '(none)'} does not exist",
                f"name one of {', '.join(names) or 'none'}",
            )
    read = [
        read_service(service, machines, reader)
        for service, machines in given
        if service.pop("state", "present") != "absent"
    ]
    services = tuple(
        dataclasses.replace(service, name=f"{service.cluster}-{service.name}" if service.cluster else service.name)
        for service in read
    )
    return DesiredServices(services, (*faults, *collisions(services)), tuple(messages))


def _serving(cluster: Given, known: c.Sequence[Machine], present: str, messages: list[str]) -> list[Machine]:
    """Machines of a cluster that can be members. Bootstrap machines are members only until bootstrap is complete."""
    own = [machine for machine in known if machine.cluster == cluster.get("name")]
    bootstrap = [machine.name for machine in own if machine.role == BOOTSTRAP]
    if not bootstrap:
        return own
    complete = cluster.get("bootstrap_complete")
    named = f"cluster {cluster.get('name', '')}: {', '.join(bootstrap)}"
    # A removed bootstrap machine is not added again while the cluster does not answer.
    members = _members(cluster, present)
    was_out = bool(members) and not members & set(bootstrap)
    if complete or (complete is None and was_out):
        messages.append(
            f"{named} is not a member, as {'bootstrap is complete' if complete else 'it was none before and the cluster does not answer'}"
        )
        return [machine for machine in own if machine.role != BOOTSTRAP]
    why = (
        "it is unknown whether bootstrap is complete: health checks decide"
        if complete is None
        else "bootstrap is not complete"
    )
    messages.append(f"{named} is a member, as {why}")
    return own


def _members(cluster: Given, present: str) -> set[str]:
    """Members of the backends of its profile in a configuration."""
    backends = {
        f"backend {cluster.get('name', '')}-{service['name']}"
        for service in profiles.PROFILES.get(cluster.get("profile") or "", ())
    }
    found: set[str] = set()
    section = ""
    for line in present.splitlines():
        section = section if line.startswith(" ") else line
        words = line.split()
        if section in backends and words[:1] == ["server"]:
            found.add(words[1])
    return found


def _of_profile(
    cluster: Given, serving: list[Machine], settings: Given, reader: Reader, messages: list[str]
) -> list[dict[str, t.Any]]:
    name, profile = cluster.get("name", ""), cluster.get("profile", "") or ""
    where = f"cluster {name}"
    reader.known(cluster, _CLUSTER_KEYS, where)
    if profile in profiles.WITHOUT:
        return []
    if profile not in profiles.PROFILES:
        reader.fault(
            where,
            f"its profile {profile!r} is unknown",
            f"use {', '.join(sorted(profiles.PROFILES))}, or none with custom services",
        )
        return []
    roles = {machine.role for machine in serving}
    services = []
    for template in profiles.PROFILES[profile]:
        service = {**template, "cluster": name, "address": cluster.get("address", "") or ANY[0]}
        if service["roles"] == [WORKER] and WORKER not in roles:
            service["roles"] = [MASTER]
        if service.pop("machines_only", False):
            networks = _machine_network(cluster, reader)
            everybody = settings["machine_config_clients"] == MACHINE_NETWORK
            service["sources"] = (
                _whole(cluster, networks, reader) if everybody else _known(cluster, networks, serving, messages)
            )
        services.append(service)
    return services


def _machine_network(cluster: Given, reader: Reader) -> list[str]:
    given = cluster.get("machine_network") or []
    where = f"cluster {cluster.get('name', '')}, machine_network"
    return [reader.network(one, where) for one in ([given] if isinstance(given, str) else given)]


def _whole(cluster: Given, networks: list[str], reader: Reader) -> list[str]:
    if not networks:
        why = "port 22623 serves the cluster's secrets without authentication, and its machine network is unknown"
        reader.fault(
            f"cluster {cluster.get('name', '')}", why, "set hwaccel_machine_network of the cluster, such as 10.0.0.0/24"
        )
    return networks


def _known(cluster: Given, networks: list[str], serving: c.Sequence[Machine], messages: list[str]) -> list[str]:
    """Addresses of machines. Each has one, so with two stacks those of the other family are unknown, and its network has to stay open."""
    rest = [
        one
        for one in filter(None, networks)
        if any(machine.address.version != ipaddress.ip_network(one).version for machine in serving)
    ]
    if rest:
        messages.append(
            f"cluster {cluster.get('name', '')}: port 22623 answers all of {some(rest)}, as not all machines have a known address of that family"
        )
    # In the order of the inventory another order would be another configuration.
    addresses = sorted((machine.address for machine in serving), key=lambda one: (one.version, int(one)))
    return [*map(str, addresses), *rest]
