# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of roles and playbooks give modules of this collection only options that these have. A task that tolerates failures would hide the error."""

from __future__ import annotations

import collections.abc as c
import functools
import importlib
import pathlib
import typing as t

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
COLLECTION = "ansible_collections.hwaccel.gpu.plugins"
MODULES = sorted(path.stem for path in (TOP / "plugins" / "modules").glob("*.py"))


@functools.cache
def options(module: str) -> set[str]:
    """Names and aliases of options, including those of documentation fragments."""
    documented = yaml.safe_load(importlib.import_module(f"{COLLECTION}.modules.{module}").DOCUMENTATION)
    found = [documented.get("options") or {}]
    for fragment in documented.get("extends_documentation_fragment") or []:
        name, _dot, part = fragment.removeprefix("hwaccel.gpu.").partition(".")
        text = getattr(
            importlib.import_module(f"{COLLECTION}.doc_fragments.{name}").ModuleDocFragment,
            (part or "documentation").upper(),
        )
        found.append(yaml.safe_load(text).get("options") or {})
    return {
        known for part in found for name, option in part.items() for known in (name, *(option.get("aliases") or ()))
    }


def given(value: t.Any) -> c.Iterator[tuple[str, str]]:
    """(module, option) of all tasks below a value."""
    if isinstance(value, list):
        for item in value:
            yield from given(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            module = str(key).removeprefix("hwaccel.gpu.")
            if module != key and module in MODULES and isinstance(item, dict):
                yield from ((module, str(option)) for option in item)
            yield from given(item)


TASKS = [*sorted(TOP.glob("roles/*/tasks/*.yml")), *sorted(TOP.glob("playbooks/**/*.yml"))]


@pytest.mark.parametrize("path", TASKS, ids=lambda path: str(path.relative_to(TOP)))
def test_tasks_use_only_options_of_the_modules(path: pathlib.Path) -> None:
    assert [
        (module, option)
        for module, option in given(yaml.safe_load(path.read_text(encoding="utf-8")))
        if option not in options(module)
    ] == []


def test_options_of_documentation_fragments_are_included() -> None:
    assert {"cluster_uid", "kubeconfig", "cert_file"} <= options("node_info")
    assert list(given([{"block": [{"hwaccel.gpu.node_info": {"rows": True}}]}])) == [("node_info", "rows")]
