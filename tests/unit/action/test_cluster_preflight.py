# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The preflight of clusters that an installer makes: what it says before anything is changed, without a machine that answers."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.action import cluster_preflight
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import awaited
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import run

LOCAL = {"ansible_connection": "local"}
CLUSTER = {**LOCAL, "hwaccel_installer": "kubeadm", "cluster_kubeadm_version": "1.36.4"}


def preflight(folder: pathlib.Path, cluster: dict[str, t.Any], **groups: dict[str, t.Any]) -> str:
    """What a preflight prints that has to fail."""
    hosts = {"gpu_clusters": {"one": cluster}, **groups}
    code, output = run(folder, "preflight", {group: {"hosts": found} for group, found in hosts.items()})
    assert code == 2, output[-3000:]
    return output


def test_an_installer_without_servers_is_reported(tmp_path: pathlib.Path) -> None:
    output = preflight(tmp_path, CLUSTER)
    assert "hwaccel_installer is kubeadm, and no machine of one is in the group control_plane" in output
    assert "Next: add its servers to that group" in output


def test_only_a_whole_run_makes_a_cluster() -> None:
    """A run of one stage, one with tags and a teardown refuse a cluster that is not there."""
    task_vars = {
        "inventory_hostname": "one",
        "hwaccel_installer": "kubeadm",
        "cluster_kubeadm_outcome": {"state": "done"},
        "cluster_plan": {"steps": [{"do": "init"}]},
        "hostvars": {},
    }
    refused = {**task_vars, "cluster_kubeadm_outcome": {"state": "done", "reasons": ["w1 has no default route"]}}

    class Action(cluster_preflight.ActionModule):
        def __init__(self) -> None:
            pass

        def _value(self, name: str, variables: t.Any) -> t.Any:
            return variables.get(name)

    whole = {"read": True, "stages": []}
    assert Action()._installed(whole, task_vars) == {"assumed": True}
    for args, more in (
        ({"read": True, "stages": ["driver"]}, {}),
        ({"read": False, "stages": []}, {}),
        (whole, {"ansible_run_tags": ["driver"]}),
    ):
        found = Action()._installed(args, {**task_vars, **more})
        assert found["blocked"]
        assert "one is not there yet" in found["faults"][0]["text"]
    assert Action()._installed(whole, refused)["blocked"]
    for one in (task_vars, refused):
        assert Action()._installed(whole, {**one, "cluster_made": True}) == {"assumed": False}


@pytest.mark.parametrize("assumed", [True, False])
def test_stages_of_a_cluster_that_is_to_be_made_are_planned_as_such(
    monkeypatch: pytest.MonkeyPatch, assumed: bool
) -> None:
    fleets = []

    class Action(cluster_preflight.ActionModule):
        def __init__(self) -> None:
            self._task = None

        def _value(self, name: str, _variables: t.Any) -> t.Any:
            known = {"hwaccel_installer": "k3s", "cluster_settings": {"version": "1.36.4+k3s1"}}
            return known.get(name, ["driver"])

        def in_role(self, *_given: t.Any) -> t.Any:
            return None

        def planned(self, _there: t.Any, fleet: t.Any) -> dict[str, t.Any]:
            fleets.append(fleet)
            return {"messages": []}

    monkeypatch.setattr(cluster_preflight._lines, "show", lambda *_given: None)
    Action()._plan({"assumed": assumed, "fleet": {"classes": []}, "blocked_stages": [], "faults": []}, {})
    assert fleets == [awaited("k3s", "1.36.4+k3s1") if assumed else {"classes": []}]


def test_problems_of_machines_and_of_their_cluster_are_reported_at_once(tmp_path: pathlib.Path) -> None:
    # Nothing listens there, and a login would not be tried.
    lost = {"ansible_host": "127.0.0.9", "ansible_port": 1, "ansible_ssh_common_args": "-F none -o ConnectTimeout=2"}
    servers = {"cp1": lost, "cp2": lost}
    output = preflight(tmp_path, CLUSTER, control_plane=servers)
    assert "cp1 cannot be reached" in output
    assert "cp2 cannot be reached" in output
    assert "the cluster has 2 servers" in output
    assert "the cluster has 2 servers and no endpoint" in output
    # Such a cluster needs no credentials, and is not asked for any.
    assert "has no credentials of its own" not in output
