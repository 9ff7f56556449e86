# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables in the rendered manifests are read by the programs of their containers: one that nobody reads looks like a setting and is none."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.manifests import Manifests, rendered

#: Of the container runtime, which reads them before the program starts (nvidia-container-toolkit v1.20.0, internal/config/image/envvars.go).
OF_THE_RUNTIME = {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"}
#: What nobody reads, and where the manifests have it from.
UNREAD = {
    (
        "nvidia-driver",
        "NODE_NAME",
    ): "gpu-operator v26.7.0, assets/state-driver/0500_daemonset.yaml; no script of gpu-driver-container 06a208c reads it",
    (
        "nvidia-driver",
        "NODE_IP",
    ): "gpu-operator v26.7.0, assets/state-driver/0500_daemonset.yaml; no script of gpu-driver-container 06a208c reads it",
    (
        "nvidia-device-plugin",
        "CDI_ENABLED",
    ): "gpu-operator v26.7.0, controllers/object_controls.go; no program of k8s-device-plugin v0.20.0 reads it",
}


def unread(manifests: Manifests) -> set[tuple[str, str]]:
    found = set()
    for workload, spec, container in manifests.containers():
        programs = [settings.table for settings in manifests.programs(spec, container)]
        names = {name for table in programs for flag in table.flags for name in flag.env} | OF_THE_RUNTIME
        names |= {name for table in programs for name in table.environment}
        found |= {(workload, one["name"]) for one in container.get("env") or () if one["name"] not in names}
    return found


def test_every_variable_is_read_by_somebody():
    assert unread(rendered()) == UNREAD.keys()


def test_a_misspelt_variable_is_read_by_nobody():
    manifests = rendered()
    container = next(
        one
        for name, _spec, one in manifests.containers()
        if name == "nvidia-container-toolkit" and "ctr" in one["name"]
    )
    container["env"][0]["name"] = "ROTO"
    assert unread(manifests) == {*UNREAD, ("nvidia-container-toolkit", "ROTO")}
