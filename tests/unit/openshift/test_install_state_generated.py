# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots in which anything may be together: each has a state, lines and a cause, and none of them lets an installed cluster be made anew."""

from __future__ import annotations

import random
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import causes, install_state, progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installs as i

_NAMES = (i.BOOTSTRAP, *i.MASTERS, *i.WORKERS, "localhost", "worker-0", "")
_TEXTS = (
    "",
    "certificate is not yet valid",
    "x509: certificate signed by unknown authority",
    "pulling image: unauthorized",
    "dial tcp 10.0.0.5:22623: i/o timeout",
    "lookup console.apps.dgxpod.example.com: no such host",
    "\n\t\x1b[0m%s{}",
)
_FOLDERS = (i.NO_FILES, i.FILES, i.EXPIRED, i.INSTALLED, i.RECORD_ALONE)


def _machine(choose: random.Random, name: str, role: str) -> s.Machine:
    return s.Machine(
        name,
        role,
        choose.choice(s.BOOT_STAGES),
        choose.choice(_TEXTS),
        choose.choice(_TEXTS),
        choose.choice((0, 1, 5)),
        choose.choice((0, 2, 9)),
        choose.choice((None, 0.0, 5000.0)),
        choose.choice(_TEXTS),
        choose.random() < 0.2,
        choose.random() < 0.2,
    )


def _some(choose: random.Random, make: t.Callable[[], t.Any]) -> tuple[t.Any, ...]:
    return tuple(make() for _each in range(choose.choice((0, 0, 1, 3))))


def _answers(choose: random.Random) -> s.Answers:
    def flag() -> bool:
        return choose.random() < 0.5

    def text() -> str:
        return choose.choice(_TEXTS)

    version = s.Version(flag(), flag(), flag(), flag(), text())
    return s.Answers(
        choose.choice(("", i.INFRASTRUCTURE, "another")),
        flag(),
        flag(),
        text(),
        choose.choice((None, version)),
        _some(
            choose, lambda: s.Operator(choose.choice(("ingress", "etcd", "console")), flag(), flag(), flag(), text())
        ),
        _some(choose, lambda: s.Node(choose.choice(_NAMES), text(), flag())),
        _some(choose, lambda: s.Request("csr", choose.choice(_NAMES), choose.choice(("", "TOO_OLD")), text())),
        choose.choice((None, frozenset(i.MASTERS))),
    )


def _snapshot(choose: random.Random) -> s.Snapshot:
    named = [(name, s.WORKER if "worker" in name else s.MASTER) for name in (*i.MASTERS, *i.WORKERS)]
    machines = [_machine(choose, *one) for one in ((i.BOOTSTRAP, s.BOOTSTRAP), *named) if choose.random() < 0.7]
    if choose.random() < 0.2:
        machines = [s.Machine(*one) for one in named]
    members = (None, (), i.MASTERS)
    around = s.Surroundings(
        choose.choice(members), choose.choice(members), choose.choice(_TEXTS), choose.choice(_TEXTS)
    )
    api = s.Api(choose.choice(s.API_ANSWERS), i.WHERE, choose.choice(_TEXTS))
    answers = _answers(choose) if choose.random() < 0.8 else s.Answers()
    return s.Snapshot(i.NAME, i.NOW, choose.choice(_FOLDERS), tuple(machines), around, api, answers)


def test_each_has_a_state_lines_and_a_cause() -> None:
    choose = random.Random(7)
    states = set()
    for _each in range(3000):
        found = _snapshot(choose)
        state = install_state.state(found)
        states.add(state.name)
        assert state.why
        assert all(line and "\n" not in line for line in progress.lines(found))
        assert all(progress.step(machine, found) in progress.STEPS for machine in found.machines)
        cause = causes.likely(found)
        assert (bool(cause.what), bool(cause.next_step)) == (True, True)
        known = found.installation.installed or any(one.joined or one.written for one in found.machines)
        if known and found.api.answer == s.SILENT and not found.answers.evidence and not found.installation.files:
            assert state.name == install_state.UNREACHABLE
        if found.installation.installed:
            assert state.name in ("installed", "degraded", "unreachable", "foreign")
    assert states == set(install_state.STATES)
