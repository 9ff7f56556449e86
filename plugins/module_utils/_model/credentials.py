# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""User and password in a URL (RFC 3986, 3.2.1, userinfo), which must neither be shown nor stored in clear text."""

from __future__ import annotations

import re
import typing as t

REDACTED = "(redacted)"
#: Up to the last @ of the authority, because passwords with an @ occur in practice, although they are invalid in a URL.
_USERINFO = re.compile(r"""(?<=://)[^/\s"']+@""")


def in_url(text: str) -> bool:
    return _USERINFO.search(text) is not None


def redacted(value: t.Any) -> t.Any:
    """The value with every userinfo in its strings replaced; mappings and lists are copied."""
    if isinstance(value, dict):
        return {key: redacted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redacted(item) for item in value]
    return _USERINFO.sub(f"{REDACTED}@", value) if isinstance(value, str) else value
