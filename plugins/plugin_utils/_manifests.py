# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the filters share that make a role's objects: manifests are texts, parsed once and without Ansible looking into every value."""

from __future__ import annotations

import io
import typing as t

import yaml
from ansible.errors import AnsibleFilterError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_manifests(texts: t.Iterable[str]) -> list[dict[str, t.Any]]:
    """Objects of YAML texts; empty documents are none. Raises ValueError for what is no object."""
    found = []
    for text in texts:
        try:
            # As a stream: the C parser refuses subclasses of str, and a templated text of core 2.16 is one.
            documents = [
                document for document in yaml.load_all(io.StringIO(text), Loader=_LOADER) if document is not None
            ]
        except yaml.YAMLError as error:
            raise ValueError(f"a manifest is no YAML: {error}") from error
        if wrong := [document for document in documents if not isinstance(document, dict) or "kind" not in document]:
            raise ValueError(f"a manifest is no object: {str(wrong[0])[:80]}")
        found += documents
    return found


def planned(
    name: str, plan: t.Callable[..., dict[str, t.Any]], manifests: t.Iterable[str], *given: t.Any
) -> dict[str, t.Any]:
    """What plan makes of the manifests and what else was given. name: the filter. Raises AnsibleFilterError for values of a wrong form."""
    try:
        return plan(parse_manifests(manifests), *given)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise AnsibleFilterError(f"hwaccel.gpu.{name} cannot read what it was given: {error}") from error
