# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for every role: defaults and argument specs agree, names have the role's prefix, and its page is up to date."""

from __future__ import annotations

import importlib.util
import pathlib
import re
from typing import Any

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
#: Roles that only other roles include: an argument spec would add one task to each of these.
INTERNAL = {"cluster", "machine", "variables"}
ROLES = sorted(
    path.name for path in (TOP / "roles").iterdir() if (path / "tasks").is_dir() and path.name not in INTERNAL
)
MISSING = object()


def load(path: pathlib.Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None


def specs_of(role: str) -> dict[str, Any]:
    found = load(TOP / "roles" / role / "meta" / "argument_specs.yml")
    assert found, f"roles/{role}/meta/argument_specs.yml is missing"
    return found["argument_specs"]


def defaults_of(role: str) -> dict[str, Any]:
    return load(TOP / "roles" / role / "defaults" / "main.yml") or {}


def untyped(options: dict[str, Any], where: str) -> list[str]:
    """Options without a type or a description, also in nested ones."""
    faults = []
    for name, option in options.items():
        path = f"{where}.{name}"
        faults += [f"{path} has no {key}" for key in ("type", "description") if not option.get(key)]
        if option.get("type") == "list" and not option.get("elements"):
            faults.append(f"{path} is a list without elements")
        faults += untyped(option.get("options", {}), path)
    return faults


def test_there_are_roles() -> None:
    assert ROLES, "no role was found, so the tests below would not test anything"


@pytest.mark.parametrize("role", ROLES)
def test_every_entry_point_has_its_tasks(role: str) -> None:
    entries = specs_of(role)
    missing = [entry for entry in entries if not (TOP / "roles" / role / "tasks" / f"{entry}.yml").exists()]
    assert "main" in entries
    assert not missing, f"{role}: specs for entry points without tasks: {missing}"


@pytest.mark.parametrize("role", ROLES)
def test_every_option_is_typed_and_described(role: str) -> None:
    faults = [
        fault
        for entry, spec in specs_of(role).items()
        for fault in untyped(spec.get("options") or {}, f"{role} {entry}")
    ]
    assert not faults


@pytest.mark.parametrize("role", ROLES)
def test_defaults_equal_argument_specs(role: str) -> None:
    defaults = defaults_of(role)
    faults = []
    named: set[str] = set()
    for entry, spec in specs_of(role).items():
        for name, option in (spec.get("options") or {}).items():
            if not name.startswith(f"{role}_"):
                continue
            named.add(name)
            specified = option.get("default", MISSING)
            kept = defaults.get(name, MISSING)
            if option.get("required") and kept is not MISSING:
                faults.append(f"{entry}: {name} is required, yet has a default")
            elif kept != specified:
                faults.append(f"{entry}: {name}: argument_specs says {specified!r}, defaults/main.yml says {kept!r}")
    faults += [f"defaults/main.yml: {name} is in no argument spec" for name in defaults if name not in named]
    assert not faults


@pytest.mark.parametrize("role", ROLES)
def test_variables_have_the_prefix_of_the_role(role: str) -> None:
    options = {name for spec in specs_of(role).values() for name in spec.get("options") or {}}
    foreign = sorted(name for name in options | set(defaults_of(role)) if not name.startswith((f"{role}_", "hwaccel_")))
    assert not foreign, f"{role}: names without the prefix of the role: {foreign}"


def test_the_node_name_of_a_machine_comes_from_the_inventory() -> None:
    named = {name: default for role in ROLES for name, default in defaults_of(role).items() if name == f"{role}_node"}
    assert named.keys() == {"machine_boot_node", "node_runtime_node"}
    assert all("hwaccel_node_name | default(" in default for default in named.values()), named


def tool(name: str) -> Any:
    module = importlib.util.spec_from_file_location(name, TOP / "tests" / "tools" / f"{name}.py")
    assert module and module.loader
    loaded = importlib.util.module_from_spec(module)
    module.loader.exec_module(loaded)
    return loaded


def test_the_page_of_rights_is_up_to_date() -> None:
    assert (TOP / "docs" / "rights.md").read_text(encoding="utf-8") == tool("rights_page").page(TOP), "run `make docs`"


def test_role_pages_are_up_to_date() -> None:
    fresh, present = tool("role_pages").pages(TOP), tool("role_pages").present(TOP)
    stale = sorted(name for name in fresh.keys() | present.keys() if fresh.get(name) != present.get(name))
    assert not stale, f"run `make docs`: {stale}"


def test_role_pages_are_markdown_and_list_each_variable_once() -> None:
    for name, text in tool("role_pages").pages(TOP).items():
        assert re.findall(r"\b[A-Z]\([^)]*\)", text) == [], name
        variables = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
        assert len(variables) == len(set(variables)), name


def test_markup_of_descriptions_becomes_markdown() -> None:
    specified = tool("role_pages").markdown(
        "V(auto), as O(hwaccel.gpu.manifest_set#module:patches) of M(hwaccel.gpu.node_info) and O(other)"
    )
    assert specified == "`auto`, as `patches` of `hwaccel.gpu.manifest_set` of `hwaccel.gpu.node_info` and `other`"
