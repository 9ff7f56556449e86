# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML as Go programs read it into their types, and errors of fields as Kubernetes writes them."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

import yaml


class Refused(Exception):
    """Input that the tool refuses, with its text."""


class _Loader(yaml.CSafeLoader):
    """Dates stay text, and a key that occurs twice is an error."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[t.Any, t.Any]:
    places: dict[str, int] = {}
    for key, _value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value != "<<":
            if key.value in places:
                line = key.start_mark.line + 1
                raise Refused(
                    f'error converting YAML to JSON: yaml: unmarshal errors:\n  line {line}: key "{key.value}" already set in map'
                )
            places[key.value] = key.start_mark.line
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read(text: str) -> t.Any:
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        # Go's parser counts from 0 here, and leaves out a line that is 0; its scanner counts from 1.
        lines = [mark.line for mark in (error.context_mark, error.problem_mark) if mark and mark.line]
        line = f"line {lines[0] + isinstance(error, yaml.scanner.ScannerError)}: " if lines else ""
        raise Refused(f"error converting YAML to JSON: yaml: {line}{error.problem}") from None
    except yaml.YAMLError as error:
        raise Refused(f"error converting YAML to JSON: yaml: {error}") from None


#: A type of a field: str, int or bool, {name: type} of a section, [type] of a list, ANY, or MAP of text.
ANY, MAP = None, "map"
_GO = {str: "string", int: "int64", bool: "bool"}


def _json_type(found: t.Any) -> str:
    return {str: "string", bool: "bool", int: "number", float: "number", list: "array"}.get(type(found), "object")


def typed(found: t.Any, wanted: t.Any, section: str, path: str, unknown: list[str]) -> t.Any:
    """The content with types as wanted; names that the type lacks are left out and added to unknown.

    section: name of the Go type, as errors have it. Raises Refused for a value of another type. None counts as absent.
    """

    def other(kind: str) -> t.NoReturn:
        raise Refused(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{_json_type(found)} into Go struct field {section}.{path} of type {kind}"
        )

    if wanted is ANY or found is None:
        return found
    if isinstance(wanted, list):
        if not isinstance(found, list):
            other(f"[]{section}")
        # What is null in a list is the empty value of its type.
        empty = {str: "", bool: False, int: 0}.get(wanted[0], {}) if not isinstance(wanted[0], dict) else {}
        return [typed(empty if one is None else one, wanted[0], section, path, unknown) for one in found]
    if isinstance(wanted, dict) or wanted == MAP:
        if not isinstance(found, dict):
            other(section)
        return found if wanted == MAP else _section(found, wanted, section, path, unknown)
    # To Python, a truth value is a number as well.
    if not isinstance(found, wanted) or (wanted is int and isinstance(found, bool)):
        other(_GO[wanted])
    return found


def _section(
    found: c.Mapping[t.Any, t.Any], wanted: c.Mapping[str, t.Any], section: str, path: str, unknown: list[str]
) -> t.Any:
    unknown += [str(name) for name in found if name not in wanted]
    return {
        name: typed(value, wanted[name], section, f"{path}.{name}" if path else name, unknown)
        for name, value in found.items()
        if name in wanted and value is not None
    }


def shown(value: t.Any) -> str:
    """A value as the errors below have it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def invalid(path: str, value: t.Any, text: str) -> str:
    return f"{path}: Invalid value: {shown(value)}: {text}"


def required(path: str, text: str) -> str:
    return f"{path}: Required value: {text}"


def forbidden(path: str, text: str) -> str:
    return f"{path}: Forbidden: {text}"


def unsupported(path: str, value: t.Any, known: c.Iterable[str]) -> str:
    return f"{path}: Unsupported value: {shown(value)}: supported values: {', '.join(shown(one) for one in known)}"


def duplicate(path: str, value: t.Any) -> str:
    return f"{path}: Duplicate value: {shown(value)}"


def together(errors: c.Sequence[str]) -> str:
    """All of them in one text, as Kubernetes' aggregate has it: each once, in brackets where there are several."""
    single = list(dict.fromkeys(errors))
    return single[0] if len(single) == 1 else f"[{', '.join(single)}]"
