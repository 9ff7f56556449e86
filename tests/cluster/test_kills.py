# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs are killed at tasks that a seed chooses, and the same command again ends where an undisturbed run does. One server and two agents.

Tests use the same machines, in their order. test_kills_servers.py has those that need several servers.
"""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig import kills, programs
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig, ensure_parts
from ansible_collections.hwaccel.gpu.tests.cluster.rig.expiry import expire, last_day
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site
from ansible_collections.hwaccel.gpu.tests.cluster.rig.trial import Trial
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow
SEED = 19
NEWER = programs.next_patch(programs.VERSION)


@pytest.fixture(scope="module")
def trial(rig: ClusterRig, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    site = Site(rig, servers=("cp1",), agents=("w1", "w2"))
    # Pods of the system with an emptyDir lose nothing.
    site.variables["cluster_kubeadm_drain_delete_emptydir_data"] = True
    return Trial(site, SEED, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def made(trial: Trial) -> list[Kill]:
    """Moments of the run that has made the cluster."""
    moments = trial.undisturbed()
    trial.is_settled()
    return moments


def test_a_retirement(trial: Trial, made: list[Kill]) -> None:
    trial.retire("w2", "w1")


def test_a_join(trial: Trial, made: list[Kill]) -> None:
    trial.join(made)


def test_a_renewal_of_certificates(trial: Trial, made: list[Kill]) -> None:
    server = trial.site.machines["cp1"]
    expire(server, 12.5)
    moments = trial.undisturbed()
    expire(server, 12.5)
    due = last_day(server, "/etc/kubernetes/pki/apiserver.crt")
    trial.killed("renew", moments)
    trial.is_settled()
    assert last_day(server, "/etc/kubernetes/pki/apiserver.crt") > due


@pytest.fixture(scope="module")
def upgraded(trial: Trial, made: list[Kill]) -> list[Kill]:
    """Moments of an upgrade."""
    trial.site.parts = ensure_parts(say, NEWER)
    return trial.undisturbed()


def test_an_upgrade_that_is_not_disturbed(trial: Trial, upgraded: list[Kill]) -> None:
    trial.is_settled()
    assert set(trial.site.versions().values()) == {NEWER}


@pytest.fixture(scope="module")
def removed(trial: Trial, made: list[Kill]) -> list[Kill]:
    """Moments of a teardown, after which the machines get the version of before."""
    moments = trial.undisturbed(*trial.teardown())
    trial.is_gone()
    trial.site.parts = None
    return moments


def test_an_initialization(trial: Trial, made: list[Kill], removed: list[Kill]) -> None:
    trial.killed("initialize", kills.initializing(made))
    trial.is_settled()


def test_an_upgrade(trial: Trial, upgraded: list[Kill], removed: list[Kill]) -> None:
    trial.site.parts = ensure_parts(say, NEWER)
    trial.killed("upgrade", upgraded)
    trial.is_settled()
    assert set(trial.site.versions().values()) == {NEWER}


def test_a_teardown_and_another_initialization(trial: Trial, made: list[Kill], removed: list[Kill]) -> None:
    trial.killed("tear down", removed, *trial.teardown())
    trial.is_gone()
    trial.site.parts = None
    trial.killed("initialize again", kills.initializing(made))
    trial.is_settled()
