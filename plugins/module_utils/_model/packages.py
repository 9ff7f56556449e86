# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Third-party packages that several layers use, imported only when needed. A host whose files have no certificates may lack cryptography."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import MissingPackage


class Cryptography(t.NamedTuple):
    """What is used of the package."""

    x509: t.Any
    ec: t.Any
    ed25519: t.Any
    rsa: t.Any
    serialization: t.Any
    exceptions: t.Any


def cryptography(purpose: str = "to read certificates") -> Cryptography:
    """Raises MissingPackage."""
    try:
        from cryptography import exceptions, x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    except ImportError as error:
        raise MissingPackage("cryptography", purpose, error) from None
    if not hasattr(x509.Certificate, "not_valid_after_utc"):
        # Times with their zone are there since 42.0.
        raise MissingPackage("'cryptography>=42.0'", purpose, ImportError("the installed version is older"))
    return Cryptography(x509, ec, ed25519, rsa, serialization, exceptions)
