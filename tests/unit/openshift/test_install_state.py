# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of an install, case by case."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import install_state
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installs as i

DEGRADED = s.Operator("authentication", degraded=True, reason="OAuthServerDeploymentDegraded: no pod")
AWAY = s.Operator("ingress", available=False, reason="IngressUnavailable: no router")


def silent(installation: s.Installation, machines: tuple[s.Machine, ...] = (), **api: t.Any) -> s.Snapshot:
    return i.snapshot(installation=installation, machines=machines, api=dataclasses.replace(i.SILENT, **api))


def one(stage: str = s.NOTHING, **fields: t.Any) -> tuple[s.Machine, ...]:
    return (s.Machine(i.MASTERS[0], s.MASTER, stage, **fields),)


#: What is observed, the state, and words of its evidence.
CASES = {
    "no trace": (silent(i.NO_FILES), "nothing", "no files"),
    "machines that are off": (silent(i.NO_FILES, i.machines()), "nothing", "no files"),
    "machines that ask for an address": (silent(i.NO_FILES, i.machines(s.ADDRESS)), "nothing", "no files"),
    "files": (silent(i.FILES, i.machines()), "prepared", "no machine has started"),
    "files, machines that ask for an address": (silent(i.FILES, i.machines(s.ADDRESS)), "prepared", "no machine"),
    "files that have expired": (silent(i.EXPIRED, i.machines()), "prepared", "no machine has started"),
    "a boot file was downloaded": (silent(i.FILES, one(s.LOADER)), "booting", "started from the network"),
    "a kernel was downloaded": (silent(i.FILES, one(s.KERNEL)), "booting", i.MASTERS[0]),
    "ignition was downloaded": (silent(i.FILES, one(s.IGNITION)), "booting", i.MASTERS[0]),
    "22623 was read": (silent(i.FILES, one(s.CONFIG)), "booting", i.MASTERS[0]),
    "a machine that was written is off": (silent(i.FILES, one(written=True)), "booting", i.MASTERS[0]),
    "its certificate is not valid yet": (silent(i.FILES, one(s.IGNITION), answer=s.UNTIMELY), "booting", "no API"),
    "the API answers": (i.bootstrapping(), "bootstrapping", "is progressing"),
    "the API answers, without a ConfigMap": (i.snapshot(installation=i.FILES, api=i.READ), "bootstrapping", "not"),
    "nodes, and the API is away for a moment": (silent(i.FILES, one(joined=True)), "bootstrapping", "at the moment"),
    "the API has answered, and is away for a moment": (
        dataclasses.replace(i.bootstrapping(), api=i.SILENT),
        "bootstrapping",
        "at the moment: no answer",
    ),
    "it was installing, and is away for a moment": (
        dataclasses.replace(i.installing(), api=i.SILENT),
        "installing",
        "at the moment",
    ),
    "it was installed a moment ago, and is silent": (
        dataclasses.replace(i.installed(), api=i.SILENT),
        "unreachable",
        "it was installed",
    ),
    "bootstrap is complete, etcd waits": (
        i.installing(removable=False, evidence="EtcdBootstrapMemberRemoved is not True"),
        "bootstrapped",
        "EtcdBootstrapMemberRemoved",
    ),
    "the bootstrap machine can go": (i.installing(), "installing", "700 of 890"),
    "it can go, and there is no ClusterVersion yet": (i.installing(version=None), "installing", "ClusterVersion"),
    "installed": (i.installed(), "installed", "completed installation"),
    "installed, by others": (
        dataclasses.replace(i.installed(), installation=i.NO_FILES),
        "installed",
        "completed installation",
    ),
    "installed, and it updates": (
        i.installed(
            version=dataclasses.replace(i.COMPLETED, progressing=True),
            operators=(s.Operator("etcd", progressing=True),),
        ),
        "installed",
        "completed",
    ),
    "installed, a worker is not Ready": (i.installed(nodes=i.nodes(i.WORKERS, "kubelet stopped")), "installed", ""),
    "installed, the record is newer than the world": (
        dataclasses.replace(i.installing(), installation=i.INSTALLED),
        "degraded",
        "no completed installation now",
    ),
    "an operator is degraded": (i.installed(operators=(DEGRADED,)), "degraded", "authentication"),
    "an operator is not available": (i.installed(operators=(AWAY,)), "degraded", "ingress"),
    "ClusterVersion is not available": (i.installed(version=s.Version(completed=True)), "degraded", "not available"),
    "ClusterVersion fails": (
        i.installed(version=dataclasses.replace(i.COMPLETED, failing=True, text="image not found")),
        "degraded",
        "fails: image not found",
    ),
    "a master is not Ready": (
        i.installed(nodes=i.nodes(i.MASTERS[:1], "stopped")),
        "degraded",
        "masters are not Ready",
    ),
    "installed and silent": (silent(i.INSTALLED, i.machines(joined=True)), "unreachable", "it was installed"),
    "and the boot server is new": (silent(i.INSTALLED, i.machines()), "unreachable", "it was installed"),
    "and the folder is lost": (silent(i.RECORD_ALONE, i.machines(joined=True)), "unreachable", "it was installed"),
    "and folder and record are lost": (silent(i.NO_FILES, i.machines(joined=True)), "unreachable", "have been nodes"),
    "and only one machine is remembered": (silent(i.NO_FILES, one(joined=True)), "unreachable", "have been nodes"),
    "and nobody has seen a node": (silent(i.NO_FILES, one(written=True)), "unreachable", "files that are gone"),
    "and only the log has it": (silent(i.NO_FILES, one(s.IGNITION)), "unreachable", "files that are gone"),
    "ignition, and files that have expired": (silent(i.EXPIRED, one(s.IGNITION)), "unreachable", "have expired at"),
    "written, and files that have expired": (silent(i.EXPIRED, one(written=True)), "unreachable", "have expired at"),
    "nodes, and files that have expired": (silent(i.EXPIRED, one(joined=True)), "unreachable", "have been nodes"),
    "nodes, and files without a clock": (
        silent(dataclasses.replace(i.FILES, expires=None), one(joined=True)),
        "unreachable",
        "have been nodes",
    ),
    "installed, its certificate has expired": (silent(i.INSTALLED, answer=s.UNTIMELY), "unreachable", "installed"),
    "installed, credentials are refused": (silent(i.INSTALLED, answer=s.LOCKED), "unreachable", "installed"),
    "another infraID, before its bootstrap is complete": (
        dataclasses.replace(i.bootstrapping(), answers=i.answers(infrastructure="dgxpod-other")),
        "foreign",
        "dgxpod-other",
    ),
    "another infraID": (i.installed(infrastructure="dgxpod-other"), "foreign", "dgxpod-other"),
    "an incomplete cluster without files": (
        dataclasses.replace(i.bootstrapping(), installation=i.NO_FILES),
        "foreign",
        "no files of it",
    ),
    "another authority": (silent(i.FILES, answer=s.UNTRUSTED, why="self-signed"), "foreign", "another authority"),
    "an API server to others": (silent(i.NO_FILES, answer=s.LOCKED), "foreign", "does not accept the credentials"),
    "credentials of the files are refused": (silent(i.FILES, answer=s.LOCKED), "foreign", "credentials"),
}
#: States in which the next stages make files or write machines.
_MAKING = ("nothing", "prepared", "booting")


