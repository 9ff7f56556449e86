# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as they are compared for `changed` and shown for --diff."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import credentials, plain_yaml

#: Set by the server itself, so not a change of the run.
_SERVER_METADATA = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "selfLink")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

REDACTED = credentials.REDACTED
REDACTED_BEFORE = "(redacted: another value before)"
REDACTED_AFTER = "(redacted: another value after)"


def comparable(obj: dict[str, t.Any] | None) -> dict[str, t.Any]:
    """An object without status and without fields that the server maintains: two equal results mean "not changed"."""
    if not obj:
        return {}
    kept = {key: value for key, value in obj.items() if key != "status"}
    metadata = kept.get("metadata") or {}
    kept["metadata"] = {key: value for key, value in metadata.items() if key not in _SERVER_METADATA}
    return kept


def changed(before: dict[str, t.Any] | None, after: dict[str, t.Any] | None) -> bool:
    return comparable(before) != comparable(after)


def redacted_pair(
    before: dict[str, t.Any] | None, after: dict[str, t.Any] | None
) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
    """Both sides in comparable form, with values of Secrets and credentials in URLs replaced. Changed keys remain visible."""
    left, right = _copy(before), _copy(after)
    if "Secret" in (left.get("kind"), right.get("kind")):
        for field in ("data", "stringData"):
            _redact_maps(left.get(field), right.get(field))
        for side in (left, right):
            annotations = (side.get("metadata") or {}).get("annotations") or {}
            if _LAST_APPLIED in annotations:
                annotations[_LAST_APPLIED] = REDACTED
    return left, right


def _copy(obj: dict[str, t.Any] | None) -> dict[str, t.Any]:
    """Comparable, and safe to show except for the values of a Secret."""
    copied: dict[str, t.Any] = credentials.redacted(comparable(obj))
    return copied


def _redact_maps(left: t.Any, right: t.Any) -> None:
    left, right = left if isinstance(left, dict) else {}, right if isinstance(right, dict) else {}
    for key in set(left) | set(right):
        same = key in left and key in right and left[key] == right[key]
        if key in left:
            left[key] = REDACTED if same else REDACTED_BEFORE
        if key in right:
            right[key] = REDACTED if same else REDACTED_AFTER


def entry(title: str, before: dict[str, t.Any] | None, after: dict[str, t.Any] | None) -> dict[str, t.Any]:
    """One entry of the task's diff, as YAML: Ansible would write mappings as JSON, with all of a script or of a ConfigMap's file in one line."""
    left, right = redacted_pair(before, after)
    return {
        "before_header": title if left else f"{title} (absent)",
        "after_header": title if right else f"{title} (absent)",
        "before": plain_yaml.text([left]) if left else "",
        "after": plain_yaml.text([right]) if right else "",
    }
