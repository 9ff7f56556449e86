# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left to be done until a cluster is installed."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_installation import cluster_installation

MACHINES = [
    {"host": "boot", "role": "bootstrap"},
    *({"host": f"m{number}", "role": "master"} for number in range(3)),
    {"host": "w0", "role": "worker"},
]
CREATE, INSTALL = "create the files of the installation", "install OpenShift on m0, m1, m2"


def plan(
    action: str,
    state: str = "",
    *,
    silent: bool = False,
    missing: tuple[str, ...] = (),
    joins: dict[str, bool] | None = None,
    **credentials: t.Any,
) -> dict[str, t.Any]:
    """missing: names of expected nodes that are not there. joins: machines that may be installed, and whether they are named for it."""
    decided = {"action": action, "message": f"row of {action}", "silent": silent} if action else {}
    far = {"state": state, "why": "the evidence", "next_step": "do this", "missing_nodes": list(missing)}
    rows = [
        {"host": name, "node": f"{name}.ocp", "again": again, "text": f"add {name}"}
        for name, again in (joins or {}).items()
    ]
    return cluster_installation(MACHINES, "cluster_openshift", decided, far if state else {}, credentials, rows)


@pytest.mark.parametrize(
    ("action", "state", "predicted", "awaited"),
    [
        ("create", "", [CREATE, INSTALL], True),
        ("regenerate", "prepared", ["create its files again", INSTALL], True),
        ("reuse", "prepared", [INSTALL], False),
        ("adopt", "", [INSTALL], False),
        ("reuse", "bootstrapping", [INSTALL], False),
        ("reuse", "installing", [INSTALL], False),
        ("reuse", "installed", [], False),
        ("reuse", "degraded", [], False),
    ],
)
def test_steps_follow_from_folder_and_state(action: str, state: str, predicted: list[str], awaited: bool) -> None:
    found = plan(action, state)
    assert (found["predicted"], found["awaited"], found["faults"]) == (predicted, awaited, [])
    assert [one["hosts"] for one in found["steps"] if one["do"] == "init"] in ([], [["m0", "m1", "m2"]])


@pytest.mark.parametrize(
    ("action", "state", "silent", "texts"),
    [
        ("fail", "", False, ["row of fail"]),
        ("fail", "foreign", False, ["row of fail", "the evidence. Next: do this"]),
        ("reuse", "foreign", False, ["the evidence. Next: do this"]),
        ("create", "unreachable", False, ["the evidence. Next: do this"]),
        # The folder is all that is known of a cluster that was installed.
        ("nothing", "", True, ["row of nothing"]),
    ],
)
def test_nothing_is_done_with_a_cluster_that_is_another_one_or_silent(
    action: str, state: str, silent: bool, texts: list[str]
) -> None:
    found = plan(action, state, silent=silent)
    assert [one["text"] for one in found["faults"]] == texts
    assert (found["steps"], found["predicted"], found["awaited"]) == ([], [], False)


def test_kubeadmin_goes_by_a_step_and_its_refusal_is_a_problem() -> None:
    found = plan("reuse", "installed", changed=False, administrator="alice", why="alice has logged in")
    assert found["predicted"] == ["remove the user kubeadmin, since alice has logged in"] and not found["faults"]
    assert [one["do"] for one in found["steps"]] == ["kubeadmin"]
    refused = plan("reuse", "installed", administrator="", msg="kubeadmin is kept: nobody. Next: do this")
    assert [one["text"] for one in refused["faults"]] == ["kubeadmin is kept: nobody. Next: do this"]
    assert refused["predicted"] == []


@pytest.mark.parametrize(
    ("state", "missing", "again", "joining", "predicted"),
    [
        ("installed", (), {}, [], []),
        # Machines whose nodes are there.
        ("installed", (), {"w0": False, "m0": False}, [], []),
        ("installed", ("w1.ocp",), {"w0": False, "w1": False}, ["w1"], ["add w1"]),
        ("degraded", ("w1.ocp",), {"w1": False}, ["w1"], ["add w1"]),
        # Without consent to be installed.
        ("installed", ("w1.ocp",), {}, [], []),
        # Replaced under its name: its node is there, or was deleted.
        ("installed", (), {"m0": True}, ["m0"], []),
        ("installed", ("m0.ocp",), {"m0": True}, ["m0"], ["add m0"]),
        ("installing", ("w1.ocp",), {"w1": False}, None, [INSTALL]),
        ("unreachable", ("w1.ocp",), {"w1": False}, None, []),
    ],
)
def test_machines_are_added_to_a_cluster_that_is_installed(
    state: str, missing: tuple[str, ...], again: dict[str, bool], joining: list[str] | None, predicted: list[str]
) -> None:
    found = plan("reuse", state, missing=missing, joins=again)
    assert (found["joining"], found["predicted"]) == (joining, predicted)
    assert [one["do"] for one in found["steps"]] == ["join" if joining else "init"] * len(predicted)


def test_a_cluster_that_is_known_by_its_connection_only_has_no_files() -> None:
    found = plan("", "installed", missing=("w1.ocp",), joins={"w1": False})
    assert (found["faults"], found["awaited"], found["joining"]) == ([], False, ["w1"])
