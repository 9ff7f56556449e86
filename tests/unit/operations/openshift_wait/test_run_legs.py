# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wait in legs, between which machines are observed again, and what it reads of the record of the installation."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.inputs import Inputs
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record, Tool
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installs as i
from ansible_collections.hwaccel.gpu.tests.unit.operations.openshift_wait.install_cluster import (
    MACHINES,
    MASTER,
    InstallCluster,
)

LEG = 100.0
REFUSED = dict(MACHINES[0], stage="kernel", refused="/images/rootfs.img was refused with status 404")


def legs(
    cluster: InstallCluster, *machines: list[dict[str, t.Any]], **options: t.Any
) -> tuple[list[Outcome], list[str]]:
    """One leg after the other until it is done. machines: what is observed before each leg, and the last one before all later ones."""
    outcomes: list[Outcome] = []
    lines: list[str] = []
    waited: dict[str, t.Any] = {}
    while not outcomes or waited:
        seen = machines[min(len(outcomes), len(machines) - 1)]
        outcome, told = cluster.slices(leg=LEG, waited=waited, machines=seen, **options)
        waited = json.loads(json.dumps(outcome.values["waited"]))
        outcomes, lines = [*outcomes, outcome], lines + told
        assert len(outcomes) < 100, "it does not end"
    return outcomes, lines


def test_limits_count_on_over_all_legs() -> None:
    cluster = InstallCluster(away=True)
    assert cluster.time is not None
    begun = cluster.time.now
    outcomes, _lines = legs(cluster, MACHINES, api_timeout=330.0)
    assert [outcome.failure is None for outcome in outcomes] == [True, True, True, True, False]
    assert 330 <= cluster.time.now - begun < 350
    assert "for 6 min, since 2027-01-15T08:00:00Z" in str(outcomes[-1].failure)


def test_a_failure_names_the_cause_by_what_was_observed_after_the_limit() -> None:
    outcomes, lines = legs(InstallCluster(away=True), MACHINES, [REFUSED, *MACHINES[1:]], api_timeout=90.0)
    assert len(outcomes) == 2
    assert str(outcomes[-1].failure).splitlines()[1].startswith("Most likely: rootfs cannot be downloaded")
    assert sum("bootstrap.dgxpod.example.com (bootstrap): kernel" in line for line in lines) == 1


def test_what_changes_on_machines_is_shown_with_the_next_leg() -> None:
    cluster = InstallCluster(away=True)
    seen = [[dict(MACHINES[0], stage=stage), *MACHINES[1:]] for stage in ("nothing", "address", "ignition")]
    _outcomes, lines = legs(cluster, *seen, api_timeout=250.0)
    told = [line for line in lines if line.startswith("bootstrap.dgxpod.example.com (bootstrap): ")]
    assert [line.rpartition(": ")[2] for line in told] == ["no DHCP request", "DHCP", "ignition"]


def test_what_was_approved_in_an_earlier_leg_stays_in_the_result() -> None:
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.bootstrap("progressing")
    cluster.file(s.client(MASTER, "openshift"))
    outcomes, _lines = legs(cluster, MACHINES, bootstrap_timeout=250.0)
    assert len(outcomes) == 4
    assert [[one["node"] for one in outcome.values["approved"]] for outcome in outcomes] == [[MASTER]] * 4
    lists = [request for request in cluster.sent("list") if request.resource.plural == "configmaps"]
    assert len(lists) == 2, "a leg reads again what the one before has read"


@pytest.mark.parametrize("waited", [{"phase": "api"}, {"nobody": 1}])
def test_what_it_cannot_continue_from_is_an_error(waited: dict[str, t.Any]) -> None:
    with pytest.raises(HwaccelError, match="the wait cannot be continued"):
        InstallCluster().wait(waited=waited)


def test_a_leg_below_0_is_an_error() -> None:
    with pytest.raises(ManyFaults, match="leg -1 cannot be used"):
        InstallCluster().wait(leg=-1.0)


@pytest.mark.parametrize(("installed", "state"), [("2026-12-01T06:00:00Z", "unreachable"), ("", "booting")])
def test_the_record_tells_what_silence_means(tmp_path: pathlib.Path, installed: str, state: str) -> None:
    record = Record(
        Inputs({}), "salt", Tool("4.20.3", "image", "amd64"), {}, "other-x1y2z", "2026-11-30T06:00:00Z", installed
    )
    (tmp_path / "dgxpod.hwaccel-gpu.json").write_text(record.to_json(), encoding="utf-8")
    given = {"path": str(tmp_path / "dgxpod")}
    silent = InstallCluster(away=True).wait(check_mode=True, installation=given)
    assert silent.values["state"] == state
    other = InstallCluster()
    other.infrastructure()
    assert (
        f"its infrastructureName is {i.INFRASTRUCTURE}, and infraID of the files is other-x1y2z"
        in other.wait(check_mode=True, installation=given).values["why"]
    )


def test_a_bootstrap_machine_that_becomes_a_worker_has_one_name_twice() -> None:
    cluster = InstallCluster()
    cluster.install()
    twice = [dict(MACHINES[0], name=MACHINES[2]["name"]), *MACHINES[1:]]
    assert cluster.wait(machines=twice).values["complete"]
    with pytest.raises(ManyFaults, match="cannot be told from another one"):
        cluster.wait(machines=[*MACHINES, MACHINES[2]])
