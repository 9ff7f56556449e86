# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ConfigMaps and Secrets that are named in the inventory and missing in the cluster."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import TRAINING, run
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

BUILD = {"repositories": "mirror", "certificates": "authority", "proxy_secret": "proxy"}


def faults(role: str, namespaces: list[dict[str, t.Any]], **settings: t.Any) -> list[tuple[str, str]]:
    plan = run(role, stack.fleet(stack.node_class(), namespaces=namespaces), pools=[TRAINING], **settings)
    return [(fault["what"], fault["where"]) for fault in plan["faults"]]


def space(name: str = "hwaccel-gpu", **contents: list[str] | None) -> dict[str, t.Any]:
    return {"name": name, "set": "", "pod_security": "privileged", "config_maps": [], "secrets": []} | contents


@pytest.mark.parametrize("role", stack.ROLES)
def test_a_missing_pull_secret_is_a_fault(role: str) -> None:
    namespaces = [space(), space("hwaccel-gpu-system", secrets=["pul"])]
    missing = [("Secret hwaccel-gpu/pull does not exist", "hwaccel_image_pull_secrets")]
    if role == "feature_discovery":
        missing.append(("Secret hwaccel-gpu-system/pull does not exist", "hwaccel_image_pull_secrets"))
    assert faults(role, namespaces, image_pull_secrets=["pull"]) == missing
    assert (
        faults(
            role, [space(secrets=["pull"]), space("hwaccel-gpu-system", secrets=["pull"])], image_pull_secrets=["pull"]
        )
        == []
    )


def test_missing_references_of_a_build_are_faults() -> None:
    assert faults("driver", [space(config_maps=["mirrors"])], source="build", build=BUILD) == [
        ("ConfigMap hwaccel-gpu/authority does not exist", "driver_build"),
        ("ConfigMap hwaccel-gpu/mirror does not exist", "driver_build"),
        ("Secret hwaccel-gpu/proxy does not exist", "driver_build"),
    ]
    assert (
        faults("driver", [space(config_maps=["mirror", "authority"], secrets=["proxy"])], source="build", build=BUILD)
        == []
    )


@pytest.mark.parametrize("namespaces", [[], [space(config_maps=None, secrets=None)]])
def test_unknown_references_are_not_reported(namespaces: list[dict[str, t.Any]]) -> None:
    assert faults("driver", namespaces, source="build", build=BUILD, image_pull_secrets=["pull"]) == []
