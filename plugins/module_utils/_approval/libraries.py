# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package cryptography, and what it raises for requests and certificates that cannot be read."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import packages


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
    """Raises MissingPackage."""
    found = packages.cryptography("to read requests for certificates")
    x509, exceptions = found.x509, found.exceptions
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
    return Library(x509, found.ec, found.rsa, found.serialization, unreadable)
