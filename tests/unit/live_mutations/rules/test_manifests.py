# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rules ask of the objects."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Manifests, once
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets


def test_workloads_have_the_names_of_their_manifests() -> None:
    found = Manifests(sets.SOUND)
    assert {one.name for one in found.workloads if one.role == "driver"} == {
        "nvidia-container-toolkit",
        "nvidia-driver",
        "nvidia-validator",
    }
    (pod,) = [one for one in found.workloads if one.item["kind"] == "Pod"]
    assert [at for at, _container in pod.containers()] == ["Pod gpu-validation: spec.containers[0]"]


def test_an_object_without_a_template_is_no_workload() -> None:
    item = {"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": {}}
    assert Manifests({"driver": [item]}).workloads == []


def test_findings_are_made_once_for_each_object() -> None:
    judged: list[Obj] = []

    @once
    def judge(item: Obj) -> list[str]:
        judged.append(item)
        return [str(item)]

    first, second = {"a": 1}, {"a": 1}
    assert judge(first) == judge(first) == judge(second) == ["{'a': 1}"]
    assert [one is first for one in judged] == [True, False]
