# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions for tasks of the role cluster_openshift: plain data in, plain data out. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import secrets
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import hashing, plain_yaml, values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import (
    agent_config,
    conversion,
    install_config,
    manifests,
    networks,
    reading,
    redaction,
    rules,
    schema,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import settings as reading_settings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    AGENT,
    AGENT_CONFIG,
    INSTALL_CONFIG,
    Finding,
    Release,
    Site,
)

_Data = c.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class _Inputs:
    files: tuple[manifests.File, ...]
    faults: tuple[dict[str, t.Any], ...]
    notes: tuple[dict[str, t.Any], ...]
    schedulable: bool
    salt: str


def checked(settings: _Data) -> dict[str, t.Any]:
    """What is decided before an install, without a secret.

    settings: the role's variables by their names without cluster_openshift_, machines and balancers as inventory.read returns them, release (version, image
    and architecture, as far as the installer was asked), fips_host and clock_offset as findings.Site documents them.

    faults and notes: as rules.Told and errors.Fault have them. files: path, secret, and shown, the text with hashes in the place of secrets.
    schedulable: whether masters run pods of users.
    """
    made = _inputs(settings)
    shown = [
        {"path": one.path, "secret": one.secret, "shown": plain_yaml.text([redaction.redacted(one.body, made.salt)])}
        for one in made.files
    ]
    return {
        "faults": list(made.faults),
        "notes": list(made.notes),
        "messages": [one["text"] for one in made.notes],
        "files": shown,
        "schedulable": made.schedulable,
    }


def inputs(settings: _Data) -> list[dict[str, t.Any]]:
    """Files for the installer, each with path, content and secret. It holds secrets. Raises ManyFaults if anything is wrong with them."""
    made = _inputs(settings)
    if made.faults:
        names = [field.name for field in dataclasses.fields(Fault)]
        raise ManyFaults([Fault(*(one[name] for name in names)) for one in made.faults])
    return [{"path": one.path, "content": one.text, "secret": one.secret} for one in made.files]


def _inputs(given: _Data) -> _Inputs:
    settings, faults = reading_settings.read(given)
    found, wrong = machines.read(settings["machines"], "machines of the inventory")
    faults += wrong
    overrides, wrong = reading.mapping(settings["install_config"], "cluster_openshift_install_config")
    faults += wrong
    documents = {INSTALL_CONFIG: install_config.rendered(settings, found, overrides)}
    if settings["method"] == AGENT:
        overrides, wrong = reading.mapping(settings["agent_config"], "cluster_openshift_agent_config")
        faults += wrong
        documents[AGENT_CONFIG] = agent_config.rendered(settings, found, overrides)
    balancers, wrong = _balancers(settings["balancers"])
    faults += wrong
    site, typing = site_of(documents, settings, found, balancers)
    told = rules.checked(site, typing, settings["skipped_checks"])
    files, wrong = manifests.files(settings, found)
    faults += wrong
    own = [manifests.File(path, body, secret=True) for path, body in documents.items()]
    return _Inputs(
        (*own, *files),
        (*(fault.as_dict() for fault in faults), *(one.as_dict() for one in told if not one.note)),
        tuple(one.as_dict() for one in told if one.note),
        manifests.schedulable(settings["method"], found),
        site.salt,
    )


def site_of(
    documents: c.Mapping[str, _Data],
    settings: _Data,
    found: c.Sequence[machines.Machine],
    balancers: c.Mapping[str, machines.Address],
) -> tuple[Site, list[Finding]]:
    """What rules read, and findings of values of a wrong type. documents: by their names."""
    config, typing = schema.typed(documents.get(INSTALL_CONFIG, {}), schema.INSTALL)
    agent, more = schema.typed(documents.get(AGENT_CONFIG, {}), schema.AGENT, AGENT_CONFIG)
    release = settings["release"]
    internal = {
        name: network for name, text in settings["internal_networks"].items() if (network := networks.network(text))
    }
    site = Site(
        conversion.completed(config),
        settings["method"],
        tuple(found),
        agent,
        balancers,
        internal,
        Release(*(str(release.get(name) or "") for name in ("version", "image", "architecture"))),
        frozenset(one.name for one in found if _several(one, settings["disks"])),
        frozenset(one.name for one in found if one.more.get("hypervisor")),
        settings["network_mtu"],
        settings["fips_host"],
        settings["clock_offset"],
        _salt(config),
    )
    return site, [*typing, *more]


def _salt(config: _Data) -> str:
    """Of a cluster without a pull secret, which is a problem, secrets have no hash that could be used later."""
    return hashing.stretched(str(config.get("pullSecret") or secrets.token_hex()), "hwaccel.gpu hashes of secrets")


def _balancers(given: c.Mapping[str, str]) -> tuple[dict[str, machines.Address], list[Fault]]:
    found, faults = {}, []
    for name, text in given.items():
        try:
            found[name] = ipaddress.ip_address(text)
        except ValueError:
            what = f"{values.shown(text)} is not an IP address"
            faults.append(Fault(what, name, "", "give one such as 10.0.0.5, without a prefix length"))
    return found, faults


def _several(machine: machines.Machine, disks: c.Mapping[str, t.Any]) -> bool:
    """Whether a machine has a disk beside that of the system, as the inventory or the disks of its pool say, which have stable names."""
    of_workers = "" if machine.role in (machines.MASTER, machines.BOOTSTRAP) else machines.WORKER
    pool = machine.role if machine.role in disks else of_workers
    return len(machine.more.get("disks") or ()) > 1 or bool(disks.get(pool))
