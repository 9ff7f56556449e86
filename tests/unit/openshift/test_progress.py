# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of machines and operators as lines."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installs as i

MASTER, WORKER = i.MASTERS[0], i.WORKERS[0]


def step(found: s.Snapshot, name: str = WORKER) -> str:
    (machine,) = (one for one in found.machines if one.name == name)
    return progress.step(machine, found)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("nothing", "no DHCP request"),
        ("requested", "DHCP"),
        ("address", "DHCP"),
        ("loader", "DHCP"),
        ("kernel", "kernel"),
        ("ignition", "ignition"),
        ("reported", "ignition"),
        ("config", "22623"),
    ],
)
def test_before_its_request_the_boot_tells_how_far_a_machine_is(stage: str, expected: str) -> None:
    assert step(i.with_machine(i.booting(), WORKER, stage=stage)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"requests": (s.Request("csr-1", WORKER),)}, "certificate request"),
        ({"requests": (s.Request("csr-1", "worker-0"),)}, "certificate request"),
        ({"requests": (s.Request("csr-1", "worker-1"),)}, "22623"),
        ({"nodes": i.nodes([WORKER], "KubeletNotReady")}, "Node, not Ready"),
        ({"nodes": i.nodes(["worker-0"], "KubeletNotReady")}, "Node, not Ready"),
        ({"nodes": i.nodes([WORKER]), "serving": frozenset()}, "Ready, without serving certificate"),
        ({"nodes": i.nodes([WORKER]), "serving": frozenset([WORKER])}, "complete"),
        ({"nodes": i.nodes(["worker-0"]), "serving": frozenset([WORKER])}, "complete"),
        ({"nodes": i.nodes([WORKER])}, "complete"),
        ({"nodes": i.nodes([WORKER]), "serving": frozenset(), "requests": (s.Request("csr-1", WORKER),)}, "Ready, wit"),
    ],
)
def test_the_cluster_tells_how_far_a_machine_is_that_has_asked_it(fields: dict[str, t.Any], expected: str) -> None:
    assert step(i.installing(**fields)).startswith(expected)


def test_every_stage_of_a_boot_is_a_step() -> None:
    assert {step(i.with_machine(i.booting(), WORKER, stage=stage)) for stage in s.BOOT_STAGES} <= set(progress.STEPS)


def test_awaited_are_those_first_that_others_wait_for() -> None:
    def names(found: s.Snapshot) -> list[str]:
        return [machine.name.partition(".")[0] for machine in progress.awaited(found)]

    assert names(i.booting()) == ["bootstrap"]
    without = dataclasses.replace(i.booting(), machines=i.booting().machines[1:])
    assert names(without) == ["master-0", "master-1", "master-2"]
    assert names(i.bootstrapping(nodes=i.nodes(i.MASTERS[:1]))) == ["master-1", "master-2"]
    assert names(i.installing()) == ["worker-0", "worker-1"]
    assert names(dataclasses.replace(i.installing(), api=i.SILENT)) == ["worker-0", "worker-1"]
    assert names(i.installed()) == []


def test_lines_before_the_api_answers() -> None:
    found = i.with_machine(i.booting(), i.WORKERS[1], stage=s.NOTHING)
    assert progress.lines(found) == [
        "the API does not answer: no answer: connection refused",
        f"{i.BOOTSTRAP} (bootstrap): ignition",
        f"0 of 5 machines are complete; ignition: {', '.join(i.MASTERS)}; no DHCP request: {i.WORKERS[1]}",
        f"{WORKER}: 22623 answers 500 until masters serve it, which is normal",
    ]


def test_lines_while_it_bootstraps() -> None:
    found = i.bootstrapping(nodes=i.nodes(i.MASTERS[:2], "no network"), requests=(s.Request("csr-1", i.MASTERS[2]),))
    assert progress.lines(found) == [
        "bootstrap: the status in ConfigMap kube-system/bootstrap is progressing",
        f"0 of 5 machines are complete; Node, not Ready: {', '.join(i.MASTERS[:2])}; certificate request: {i.MASTERS[2]}",
        f"{', '.join(i.WORKERS)}: 22623 answers 500 until masters serve it, which is normal",
    ]


def test_workers_that_wait_after_the_bootstrap_are_not_normal() -> None:
    assert progress.machine_lines(i.installing()) == [f"3 of 5 machines are complete; 22623: {', '.join(i.WORKERS)}"]


OPERATORS = (
    s.Operator("etcd"),
    s.Operator("console", available=False, reason="RouteHealth: no route"),
    s.Operator("authentication", degraded=True, reason="OAuthServer: no pod"),
    s.Operator("ingress", available=False, reason="IngressUnavailable: no router"),
    s.Operator("network", progressing=True, reason="Deploying: 3 of 5"),
)


def test_the_operator_that_others_wait_for_has_its_reason_shown() -> None:
    assert progress.operator_lines(OPERATORS) == [
        "1 of 5 operators are ready; ingress is not available: IngressUnavailable: no router; also authentication, console, network"
    ]
    assert progress.operator_lines(OPERATORS[:1]) == ["1 of 1 operators are ready"]
    assert progress.operator_lines(()) == []
    assert [one.name for one in progress.lagging(OPERATORS)] == ["ingress", "authentication", "console", "network"]


def test_long_reasons_are_shortened() -> None:
    (line,) = progress.operator_lines([s.Operator("dns", degraded=True, reason="x" * 5000)])
    assert len(line) < 300


def test_lines_of_an_installed_cluster() -> None:
    assert progress.lines(i.installed(operators=OPERATORS[:1])) == [
        "5 of 5 machines are complete",
        "1 of 1 operators are ready",
    ]


def test_nodes_that_no_machine_has_are_unexpected_with_and_without_their_domain() -> None:
    nodes = [s.Node(name) for name in ("m0.ocp.example.com", "w0", "w1.ocp.example.com", "old.ocp.example.com", "w10")]
    assert progress.unexpected(nodes, ["m0.ocp.example.com", "w0.ocp.example.com", "w1"]) == [
        "old.ocp.example.com",
        "w10",
    ]
