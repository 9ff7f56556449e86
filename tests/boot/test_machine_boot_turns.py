# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines by Redfish that are met by several runs, one after the other.

Each run has all of them that are due, as a start of ansible-playbook costs as much as several machines in it: what the role does with one is of no other.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.bmc import Bmc, Proxy
from ansible_collections.hwaccel.gpu.tests.boot.rig.redfish import PASSWORD, Logs, image, machine, powered, run, watched
from ansible_collections.hwaccel.gpu.tests.boot.rig.sessions import Sessions
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

#: shaky breaks its first connection, deaf has an operating system that does not end, sessions lets nobody in but by them.
NAMES = ("media", "shaky", "runs", "deaf", "sessions")
REPORTED = '10.77.0.10 - - [23/Nov/2026:03:51:13 +0000] "GET /report/media HTTP/1.1" 200 9 "-" "curl"\n'


@dataclasses.dataclass(frozen=True)
class Turn:
    """One run, and what there was after it: power and boot device, what BMCs were asked for, the medium, and sessions that were begun and are open.

    inquiries: how often each BMC without sessions was asked for one so far.
    """

    run: Run
    states: dict[str, tuple[str, str]]
    asked: dict[str, list[str]]
    inserted: str
    begun: int
    open: dict[str, str]
    inquiries: dict[str, int]

    def failed(self, name: str) -> bool:
        return self.run.failures_of(name) != [] or not self.run.recap[name]["ok"]


@dataclasses.dataclass
class Place:
    """Where they are. own: variables of each."""

    bmcs: dict[str, Bmc]
    own: dict[str, dict[str, t.Any]]
    logs: Logs
    sessions: Sessions

    def turn(self, changed: dict[str, dict[str, t.Any]], *arguments: str, pipelined: bool = True) -> Turn:
        """changed: variables of the machines that are due, for this run."""
        machines = {name: {**self.own[name], **variables} for name, variables in changed.items()}
        done = run(machines, *arguments, logs=self.logs, pipelined=pipelined)
        states = {name: bmc.state() for name, bmc in self.bmcs.items()}
        asked = {name: bmc.asked() for name, bmc in self.bmcs.items()}
        inquiries = {name: bmc.inquiries() for name, bmc in self.bmcs.items()}
        inserted, sessions = self.bmcs["media"].inserted(), self.sessions
        return Turn(done, states, asked, inserted, sessions.begun, dict(sessions.open), inquiries)


@dataclasses.dataclass(frozen=True)
class Turns:
    """connections: of shaky, by the first one. seen: arguments of processes with the password in them, during the second one. url: of the image."""

    turns: list[Turn]
    connections: int
    seen: list[str]
    url: str


@pytest.fixture(scope="module")
def met(unused_bmcs: c.Iterator[Bmc], tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Turns]:
    folder = tmp_path_factory.mktemp("turns")
    bmcs = dict(zip(NAMES, unused_bmcs, strict=False))
    with (
        contextlib.closing(Logs(folder)) as logs,
        contextlib.closing(Sessions(bmcs["sessions"])) as sessions,
        image(folder) as url,
        contextlib.closing(Proxy(bmcs["shaky"], failures=1)) as shaky,
    ):
        own = {name: machine(number, bmcs[name], machine_boot_wait_for="") for number, name in enumerate(NAMES)}
        own["media"] |= {
            "machine_boot_boot": "media",
            "machine_boot_media_url": url,
            "machine_boot_wait_for": "address",
        }
        own["shaky"] |= {"hwaccel_bmc_address": shaky.address}
        own["runs"] |= {"machine_boot_power": "off"}
        own["deaf"] |= {"machine_boot_power": "off", "machine_boot_named": "deaf", "machine_boot_shutdown_timeout": 4}
        own["sessions"] |= {"hwaccel_bmc_address": sessions.address}
        yield _turns(Place(bmcs, own, logs, sessions), shaky, url)


def _turns(place: Place, shaky: Proxy, url: str) -> Turns:
    for name in ("runs", "deaf"):
        powered(place.bmcs[name])
    (place.bmcs["deaf"].folder / "deaf").touch()
    predicted = place.turn({"media": {}, "shaky": {}, "deaf": {}, "sessions": {}}, "--check")
    connections = shaky.connections
    place.logs.play(0, place.bmcs["media"], 1)
    with watched() as seen:
        done = place.turn({"media": {}, "runs": {}, "deaf": {}, "sessions": {}}, "-vvv", pipelined=False)
    wrong = {"hwaccel_bmc_password": "wrong"}
    again = place.turn(
        {"media": {}, "runs": {"machine_boot_power": "cycle"}, "deaf": {}, "sessions": wrong},
        "-e",
        "machine_boot_named=runs,deaf",
    )
    with open(place.logs.web, "a", encoding="ascii") as web:
        web.write(REPORTED)
    turns = [predicted, done, again, place.turn({"media": {}}, "--check")]
    turns.append(place.turn({"media": {}, "runs": {}}, "-e", "machine_boot_named=runs"))
    return Turns([*turns, place.turn({"media": {}})], connections, seen, url)


