# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether bootstrap is complete, from what a cluster says or does not say."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, NotFound, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bootstrap


class Cluster:
    """As much of a client as is asked. An exception is raised instead of an answer."""

    def __init__(self, **answers: t.Any) -> None:
        self._answers = answers

    def get(self, _resource: t.Any, name: str, _namespace: str = "") -> dict[str, t.Any]:
        answer = self._answers.get(name, NotFound("it is not there"))
        if isinstance(answer, Exception):
            raise answer
        return t.cast("dict[str, t.Any]", answer)


def history(state: str) -> dict[str, t.Any]:
    return {"status": {"history": [{"state": state}]}}


@pytest.mark.parametrize(
    ("answers", "complete", "why"),
    [
        ({"bootstrap": {"data": {"status": "complete"}}}, True, "ConfigMap kube-system/bootstrap says so"),
        ({"bootstrap": {"data": {"status": "progressing"}}}, False, "says progressing"),
        ({"bootstrap": {}}, False, "there is no ConfigMap"),
        ({}, False, "there is no ConfigMap"),
        ({"version": history("Partial")}, False, "there is no ConfigMap"),
        ({"version": history("Completed")}, True, "ClusterVersion has a completed installation"),
        ({"bootstrap": Unreachable("no answer", "https://api:6443")}, None, "no answer (https://api:6443)"),
    ],
)
def test_the_cluster_says_it_or_nobody_does(answers: dict[str, t.Any], complete: bool | None, why: str) -> None:
    told = bootstrap.state(Cluster(**answers))  # type: ignore[arg-type]
    assert told["complete"] is complete
    assert why in told["why"]


def test_who_may_not_ask_is_told_so() -> None:
    with pytest.raises(Forbidden):
        bootstrap.state(Cluster(bootstrap=Forbidden("reading a ConfigMap")))  # type: ignore[arg-type]
