# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that change servers are killed at tasks that a seed chooses, and the same command again ends where an undisturbed run does. Three servers.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig import kills
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.expiry import expire, last_day
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site
from ansible_collections.hwaccel.gpu.tests.cluster.rig.trial import Trial

pytestmark = pytest.mark.slow
SEED = 19


@pytest.fixture(scope="module")
def trial(rig: ClusterRig, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    site = Site(rig, servers=("cp1", "cp2", "cp3"), balancer="lb")
    # Two of them are left for a while, and pods of the system with an emptyDir lose nothing.
    site.variables |= {"hwaccel_even_servers": True, "cluster_kubeadm_drain_delete_emptydir_data": True}
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    return Trial(site, SEED, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def made(trial: Trial) -> list[Kill]:
    """Moments of the run that has made the cluster."""
    moments = trial.undisturbed()
    trial.is_settled()
    return moments


@pytest.fixture(scope="module")
def retired(trial: Trial, made: list[Kill]) -> list[Kill]:
    """Moments of the retirement of the first server."""
    trial.site.retired = {"cp1"}
    moments = trial.undisturbed()
    trial.is_settled()
    return moments


def test_a_join(trial: Trial, made: list[Kill], retired: list[Kill]) -> None:
    trial.site.retired = set()
    trial.killed("join a server", kills.joining(made, trial.site.machines))
    trial.is_settled()


def test_a_renewal_of_certificates(trial: Trial, made: list[Kill]) -> None:
    servers = [trial.site.machines[name] for name in trial.site.servers]
    expire(servers[1], 12.5)
    moments = trial.undisturbed()
    for server in servers:
        expire(server, 12.5)
    due = last_day(servers[0], "/etc/kubernetes/pki/apiserver.crt")
    trial.killed("renew of three", moments)
    trial.is_settled()
    assert all(last_day(server, "/etc/kubernetes/pki/apiserver.crt") > due for server in servers)


def test_a_retirement(trial: Trial, retired: list[Kill]) -> None:
    trial.site.retired = {"cp1"}
    trial.killed("retire a server", retired)
    trial.is_settled()
