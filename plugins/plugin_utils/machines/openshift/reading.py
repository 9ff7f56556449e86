# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A document of a user, from text or data. Pure.

PyYAML takes the last of two equal keys, where the installer refuses both (sigs.k8s.io/yaml, UnmarshalStrict), and makes dates of what is text for it.
"""

from __future__ import annotations

import collections.abc as c
import functools
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: Of a user's text: larger than any such file, small enough to be read at once.
_LARGEST = 4 * 1024 * 1024
_MERGE = "tag:yaml.org,2002:merge"


def mapping(given: t.Any, origin: str) -> tuple[dict[str, t.Any], list[Fault]]:
    """A dictionary, or YAML text with one. Empty text and None are an empty one. origin: how messages call it."""
    if given is None or given == "" or given == {}:
        return {}, []
    read, faults = documents(given, origin) if isinstance(given, str) else ([given], [])
    kept = [one for one in read if one is not None]
    if faults or not kept:
        return {}, faults
    if len(kept) > 1:
        return {}, [Fault(f"{len(kept)} documents", origin, "it is one document", "remove the others")]
    wrong = manifests.json_fault(kept[0], origin)
    if wrong is None and isinstance(kept[0], c.Mapping):
        return dict(kept[0]), []
    fault = wrong or Fault("it is not a dictionary", origin, f"it is {type(kept[0]).__name__}", "give keys with values")
    return {}, [fault]


def documents(text: str, origin: str) -> tuple[list[t.Any], list[Fault]]:
    """All documents of a YAML text, or all of its errors: syntax, and keys that occur twice, each with its line."""
    if len(text) > _LARGEST:
        why = f"it has {len(text)} characters, and at most {_LARGEST} are read"
        return [], [Fault("the text is too large", origin, why, "split it")]
    loader: t.Any = None
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


def _duplicates(node: yaml.Node, origin: str, visited: set[int]) -> c.Iterator[Fault]:
    """Anchors are visited once."""
    if id(node) in visited or isinstance(node, yaml.ScalarNode):
        return
    visited.add(id(node))
    lines: dict[t.Any, int] = {}
    for entry in node.value:
        pair = entry if isinstance(entry, tuple) else (entry,)
        if isinstance(node, yaml.MappingNode) and isinstance(pair[0], yaml.ScalarNode) and pair[0].tag != _MERGE:
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
    # Neither has a part of the text, which can be a secret.
    why = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
    return Fault("it is not valid YAML", where, str(why), "correct it")


@functools.cache
def _loader() -> t.Any:
    base: t.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        """Without dates, which JSON does not have."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader
