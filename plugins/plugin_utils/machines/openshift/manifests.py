# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests beside those of the installer: of users, for the scheduler, for the network operator, and MachineConfigs. Pure.

They are put beside those that `create manifests` has made, before ignition files are made of both.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests as model
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import plain_yaml, strict_yaml, values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.manifests import Manifest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import BOOTSTRAP, MASTER, Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import (
    disks,
    machine_configs,
    naming,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import AGENT, UPI

Settings = c.Mapping[str, t.Any]
MANIFESTS, MACHINE_CONFIGS = "cluster_openshift_manifests", "cluster_openshift_machine_configs"
_SCHEDULER = "manifests/cluster-scheduler-02-config.yml"
_NETWORK = "manifests/cluster-network-03-config.yml"
#: Objects of the installer's own manifests (create manifests), by API group, kind and name.
_MADE = {
    *(("config.openshift.io", kind, "cluster") for kind in ("DNS", "FeatureGate", "Infrastructure", "Ingress")),
    *(("config.openshift.io", kind, "cluster") for kind in ("Network", "Proxy", "Scheduler")),
    *(("machineconfiguration.openshift.io", "MachineConfig", f"99-{pool}-ssh") for pool in machine_configs.POOLS),
    ("", "Secret", "pull-secret"),
    ("", "Secret", "kubeadmin"),
    ("", "ConfigMap", "cluster-config-v1"),
    ("", "ConfigMap", "root-ca"),
}
#: Whose names may have colons.
_RBAC = "rbac.authorization.k8s.io"


@dataclasses.dataclass(frozen=True)
class File:
    """path: below the folder of the installation. secret: whether it holds one."""

    path: str
    body: dict[str, t.Any]
    secret: bool = False

    @property
    def text(self) -> str:
        return plain_yaml.text([self.body])


def files(settings: Settings, machines: c.Sequence[Machine]) -> tuple[list[File], list[Fault]]:
    """All files beside the installer's, and all that is wrong with what users have given."""
    given, faults = read(settings["manifests"], MANIFESTS)
    configs, wrong = read(settings["machine_configs"], MACHINE_CONFIGS)
    faults += [*wrong, *_not_configs(configs)]
    faults += model.duplicates([*given, *configs])
    own = _own(settings, machines)
    faults += [fault for one in [*given, *configs] for fault in _refused(one, own)]
    collected, more = _machine_configs(settings, machines, [*given, *configs])
    others = [one for one in given if one.body["kind"] != machine_configs.KIND]
    listed = [_file(number, one) for number, one in enumerate(sorted(others, key=lambda one: str(one.key)), start=1)]
    return [*own, *collected, *listed], [*faults, *more]


def read(entries: c.Sequence[t.Any], variable: str) -> tuple[list[Manifest], list[Fault]]:
    """entries: texts or dictionaries. variable: which has them, for messages."""
    found, faults = [], []
    for number, entry in enumerate(entries):
        origin = f"{variable}[{number}]"
        if isinstance(entry, str):
            wrong = strict_yaml.documents(entry, origin)[1]
            text = entry
        else:
            fault = model.json_fault(entry, origin)
            wrong, text = ([fault], "") if fault else ([], json.dumps(entry, ensure_ascii=False))
        some, more = ([], []) if wrong else model.load(None, [(origin, text)])
        found += some
        faults += [*wrong, *more]
    return found, faults


def _not_configs(configs: c.Iterable[Manifest]) -> c.Iterator[Fault]:
    for one in configs:
        if one.body["kind"] != machine_configs.KIND:
            yield Fault(f"{one.title} is no {machine_configs.KIND}", one.origin, "", f"give it in {MANIFESTS}")


def _refused(one: Manifest, own: c.Iterable[File]) -> c.Iterator[Fault]:
    group, _slash, version = one.api_version.rpartition("/")
    key = (group, one.body["kind"], one.key.name)
    mine = {
        (file.body["apiVersion"].rpartition("/")[0], file.body["kind"], file.body["metadata"]["name"]) for file in own
    }
    if key in _MADE or key in mine:
        why = "the installer makes it" if key in _MADE else "this role makes it, from other variables"
        yield Fault(f"{one.title} cannot be given", one.origin, why, "remove it, and change it after the install")
    if one.body["kind"] == machine_configs.KIND and one.api_version != machine_configs.API:
        yield Fault(f"{one.title} has the apiVersion {group}/{version}", one.origin, "", f"set {machine_configs.API}")
    if group != _RBAC and not naming.is_subdomain(one.key.name):
        why = "an object's name has lower-case letters, digits, hyphens and dots (RFC 1123)"
        yield Fault(
            f"{values.shown(one.key.name)} is not the name of a {one.body['kind']}", one.origin, why, "correct it"
        )


def _own(settings: Settings, machines: c.Sequence[Machine]) -> list[File]:
    found = []
    if settings["method"] == UPI and any(one.role not in (MASTER, BOOTSTRAP) for one in machines):
        # With compute replicas 0 the installer makes masters schedulable, and workers join later.
        found.append(File(_SCHEDULER, _scheduler()))
    if network := _ovn(settings):
        spec = {"defaultNetwork": {"ovnKubernetesConfig": network}}
        metadata = {"name": "cluster"}
        body = {"apiVersion": "operator.openshift.io/v1", "kind": "Network", "metadata": metadata, "spec": spec}
        found.append(File(_NETWORK, body))
    return found


def _scheduler() -> dict[str, t.Any]:
    """As the installer writes it, but that masters run no pods of users."""
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": {"name": "cluster"},
        "spec": {"mastersSchedulable": False, "policy": {"name": ""}},
        "status": {},
    }


def _ovn(settings: Settings) -> dict[str, t.Any]:
    """Of operator.openshift.io/v1 Network: what install-config has no key for (operator/v1/types_network.go of openshift/api)."""
    given = settings["internal_networks"]
    found: dict[str, t.Any] = {"mtu": settings["network_mtu"]} if settings["network_mtu"] else {}
    for name, text in given.items():
        family = "ipv6" if ":" in str(text) else "ipv4"
        if name == "transit":
            found.setdefault(family, {})["internalTransitSwitchSubnet"] = text
        elif name == "masquerade":
            gateway = found.setdefault("gatewayConfig", {})
            gateway.setdefault(family, {})["internalMasqueradeSubnet"] = text
    return found


def _machine_configs(
    settings: Settings, machines: c.Sequence[Machine], given: c.Iterable[Manifest]
) -> tuple[list[File], list[Fault]]:
    manifests = list(given)
    configs = [one for one in manifests if one.body["kind"] == machine_configs.KIND]
    added = {one.key.name for one in manifests if one.body["kind"] == machine_configs.POOL_KIND}
    installed = {str(one.more["install_device"]) for one in machines if one.more.get("install_device")}
    faults = disks.faults(settings["disks"], installed)
    parts, wrong = machine_configs.parts(configs)
    parts += machine_configs.kernel_arguments(settings["kernel_arguments"])
    parts += machine_configs.time_servers(settings["time_servers"])
    parts += [] if faults else disks.parts(settings["disks"])
    faults += wrong
    pools = {*machine_configs.POOLS, *added}
    kept = []
    for part in parts:
        found = list(machine_configs.wrong(part, pools))
        faults += found
        kept += [] if found else [part]
    bodies, more = machine_configs.collected(kept)
    named = [File(f"openshift/99_hwaccel-gpu-machineconfig-{_slug(body)}.yaml", body) for body in bodies]
    return named, [*faults, *more]


def _slug(body: c.Mapping[str, t.Any]) -> str:
    return str(body["metadata"]["labels"][machine_configs.ROLE])


def _file(number: int, one: Manifest) -> File:
    name = re.sub(r"[^a-z0-9.-]+", "-", f"{one.body['kind']}-{one.key.name}".lower())
    return File(f"openshift/99_hwaccel-gpu-{number:03d}-{name[:80]}.yaml", one.body, one.body["kind"] == "Secret")


def schedulable(method: str, machines: c.Sequence[Machine]) -> bool:
    """Whether masters run pods of users: those of a cluster without workers. The installer sees to it, but for workers that join by themselves."""
    workers = any(one.role not in (MASTER, BOOTSTRAP) for one in machines)
    return not workers if method in (UPI, AGENT) else True
