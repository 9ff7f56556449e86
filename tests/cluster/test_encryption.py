# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets of a cluster with three servers are encrypted, and their key is replaced, also by a run that is killed, for real.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import json
import pathlib
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.encryption import (
    CLEAR,
    ENTRY,
    kept,
    keys,
    password,
    plant,
    stored,
    stored_with,
)
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.probe import Probe
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import secrets_shown
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import REINSTALL, Site, voters

pytestmark = pytest.mark.slow
SERVERS = ("cp1", "cp2", "cp3")


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = Site(rig, SERVERS, balancer="lb")
    site.variables["cluster_kubeadm_secrets_encryption"] = True
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    run = site.done("-vvv")
    (key,) = keys(site.machines["cp1"]).values()
    assert "Make the key of Secrets" in run.stdout and key not in run.stdout
    plant(site)
    return site


@pytest.fixture(scope="module")
def before(site: Site) -> dict[str, str]:
    """Keys of before, by their names."""
    return keys(site.machines["cp1"])


@pytest.fixture(scope="module")
def figures() -> dict[int, Probe]:
    """What clients have noticed, once the key was replaced."""
    return {}


def test_secrets_are_encrypted_on_all_servers(site: Site, before: dict[str, str]) -> None:
    assert len(before) == 1
    for name in SERVERS:
        machine = site.machines[name]
        assert keys(machine) == before and kept(machine) == "600 0"
        assert stored_with(machine) == set(before)
        assert not [value for value in stored(machine).values() if CLEAR.encode() in value]
    assert password(site) == CLEAR
    assert site.done().changed() == 0


def test_nothing_is_done_before_it_is_confirmed(site: Site, before: dict[str, str]) -> None:
    (mine,) = before
    told = site.done(*ENTRY)
    assert told.changed() == 0 and f"-e hwaccel_confirm={mine}" in told.stdout
    other = site.play("cluster_kubeadm", *ENTRY, "-e", "hwaccel_confirm=another")
    assert other.rc != 0 and "hwaccel_confirm names another key" in other.stdout
    checked = site.done(*ENTRY, "-e", f"hwaccel_confirm={mine}", "--check")
    assert len(checked.summary["one"]["changes"]) == 10
    assert keys(site.machines["cp1"]) == before


def test_the_key_is_replaced_also_by_a_run_that_was_killed(
    site: Site,
    before: dict[str, str],
    figures: dict[int, Probe],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (mine,) = before
    arguments = (*ENTRY, "-e", f"hwaccel_confirm={mine}")
    # While the second server is about to encrypt with the new one.
    kill, path = Kill("hwaccel.gpu.cluster_kubeadm : rekey | Restart its API server", 5, 1), tmp_path / "started"
    began = time.monotonic()
    with Probe(site.machines["lb"].address, site.machines["cp1"].read(places.AUTHORITY)) as probe:
        environment = {"HWACCEL_STARTED": str(path), "ANSIBLE_LOG_PATH": str(tmp_path / "log")}
        assert site.killed(kill.reached(path), *arguments, "-vvv", timeout=1800, environment=environment)
        made = keys(site.machines["cp1"])
        assert list(made)[1:] == [mine]
        stopped = site.play()
        assert stopped.rc != 0
        (reason,) = stopped.summary["one"]["reasons"]
        assert "is being replaced" in reason and "the entry rotate_encryption_keys" in reason
        plant(site, "between")
        run = site.done(*arguments, "-vvv")
    with capsys.disabled():
        print(
            f"\nreplaced in {time.monotonic() - began:.0f} s; without an answer for {probe.gap:.1f} s at most, {probe.share_lost:.1%} lost"
        )
        print("\n".join(run.summary["one"]["changes"]))
    log = (tmp_path / "log").read_text(encoding="utf-8") + run.stdout
    assert "keys | Write them" in log and not [key for key in made.values() if key in log]
    figures[0] = probe
    assert not [
        text for text in run.summary["one"]["changes"] if text.startswith("let the API server of cp1 know another")
    ]


def test_nothing_is_left_of_the_old_one(site: Site, before: dict[str, str]) -> None:
    found = [keys(site.machines[name]) for name in SERVERS]
    assert found[0] == found[1] == found[2] and len(found[0]) == 1
    ((old_name, old),) = before.items()
    ((name, key),) = found[0].items()
    assert name != old_name and key != old
    for machine in (site.machines[one] for one in SERVERS):
        assert stored_with(machine) == {name}
        assert kept(machine) == "600 0"
        assert machine.sh(f"grep -rlF {old} /etc /var/lib/hwaccel-gpu /run 2>/dev/null || :") == ""
    assert password(site) == password(site, "between") == CLEAR
    assert secrets_shown([site.machines[one] for one in SERVERS], [key, old]) == []


def test_the_same_command_changes_nothing_and_a_server_joins(site: Site, before: dict[str, str]) -> None:
    (mine,) = before
    again = site.done(*ENTRY, "-e", f"hwaccel_confirm={mine}")
    assert again.changed() == 0 and "was replaced already" in again.stdout
    assert site.done().changed() == 0
    site.machines["cp3"].sh(REINSTALL, seconds=120)
    run = site.done("-vvv")
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["join the server cp3"]
    # The client asks this one.
    assert password(site) == CLEAR and voters(site.machines["cp3"]) == set(SERVERS)
    assert keys(site.machines["cp3"]) == keys(site.machines["cp1"])
    assert not [key for key in keys(site.machines["cp1"]).values() if key in run.stdout]
    assert "cp3" not in json.dumps(site.done().summary["one"]["changes"])


def test_clients_notice_little(figures: dict[int, Probe]) -> None:
    """On a machine that does nothing else."""
    assert figures[0].gap < 3 and figures[0].share_lost <= 0.01, figures[0].lost[-5:]
