# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit tests by ansible-core: each runs in a job; those that use Ansible, and every import, run on the oldest and the newest core."""

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
#: A command that starts a program of Ansible.
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
    """Imported files that are in this part of the collection."""
    places = {
        TOP / f"{name.removeprefix(COLLECTION).replace('.', '/')}.py"
        for name in names
        if name.startswith(f"{COLLECTION}{part}.")
    }
    return {place for place in places if place.exists()}


def depends_on_ansible(path: pathlib.Path) -> bool:
    """Whether a plugin imports more of Ansible than the errors that it raises."""
    return any(name.startswith("ansible.") and not name.startswith("ansible.errors") for name in imports(path))


def uses_ansible(path: pathlib.Path) -> bool:
    """Whether a test imports or starts Ansible, by itself or through a support module."""
    visited: set[pathlib.Path] = set()
    pending = {path}
    while pending:
        one = pending.pop()
        visited.add(one)
        names = imports(one)
        if any(name.split(".")[0] in ("ansible", "ansible_runner") for name in names) or STARTED.search(
            one.read_text(encoding="utf-8")
        ):
            return True
        # Filters are plain functions, and their own tests run on every core.
        if any(depends_on_ansible(plugin) for plugin in own(names, "plugins") if plugin.parent.name != "filter"):
            return True
        pending |= own(names, "tests") - visited
    return False


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> c.Callable[[jobs.Job, str], bool]:
    """Whether a job's pytest collects a file."""
    monkeypatch.syspath_prepend(str(TOP / "tests" / "tools"))
    return __import__("changed").runs


def test_every_unit_test_runs_in_a_job(runs: c.Callable[[jobs.Job, str], bool]) -> None:
    assert [file for file in FILES if not any(runs(job, file) for job in jobs.UNIT)] == []


def test_tests_that_use_ansible_run_on_the_oldest_and_the_newest_core(runs: c.Callable[[jobs.Job, str], bool]) -> None:
    assert {job.profile for job in ON_CORES} == {"core-2.16", "core-newest"} < set(jobs.CORES)
    facing = [file for file in FILES if uses_ansible(TOP / file)]
    assert {
        "tests/unit/repository/test_playbooks.py",
        "tests/unit/inventory/test_fleet.py",
        "tests/unit/module/test_adapter.py",
    } <= set(facing)
    assert [file for file in facing if not all(runs(job, file) for job in ON_CORES)] == [], (
        "Next: add them to ANSIBLE_FACING in tests/tools/jobs.py"
    )


def test_paths_of_jobs_exist() -> None:
    named = {word.removeprefix("--ignore=") for job in jobs.UNIT for word in job.command if "tests/unit" in word}
    assert sorted(path for path in named if not (TOP / path).exists()) == []


#: Warnings of other packages are ignored. The module of a compiler warning can be a path.
PROGRAM = """
import importlib, sys, warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", module=r"(?!.*(ansible_collections[./]hwaccel|fleet_agent))")
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


@pytest.mark.parametrize("folder", ["plugins", "roles/sandbox/files/fleet_agent"])
def test_everything_is_imported_without_a_warning(folder: str, tmp_path: pathlib.Path) -> None:
    """On the oldest and the newest Python this finds deprecations and removals. Sources are compiled again, because the compiler warns only once."""
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
