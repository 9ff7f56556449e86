# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Canonical JSON and hashes of it, and hashes of files."""

from __future__ import annotations

import hashlib
import json
import pathlib
import typing as t

_ROUNDS = 200_000


def canonical(value: t.Any) -> str:
    """Canonical text of a value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: t.Any) -> str:
    """128 bits of SHA-256 over the canonical JSON: enough to distinguish two desired states, short enough for thousands in one record."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def stretched(secret: str, purpose: str) -> str:
    """A key from a text that may be weak: each attempt to guess it takes a tenth of a second. purpose: keys of different ones differ."""
    return hashlib.pbkdf2_hmac("sha256", secret.encode("utf-8", "surrogatepass"), purpose.encode(), _ROUNDS).hex()


def file_digest(path: pathlib.Path, kind: str = "sha256") -> str:
    """kind: as hashlib names it. The file is not read into memory as a whole."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()