@pytest.mark.parametrize("case", CASES)
def test_each_case_has_its_state(case: str) -> None:
    found, name, why = CASES[case]
    state = install_state.state(found)
    assert (state.name, why in state.why) == (name, True), state


def test_each_state_has_a_case_and_a_row_of_the_page() -> None:
    assert {name for _found, name, _why in CASES.values()} == set(install_state.STATES)
    page = (pathlib.Path(__file__).parents[3] / "docs" / "openshift-wait.md").read_text(encoding="utf-8")
    assert [name for name in install_state.STATES if f"\n| `{name}` |" not in page] == []


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_go_on_by_itself_has_a_next_step(case: str) -> None:
    state = install_state.state(CASES[case][0])
    assert bool(state.next_step) is (state.name in ("degraded", "unreachable", "foreign"))


@pytest.mark.parametrize("answer", [one for one in s.API_ANSWERS if one != s.ANSWERS])
def test_an_installed_cluster_that_is_silent_is_never_made_anew(answer: str) -> None:
    """Whatever is lost of folder, record and boot servers' memory, except for all of them."""
    folders = (i.INSTALLED, i.RECORD_ALONE, i.NO_FILES, dataclasses.replace(i.INSTALLED, installed=False))
    memories = ((), i.machines(), one(), one(joined=True), one(written=True), i.machines(joined=True, written=True))
    for folder, machines in itertools.product(folders, memories):
        lost = not folder.installed and not any(machine.joined or machine.written for machine in machines)
        state = install_state.state(silent(folder, machines, answer=answer))
        assert lost or state.name not in _MAKING, (folder, machines)


def test_files_of_a_folder_that_is_lost_are_asked_for() -> None:
    state = install_state.state(silent(i.RECORD_ALONE, one(joined=True)))
    assert "restore the folder from a backup, or set hwaccel_connection" in state.next_step
    assert "restore the folder" not in install_state.state(silent(i.INSTALLED)).next_step
