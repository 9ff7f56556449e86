# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate that a kubelet serves with, read by a TLS handshake. No request is sent, and no credentials."""

from __future__ import annotations

import contextlib
import socket
import ssl

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Unreachable

#: Seconds for connection and handshake, which take milliseconds in a cluster's network.
TIMEOUT = 5.0
_HANDSHAKE_FAILURES = ("alert", "handshake")


def serving_certificate(address: str, port: int, timeout: float = TIMEOUT) -> bytes:
    """DER, b"" if the kubelet presents none, as before its first request is approved. Raises Unreachable.

    The caller verifies the certificate. The handshake has verified that the kubelet has its key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address, port), timeout=timeout) as connection,
            contextlib.closing(context.wrap_socket(connection)) as secured,
        ):
            return secured.getpeercert(binary_form=True) or b""
    except ssl.SSLError as error:
        if any(word in str(error).lower() for word in _HANDSHAKE_FAILURES):
            return b""
        raise _unreachable(address, port, str(error.reason or error)) from None
    except OSError as error:
        raise _unreachable(address, port, error.strerror or str(error) or type(error).__name__) from None


def _unreachable(address: str, port: int, why: str) -> Unreachable:
    step = f"open port {port} of the nodes to the machine that the module runs on"
    return Unreachable("asking a kubelet for its certificate", f"{address} port {port}", why, step)
