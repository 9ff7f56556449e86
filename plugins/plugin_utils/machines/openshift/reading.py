# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A document of a user, from text or data. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests, strict_yaml
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault


def mapping(given: t.Any, origin: str) -> tuple[dict[str, t.Any], list[Fault]]:
    """A dictionary, or YAML text with one. Empty text and None are an empty one. origin: how messages call it."""
    if given is None or given == "" or given == {}:
        return {}, []
    read, faults = strict_yaml.documents(given, origin) if isinstance(given, str) else ([given], [])
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
