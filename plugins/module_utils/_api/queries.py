# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that write, and query parameters, as data. Pure."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.retry import Repeat
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Request

Query = list[tuple[str, str]]


def write(method: str, path: str, what: str, query: Query, body: t.Any, content_type: str, repeat: Repeat) -> Request:
    return Request(
        method, path, what, tuple(query), json.dumps(body, separators=(",", ":")).encode(), content_type, repeat=repeat
    )


def of_write(field_manager: str, dry_run: bool) -> Query:
    """field_manager: "" for none."""
    manager = [("fieldManager", field_manager)] if field_manager else []
    return [*manager, *([("dryRun", "All")] if dry_run else [])]


def of_list(label_selector: str, field_selector: str) -> Query:
    pairs = (("labelSelector", label_selector), ("fieldSelector", field_selector))
    return [(key, value) for key, value in pairs if value]
