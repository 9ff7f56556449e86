# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads YAML and JSON text as documents with their position."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError

#: In errors of PyYAML, what is followed by its name.
_NAMED = re.compile(r"\b(alias|anchor|tag handle|tag)\b[^'\"]*['\"].*", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Document:
    """One document and its place: "site.yml, document 2, line 14"."""

    value: t.Any
    origin: str


def documents(text: str, origin: str) -> tuple[list[Document], list[Fault]]:
    """Documents of a text; an invalid document is an error with file, document and line, and the documents before it are kept."""
    yaml = library()
    found: list[Document] = []
    loader: t.Any = None
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        while loader.check_node():
            node = loader.get_node()
            found.append(
                Document(
                    loader.construct_document(node),
                    f"{origin}, document {len(found) + 1}, line {node.start_mark.line + 1}",
                )
            )
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        return found, [_fault(error, origin, len(found) + 1)]
    finally:
        if loader is not None:
            loader.dispose()
    return found, []


def _fault(error: Exception, origin: str, number: int) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"{origin}, document {number}" + (f", line {mark.line + 1}, column {mark.column + 1}" if mark else "")
    why = problem(error) or " ".join(str(error).split())[:200] or type(error).__name__
    return Fault("the manifest is not valid YAML", where, why, "correct it; nothing was changed")


def problem(error: Exception) -> str:
    """What an error of PyYAML is about, without a part of the text: a password that begins with * or ! is an alias or a tag."""
    why = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "")
    return _NAMED.sub(r"\1", why)


def library() -> t.Any:
    """PyYAML. Raises HwaccelError if it is missing."""
    try:
        import yaml
    except ImportError:
        raise HwaccelError(
            "the Python library PyYAML is missing",
            "the host that runs this module",
            "it is needed for manifests that are given as text",
            "install PyYAML there",
        ) from None
    return yaml
