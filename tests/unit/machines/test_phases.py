# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Phases on machines: which machines each has, in which batches, and what a failure holds back."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import closing, phases
from ansible_collections.hwaccel.gpu.tests.unit.machines.counted import Counted

PLAYBOOKS = pathlib.Path(__file__).resolve().parents[3] / "playbooks"
NAMES = [one.name for one in phases.PHASES]
GROUPS = {
    "gpu_clusters": ["a", "b", "made"],
    "load_balancers": ["shared1", "shared2", "lb-a", "lb-made"],
    "boot_servers": ["boot"],
    "control_plane": ["a-cp", "b-cp", "made-cp"],
    "workers": ["a-w1", "a-w2", "a-w3", "b-w1", "a-old"],
    "edge_nodes": ["a-e1"],
}
HOSTS: dict[str, dict[str, t.Any]] = {
    "a": {"hwaccel_installer": "kubeadm", "hwaccel_machines_at_a_time": 2, "hwaccel_boots_at_a_time": "none"},
    "b": {"hwaccel_installer": "kubeadm"},
    "made": {},
    "shared1": {},
    "shared2": {},
    "boot": {},
    "lb-a": {"hwaccel_cluster": "a"},
    "lb-made": {"hwaccel_cluster": "made"},
    "a-w1": {"hwaccel_cluster": "a", "hwaccel_bmc_address": "10.0.0.1"},
    "a-old": {"hwaccel_cluster": "a", "hwaccel_bmc_address": "10.0.0.2", "hwaccel_retired": "yes"},
    **{name: {"hwaccel_cluster": name[0]} for name in ("a-cp", "b-cp", "a-w2", "a-w3", "b-w1", "a-e1")},
    "made-cp": {"hwaccel_cluster": "made", "hwaccel_bmc_address": "10.0.0.3"},
}


def planned(only: t.Any = "", groups: dict[str, list[str]] | None = None) -> dict[str, dict[str, t.Any]]:
    return phases.planned(GROUPS if groups is None else groups, HOSTS, only)


def hosts(only: t.Any = "") -> dict[str, list[str]]:
    return {name: one["hosts"] for name, one in planned(only).items()}


def test_a_lost_machine_is_in_no_phase() -> None:
    lost = {**HOSTS, "a-w1": {**HOSTS["a-w1"], "hwaccel_lost": True}}
    assert "a-w1" in hosts()["machine_boot"]
    assert not [name for name, one in phases.planned(GROUPS, lost, "").items() if "a-w1" in one["hosts"]]


def test_each_phase_has_the_machines_of_clusters_that_are_installed() -> None:
    assert hosts() == {
        "load_balancer": ["shared1", "lb-a", "shared2"],
        "installation": [],
        "dns_pxe": ["boot"],
        "machine_boot": ["a-w1"],
        "toolkit": [],
        "bootstrap": [],
        "bootstrap_complete": [],
        "bootstrap_off": [],
        "bootstrap_gone": [],
        "bootstrap_reused": [],
        "cluster": ["a-cp", "a-w1", "a-w2", "a-w3", "a-old", "a-e1", "b-cp", "b-w1"],
        "node_runtime": ["a-cp", "a-w1", "b-cp", "a-w2", "a-w3", "b-w1", "a-e1"],
        "nodes_joined": ["boot"],
    }
    assert hosts("b")["load_balancer"] == ["shared1", "shared2"]
    assert hosts(["a"])["node_runtime"] == ["a-cp", "a-w1", "a-w2", "a-w3", "a-e1"]


def test_a_plan_reads_each_host_once_and_that_of_one_phase_only_its_hosts() -> None:
    known = Counted(HOSTS)
    assert phases.planned(GROUPS, known) == planned()
    assert set(known.read.values()) == {1}
    known = Counted(HOSTS)
    assert phases.planned(GROUPS, known, names=["load_balancer"]) == {"load_balancer": planned()["load_balancer"]}
    assert known.read == dict.fromkeys((*GROUPS["gpu_clusters"], *GROUPS["load_balancers"]), 1)


def test_the_toolkit_comes_before_k3s_only() -> None:
    known = {**HOSTS, "b": {**HOSTS["b"], "hwaccel_installer": "k3s"}}
    assert phases.planned(GROUPS, known)["toolkit"]["hosts"] == ["b-cp", "b-w1"]
    outcomes = {"b-cp": {"toolkit": DONE}, "b-w1": {"node_runtime": DONE}}
    assert phases.idle("toolkit", ["b-cp", "b-w1"], None, outcomes) == ["b-w1"]


OCP_GROUPS = {**GROUPS, "bootstrap": ["b-boot"]}
OCP = {
    **HOSTS,
    "b": {**HOSTS["b"], "hwaccel_installer": "openshift"},
    "b-boot": {"hwaccel_cluster": "b", "hwaccel_hypervisor": "kvm"},
    "b-cp": {"hwaccel_cluster": "b", "hwaccel_bmc_address": "10.0.0.4"},
}


