# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prerequisites of a machine: each row of the table, each condition, and no faults on a valid machine."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import prerequisites

RIGHT = {
    "kernel": "6.8.0-134-generic",
    "cgroup": "cgroup2fs",
    "driver": "580.105.08",
    "free_bytes": str(50 * 1024**3),
    "clock": "yes",
    "secure_boot": "0",
}
COMMANDS = {
    "nvidia_ctk": "NVIDIA Container Toolkit CLI version 1.20.1",
    "kubelet": "Kubernetes v1.34.1",
    "containerd": "containerd github.com/containerd/containerd 1.6.20~ds1",
    "docker": "Docker version 28.1.1, build 1",
    "crio": "crio version 1.34.0",
}
TEGRA = "# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic"


def machine(commands: dict[str, str] | None = None, **facts: str) -> Host:
    return Host(
        facts={**RIGHT, **facts},
        commands={name: Command(0, text) for name, text in {**COMMANDS, **(commands or {})}.items()},
    )


def faults_of(host: Host) -> list[str]:
    return [str(fault) for fault in prerequisites.faults(host, 10)]


def test_a_complete_machine_has_no_fault() -> None:
    assert faults_of(machine()) == []
    assert faults_of(machine(tegra=TEGRA, driver="")) == []


def test_programs_that_are_not_installed_yet_are_no_fault() -> None:
    assert faults_of(Host(facts={"cgroup": "cgroup2fs"})) == []


@pytest.mark.parametrize(
    ("facts", "commands", "words"),
    [
        ({"driver": "375.66"}, {}, "the NVIDIA driver is 375.66, but at least 384.81 is required"),
        ({}, {"nvidia_ctk": "version 1.6.0"}, "container toolkit is 1.6.0, but at least 1.7 is required"),
        (
            {"tegra": TEGRA, "driver": ""},
            {"nvidia_ctk": "version 1.10.0"},
            "container toolkit is 1.10.0, but at least 1.11 is required",
        ),
        (
            {"tegra": TEGRA.replace("R36", "R28"), "driver": ""},
            {},
            "Linux for Tegra is 28.4.0, but at least 32 is required",
        ),
        ({}, {"kubelet": "Kubernetes v1.19.16"}, "kubelet is 1.19.16, but at least 1.20 is required"),
        ({}, {"containerd": "containerd containerd.io 1.5.11 x"}, "containerd is 1.5.11, but at least 1.6 is required"),
        ({"cgroup": "tmpfs"}, {"docker": "Docker version 18.09.1"}, "Docker is 18.9.1, but at least 19.3 is required"),
        ({}, {"docker": "Docker version 19.03.15"}, "Docker is 19.3.15, but at least 20.10 is required"),
        ({}, {"crio": "crio version 1.23.5"}, "CRI-O is 1.23.5, but at least 1.24 is required"),
        ({"kernel": "4.18.0-553.el8.x86_64"}, {}, "the kernel is 4.18.0, but at least 5.8 is required"),
        ({"modules": "nouveau\n"}, {}, "the kernel module nouveau is loaded"),
        ({"secure_boot": "1", "module_file": "/lib/modules/x/nvidia.ko"}, {}, "NVIDIA's module is not signed"),
        ({"clock": "no"}, {}, "the clock is not synchronized"),
        ({"free_bytes": "5368709120"}, {}, "5.0 GiB are free, less than 10"),
        ({"cgroup": "tmpfs"}, {"kubelet": "Kubernetes v1.35.0"}, "the machine has cgroup version 1"),
    ],
)
def test_each_missing_prerequisite_is_reported_with_its_remedy(
    facts: dict[str, t.Any], commands: dict[str, str], words: str
) -> None:
    found = faults_of(machine(commands, **facts))
    assert len(found) == 1
    assert words in found[0]
    assert "Next: " in found[0]


def test_swap_is_a_fault_only_if_the_kubelet_does_not_start() -> None:
    for unit, faults in ((Unit(), 0), (Unit(loaded=True, active=True), 0), (Unit(loaded=True), 1)):
        host = machine(swap="/swapfile file 2097148 0 -2")
        host.units["kubelet"] = unit
        assert len(faults_of(host)) == faults


def test_a_signed_module_is_allowed_with_secure_boot() -> None:
    assert faults_of(machine(secure_boot="1", module_file="/lib/modules/x/nvidia.ko", signer="Canonical Ltd.")) == []


def test_all_faults_are_reported_at_once() -> None:
    assert (
        len(faults_of(machine({"kubelet": "Kubernetes v1.19.0"}, modules="nouveau", clock="no", free_bytes="1"))) == 4
    )


def test_skipped_checks_are_not_reported() -> None:
    host = machine({"kubelet": "Kubernetes v1.19.0"}, modules="nouveau", clock="no", free_bytes="1")
    assert [fault.what for fault in prerequisites.faults(host, 10, ("clock", "disk", "versions"))] == [
        "the kernel module nouveau is loaded"
    ]
    assert prerequisites.faults(host, 10, prerequisites.CHECKS) == []


def test_every_row_has_a_source() -> None:
    assert all(row.source.startswith("https://") and row.remedy and row.why for row in prerequisites.TABLE)
