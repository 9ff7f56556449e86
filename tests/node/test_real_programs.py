# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's device plugin, GPU feature discovery and config-manager in the configurations of real_programs.yml: they do what is recorded of them.

Runtime: half a minute.
"""

from __future__ import annotations

import pathlib
import subprocess
import tempfile
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.node.rig import alone, recorded
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs


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


def test_a_function_that_the_library_lacks_ends_the_program_with_its_name(
    components: programs.Components, tmp_path: pathlib.Path
) -> None:
    lacking, without = "nvmlDeviceGetMemoryInfo", programs.Components(tmp_path / "bin", "without")
    without.folder.mkdir()
    for path in components.folder.iterdir():
        (without.folder / path.name).symlink_to(path)
    library = without.folder / programs.MANAGEMENT_LIBRARY
    library.unlink()
    subprocess.run(
        ["gcc", f"-D{lacking}=other", "-shared", "-fPIC", "-o", library, programs.SOURCES / "nvml" / "nvml.c"],
        check=True,
        timeout=240,
    )
    row = recorded.rows()["discovery", "plain"]
    with tempfile.TemporaryDirectory(prefix="alone-", dir="/tmp") as folder:
        found = alone.run(without, pathlib.Path(folder), row)
        output = pathlib.Path(folder, "tmp", "output").read_text(encoding="utf-8")
    assert found["status"] == 127
    assert f"undefined symbol: {lacking}" in output
