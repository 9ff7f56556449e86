# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields that upstream's manifests have as well."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import upstream
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import container, pod, put, without


def test_our_manifests_differ_with_reasons_only() -> None:
    assert sets.sound(upstream.like_theirs) == []


def test_a_field_that_upstream_has_as_well_needs_a_reason_to_differ() -> None:
    (said,) = sets.said(upstream.like_theirs, "Deployment", "nfd-gc", container(without("resources", "limits")))
    assert said.startswith("Deployment nfd-gc: spec.template.spec.containers[nfd-gc].resources.limits.memory is None")
    assert "'1Gi'" in said


def test_a_field_that_differs_with_a_reason_may_have_any_value() -> None:
    assert sets.said(upstream.like_theirs, "Deployment", "nfd-gc", pod(put("enableServiceLinks", True))) == []


def test_fields_of_a_kind_are_those_of_upstream() -> None:
    change = without("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "labels")
    found = sets.said(upstream.like_theirs, "CustomResourceDefinition", "nodefeatures.nfd.k8s-sigs.io", change)
    assert any("spec.labels" in said for said in found)
