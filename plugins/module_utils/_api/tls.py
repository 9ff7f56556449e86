# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS contexts from PEM text."""

from __future__ import annotations

import collections.abc as c
import contextlib
import os
import ssl
import tempfile

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import CertificateRejected


def context(credentials: Credentials) -> ssl.SSLContext:
    try:
        made = ssl.create_default_context(cadata=credentials.ca or None)
    except ssl.SSLError as error:
        raise CertificateRejected(
            "the CA certificate cannot be used",
            credentials.source,
            str(error.reason or error),
            "set ca_cert to a PEM file with the cluster's CA",
        ) from None
    # Python 3.13 made this strict by default. The CAs of many clusters lack an extension that it then requires.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not credentials.verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if credentials.client_cert:
        _load_client(made, credentials)
    return made


def _load_client(made: ssl.SSLContext, credentials: Credentials) -> None:
    with _as_file(credentials.client_cert.rstrip() + "\n" + credentials.client_key) as path:
        try:
            # A dummy password is passed, because a prompt would block the run.
            made.load_cert_chain(path, password=lambda: "")
        except (ssl.SSLError, ValueError) as error:
            raise CertificateRejected(
                "the client certificate cannot be used",
                credentials.source,
                f"certificate and key do not load: {getattr(error, 'reason', None) or error}",
                "set client_cert and client_key to PEM files that belong together, with a key without a passphrase",
            ) from None


@contextlib.contextmanager
def _as_file(text: str) -> c.Iterator[str]:
    """OpenSSL reads client certificates from files only: a file in memory if the system supports it, else one that only this user can read."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("client", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile("w", prefix="hwaccel-", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        yield file.name
