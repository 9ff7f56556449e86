# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML text as the tools of Kubernetes read it, for messages that have nothing of the text, which can be a secret. Pure.

PyYAML takes the last of two equal keys, where those refuse both (sigs.k8s.io/yaml, UnmarshalStrict), and makes dates of what is text for them.
"""

from __future__ import annotations

import collections.abc as c
import functools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import yamltext
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: Of a user's text: larger than any such file, small enough to be read at once.
_LARGEST = 4 * 1024 * 1024
_MERGE, _SCALAR = "tag:yaml.org,2002:merge", "scalar"


def documents(text: str, origin: str) -> tuple[list[t.Any], list[Fault]]:
    """All documents of a YAML text, or all of its errors: syntax, and keys that occur twice, each with its line."""
    if len(text) > _LARGEST:
        why = f"it has {len(text)} characters, and at most {_LARGEST} are read"
        return [], [Fault("the text is too large", origin, why, "split it")]
    yaml, loader = yamltext.library(), t.cast(t.Any, None)
    found, nodes = [], []
    try:
        loader = _loader()(text)
        while loader.check_node():
            nodes.append(loader.get_node())
        faults = [fault for node in nodes for fault in _duplicates(node, origin, set())]
        found = [] if faults else [loader.construct_document(node) for node in nodes]
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        return [], [_fault(error, origin)]
    finally:
        if loader is not None:
            loader.dispose()
    return found, faults


def _duplicates(node: t.Any, origin: str, visited: set[int]) -> c.Iterator[Fault]:
    """Anchors are visited once."""
    if id(node) in visited or node.id == _SCALAR:
        return
    visited.add(id(node))
    lines: dict[t.Any, int] = {}
    for entry in node.value:
        pair = entry if isinstance(entry, tuple) else (entry,)
        if node.id == "mapping" and pair[0].id == _SCALAR and pair[0].tag != _MERGE:
            name, line = (pair[0].tag, pair[0].value), pair[0].start_mark.line + 1
            if name in lines:
                why = f"it is set in line {lines[name]} already"
                yield Fault(f"key {pair[0].value} occurs twice", f"{origin}, line {line}", why, "remove one of them")
            lines.setdefault(name, line)
        for child in pair:
            yield from _duplicates(child, origin, visited)


def _fault(error: Exception, origin: str) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"{origin}, line {mark.line + 1}, column {mark.column + 1}" if mark else origin
    return Fault("it is not valid YAML", where, yamltext.problem(error) or type(error).__name__, "correct it")


@functools.cache
def _loader() -> t.Any:
    yaml = yamltext.library()
    base: t.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        """Without dates, which JSON does not have."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader
