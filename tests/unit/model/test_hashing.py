# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hashes of objects."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import hashing


def test_the_order_of_keys_does_not_change_a_hash() -> None:
    assert hashing.digest({"a": 1, "b": [1, 2]}) == hashing.digest({"b": [1, 2], "a": 1})
    assert hashing.digest({"a": [1, 2]}) != hashing.digest({"a": [2, 1]})
