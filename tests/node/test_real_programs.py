# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's device plugin, GPU feature discovery and config-manager in the configurations of real_programs.yml: they do what is recorded of them.

Runtime: half a minute.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig import recorded


@pytest.fixture(scope="module")
def observed(components: programs.Components) -> dict[str, t.Any]:
    return recorded.observed(components)


@pytest.mark.parametrize("kind", recorded.PROGRAMS)
def test_the_record_is_what_the_programs_do(observed: dict[str, t.Any], kind: str) -> None:
    expected = recorded.recorded()
    assert (expected["version"], expected[kind].keys()) == (observed["version"], observed[kind].keys())
    differences = {
        name: (row, expected[kind][name]) for name, row in observed[kind].items() if row != expected[kind][name]
    }
    assert differences == {}
