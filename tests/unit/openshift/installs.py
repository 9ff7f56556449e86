# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of an install with a bootstrap machine, three masters and two workers, in each of its phases."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s

NAME = "dgxpod.example.com"
INFRASTRUCTURE = "dgxpod-x7k2p"
NOW = datetime.datetime(2026, 11, 30, 6, 0, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
FILES = s.Installation("/srv/dgxpod", True, INFRASTRUCTURE, NOW + 20 * HOUR)
EXPIRED = dataclasses.replace(FILES, expires=NOW - HOUR)
INSTALLED = dataclasses.replace(FILES, expires=NOW - 900 * HOUR, installed=True)
#: A record stays beside a folder that is gone.
RECORD_ALONE = s.Installation("/srv/dgxpod", infrastructure=INFRASTRUCTURE, installed=True)
NO_FILES = s.Installation("/srv/dgxpod")
MASTERS = tuple(f"master-{number}.{NAME}" for number in range(3))
WORKERS = tuple(f"worker-{number}.{NAME}" for number in range(2))
BOOTSTRAP = f"bootstrap.{NAME}"
WHERE = f"https://api.{NAME}:6443"
SILENT = s.Api(s.SILENT, WHERE, "no answer: connection refused")
READ = s.Api(s.ANSWERS, WHERE)
ALL_MEMBERS = (BOOTSTRAP, *MASTERS)
BALANCED = s.Surroundings(ALL_MEMBERS, ALL_MEMBERS)
COMPLETED = s.Version(completed=True, available=True)
WORKING = s.Version(progressing=True, text="Working towards 4.20.3: 700 of 890 done")


def machines(stage: str = s.NOTHING, **fields: t.Any) -> tuple[s.Machine, ...]:
    """All of them at one stage."""
    named = [(BOOTSTRAP, s.BOOTSTRAP), *((name, s.MASTER) for name in MASTERS), *((name, s.WORKER) for name in WORKERS)]
    return tuple(s.Machine(name, role, stage, **fields) for name, role in named)


def with_machine(found: s.Snapshot, name: str, **fields: t.Any) -> s.Snapshot:
    """One machine is otherwise."""
    assert any(machine.name == name for machine in found.machines)
    changed = [
        dataclasses.replace(machine, **fields) if machine.name == name else machine for machine in found.machines
    ]
    return dataclasses.replace(found, machines=tuple(changed))


def nodes(names: t.Iterable[str], waiting: str = "") -> tuple[s.Node, ...]:
    return tuple(s.Node(name, waiting, name in MASTERS) for name in names)


def snapshot(**fields: t.Any) -> s.Snapshot:
    return s.Snapshot(**{"name": NAME, "now": NOW, **fields})


def answers(**fields: t.Any) -> s.Answers:
    return s.Answers(**{"infrastructure": INFRASTRUCTURE, **fields})


def nothing() -> s.Snapshot:
    return snapshot(installation=NO_FILES, machines=machines(), api=SILENT)


def booting() -> s.Snapshot:
    return snapshot(installation=FILES, machines=machines(s.IGNITION), surroundings=BALANCED, api=SILENT)


def bootstrapping(**fields: t.Any) -> s.Snapshot:
    given = answers(evidence="the status in ConfigMap kube-system/bootstrap is progressing", **fields)
    return snapshot(installation=FILES, machines=machines(s.CONFIG), surroundings=BALANCED, api=READ, answers=given)


def installing(**fields: t.Any) -> s.Snapshot:
    """Masters have joined, and the bootstrap machine can go."""
    given = {"bootstrapped": True, "removable": True, "version": WORKING, "nodes": nodes(MASTERS)}
    given["evidence"] = "bootstrap is complete, and EtcdBootstrapMemberRemoved of Etcd cluster is True"
    members = s.Surroundings(MASTERS, MASTERS)
    return snapshot(
        installation=FILES,
        machines=machines(s.CONFIG, joined=True),
        surroundings=members,
        api=READ,
        answers=answers(**{**given, **fields}),
    )


def installed(**fields: t.Any) -> s.Snapshot:
    given = {"version": COMPLETED, "nodes": nodes((*MASTERS, *WORKERS)), "serving": frozenset((*MASTERS, *WORKERS))}
    return installing(**{**given, **fields})
