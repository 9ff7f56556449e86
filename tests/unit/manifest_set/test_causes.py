# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes from the body of an error."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import causes
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    Forbidden,
    Invalid,
)


def test_field_conflicts_are_read_from_the_answer() -> None:
    found = [
        {
            "reason": "FieldManagerConflict",
            "field": ".spec.replicas",
            "message": 'conflict with "kubectl" with subresource "scale" using apps/v1 at 2026-01-01T00:00:00Z',
        },
        {
            "reason": "FieldManagerConflict",
            "field": '.spec.containers[name="a"].image',
            "message": 'conflict with "hwaccel.gpu/other"',
        },
        {"reason": "Other", "field": ".x", "message": 'conflict with "x"'},
    ]
    error = Conflict("c", body={"details": {"causes": found}})
    assert causes.field_conflicts(error) == [
        causes.FieldConflict("spec.replicas", "kubectl", "scale"),
        causes.FieldConflict('spec.containers[name="a"].image', "hwaccel.gpu/other", ""),
    ]
    assert causes.field_conflicts(Conflict("uid")) == []


def test_missing_permissions_and_immutable_fields_are_read_from_the_answer() -> None:
    message = 'deployments.apps "x" is forbidden: User "u" cannot patch resource "deployments" in API group "apps" in the namespace "n"'
    assert causes.missing_right(Forbidden("f", why=message)) == {
        "verb": "patch",
        "resource": "deployments",
        "group": "apps",
        "namespace": "n",
    }
    assert causes.missing_right(Forbidden("f", why='pods "x" is forbidden: exceeded quota')) is None
    details = {"details": {"causes": [{"field": "spec.selector", "message": "Invalid value: {}: field is immutable"}]}}
    assert causes.immutable_field(Invalid("i", body=details)) == "spec.selector"
    assert causes.immutable_field(Invalid("i", why="spec.x: Required value")) == ""
