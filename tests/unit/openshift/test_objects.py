# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of OpenShift, reduced."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import objects
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import Node, Operator, Version


def obj(history: t.Sequence[str] = (), **conditions: str) -> dict[str, t.Any]:
    """Of each condition, its status."""
    found = [
        {"type": kind, "status": status, "reason": f"{kind}Reason", "message": f"{kind}\n message"}
        for kind, status in conditions.items()
    ]
    status = {"history": [{"state": state} for state in history], "conditions": found}
    return {"metadata": {"name": "one"}, "status": status}


@pytest.mark.parametrize(
    ("found", "version"),
    [
        ({}, Version()),
        ({"status": {"history": None, "conditions": None}}, Version()),
        (obj(["Partial"], Progressing="True"), Version(progressing=True, text="Progressing message")),
        (
            obj(["Partial", "Completed"], Available="True", Progressing="False", Failing="True"),
            Version(completed=True, available=True, failing=True, text="Failing message"),
        ),
        (obj(["Completed"], Available="True"), Version(completed=True, available=True)),
        (obj(Available="Unknown", Failing="Unknown"), Version()),
    ],
)
def test_a_version(found: dict[str, t.Any], version: Version) -> None:
    assert objects.version(found) == version


@pytest.mark.parametrize(
    ("found", "operator"),
    [
        (obj(Available="True", Degraded="False", Progressing="False"), Operator("one")),
        (obj(), Operator("one", available=False, reason="it has not reported yet")),
        (obj(Available="False"), Operator("one", available=False, reason="AvailableReason: Available message")),
        (
            obj(Available="True", Degraded="True", Progressing="True"),
            Operator("one", degraded=True, progressing=True, reason="DegradedReason: Degraded message"),
        ),
        (
            obj(Available="True", Progressing="True"),
            Operator("one", progressing=True, reason="ProgressingReason: Progressing message"),
        ),
    ],
)
def test_an_operator(found: dict[str, t.Any], operator: Operator) -> None:
    assert objects.operator(found) == operator


def test_what_an_operator_says_in_its_last_line_is_kept() -> None:
    found = obj(Degraded="True")
    found["status"]["conditions"][0]["message"] = (
        f"{'A controller fails. ' * 20}\ndial tcp: lookup one.apps: no such host"
    )
    assert objects.operator(found).reason.endswith("no such host")


def test_a_node() -> None:
    assert objects.node(obj(Ready="True")) == Node("one")
    assert objects.node(obj(Ready="False")) == Node("one", "ReadyReason: Ready message")
    assert objects.node(obj()) == Node("one", "it has not reported yet")
    for label in ("master", "control-plane"):
        found = obj(Ready="True")
        found["metadata"]["labels"] = {f"node-role.kubernetes.io/{label}": ""}
        assert objects.node(found) == Node("one", control_plane=True)