def test_machines_of_openshift_are_only_started() -> None:
    found = {name: one["hosts"] for name, one in phases.planned(OCP_GROUPS, OCP, "b").items() if one["hosts"]}
    assert found == {
        "load_balancer": ["shared1", "shared2"],
        "installation": ["b"],
        "dns_pxe": ["boot"],
        "machine_boot": ["b-boot", "b-cp"],
        "bootstrap": ["b"],
        "bootstrap_complete": ["shared1", "shared2"],
        "bootstrap_off": ["b-boot"],
        "bootstrap_gone": ["boot"],
        "nodes_joined": ["boot"],
    }


@pytest.mark.parametrize("method", ["agent", "in_place"])
def test_without_a_bootstrap_machine_nobody_waits_for_the_end_of_bootstrap(method: str) -> None:
    alone = {**OCP, "b": {**OCP["b"], "cluster_openshift_method": method}}
    found = {name: one["hosts"] for name, one in phases.planned(GROUPS, alone, "b").items() if one["hosts"]}
    assert found == {
        "load_balancer": ["shared1", "shared2"],
        "installation": ["b"],
        "dns_pxe": ["boot"],
        "machine_boot": ["b-cp"],
        "nodes_joined": ["boot"],
    }
    known = {"b": {"phases": phases.planned(GROUPS, alone, "b"), "problems": False}}
    assert phases.held("cluster", "b", known, {"b": {"installation": DONE}}) == []
    assert phases.held("cluster", "b", known, {"b": {"installation": FAILED}}) == [
        "it has failed in the phase installation"
    ]


def test_clusters_of_several_methods_have_the_phases_of_their_own() -> None:
    ocp = {"hwaccel_installer": "openshift"}
    mixed = {
        **OCP,
        "a": {**ocp, "cluster_openshift_method": "agent"},
        "b": {**ocp, "cluster_openshift_method": "upi"},
        "made": {**ocp, "cluster_openshift_method": ""},
    }
    found = {name: one["hosts"] for name, one in phases.planned(OCP_GROUPS, mixed).items()}
    assert found["installation"] == ["a", "b", "made"]
    assert found["bootstrap"] == ["b", "made"]
    # Those of all clusters, and that of the one that has a bootstrap machine.
    assert found["bootstrap_complete"] == ["shared1", "lb-made", "shared2"]
    assert found["bootstrap_off"] == ["b-boot"]
    assert set(found["machine_boot"]) == {"a-w1", "b-boot", "b-cp", "made-cp"}


@pytest.mark.parametrize(
    ("phase", "host", "outcomes", "why"),
    [
        ("machine_boot", "b-cp", {"b": {"installation": "DONE"}}, []),
        ("machine_boot", "b-cp", {"b": {"installation": "FAILED"}}, ["the phase installation of b has failed"]),
        ("bootstrap", "b", {"b": {"installation": "FAILED"}}, ["it has failed in the phase installation"]),
        ("bootstrap_off", "b-boot", {"b": {"bootstrap": "FAILED"}}, ["the phase bootstrap of b has failed"]),
        ("cluster", "b", {"b": {"bootstrap": "DONE"}, "b-boot": {"bootstrap_off": "FAILED"}}, []),
    ],
)
def test_what_fails_for_a_cluster_holds_back_its_machines(
    phase: str, host: str, outcomes: t.Any, why: list[str]
) -> None:
    known = {"b": {"phases": phases.planned(OCP_GROUPS, OCP, "b"), "problems": False}}
    ended = {
        name: {one: DONE if what == "DONE" else FAILED for one, what in found.items()}
        for name, found in outcomes.items()
    }
    assert phases.held(phase, host, known, ended) == why


def test_batches_of_clusters_are_independent() -> None:
    found = planned()
    assert found["load_balancer"]["batches"] == [2, 1]
    # Two machines of the one, and a tenth of the other's, which is at least one.
    assert (found["node_runtime"]["batches"], found["node_runtime"]["least"]) == ([3, 3, 1], 1)
    # A value that is none is reported elsewhere.
    assert found["machine_boot"]["batches"] == [1]


@pytest.mark.parametrize("only", ["made", ["made"]])
def test_a_cluster_without_an_installer_has_no_phase(only: t.Any) -> None:
    assert not any(hosts(only).values())
    without = {**GROUPS, "control_plane": []}
    assert not any(one["hosts"] for one in planned("", without).values())


def test_site_and_its_preflight_run_all_phases_in_their_order() -> None:
    def ran(name: str) -> list[str]:
        found = []
        for play in yaml.safe_load((PLAYBOOKS / name).read_text(encoding="utf-8")):
            imported = play.get("ansible.builtin.import_playbook")
            found += [play["vars"]["hwaccel_phase"]] if imported == "phase.yml" else []
            found += ["cluster"] if imported in ("installers.yml", "installers_plan.yml") else []
        return found

    assert ran("site.yml") == NAMES
    # The preflight of the boot servers is that of both phases, and so are those of load balancers, machines and node_runtime. A cluster has its plan.
    again = {name for name in NAMES if name.startswith("bootstrap_")} | {"nodes_joined", "toolkit"}
    of_clusters = {one.name for one in phases.PHASES if one.of_clusters}
    assert sorted(ran("plan.yml") + ran("machines_plan.yml")) == sorted(set(NAMES) - again - of_clusters)
    assert {path.stem for path in (PLAYBOOKS / "tasks" / "phases").iterdir()} == set(NAMES) - {"cluster"}


