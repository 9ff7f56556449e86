# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents without their secrets, for differences and fingerprints: each by its hash, so that a change shows. Pure."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import canonical
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import hashed

#: A trust bundle is none, but users have put keys in it.
_KEY = re.compile(r"pullSecret|additionalTrustBundle|.*password|.*token|credentials", re.IGNORECASE)
#: Of a Secret.
_DATA = ("data", "stringData")


def redacted(document: t.Any) -> t.Any:
    """Credentials in addresses, and values of keys that hold a secret. Of a Secret all values."""
    if isinstance(document, c.Mapping):
        secret = document.get("kind") == "Secret"
        return {name: _value(str(name), value, secret=secret) for name, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [redacted(one) for one in document]
    return _address(document)


def _value(name: str, value: t.Any, *, secret: bool) -> t.Any:
    if secret and name in _DATA and isinstance(value, c.Mapping):
        return {key: hashed(canonical(one)) for key, one in value.items()}
    if _KEY.fullmatch(name) and value not in (None, "", [], {}):
        return hashed(value if isinstance(value, str) else canonical(value))
    return redacted(value)


def _address(value: t.Any) -> t.Any:
    if isinstance(value, str) and credentials.in_url(value):
        return f"{credentials.redacted(value)} ({hashed(value)})"
    return value
