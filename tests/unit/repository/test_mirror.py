# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The path of a unit test mirrors that of its source, so that one can be found from the other."""

from __future__ import annotations

import pathlib

TOP = pathlib.Path(__file__).resolve().parents[3]
UNIT = TOP / "tests" / "unit"
#: Tests of several sources: the repository, inputs in the table and in playbooks, files of all roles, and roles on machines.
MIRROR_NOTHING = ("inputs", "machines", "repository", "roles")
#: Sources outside of module_utils, by the folder of their tests.
SOURCES = {
    **{name: f"plugins/{name}" for name in ("action", "filter", "inventory", "lookup", "modules", "plugin_utils")},
    "fleet_agent": "roles/sandbox/files/fleet_agent",
    "live_mutations": "tests/live/mutations",
    "node_rig": "tests/node/rig",
}


def has_source(test: pathlib.Path) -> bool:
    """Whether test_NAME.py or test_NAME_ASPECT.py has a NAME.py or _NAME.py in the folder that its own folder mirrors."""
    first, *below = test.relative_to(UNIT).parent.parts
    folder = TOP.joinpath(SOURCES.get(first, f"plugins/module_utils/_{first}"), *below)
    words = test.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:end]) for end in range(1, len(words) + 1)]
    return any((folder / f"{prefix}{name}.py").is_file() for name in names for prefix in ("", "_"))


def test_every_unit_test_has_a_source_with_the_same_path_and_name() -> None:
    tests = [path for path in UNIT.rglob("test_*.py") if path.relative_to(UNIT).parts[0] not in MIRROR_NOTHING]
    assert len(tests) > 100
    assert sorted(str(path.relative_to(TOP)) for path in tests if not has_source(path)) == []


def test_listed_folders_exist() -> None:
    assert [name for name in (*MIRROR_NOTHING, *SOURCES) if not (UNIT / name).is_dir()] == []