def clusters(*names: str, problems: bool = False) -> dict[str, dict[str, t.Any]]:
    return {name: {"phases": planned(name), "problems": problems} for name in names}


FAILED = closing.ended(closing.FAILED, ["shared1", "lb-a"], ["x. Next: y"])
DONE = closing.ended(closing.DONE, ["z"])


@pytest.mark.parametrize(
    ("phase", "host", "outcomes", "why"),
    [
        ("dns_pxe", "boot", {}, []),
        ("dns_pxe", "boot", {"lb-a": {"load_balancer": DONE}}, []),
        ("dns_pxe", "boot", {"lb-a": {"load_balancer": FAILED}}, ["the phase load_balancer has failed on lb-a"]),
        # One that was lost has only begun.
        ("dns_pxe", "boot", {"lb-a": {"load_balancer": closing.begun(["lb-a"])}}, ["the phase load_balancer has failed on lb-a"]),
        ("load_balancer", "shared2", {"shared1": {"load_balancer": FAILED}}, ["the phase load_balancer has failed on shared1"]),
        # Of the same batch.
        ("load_balancer", "lb-a", {"shared1": {"load_balancer": FAILED}}, []),
        ("cluster", "a-w1", {"a-w1": {"machine_boot": FAILED}}, ["it has failed in the phase machine_boot"]),
        # A machine that serves nobody holds back only itself.
        ("cluster", "a-w2", {"a-w1": {"machine_boot": FAILED}}, []),
        ("cluster", "a", {"boot": {"dns_pxe": FAILED}}, ["the phase dns_pxe has failed on boot"]),
        ("node_runtime", "a-w2", {"a": {"cluster": DONE}}, []),
        ("node_runtime", "a-w2", {"a": {"cluster": FAILED}}, ["a could not be made"]),
        ("node_runtime", "a-w2", {"a-w2": {"cluster": closing.ended(closing.HELD, [])}}, ["it has failed in the phase cluster"]),
    ],
)  # fmt: skip
def test_a_failure_holds_back_later_phases(phase: str, host: str, outcomes: dict[str, t.Any], why: list[str]) -> None:
    assert phases.held(phase, host, clusters("a"), outcomes) == why


def test_a_machine_that_serves_two_clusters_is_changed_for_the_one_that_is_well() -> None:
    ill = clusters("a", problems=True)
    assert phases.held("load_balancer", "shared1", ill, {}) == ["the preflight of a has found problems"]
    assert phases.held("load_balancer", "shared1", {**ill, **clusters("b")}, {}) == []
    assert phases.held("load_balancer", "shared1", {}, {}) == []


def test_outcomes_are_told_by_machine_and_by_change() -> None:
    changed = closing.ended(closing.DONE, [], changes=["write /etc/x"])
    outcomes = {
        "lb-a": {"load_balancer": changed},
        "shared1": {"load_balancer": changed},
        "a-w1": {"machine_boot": FAILED, "cluster": closing.ended(closing.HELD, [], ["a could not be made"])},
        "a-w2": {"cluster": closing.ended(closing.DONE, [], changes=["install containerd"])},
    }
    found = planned("a")
    assert phases.changes(found, outcomes) == ["load_balancer: lb-a, shared1: write /etc/x"]
    assert phases.reasons(found, outcomes) == {"a-w1": ["machine_boot: x. Next: y"]}


def test_a_machine_that_does_not_answer_is_installed_only_if_it_cannot_be_a_node() -> None:
    awaited = {"w1 cannot be reached": ["w1"], "w2 cannot be reached": ["w2", "w2.example.com"]}
    assert phases.unanswered(awaited, ["cp1", "w2.example.com"], new=False) == ["w2 cannot be reached"]
    assert phases.unanswered(awaited, ["cp1", "w2.example.com"], new=True) == ["w2 cannot be reached"]
    assert phases.unanswered(awaited, None, new=True) == []
    unknown = phases.unanswered(awaited, None, new=False)
    assert len(unknown) == 2 and all("set hwaccel_new_cluster: true" in text for text in unknown)


def test_only_a_bootstrap_machine_that_is_in_workers_too_is_used_again() -> None:
    groups = {
        **GROUPS,
        "gpu_clusters": ["ocp"],
        "bootstrap": ["spare", "both"],
        "workers": ["both", "w"],
        "control_plane": ["m"],
    }
    power = {"hwaccel_cluster": "ocp", "hwaccel_bmc_address": "10.0.0.9"}
    known = {**HOSTS, "ocp": {"hwaccel_installer": "openshift"}, **dict.fromkeys(("spare", "both", "w", "m"), power)}
    found = {name: one["hosts"] for name, one in phases.planned({**groups, "edge_nodes": []}, known).items()}
    assert found["bootstrap_off"] == ["spare", "both"] and found["bootstrap_reused"] == ["both"]
    assert found["machine_boot"] == ["spare", "both", "m", "w"] and found["bootstrap_gone"] == ["boot"]
