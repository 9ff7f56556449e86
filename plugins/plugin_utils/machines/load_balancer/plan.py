# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a load balancer: its files, and the actions of its services."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import firewall, oneline, record, templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content, written
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import (
    conflicts,
    haproxy,
    keepalived,
    limits,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.desired import desired
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.machine import Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import (
    CHECKS,
    CONFIG,
    DROP_IN,
    EXTRA,
    FRAGMENTS,
    KEEPALIVED,
    KEEPALIVED_DROP_IN,
    KEEPALIVED_ENVIRONMENT,
    LIBRARIES,
    MAIN,
    PATH,
    ROLE,
    SETTINGS,
    SOCKETS,
    STDIN,
    UNITS,
    USERS,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.services import Reader, Service
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.services import Action

#: Other characters would end the word in HAProxy's configuration, or start a comment.
_USER = re.compile(r"[A-Za-z0-9._@-]+")
_WHAT = "the load balancer cannot be configured"
#: Where the record is damaged.
_UNKNOWN: dict[str, t.Any] = {"record": "", "firewall": [], "record_after": ""}
_text = functools.partial(templating.render, "load_balancer")


def plan(machine: Machine, settings: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The plan, in plain data.

    packages: missing ones; apt: whether apt installs them. files, contents, folders, absent: as files.written documents them.
    stops: units that are stopped before their files are removed. reload_units: whether systemd has to reload units.
    staged, checks: the whole configuration of HAProxy, for its own check. actions: for services that do not run with the files on disk, as services.Action.
    drains: serving members that are removed, each with backend and server; socket: of HAProxy, for that command.
    record: text for teardown, empty if the machine has it already; record_after: the same after firewalls are changed.
    firewall: openings of running firewalls, each with firewall, open, port, protocol, source and rule. selinux: whether haproxy_connect_any is enabled.
    """
    found = desired(settings, machine.text(MAIN))
    # First, because the following code splits texts at line ends and blanks and would report only consequences.
    faults, messages = [*oneline.faults("load_balancer", settings, ("extra",)), *found.faults], list(found.messages)
    virtual, wrong = keepalived.read(settings, machine)
    given = _global(machine, settings, found.services, virtual, faults)
    faults += wrong
    faults += [] if wrong else conflicts.addresses(machine, found.services, given.virtual)
    contents = [] if faults else _contents(found.services, given, settings, virtual, CHECKS[machine.family])
    drains = _drains(machine, found.services)
    faults += conflicts.ports(machine, found.services, given) + conflicts.foreign(machine, settings["replace"])
    damaged = record.faults(machine, ROLE)
    faults += damaged + conflicts.strange(machine)
    faults += conflicts.room(machine, sum(len(content.text.encode()) for content in contents))
    faults += conflicts.collections(machine, settings, bool(drains))
    absent = _absent(machine, contents)
    made = _written(machine, contents, absent)
    touched = {*(one["path"] for one in made["files"]), *absent}
    actions = _actions(machine, contents, touched) if contents else []
    switch = _switches(machine, settings)
    packages = _packages(machine, virtual is not None, switch)
    stops = ["keepalived"] if KEEPALIVED_DROP_IN in absent else []
    messages += [f"{action.unit} is {action.state}: {action.why}" for action in actions]
    messages += [f"{unit} is stopped: there are no virtual addresses any more" for unit in stops]
    messages += [f"{drain['backend']}: {drain['server']} is drained before it is removed" for drain in drains]
    opened, after = (_UNKNOWN, []) if damaged else _access(machine, settings, found.services, packages)
    return {
        "messages": messages + after,
        "faults": [fault.as_dict() for fault in faults],
        "packages": packages,
        "apt": machine.family == "debian",
        **made,
        "stops": stops,
        "reload_units": any(path.endswith(".conf") and "/systemd/" in path for path in touched),
        **_checked(contents),
        "actions": [action.as_dict() for action in actions],
        "drains": drains,
        "socket": SOCKETS[machine.family],
        **opened,
        "selinux": switch,
    }


def _checked(contents: c.Sequence[Content]) -> dict[str, t.Any]:
    text = "".join(content.text for content in contents if content.path.startswith(f"{CONFIG}/"))
    check = {"name": "haproxy", "argv": ["haproxy", "-c", "-f", STDIN], "stdin": STDIN, "environment": {"PATH": PATH}}
    return {"staged": {STDIN: text}, "checks": [check]}


def _absent(machine: Machine, contents: c.Sequence[Content]) -> list[str]:
    """Files of earlier settings. None if there are problems."""
    paths = {content.path for content in contents}
    ours = (USERS, EXTRA, KEEPALIVED, *CHECKS.values(), KEEPALIVED_ENVIRONMENT, KEEPALIVED_DROP_IN)
    return [path for path in ours if path in machine.files and path not in paths] if contents else []


def _switches(machine: Machine, settings: c.Mapping[str, t.Any]) -> bool:
    """Whether the SELinux boolean has to be enabled."""
    return bool(settings["selinux"]) and machine.selinux and not machine.may_connect


def _packages(machine: Machine, virtual: bool, switch: bool) -> list[str]:
    """virtual: whether there are virtual addresses. switch: whether SELinux is configured."""
    programs = ("haproxy", "keepalived") if virtual else ("haproxy",)
    libraries = LIBRARIES[machine.family] if switch else {}
    missing = [package for library, package in libraries.items() if library not in machine.libraries]
    return [name for name in programs if name not in machine.programs] + missing


def _access(
    machine: Machine, settings: c.Mapping[str, t.Any], services: c.Sequence[Service], packages: list[str]
) -> tuple[dict[str, t.Any], list[str]]:
    """Changes of firewalls, the record before and after them, and messages about what has to be opened by hand."""
    sources = ((service.port, source) for service in services for source in firewall.merged(service.sources) or ("",))
    openings = firewall.distinct(firewall.opening(port, source) for port, source in sources)
    made = openings if machine.firewalls and settings["firewall"] else ()
    before = record.read(machine, ROLE) or record.Record(services=record.services(machine, UNITS))
    during = dataclasses.replace(
        before,
        packages=tuple(sorted({*before.packages, *packages})),
        openings=firewall.distinct([*before.openings, *made]),
        due=(),
    )
    # Closed ports leave the record, so that teardown does not close them if an administrator opens them later.
    after = dataclasses.replace(during, openings=made) if made else during
    opened = {
        "record": record.changed(machine, ROLE, during),
        "firewall": firewall.changes(machine.firewalls, openings, before.openings) if settings["firewall"] else [],
        "record_after": after.as_text() if after != during else "",
    }
    return opened, firewall.messages(machine.firewalls, openings)


def _global(
    machine: Machine,
    settings: c.Mapping[str, t.Any],
    services: c.Sequence[Service],
    virtual: keepalived.Virtual | None,
    faults: list[Fault],
) -> haproxy.Global:
    # Without all privileges, as in a container, systemd cannot give a service a higher limit than its own.
    known = [limit for limit in (machine.unit("haproxy").limit, machine.limit) if limit]
    possible = limits.Limits(min(known, default=1024), machine.memory_kib)
    count, members = len(services) + 2, sum(len(service.members) for service in services)
    given = str(settings["maxconn"] or 0)
    if not given.isdecimal():
        faults.append(
            Fault(_WHAT, "load_balancer_maxconn", f"{given!r} is not a number", "correct it, or leave it empty")
        )
        given = "0"
    faults += limits.shortage(int(given), possible, count, members)
    address, user = str(settings["stats_address"]), settings["stats_user"] if settings["stats_password"] else ""
    if user and not _USER.fullmatch(user):
        faults.append(
            Fault(_WHAT, "load_balancer_stats_user", f"{user!r} is not a user name", "use letters, digits and . _ @ -")
        )
    for name in ("tunnel_timeout", "hard_stop_after"):
        Reader(faults).duration(settings[name], f"load_balancer_{name}")
    try:
        if not ipaddress.ip_address(address).is_loopback and not user:
            why = f"statistics at {address} would be readable without authentication"
            faults.append(
                Fault(
                    _WHAT,
                    "load_balancer_stats_address",
                    why,
                    "set load_balancer_stats_user and load_balancer_stats_password, or use 127.0.0.1",
                )
            )
    except ValueError:
        faults.append(Fault(_WHAT, "load_balancer_stats_address", f"{address!r} is not an IP address", "correct it"))
        address = "127.0.0.1"
    return haproxy.Global(
        int(given) or limits.connections(possible, count, members),
        SOCKETS[machine.family],
        address,
        int(settings["stats_port"]),
        int(settings["health_port"]),
        user,
        settings["tunnel_timeout"],
        settings["hard_stop_after"],
        tuple(address.partition("/")[0] for address in virtual.addresses) if virtual else (),
    )


def _contents(
    services: c.Sequence[Service],
    given: haproxy.Global,
    settings: c.Mapping[str, t.Any],
    virtual: keepalived.Virtual | None,
    check: str,
) -> list[Content]:
    """Files in the order of writing, in which each intermediate state is valid."""
    contents = (
        [Content(USERS, haproxy.users(given.stats_user, settings["stats_password"]), "0600", sensitive=True)]
        if given.stats_user
        else []
    )
    if settings["extra"]:
        contents.append(Content(EXTRA, settings["extra"].rstrip("\n") + "\n"))
    contents.append(Content(MAIN, haproxy.render(services, given, "".join(content.text for content in contents))))
    contents += [
        Content(SETTINGS, _text("haproxy.env", config=CONFIG, fragments=FRAGMENTS)),
        Content(DROP_IN, _text("haproxy.service.conf", environment=SETTINGS)),
    ]
    if virtual:
        contents += [
            Content(check, keepalived.check_program(given.health_port), "0755"),
            Content(KEEPALIVED, keepalived.render(virtual, check)),
            Content(KEEPALIVED_ENVIRONMENT, _text("keepalived.env", config=KEEPALIVED)),
            Content(KEEPALIVED_DROP_IN, _text("keepalived.service.conf", environment=KEEPALIVED_ENVIRONMENT)),
        ]
    return contents


def _written(machine: Machine, contents: c.Sequence[Content], absent: c.Sequence[str]) -> dict[str, t.Any]:
    made = written(machine, contents, absent)
    return {**made, "folders": [*made["folders"], *([FRAGMENTS] if made["files"] else [])]}


def _actions(machine: Machine, contents: c.Sequence[Content], touched: set[str]) -> list[Action]:
    """Derived from running processes and files on disk, so that a run completes an earlier one that was killed. touched: paths that are written or removed."""
    paths = {content.path for content in contents}
    actions = [_haproxy(machine, contents, touched)]
    if KEEPALIVED in paths:
        unit = machine.unit("keepalived")
        point = [
            path
            for path in (KEEPALIVED_DROP_IN, KEEPALIVED_ENVIRONMENT)
            if path in touched or machine.newer(path, unit.changed_at)
        ]
        new = [path for path in (KEEPALIVED,) if path in touched or machine.newer(path, unit.changed_at)]
        if not unit.active or not unit.enabled:
            actions.append(Action("keepalived", "started", "it does not run, or is not enabled"))
        elif point or new:
            actions.append(
                Action(
                    "keepalived",
                    "restarted" if point else "reloaded",
                    f"{(point + new)[0]} is newer than its configuration",
                )
            )
    return [action for action in actions if action.state]


def _haproxy(machine: Machine, contents: c.Sequence[Content], touched: set[str]) -> Action:
    unit, config = machine.unit("haproxy"), [content for content in contents if content.path.startswith(f"{CONFIG}/")]
    if not unit.active:
        return Action("haproxy", "started", "it does not run")
    if not machine.description.startswith(haproxy.MARK):
        return Action("haproxy", "restarted", "it runs with another configuration file")
    if machine.description != haproxy.mark(content.text for content in config) or any(
        path.startswith(f"{CONFIG}/") for path in touched
    ):
        return Action("haproxy", "reloaded", "its configuration differs from the loaded one")
    if any(machine.newer(content.path, machine.worker_started_at) for content in config):
        return Action("haproxy", "reloaded", "its configuration is newer than its worker")
    if drained := [
        f"{server.backend}/{server.name}" for server in machine.servers if server.status.startswith("DRAIN")
    ]:
        return Action("haproxy", "reloaded", f"{', '.join(drained)} was drained, but is a member")
    return Action("haproxy", "" if unit.enabled else "started", "it is not enabled")


def _drains(machine: Machine, services: c.Sequence[Service]) -> list[dict[str, str]]:
    """Running members that are removed from services that stay. They are drained first."""
    if not machine.description.startswith(haproxy.MARK):
        return []
    members = {service.name: {member.name for member in service.members} for service in services}
    return [
        {"backend": server.backend, "server": server.name}
        for server in machine.servers
        if server.backend in members
        and server.name not in members[server.backend]
        and not server.status.startswith(("DOWN", "MAINT"))
    ]
