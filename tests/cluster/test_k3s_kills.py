# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that make, upgrade and remove a cluster of K3s are killed with SIGKILL at tasks that a seed chooses. The same command ends afterwards as if
nothing had been.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig import kills
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import NEXT
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.trial import Trial

pytestmark = pytest.mark.slow
SEED = 20


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, servers=("s1",), agents=("a1", "a2"))
    # So that etcd tells that there is one cluster.
    site.variables["cluster_k3s_datastore"] = "etcd"
    return site


@pytest.fixture(scope="module")
def trial(site: K3sSite, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(site, SEED, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def made(trial: Trial) -> list[Kill]:
    """Moments of the run that has made the cluster."""
    moments = trial.undisturbed()
    trial.is_settled()
    return moments


def test_a_retirement(trial: Trial, made: list[Kill]) -> None:
    trial.retire("a2", "a1")


def test_a_join(trial: Trial, made: list[Kill]) -> None:
    trial.join(made)


@pytest.fixture(scope="module")
def upgraded(site: K3sSite, trial: Trial, made: list[Kill]) -> list[Kill]:
    """Moments of an upgrade."""
    assert isinstance(site.rig, K3sRig)
    site.k3s = site.rig.versions[NEXT]
    moments = trial.undisturbed()
    trial.is_settled()
    return moments


@pytest.fixture(scope="module")
def removed(site: K3sSite, trial: Trial, upgraded: list[Kill]) -> list[Kill]:
    """Moments of a teardown, after which the machines get the version of before."""
    moments = trial.undisturbed(*trial.teardown())
    trial.is_gone()
    site.k3s = None
    return moments


def test_an_initialization(trial: Trial, made: list[Kill], removed: list[Kill]) -> None:
    trial.killed("initialize", kills.initializing(made))
    trial.is_settled()


def test_an_upgrade(site: K3sSite, trial: Trial, upgraded: list[Kill], removed: list[Kill]) -> None:
    assert isinstance(site.rig, K3sRig)
    site.k3s = site.rig.versions[NEXT]
    trial.killed("upgrade", upgraded)
    trial.is_settled()
    assert set(site.versions().values()) == {NEXT}


def test_a_teardown_and_another_initialization(
    site: K3sSite, trial: Trial, made: list[Kill], removed: list[Kill]
) -> None:
    trial.killed("tear down", removed, *trial.teardown())
    trial.is_gone()
    site.k3s = None
    trial.killed("initialize again", kills.initializing(made))
    trial.is_settled()
