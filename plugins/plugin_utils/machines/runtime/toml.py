# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TOML: written from data, or changed as text to keep comments."""

from __future__ import annotations

import collections.abc as c
import datetime
import json
import math
import re
import tomllib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_FIRST_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_IMPORTS = re.compile(r"^[ \t]*imports[ \t]*=[ \t]*\[", re.MULTILINE)
_VERSION = re.compile(r"^[ \t]*version[ \t]*=[^\n]*(?:\n|$)", re.MULTILINE)
#: Parts of an array of strings: a string, a comment, or the end.
_PART = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|\]')


def parse(text: str, where: str) -> dict[str, t.Any]:
    """Raises HwaccelError with the file and the position in it."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HwaccelError(
            "a configuration file is not TOML",
            where,
            str(error),
            "correct it: the service would not start with it either",
        ) from None


def dump(data: c.Mapping[str, t.Any]) -> str:
    """Text of nested tables, with keys in their order."""
    lines: list[str] = []
    _table((), data, lines)
    return "\n".join(lines).strip("\n") + "\n"


def with_import(text: str, path: str, version: int, where: str) -> str:
    """Text with path as the last of its imports, otherwise unchanged. version: added to an empty text.

    Raises HwaccelError if the list of imports cannot be extended as text.
    """
    before = parse(text, where)
    imports = before.get("imports", [])
    if path in imports:
        return text
    changed = (
        _extended(text, path) if "imports" in before else _inserted(text, f'imports = ["{path}"]', version, before)
    )
    expected = {**before, "imports": [*imports, path]} if before else {"version": version, "imports": [path]}
    try:
        understood = tomllib.loads(changed) == expected
    except tomllib.TOMLDecodeError:
        understood = False
    if not understood:
        why, next_step = (
            "the list is not written as `imports = [...]` at the top of the file",
            f'add "{path}" to it manually',
        )
        raise HwaccelError("a file cannot be added to the imports", where, why, next_step)
    return changed


def without_import(text: str, path: str) -> str:
    """Removes the import of with_import, and keeps other changes."""
    quoted = re.escape(f'"{path}"')
    text = re.sub(rf"^imports = \[{quoted}\]\r?\n?", "", text, flags=re.MULTILINE)
    return re.sub(rf"(?:, )?{quoted}", "", text)


def with_imports(text: str, paths: c.Sequence[str], where: str) -> str:
    """Text with exactly these imports, for a temporary copy, so that comments need not be kept."""
    return dump({**parse(text, where), "imports": list(paths)})


def with_value(text: str, table: str, key: str, value: str, where: str) -> str:
    """Text with a string value in a top-level table, otherwise unchanged."""
    parsed = parse(text, where)
    if parsed.get(table, {}).get(key) == value:
        return text
    line = f"{key} = {as_value(value)}"
    header = re.search(rf"^[ \t]*\[{re.escape(table)}\][^\n]*(?:\n|$)", text, re.MULTILINE)
    if header is None:
        return text + ("" if not text or text.endswith("\n") else "\n") + f"[{table}]\n{line}\n"
    end = _FIRST_TABLE.search(text, header.end())
    body = text[header.end() : end.start() if end else len(text)]
    assignment = re.compile(rf"^([ \t]*){re.escape(key)}[ \t]*=[^\n#]*?(?=[ \t]*(?:#|\r?\n|$))", re.MULTILINE)
    new = (
        assignment.sub(lambda found: found.group(1) + line, body, count=1)
        if assignment.search(body)
        else line + "\n" + body
    )
    return text[: header.end()] + new + text[header.end() + len(body) :]


def _extended(text: str, path: str) -> str:
    found = _IMPORTS.search(text)
    if found is None:
        return text
    end, first = found.end(), True
    for part in _PART.finditer(text, found.end()):
        if part.group() == "]":
            break
        if not part.group().startswith("#"):
            end, first = part.end(), False
    return text[:end] + ("" if first else ", ") + f'"{path}"' + text[end:]


def _inserted(text: str, line: str, version: int, before: c.Mapping[str, t.Any]) -> str:
    """Adds a line below the version, which is at the top of the file."""
    if not before:
        return f"version = {version}\n{line}\n" + text
    found = _VERSION.search(text)
    if found is None:
        return line + "\n" + text
    if not found.group().endswith("\n"):
        return text + "\n" + line + "\n"
    newline = "\r\n" if found.group().endswith("\r\n") else "\n"
    return text[: found.end()] + line + newline + text[found.end() :]


def _table(name: tuple[str, ...], data: c.Mapping[str, t.Any], lines: list[str]) -> None:
    plain = {key: value for key, value in data.items() if not isinstance(value, c.Mapping)}
    if name and (plain or not data):
        lines += ["", f"[{'.'.join(map(as_key, name))}]"]
    lines += [f"{as_key(key)} = {as_value(value)}" for key, value in plain.items()]
    for key, value in data.items():
        if isinstance(value, c.Mapping):
            _table((*name, key), value, lines)


def as_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else as_value(key)


def as_value(value: t.Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML has the escapes of JSON, but also requires one for DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf") if math.isinf(value) else repr(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, c.Mapping):
        return "{ " + ", ".join(f"{as_key(key)} = {as_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(as_value, value)) + "]"
    return str(value)
