# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of K3s. Pure.

Source: parseToken in pkg/clientaccess/token.go, normalizeToken and storageKey in pkg/cluster/{storage,encrypt}.go of K3s 1.36.
"""

from __future__ import annotations

import hashlib
import re

#: Of kubeadm's kind, with which nothing can be encrypted.
_BOOTSTRAP = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_SECURE = re.compile(r"K10(?:[0-9a-f]{64})?::(?:[^:]*:)?(.*)")
#: Characters of the name under which bootstrap data are in the datastore.
_NAME = 12


def password(token: str) -> str:
    """What data of the datastore are encrypted with: the token without the fingerprint of the authority and the user."""
    text = token.strip()
    secure = _SECURE.fullmatch(text)
    return secure.group(1) if secure else text


def why_not(token: str) -> str:
    """Why servers cannot have this token, empty if they can. The token is not in it."""
    secret = password(token)
    if not secret:
        return "it is empty"
    if _BOOTSTRAP.fullmatch(secret):
        return "it has the form of a bootstrap token, with which K3s encrypts nothing"
    if not secret.isascii() or not secret.isprintable() or set(secret) & set(" ,\"'"):
        return "it has other characters than printable ones of ASCII without spaces, quotes and commas"
    return ""


def storage_name(token: str) -> str:
    """Of the bootstrap data that are encrypted with it, below /bootstrap/."""
    return hashlib.sha256(password(token).encode("utf-8")).hexdigest()[:_NAME]
