# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an error of the API server means for a member. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError

#: `conflict with "kubectl" with subresource "scale" using apps/v1 at …`
_MANAGER = re.compile(r'conflict with "(?P<manager>(?:[^"\\]|\\.)*)"(?: with subresource "(?P<subresource>[^"]*)")?')
_MISSING_RIGHT = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_IMMUTABLE = re.compile(
    r"field is immutable|cannot change roleRef|updates to \w+ spec for fields other than|may not be changed|may not change once set"
    r"|updates to parameters are forbidden|is immutable|cannot be changed|updates to provisioner are forbidden"
    r"|pod updates may not change fields other than|may not be updated",
    re.IGNORECASE,
)


@dataclasses.dataclass(frozen=True)
class FieldConflict:
    """One field that another manager owns. path is in the server's format, without the leading dot."""

    path: str
    manager: str
    subresource: str = ""


def field_conflicts(error: ApiError) -> list[FieldConflict]:
    """The fields of a server-side apply conflict; none if the conflict has another cause (another uid or resourceVersion)."""
    found = []
    for cause in _causes(error):
        match = _MANAGER.search(str(cause.get("message") or ""))
        if cause.get("reason") == "FieldManagerConflict" and match:
            found.append(
                FieldConflict(
                    str(cause.get("field") or "").removeprefix("."), match["manager"], match["subresource"] or ""
                )
            )
    return found


def immutable_field(error: ApiError) -> str:
    """The immutable field that an error names, "" if it is another error."""
    causes = _causes(error)
    for cause in causes:
        if _IMMUTABLE.search(str(cause.get("message") or "")):
            return str(cause.get("field") or "") or "a field"
    return "a field" if _IMMUTABLE.search(str(error)) else ""


def lacks_dry_run(error: ApiError) -> bool:
    """Whether a webhook does not support dry runs, so that the server refuses the request."""
    return "does not support dry run" in str(error)


def missing_right(error: ApiError) -> dict[str, str] | None:
    """The verb and resource that RBAC refuses; None if the request is forbidden for another reason (admission, quota)."""
    match = _MISSING_RIGHT.search(str(error))
    if not match:
        return None
    return {
        "verb": match["verb"],
        "resource": match["resource"],
        "group": match["group"],
        "namespace": match["namespace"] or "",
    }


def _causes(error: ApiError) -> c.Sequence[dict[str, t.Any]]:
    causes = (error.body.get("details") or {}).get("causes") or ()
    return [cause for cause in causes if isinstance(cause, dict)]
