# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which unit tests run on which core: each in a job, those that meet Ansible on the oldest and the newest, and every import there too."""

from __future__ import annotations

import ast
import collections.abc as c
import functools
import os
import pathlib
import re
import subprocess
import sys

import pytest

from ansible_collections.hwaccel.gpu.tests.tools import jobs

TOP = pathlib.Path(__file__).resolve().parents[3]
COLLECTION = "ansible_collections.hwaccel.gpu."
#: A program of Ansible in a command.
STARTED = re.compile(r'"-m",\s*"ansible"|[/"]ansible-(?:playbook|inventory|doc|galaxy|test)"')
FILES = sorted(path.relative_to(TOP).as_posix() for path in (TOP / "tests" / "unit").rglob("test_*.py"))
ON_CORES = [job for job in jobs.UNIT if job.name != jobs.LAYERS]


@functools.cache
def imports(path: pathlib.Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def own(names: frozenset[str], part: str) -> set[pathlib.Path]:
    """Files of this part of the collection among what is imported."""
    places = {
        TOP / f"{name.removeprefix(COLLECTION).replace('.', '/')}.py"
        for name in names
        if name.startswith(f"{COLLECTION}{part}.")
    }
    return {place for place in places if place.exists()}


def rests_on_ansible(path: pathlib.Path) -> bool:
    """A plugin that has more of Ansible than the errors that it raises."""
    return any(name.startswith("ansible.") and not name.startswith("ansible.errors") for name in imports(path))


def meets_ansible(path: pathlib.Path) -> bool:
    """By itself, or by a file beside it that helps it."""
    seen: set[pathlib.Path] = set()
    left = {path}
    while left:
        one = left.pop()
        seen.add(one)
        names = imports(one)
        if any(name.split(".")[0] in ("ansible", "ansible_runner") for name in names) or STARTED.search(
            one.read_text(encoding="utf-8")
        ):
            return True
        # Filters are functions, and each one's own tests are in a folder that runs on every core.
        if any(rests_on_ansible(plugin) for plugin in own(names, "plugins") if plugin.parent.name != "filter"):
            return True
        left |= own(names, "tests") - seen
    return False


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> c.Callable[[jobs.Job, str], bool]:
    """Whether a job's pytest collects a file."""
    monkeypatch.syspath_prepend(str(TOP / "tests" / "tools"))
    return __import__("changed").runs


def test_every_unit_test_runs_in_a_job(runs: c.Callable[[jobs.Job, str], bool]) -> None:
    assert [file for file in FILES if not any(runs(job, file) for job in jobs.UNIT)] == []


def test_what_meets_ansible_runs_on_the_oldest_and_the_newest_core(runs: c.Callable[[jobs.Job, str], bool]) -> None:
    assert {job.profile for job in ON_CORES} == {"core-2.16", "core-newest"} < set(jobs.CORES)
    meeting = [file for file in FILES if meets_ansible(TOP / file)]
    assert {
        "tests/unit/repository/test_playbooks.py",
        "tests/unit/inventory/test_fleet.py",
        "tests/unit/module/test_adapter.py",
    } <= set(meeting)
    assert [file for file in meeting if not all(runs(job, file) for job in ON_CORES)] == [], (
        "Next: add them to ANSIBLE_FACING in tests/tools/jobs.py"
    )


def test_paths_of_jobs_are_there() -> None:
    named = {word.removeprefix("--ignore=") for job in jobs.UNIT for word in job.command if "tests/unit" in word}
    assert sorted(path for path in named if not (TOP / path).exists()) == []


#: Warnings of what is installed beside the collection are its own business. One of the compiler names a path in the place of a module.
PROGRAM = """
import importlib, sys, warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", module=r"(?!.*(ansible_collections[./]hwaccel|fleet_agent))")
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


@pytest.mark.parametrize("folder", ["plugins", "roles/sandbox/files/fleet_agent"])
def test_everything_is_imported_without_a_warning(folder: str, tmp_path: pathlib.Path) -> None:
    """On these cores, and so on the oldest and the newest Python: what these have taken away, or are about to. Compiled anew, as that warns once."""
    base = TOP.parents[2] if folder == "plugins" else (TOP / folder).parent
    files = [path for path in sorted((TOP / folder).rglob("*.py")) if path.name != "__main__.py"]
    names = [".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__") for path in files]
    assert len(names) > 20
    path = os.pathsep.join([str(base), *sys.path])
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names], env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