def test_check_mode_tells_what_would_be_done_and_does_nothing_by_a_bmc_that_breaks_its_first_connection(
    met: Turns,
) -> None:
    turn = met.turns[0]
    assert met.connections > 1
    assert turn.run.rc == 0, turn.run.stdout
    assert "would start from the network once" in turn.run.shown("shaky")
    assert "would power on: it is off" in turn.run.shown("shaky")
    assert turn.run.changed("shaky") > 0
    assert turn.states["shaky"] == ("Off", "Hdd")


def test_a_machine_that_may_run_a_node_keeps_its_power_until_it_is_named(met: Turns) -> None:
    _predicted, refused, cycled, _reported, done, _last = met.turns
    assert "no power off: it is unknown whether it runs a node" in refused.run.failures_of("runs")[-1]
    assert refused.states["runs"] == ("On", "Hdd")
    assert not cycled.failed("runs"), cycled.run.stdout
    assert "power cycle: cycle is requested" in cycled.run.shown("runs")
    assert cycled.states["runs"] == ("On", "Pxe")
    assert done.run.rc == 0, done.run.stdout
    assert done.states["runs"][0] == "Off"
    assert done.asked["runs"] == ["On", "ForceRestart", "GracefulShutdown"], "its power was not cut"


def test_power_is_cut_only_where_the_operating_system_does_not_end_in_time(met: Turns) -> None:
    predicted, done, again, *_others = met.turns
    assert "would shut down: off is requested, within 4 s" in predicted.run.shown("deaf")
    assert "would power off: only if it is still on after 4 s" in predicted.run.shown("deaf")
    assert predicted.asked["deaf"] == ["On"]
    assert not done.failed("deaf"), done.run.stdout
    assert done.states["deaf"][0] == "Off"
    assert done.asked["deaf"] == ["On", "GracefulShutdown", "ForceOff"]
    assert (again.failed("deaf"), again.run.changed("deaf")) == (False, 0)


def test_media_are_inserted_for_one_start_and_ejected_once_the_machine_has_reported_also_by_a_later_run(
    met: Turns,
) -> None:
    predicted, done, again, reported, ejected, last = met.turns
    assert f"would insert {met.url}: the machine starts from it" in predicted.run.shown("media")
    assert (predicted.states["media"], predicted.inserted) == (("Off", "Hdd"), "")
    assert not done.failed("media"), done.run.stdout
    assert "start from media once" in done.run.shown("media")
    # The emulator knows no "once"; the machine has its media until it says that it needs them no more.
    assert (done.states["media"], done.inserted) == (("On", "Hdd"), met.url)
    assert (again.failed("media"), again.run.changed("media")) == (False, 0)
    assert (f"would eject {met.url}: it has reported" in reported.run.shown("media"), reported.inserted) == (
        True,
        met.url,
    )
    assert (ejected.run.rc, ejected.inserted) == (0, ""), ejected.run.stdout
    assert (last.run.rc, last.run.changed()) == (0, 0)


def test_a_bmc_that_has_sessions_is_asked_by_them_and_none_is_left(met: Turns) -> None:
    predicted, done, refused, *_others = met.turns
    assert "would power on" in predicted.run.shown("sessions"), predicted.run.stdout
    assert (done.failed("sessions"), done.states["sessions"]) == (False, ("On", "Pxe")), done.run.stdout
    assert PASSWORD not in done.run.stdout and met.seen == []
    assert (done.begun > 2, done.open) == (True, {}), "it has one at a time, and nobody could log in any more"
    assert "its BMC refuses the credentials" in refused.run.failures_of("sessions")[-1]
    assert refused.begun == done.begun


def test_a_bmc_that_has_no_sessions_says_so_and_is_remembered(met: Turns) -> None:
    predicted, done, *_others = met.turns
    assert done.inquiries["deaf"] - predicted.inquiries["deaf"] == 1
    assert len(done.run.results("machine_power", "deaf")) > 1, "it would have been asked by each of them"
    results = {name: met.turns[1].run.results("machine_power", name) for name in ("media", "sessions")}
    assert {name: {result["sessions"] for result in found} for name, found in results.items()} == {
        "media": {False},
        "sessions": {True},
    }
    assert len(results["media"]) > 1
