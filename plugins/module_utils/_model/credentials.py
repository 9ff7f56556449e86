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
#: Of a value that is nothing but a URL, or should be one: there an invalid password can also have slashes, quotes and spaces.
_WHOLE = re.compile(r"(?<=://).*@")


def in_url(text: str) -> bool:
    return _USERINFO.search(text) is not None


def in_value(text: str) -> bool:
    """As in_url, for a text that is no sentence. In doubt there are credentials."""
    return _WHOLE.search(text) is not None


def redacted_value(text: str) -> str:
    return _WHOLE.sub(f"{REDACTED}@", text)


def redacted(value: t.Any) -> t.Any:
    """The value with every userinfo in its strings replaced; mappings and lists are copied."""
    if isinstance(value, dict):
        return {key: redacted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redacted(item) for item in value]
    return _USERINFO.sub(f"{REDACTED}@", value) if isinstance(value, str) else value
