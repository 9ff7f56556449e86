# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether contents of a file hold private keys or a pull secret. Pure.

Both also occur in base64, at the start of a value: in Secrets, in kubeconfigs, and in data URLs of MachineConfigs.
"""

from __future__ import annotations

import base64
import re

PRIVATE_KEY, PULL_SECRET = "private key", "pull secret"

#: PKCS #1, #8, SEC 1, OpenSSH, with and without a passphrase.
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")
#: The start of a block in PEM, in base64. The rest of the line is enough for its label.
_ENCODED_PEM = re.compile(rb"LS0tLS1CRUdJTi[A-Za-z0-9+/]{2,50}")
#: The key `auths` of a pull secret (config.json of containers) with an entry.
_AUTHS = re.compile(rb'"auths"\s*:\s*\{\s*"')
#: `{"` or `{` and a line end, in base64, at the start of a value.
_ENCODED_OBJECT = re.compile(rb"(?<![A-Za-z0-9+/])(?:eyJ|ewo|ey[AI])[A-Za-z0-9+/]{13,77}")


def found(contents: bytes) -> set[str]:
    """Which of the two the contents hold."""
    held = set()
    if _PRIVATE_KEY.search(contents) or any(
        _PRIVATE_KEY.search(_decoded(block[0]) + b"-----") for block in _ENCODED_PEM.finditer(contents)
    ):
        held.add(PRIVATE_KEY)
    if _AUTHS.search(contents) or any(
        _AUTHS.search(_decoded(value[0])) for value in _ENCODED_OBJECT.finditer(contents)
    ):
        held.add(PULL_SECRET)
    return held


def _decoded(text: bytes) -> bytes:
    """Of the whole groups of four characters at the start."""
    return base64.b64decode(text[: len(text) // 4 * 4])
