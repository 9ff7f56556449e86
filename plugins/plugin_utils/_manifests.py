# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests of roles as filters take them: texts, parsed once and without Ansible looking into every value.

Private to the collection: it can change in any release.
"""

from __future__ import annotations

import io
import typing as t

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_manifests(texts: t.Iterable[str]) -> list[dict[str, t.Any]]:
    """Objects of YAML texts; empty documents are none. Raises ValueError for what is no object."""
    found = []
    for text in texts:
        try:
            # As a stream: the C parser refuses subclasses of str, and a templated text of core 2.16 is one.
            documents = [document for document in yaml.load_all(io.StringIO(text), Loader=_LOADER) if document is not None]
        except yaml.YAMLError as error:
            raise ValueError(f"a manifest is no YAML: {error}") from error
        if wrong := [document for document in documents if not isinstance(document, dict) or "kind" not in document]:
            raise ValueError(f"a manifest is no object: {str(wrong[0])[:80]}")
        found += documents
    return found
