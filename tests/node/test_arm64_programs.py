# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's programs for arm64, which an emulator of that processor runs, do what is recorded of those for amd64: with GPUs, and on a board without NVML.

Runtime: some seconds for each, and once minutes to build them.
"""

from __future__ import annotations

import json
import pathlib
import tempfile
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.node.rig import alone, foreign, recorded
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import LIBRARIES
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(foreign.unmet()), reason=foreign.unmet() or "-")]
ROWS = (
    ("plugin", "plain"),
    ("plugin", "time-slicing"),
    ("plugin", "without the library"),
    ("plugin", "tegra without the library"),
    ("plugin", "tegra with cdi"),
    ("discovery", "plain"),
    ("discovery", "tegra without the library"),
    ("config-manager", "no node"),
)


@pytest.fixture(scope="module", name="arm64")
def _arm64() -> programs.Components:
    return foreign.ensure_programs(say)


def elsewhere(found: dict[str, t.Any]) -> dict[str, t.Any]:
    """With the folder of this processor's libraries."""
    text = json.dumps(found)
    for folder in LIBRARIES.values():
        text = text.replace(folder, "LIBRARIES")
    return dict(json.loads(text))


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_a_program_does_what_the_other_processor_s_does(
    components: programs.Components, arm64: programs.Components, row: tuple[str, str]
) -> None:
    kind, name = row
    with tempfile.TemporaryDirectory(prefix="alone-", dir="/tmp") as folder:
        found = alone.run(components, pathlib.Path(folder), recorded.rows()[row], foreign=arm64)
    assert elsewhere(found) == elsewhere(recorded.recorded()[kind][name])


def test_the_programs_are_those_of_the_other_processor(arm64: programs.Components) -> None:
    for name in (*recorded.PROGRAMS.values(), programs.MANAGEMENT_LIBRARY):
        head = arm64.program(name).read_bytes()[:20]
        # e_machine of ELF (elf.h): EM_AARCH64.
        assert (head[:4], int.from_bytes(head[18:20], "little")) == (b"\x7fELF", 183), name
