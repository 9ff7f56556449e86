# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is run on the host that speaks to a BMC, and what is repeated."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import power, providers
from ansible_collections.hwaccel.gpu.tests.unit.machines.boot.test_plan import GOOD, NOT_THERE, redfish

BMC = {"password": "secret", "ca": "", "timeout": 5, "retries": 2, "cipher": "", "sessions": True}
NO_SESSIONS = {"failed": True, "msg": "SessionService resource not found"}


class Clock:
    """Nothing waits for it."""

    time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class Host:
    """Answers in this order, and then with the last one."""

    def __init__(self, *answers: dict[str, t.Any]) -> None:
        self.answers, self.run_there = list(answers), []

    def run(self, _module: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        self.run_there.append(arguments)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def commands(self) -> list[str]:
        return [arguments["command"][0] for arguments in self.run_there]


def ensured(host: Host, sessions: bool = True, **changed: t.Any) -> tuple[dict[str, t.Any], bool]:
    entry = {**GOOD, **changed}
    provider = providers.Redfish(host, Clock(), entry, BMC, sessions)
    lines: list[str] = []
    made = power.Power(entry, NOT_THERE, provider, provider.clock, lines.append)
    return made.ensure(power.PRESENT, False), provider.sessions


def test_a_bmc_that_has_no_sessions_is_asked_for_one_once() -> None:
    host = Host(NO_SESSIONS, redfish("On"))
    done, sessions = ensured(host)
    assert (done["changed"], sessions, host.commands()) == (False, False, ["CreateSession", "GetSystemInventory"])
    again = Host(redfish("On"))
    ensured(again, sessions=sessions)
    assert again.commands() == ["GetSystemInventory"]
    assert (again.run_there[0]["username"], again.run_there[0]["password"]) == ("admin", "secret")


def test_a_session_is_begun_and_ended_and_the_password_is_given_once() -> None:
    host = Host({"session": {"token": "t", "uri": "/1"}}, redfish("On"), {})
    ensured(host)
    assert host.commands() == ["CreateSession", "GetSystemInventory", "DeleteSession"]
    assert ["password" in arguments for arguments in host.run_there] == [True, False, False]


def test_credentials_that_are_refused_are_not_given_again() -> None:
    host = Host({"failed": True, "msg": "HTTP Error 401 on POST"})
    done, sessions = ensured(host)
    assert (host.commands(), sessions) == (["CreateSession"], True)
    assert "its BMC refuses the credentials" in done["faults"][0]["text"]


def test_what_may_be_over_in_a_moment_is_repeated_and_a_power_cycle_is_not() -> None:
    late = {"failed": True, "msg": "timed out"}
    host = Host(redfish("On", "Pxe", "Once"), late)
    with pytest.raises(power.Refused, match="timed out"):
        ensured(host, sessions=False, power="cycle")
    assert host.commands() == ["GetSystemInventory", "PowerForceRestart"]
    host = Host(redfish("Off", "Pxe", "Once"), late, {}, redfish("On"))
    ensured(host, sessions=False)
    assert host.commands() == ["GetSystemInventory", "PowerOn", "PowerOn", "GetSystemInventory"]


def test_a_power_state_that_does_not_come_is_told_with_what_it_is() -> None:
    host = Host(redfish("Off", "Pxe", "Once"), {}, redfish("Off"))
    with pytest.raises(power.Refused, match=r'has accepted the step "power on" .*, but its power is still off. Next: '):
        ensured(host, sessions=False)


def test_what_ipmitool_says_is_told_and_not_its_status() -> None:
    refused = (
        "Error: Unable to establish IPMI v2 / RMCP+ session\nRAKP 2 message indicates an error : unauthorized name"
    )
    host = Host({"failed": True, "rc": 1, "msg": "non-zero return code", "stdout": "", "stderr": refused})
    entry = {**GOOD, "provider": "ipmi"}
    provider = providers.Ipmi(host, Clock(), entry, BMC)
    done = power.Power(entry, NOT_THERE, provider, provider.clock, str).ensure(power.PRESENT, False)
    assert "its BMC refuses the credentials" in done["faults"][0]["text"]
    assert len(host.run_there) == 1
    assert host.run_there[0]["stdin"] == "secret" and "secret" not in str(host.run_there[0]["argv"])
