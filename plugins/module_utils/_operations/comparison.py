# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a connection is one to the cluster that an installer has found: by its certificate authority, and by the UID of kube-system where that differs."""

from __future__ import annotations

import binascii
import collections.abc as c
import dataclasses
import hashlib
import re
import ssl
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, Fault, HwaccelError

#: same: a connection to this cluster. other: to another one. unknown: it cannot be found out.
SAME, OTHER, UNKNOWN = "same", "other", "unknown"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_NEXT = "correct hwaccel_connection; or remove it, and the kubeconfig of its administrator is used"


@dataclasses.dataclass(frozen=True)
class Selected:
    """A cluster that a connection selects. where: its API server. authority: the certificates in PEM that it trusts, empty if it names none.

    uid: reads the UID of kube-system, empty if it may not be read; raises HwaccelError.
    """

    where: str
    authority: str
    uid: c.Callable[[], str]


def compared(given: Selected, made: Selected | None) -> dict[str, t.Any]:
    """state: see above. text: the problem of another cluster, or why it is unknown; empty if it is the same.

    made: the cluster of the machines, None if they are none yet. A proxy before the API server may have an authority of its own, so that only the UID decides
    then. No request is sent if the authority is the same.
    """
    mine = fingerprints(given.authority)
    if made is None:
        found, why = _read(given)
        return _result(OTHER, _early(given, found)) if found or mine else _result(UNKNOWN, why)
    theirs = fingerprints(made.authority)
    if set(mine) & set(theirs):
        return _result(SAME)
    (one, why), (other, _why) = _read(given), _read(made)
    if one and one == other:
        return _result(SAME)
    what = "hwaccel_connection is that of another cluster than the one of the machines"
    if one and other:
        return _result(OTHER, Fault(what, given.where, f"the UIDs of kube-system are {one} and {other}", _NEXT))
    if mine and theirs:
        authorities = f"the certificate authorities are {_short(mine)} and {_short(theirs)}"
        return _result(OTHER, Fault(what, given.where, authorities, _NEXT))
    return _result(UNKNOWN, why or "the UID of kube-system cannot be read")


def fingerprints(pem: str) -> list[str]:
    """SHA-256 of each certificate in DER, in lower case. Those that cannot be read are left out."""
    found = []
    for block in _CERTIFICATE.findall(pem):
        try:
            der = ssl.PEM_cert_to_DER_cert(block)
        except (ValueError, binascii.Error):
            continue
        # It decodes anything. A certificate is a SEQUENCE.
        found += [hashlib.sha256(der).hexdigest()] if der.startswith(b"\x30") else []
    return found


def _early(given: Selected, uid: str) -> Fault:
    what = "hwaccel_connection is that of a cluster, and the machines are none yet"
    why = f"the UID of its kube-system is {uid}" if uid else ""
    return Fault(
        what, given.where, why, f"{_NEXT}. If it was the cluster of these machines before, remove its kubeconfig"
    )


def _read(cluster: Selected) -> tuple[str, str]:
    """The UID, and why there is none."""
    try:
        return cluster.uid(), ""
    except ApiError as error:
        return "", error.faults[0].why or str(error)
    except HwaccelError as error:
        return "", str(error)


def _short(found: c.Sequence[str]) -> str:
    return f"{found[0][:16]}…"


def _result(state: str, told: Fault | str = "") -> dict[str, t.Any]:
    return {"state": state, "text": str(told)}
