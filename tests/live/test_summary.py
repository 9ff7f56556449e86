# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last play of site also reports nodes that failed at an early stage when a later stage has stopped the run. It sends no requests to clusters."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.live.support import site

STOPPED = "apply of the set device-plugin: pods is forbidden. Next: grant the right"


def test_nodes_that_failed_early_are_reported_beside_the_error_that_stopped_a_later_stage() -> None:
    row = {
        "pool": "training",
        "nodes": 8,
        "expected": 64,
        "seen": 0,
        "passed": 7,
        "failed": 1,
        "simulated": 0,
        "settled": 0,
        "kernels": [],
        "drivers": [],
    }
    fault = {
        "node": "training-3",
        "pool": "training",
        "state": "failed",
        "link": "driver",
        "reason": "it crashed",
        "log_tail": "",
        "next_step": "check its log",
    }
    gate = {
        "gate": "driver",
        "pools": [row],
        "failed_nodes": ["training-3"],
        "faults": [fault],
        "held": [fault | {"node": "training-4", "state": "held"}],
    }
    variables: dict[str, t.Any] = {
        "driver_stage": {"gate": gate, "set": {}, "plan": {}, "stopped": []},
        "device_plugin_stage": {"gate": {}, "set": {}, "plan": {}, "stopped": [STOPPED]},
    }
    run = site.playbook("summary", {"north": site.cluster("unused", **variables), "south": site.cluster("unused")})
    assert run.rc != 0
    (message,) = run.failures
    parts = STOPPED.split(". Next: ")
    for part in (*parts, "the run has stopped, and 1 node has failed: training-3", "it crashed", "Next: check its log"):
        assert part in message, message
    summary = run.summary["north"]
    assert (summary["stopped"], summary["failed_nodes"], len(summary["faults"])) == ([STOPPED], ["training-3"], 1)
    assert "training-4 (pool training) held at gate driver" in run.stdout
    assert "driver 7/8" in run.stdout, "the table of the fleet contains it"
    assert "stopped, 1 failed" in run.stdout, "the table of all clusters contains it"
    assert (run.summary["south"]["stopped"], run.failures_of("south")) == ([], [])
