# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts and batches of plays that run a phase."""

from __future__ import annotations

import typing as t

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.lookup.phase_hosts import LookupModule
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import phases

NOBODY = ["all:!all"]
GROUPS = {
    "gpu_clusters": ["one", "there"],
    "load_balancers": ["lb1", "lb2"],
    "hypervisors": ["kvm", "other"],
    "control_plane": ["cp1", "old"],
    "workers": ["w1", "w2", "w3"],
}
HOSTS: dict[str, dict[str, t.Any]] = {
    "one": {"hwaccel_installer": "kubeadm", "hwaccel_machines_at_a_time": "50%"},
    "there": {},
    "lb1": {},
    "lb2": {},
    "old": {"hwaccel_cluster": "there", "hwaccel_hypervisor": "other"},
    "w3": {"hwaccel_cluster": "one", "hwaccel_hypervisor": "kvm"},
    **{name: {"hwaccel_cluster": "one"} for name in ("cp1", "w1", "w2")},
}


class Lookup(LookupModule):
    """With options that are given, as Ansible reads the documentation only of plugins that it has loaded."""

    def set_options(self, *, direct: t.Any = None, **_given: t.Any) -> None:
        self.given = direct or {}

    def get_option(self, name: str, *_given: t.Any, **_more: t.Any) -> t.Any:
        return self.given.get(name, False)


class HostVars(dict[str, dict[str, t.Any]]):
    """With the method of Ansible's that returns the variables of a host as they are."""

    raw_get = dict.__getitem__


def hosts(phase: str = "", batches: bool = False, **variables: t.Any) -> list[t.Any]:
    known = {"groups": GROUPS, "hostvars": HostVars(HOSTS), "ansible_run_tags": ["all"], **variables}
    lookup = Lookup(loader=DataLoader(), templar=Templar(loader=DataLoader(), variables=known))
    return lookup.run([phase] if phase else [], known, batches=batches)


def test_a_phase_has_its_machines_and_their_batches() -> None:
    assert (hosts("load_balancer"), hosts("load_balancer", batches=True)) == (["lb1", "lb2"], [1, 1])
    assert (hosts("node_runtime"), hosts("node_runtime", batches=True)) == (["cp1", "w1", "w2", "w3"], [2, 2])
    assert hosts("hypervisors") == ["kvm"]
    assert (hosts("dns_pxe"), hosts("dns_pxe", batches=True)) == (NOBODY, [1])
    assert hosts(hwaccel_phase="load_balancer") == ["lb1", "lb2"]
    # A check of the syntax of the play alone.
    assert hosts() == NOBODY


def test_a_preflight_has_one_batch_and_a_limit_the_smallest_ones() -> None:
    assert hosts("node_runtime", batches=True, hwaccel_phase_part="preflight") == [4]
    assert hosts("node_runtime", batches=True, ansible_limit="one,cp1,w1") == [2]


def observed(steps: list[str], **outcomes: dict[str, t.Any]) -> HostVars:
    """Variables after the preflights, with the steps of the cluster, and the outcomes of machines in the preflight of node_runtime."""
    planned = phases.planned(GROUPS, HOSTS, ["one"])
    made = {"state": "done", "batch": [], "reasons": [], "changes": steps}
    known = HostVars(HOSTS)
    known["one"] = {**HOSTS["one"], "hwaccel_phase_machines": planned, "hwaccel_phase_outcomes": {"cluster": made}}
    for name, outcome in outcomes.items():
        phase = {"batch": [], "reasons": [], "changes": [], **outcome}
        known[name] = {**known[name], "hwaccel_phase_outcomes": {"node_runtime": phase}}
    return known


def test_machines_that_need_nothing_are_not_observed_once_more_unless_their_cluster_takes_steps() -> None:
    done = {"state": "done"}
    outcomes = {"cp1": done, "w1": {"state": "problems"}, "w2": {**done, "changes": ["install the toolkit"]}}
    known = observed([], **outcomes)
    assert hosts("node_runtime", hostvars=known) == ["w1", "w2", "w3"]
    assert hosts("node_runtime", batches=True, hostvars=known) == [1, 2]
    assert hosts("node_runtime", hostvars=known, hwaccel_phase_part="preflight") == ["cp1", "w1", "w2", "w3"]
    changed = observed(["init"], **outcomes)
    assert hosts("node_runtime", hostvars=changed) == ["cp1", "w1", "w2", "w3"]
    prepared = observed([], **outcomes)
    prepared["cp1"]["hwaccel_phase_outcomes"]["cluster"] = {**done, "changes": ["write its configuration"]}
    assert hosts("node_runtime", hostvars=prepared) == ["cp1", "w1", "w2", "w3"]
    settled = observed([], **dict.fromkeys(("cp1", "w1", "w2", "w3"), done))
    assert (hosts("node_runtime", hostvars=settled), hosts("node_runtime", batches=True, hostvars=settled)) == (
        NOBODY,
        [1],
    )
    # Those that serve clusters verify their services.
    balanced = HostVars(settled)
    balanced["lb1"] = {"hwaccel_phase_outcomes": {"load_balancer": {**done, "changes": []}}}
    assert hosts("load_balancer", hostvars=balanced) == ["lb1", "lb2"]


def test_boot_servers_learn_who_has_joined_only_where_machines_were_installed_in_this_run() -> None:
    groups = {**GROUPS, "gpu_clusters": ["one", "two"], "boot_servers": ["all-of-them", "of-two"]}
    known = HostVars({**HOSTS, "all-of-them": {}, "of-two": {"hwaccel_cluster": "two"}})
    for name in ("one", "two"):
        known[name] = {"hwaccel_installer": "kubeadm"}
        known[name]["hwaccel_phase_machines"] = phases.planned(groups, known, [name])
    assert hosts("dns_pxe", groups=groups, hostvars=known) == ["all-of-them", "of-two"]
    assert hosts("nodes_joined", groups=groups, hostvars=known) == NOBODY
    known["w3"] = {**known["w3"], "hwaccel_awaited": "w3 cannot be reached"}
    assert hosts("nodes_joined", groups=groups, hostvars=known) == ["all-of-them"]


@pytest.mark.parametrize(
    "variables",
    [
        {"groups": {**GROUPS, "gpu_clusters": ["there"]}},
        {"groups": {"gpu_clusters": ["one"]}},
        {"hwaccel_only_clusters": "there"},
        {"hwaccel_only_stage": "driver"},
        {"hwaccel_takes_machines": False},
        {"ansible_run_tags": ["driver"]},
        # A check of the syntax.
        {"hostvars": None},
    ],
)
def test_a_run_without_phases_has_no_hosts(variables: dict[str, t.Any]) -> None:
    for phase in ("load_balancer", "dns_pxe", "machine_boot", "node_runtime", "nodes_joined", "hypervisors"):
        assert (hosts(phase, **variables), hosts(phase, batches=True, **variables)) == (NOBODY, [1])
