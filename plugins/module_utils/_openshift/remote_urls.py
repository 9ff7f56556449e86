# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""URLs from which a machine reads parts of its ignition file. Pure."""

from __future__ import annotations

import re
import urllib.parse

#: Schemes by the minor version of specification 3 that has them first (coreos/ignition, config/v3_*/types/url.go).
_SCHEMES = {"http": 0, "https": 0, "tftp": 0, "s3": 0, "data": 0, "gs": 2, "arn": 4}
_NEWEST = max(_SCHEMES.values())
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ARN = re.compile(r"arn:[^:]*:s3:[^:]*:[^:]*:(?:accesspoint/[^/]+/.+|(?!accesspoint/).*/.*)", re.DOTALL)
_LONGEST = 200


def scheme(url: str) -> str:
    head, colon, _rest = url[:32].partition(":")
    return head.lower() if colon else ""


def fault(url: str, minor: int) -> str:
    """Why Ignition refuses a URL that is not a data URL, "" if it does not. It never has the URL, which can contain credentials."""
    found = scheme(url)
    if found not in _SCHEMES:
        return f"the scheme {found!r} is unknown" if found else "it has no scheme"
    if _SCHEMES[found] > minor:
        return f"the scheme {found!r} is there since version 3.{_SCHEMES[found]}.0"
    if _CONTROL.search(url):
        return "it has a control character"
    try:
        parts = urllib.parse.urlsplit(url)
        _port = parts.port
        versions = urllib.parse.parse_qs(parts.query, keep_blank_values=True).get("versionId", ["1"])
    except ValueError:
        return "it is not a valid URL"
    if found == "arn" and not _ARN.fullmatch(url):
        return "it is not the ARN of an S3 object"
    if found != "arn" and (not parts.netloc or " " in parts.netloc):
        return "it has no host"
    return "its versionId is empty" if found in ("s3", "arn") and not versions[0] else ""


def shown(url: str) -> str:
    """The URL without user, password, query and fragment, which can be credentials or a signature. Nothing of what is no URL, which can be contents."""
    if fault(url, _NEWEST):
        return "(not a valid URL)"
    parts = urllib.parse.urlsplit(url)
    kept = urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    text = kept if len(kept) <= _LONGEST else f"{kept[:_LONGEST]}…"
    return f"{text}?…" if parts.query else text
