# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a fault."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault("it failed"), "it failed"),
        (Fault("it failed", "here", "no reason", "look"), "it failed (here): no reason. Next: look"),
        (
            Fault("it failed", why="others end with a full stop.", next_step="look"),
            "it failed: others end with a full stop. Next: look",
        ),
        (Fault("it failed", "here", next_step="look"), "it failed (here). Next: look"),
    ],
)
def test_a_fault_is_reported_in_one_line(fault: Fault, expected: str) -> None:
    assert str(fault) == expected
