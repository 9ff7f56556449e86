# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by filters that build a role's objects. Manifests are strings that are parsed once, so that Ansible does not process every value."""

from __future__ import annotations

import io
import typing as t

import yaml
from ansible.errors import AnsibleFilterError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_manifests(texts: t.Iterable[str]) -> list[dict[str, t.Any]]:
    """Objects of YAML strings, without empty documents. Raises ValueError for invalid objects."""
    found = []
    for text in texts:
        try:
            # A stream is passed, because the C parser refuses subclasses of str, such as the templated strings of core 2.16.
            documents = [
                document for document in yaml.load_all(io.StringIO(text), Loader=_LOADER) if document is not None
            ]
        except yaml.YAMLError as error:
            raise ValueError(f"a manifest is not valid YAML: {error}") from error
        if wrong := [document for document in documents if not isinstance(document, dict) or "kind" not in document]:
            raise ValueError(f"a manifest is not an object: {str(wrong[0])[:80]}")
        found += documents
    return found


def planned(
    name: str, plan: t.Callable[..., dict[str, t.Any]], manifests: t.Iterable[str], *given: t.Any
) -> dict[str, t.Any]:
    """The plan from the manifests and other input. name: the filter. Raises AnsibleFilterError for invalid input."""
    try:
        return plan(parse_manifests(manifests), *given)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise AnsibleFilterError(f"hwaccel.gpu.{name} cannot read its input: {error}") from error
