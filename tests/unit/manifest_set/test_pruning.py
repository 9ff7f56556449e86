# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The maximum number of pruned objects, and ownership of recorded objects."""

from __future__ import annotations

import types

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import record
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.pruning import is_ours, limit_fault, prune_limit
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    HwaccelError,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey


@pytest.mark.parametrize(
    ("recorded", "share", "limit"),
    [
        (10, "20%", 2),
        (4, "20%", 1),
        (100, "20%", 20),
        (10, "3", 3),
        (10, "0", 0),
        (10, "0%", 0),
        (10, "100%", 10),
        (3, "50%", 1),
    ],
)
def test_prune_limits_are_numbers_or_percentages(recorded: int, share: str, limit: int) -> None:
    assert prune_limit(recorded, share) == limit
    assert limit_fault(recorded, limit, share, 1) is None
    assert limit_fault(recorded, limit + 1, share, 1) is not None


@pytest.mark.parametrize("text", ["", "x", "-1", "101%", "nan%", "1e400%", "%"])
def test_invalid_prune_limits_are_reported(text: str) -> None:
    with pytest.raises(HwaccelError, match="is invalid"):
        prune_limit(10, text)


def test_all_members_are_never_pruned() -> None:
    fault = limit_fault(3, 3, "100%", 0)
    assert fault is not None
    assert "never removes all" in fault.why


@pytest.mark.parametrize(
    ("uid", "label", "manager", "ours"),
    [
        ("u1", "other", "them", True),
        ("u2", "s", "me", False),
        ("", "s", "me", True),
        ("", "s", "them", False),
        ("", "other", "me", False),
        ("", "", "me", False),
    ],
)
def test_a_recorded_object_is_identified_by_uid_or_by_label_and_fields(
    uid: str, label: str, manager: str, ours: bool
) -> None:
    """A killed run has not recorded the uid. A label alone can be copied, and fields alone can belong to another set."""
    entry = record.Entry(ObjectKey("", "ConfigMap", "n", "c"), uid=uid)
    managed = [{"manager": manager, "operation": "Apply", "fieldsV1": {"f:data": {"f:x": {}}}}]
    live = {"metadata": {"uid": "u1", "labels": {record.PART_OF: label} if label else None, "managedFields": managed}}
    scene = types.SimpleNamespace(live={entry.key: live}, set_ids=("s",), options=types.SimpleNamespace(manager="me"))
    assert is_ours(scene, entry) is ours
    assert not is_ours(types.SimpleNamespace(**{**vars(scene), "live": {}}), entry)
