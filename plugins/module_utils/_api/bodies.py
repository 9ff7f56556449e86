# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the body of a request with the observed object. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t


def guarded(patch: t.Any) -> bool:
    """A patch with a resourceVersion fails the second time instead of being applied twice."""
    if isinstance(patch, dict):
        return bool((patch.get("metadata") or {}).get("resourceVersion"))
    return any(
        isinstance(step, dict) and step.get("op") == "test" and step.get("path") == "/metadata/resourceVersion"
        for step in patch or []
    )


def asked(obj: dict[str, t.Any], ignored: c.Collection[str]) -> dict[str, t.Any]:
    """What a write of the object requests, without the metadata that the server sets. ignored: parts that the write does not change."""
    parts = {key: value for key, value in obj.items() if key != "metadata" and key not in ignored}
    metadata = (obj.get("metadata") or {}).items()
    return parts | {"metadata": {key: value for key, value in metadata if key in ("labels", "annotations", "name")}}


def within(ask: t.Any, live: t.Any) -> bool:
    """Whether the observed object has everything requested. Lists must be equal, mappings may have more keys."""
    if isinstance(ask, dict):
        return isinstance(live, dict) and all(within(value, live.get(key)) for key, value in ask.items())
    if isinstance(ask, list):
        return (
            isinstance(live, list)
            and len(ask) == len(live)
            and all(within(*pair) for pair in zip(ask, live, strict=True))
        )
    return ask == live
