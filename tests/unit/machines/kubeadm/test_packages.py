# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of Kubernetes: which are installed, which wait for a turn, and which are held."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import packages
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.plan import plan
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_plan import BARE
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_plan import SETTINGS as WITH_PROGRAMS
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_turn import host as member

SETTINGS: dict[str, t.Any] = {**WITH_PROGRAMS, "programs": [], "packages": ["kubeadm", "kubelet"]}
_WITH_DNF = {"managers": "dnf"}


def having(machine: Host, dpkg: str = "", **facts: str) -> Host:
    return dataclasses.replace(machine, facts={**machine.facts, "dpkg": dpkg, **facts})


def rows(version: str, status: str = "hi") -> str:
    return f"{status}  kubeadm {version}-1.1\n{status}  kubelet {version}-1.1"


def test_a_machine_without_them_gets_the_version_that_is_set_and_holds_them() -> None:
    made = plan(having(BARE), SETTINGS)
    assert made["faults"] == []
    assert made["packages"] == ["containerd", "kubeadm=1.36.4-*", "kubelet=1.36.4-*"]
    assert made["held"] == ["kubeadm", "kubelet"]
    # The unit is that of the package.
    assert not [path for path in made["contents"] if "kubelet.service" in path]
    assert json.loads(made["record"])["packages"] == ["containerd", "kubeadm", "kubelet"]


def test_those_that_are_there_and_held_stay() -> None:
    made = plan(having(BARE, rows("1.36.4")), SETTINGS)
    assert (made["packages"], made["held"]) == (["containerd"], [])
    assert json.loads(made["record"])["packages"] == ["containerd"]
    assert plan(having(BARE, rows("1.36.4", "ii")), SETTINGS)["held"] == ["kubeadm", "kubelet"]
    # Their configuration is left, and no more.
    assert plan(having(BARE, rows("1.36.4", "rc")), SETTINGS)["held"] == ["kubeadm", "kubelet"]


def test_the_kubelet_of_a_member_is_replaced_in_its_turn_only() -> None:
    older = member("1.36.3", ("1.36.3",) * 3)
    older = dataclasses.replace(older, commands={**older.commands, "kubeadm": Command(0, "v1.36.3")})
    made = plan(having(older, rows("1.36.3")), SETTINGS)
    assert made["faults"] == []
    # One that is installed again is not held any more. Those that were there before are not the role's.
    assert (made["packages"], made["held"], made["kubelet"]) == (["kubeadm=1.36.4-*"], ["kubeadm"], "kubelet=1.36.4-*")
    assert made["turn"]["reasons"] == ["its control plane is 1.36.3", "its kubelet is 1.36.3"]
    assert (
        "kubeadm"
        not in json.loads(made["record"] or older.text("/var/lib/hwaccel-gpu/cluster_kubeadm/record.json"))["packages"]
    )


def test_dnf_takes_versions_otherwise_and_its_repository_excludes_them() -> None:
    made = plan(having(BARE, **_WITH_DNF), SETTINGS)
    assert made["packages"] == ["containerd", "kubeadm-1.36.4", "kubelet-1.36.4"]
    assert (made["held"], made["apt"]) == ([], False)
    there = having(BARE, rpm="ii kubeadm 1.36.4\nii kubelet 1.36.4", **_WITH_DNF)
    assert plan(there, SETTINGS)["packages"] == ["containerd"]


def test_one_is_either_a_program_or_a_package() -> None:
    (fault,) = plan(having(BARE), {**WITH_PROGRAMS, "packages": ["kubelet"]})["faults"]
    assert "kubelet is both a program and a package (cluster_kubeadm_packages)" in fault["text"]


@pytest.mark.parametrize("names", [[], ["kubelet"]])
def test_packages_are_asked_for_only_where_there_are_some(names: list[str]) -> None:
    assert bool(packages.facts(names)) == bool(names)
