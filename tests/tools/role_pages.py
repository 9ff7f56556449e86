# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generates the pages in docs/roles and a README of each role from meta/argument_specs.yml, by `make docs`. A test verifies that they are up to date."""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import Any

import yaml

NOTE = "<!-- Generated from meta/argument_specs.yml by `make docs`: change it there. -->"


#: https://docs.ansible.com/ansible/latest/dev_guide/ansible_markup.html: the pages show code, options and names of plugins as code.
_MARKUP = re.compile(r"\b([CVEOMP])\(([^()]*)\)")


def markdown(text: Any) -> str:
    """One paragraph of a description, with Markdown instead of Ansible's markup."""
    return _MARKUP.sub(_as_code, " ".join(str(text).split()))


def _as_code(match: re.Match[str]) -> str:
    plugin, hash_mark, rest = match[2].partition("#")
    if not hash_mark:
        return f"`{match[2]}`"
    _kind, colon, option = rest.partition(":")
    return f"`{option}` of `{plugin}`" if colon else f"`{plugin}`"


def sentences(text: Any) -> str:
    """A description, which is a string or a list of paragraphs, as a table cell, which cannot contain line ends or bars."""
    return " ".join(markdown(part) for part in (text if isinstance(text, list) else [text or ""])).replace("|", "\\|")


def kind_of(option: Mapping[str, Any]) -> str:
    kind = str(option.get("type", "str"))
    if option.get("elements"):
        kind += f" of {option['elements']}"
    if option.get("choices"):
        kind += ": " + ", ".join(f"`{choice}`" if choice != "" else "empty" for choice in option["choices"])
    return kind


def default_of(option: Mapping[str, Any]) -> str:
    if option.get("required"):
        return "**required**"
    if "default" not in option:
        return ""
    value = (
        yaml.safe_dump(option["default"], default_flow_style=True, width=10000).removesuffix("\n").removesuffix("\n...")
    )
    return f"`{value}`".replace("|", "\\|")


def rows(options: Mapping[str, Any], indent: str = "") -> list[str]:
    lines = []
    for name, option in options.items():
        lines.append(
            f"| {indent}`{name}` | {kind_of(option)} | {default_of(option)} | {sentences(option.get('description'))} |"
        )
        lines += rows(option.get("options", {}), indent + "&nbsp;&nbsp;")
    return lines


def table(options: Mapping[str, Any]) -> list[str]:
    return ["| variable | type | default | meaning |", "|---|---|---|---|", *rows(options), ""] if options else []


def section(entry: str, spec: Mapping[str, Any], shared: Mapping[str, Any]) -> list[str]:
    """shared: the role's variables, which have their own table."""
    options = spec.get("options") or {}
    described = spec.get("description") or []
    lines = [f"## Entry point `{entry}`", "", sentences(spec.get("short_description")), ""]
    for paragraph in described if isinstance(described, list) else [described]:
        lines += [markdown(paragraph), ""]
    own = {name: option for name, option in options.items() if shared.get(name) != option}
    taken = [name for name in options if name not in own]
    if taken and len(taken) < len(shared):
        lines += ["Takes " + ", ".join(f"`{name}`" for name in taken) + ".", ""]
    return lines + table(own)


def page(role: pathlib.Path) -> str:
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    shared = specs["main"].get("options") or {}
    lines = [NOTE, "", f"# Role `hwaccel.gpu.{role.name}`", ""]
    for entry, spec in specs.items():
        lines += section(entry, spec, shared)
    if shared:
        lines += [
            "## Variables",
            "",
            "Each entry point takes all of them where it does not say otherwise.",
            "",
            *table(shared),
        ]
    return "\n".join(lines).rstrip() + "\n"


def index(roles: list[pathlib.Path]) -> str:
    lines = [NOTE, "", "# Roles", ""]
    for role in roles:
        specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
        lines.append(f"- [{role.name}]({role.name}.md): {sentences(specs['main'].get('short_description'))}")
    return "\n".join(lines) + "\n"


def readme(role: pathlib.Path) -> str:
    """The README of a role. galaxy-importer refuses a role without one."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    page_of_role = f"[docs/roles/{role.name}.md](../../docs/roles/{role.name}.md)"
    lines = [
        NOTE,
        "",
        f"# Role `hwaccel.gpu.{role.name}`",
        "",
        f"{sentences(specs['main'].get('short_description'))}.",
        "",
    ]
    return "\n".join([*lines, f"Entry points and variables: {page_of_role}."]) + "\n"


def pages(top: pathlib.Path) -> dict[str, str]:
    """Generated pages by path in the collection."""
    roles = sorted(path.parents[1] for path in top.glob("roles/*/meta/argument_specs.yml"))
    generated = {"docs/roles/README.md": index(roles)} | {f"docs/roles/{role.name}.md": page(role) for role in roles}
    return generated | {f"roles/{role.name}/README.md": readme(role) for role in roles}


def present(top: pathlib.Path) -> dict[str, str]:
    """Existing pages by path."""
    paths = [
        *top.glob("docs/roles/*.md"),
        *(path for path in top.glob("roles/*/README.md") if (path.parent / "meta" / "argument_specs.yml").exists()),
    ]
    return {path.relative_to(top).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def main() -> int:
    parser = argparse.ArgumentParser(description="Generates the role pages")
    parser.add_argument("--write", type=pathlib.Path, required=True, metavar="CHECKOUT")
    top = parser.parse_args().write
    fresh = pages(top)
    for stale in present(top).keys() - fresh.keys():
        (top / stale).unlink()
    for name, text in fresh.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text, encoding="utf-8")
    print(f"{len(fresh)} pages in {top}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
