# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package cryptography, imported only when a request or a certificate is read. A bastion that approves nothing may lack it."""

from __future__ import annotations

import functools
import sys
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError


class Library(t.NamedTuple):
    """The parts of cryptography that this package uses."""

    x509: t.Any
    ec: t.Any
    rsa: t.Any
    serialization: t.Any
    #: Errors of parsing and of verification. Unsupported algorithms and versions are errors of the input here.
    errors: tuple[type[Exception], ...]


@functools.cache
def library() -> Library:
    """Raises HwaccelError if cryptography is not installed."""
    try:
        from cryptography import exceptions, x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
    except ImportError as error:
        raise HwaccelError(
            "the Python package cryptography is missing",
            sys.executable,
            f"it reads requests for certificates: {error}",
            f"install it for this Python ('{sys.executable} -m pip install cryptography')",
        ) from None
    # TypeError: attributes and names of some types are refused this way.
    unreadable = (
        ValueError,
        TypeError,
        exceptions.UnsupportedAlgorithm,
        exceptions.InvalidSignature,
        x509.InvalidVersion,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    )
    return Library(x509, ec, rsa, serialization, unreadable)
