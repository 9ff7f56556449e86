# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests that are mutated."""

from __future__ import annotations

import collections

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered

OBJECTS = rendered.everything()
MUTANTS = rendered.all_mutants(OBJECTS)


def test_every_role_on_clusters_has_mutants_with_names_that_stay() -> None:
    by_role = collections.Counter(mutant.role for mutant in MUTANTS)
    assert min(by_role[role] for role in rendered.ROLES) > 50
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS) > 6000
    assert {mutant.name for mutant in MUTANTS if mutant.kind == "DaemonSet"} == {
        "gpu-feature-discovery",
        "nfd-worker",
        "nvidia-container-toolkit",
        "nvidia-dcgm-exporter",
        "nvidia-device-plugin",
        "nvidia-driver",
        "nvidia-validator",
    }


def test_of_one_manifest_the_object_for_the_pool_is_mutated() -> None:
    places = {mutant.index for mutant in MUTANTS if mutant.leaf.startswith("driver/DaemonSet/nvidia-driver/")}
    assert len(places) == 1
    made = OBJECTS["driver"][places.pop()]
    assert rendered.KERNEL in made["metadata"]["name"]
