# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewal of a serving certificate: the node serves with one that the cluster's signer issued for the same names. Pure.

By openshift/cluster-machine-approver, pkg/controller/csr_check.go (authorizeServingRenewal): who holds such a certificate gets nothing new.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
import typing as t
import warnings

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import requests
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.libraries import library
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import NODE_PREFIX
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import RequestVerdict

#: A request with these verdicts is approved nevertheless if it is a renewal: the inventory has no say in what the node has already.
RENEWABLE = frozenset(("NOT_IN_INVENTORY", "SAN_NOT_ALLOWED"))
_EACH = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Served:
    """What a node's kubelet presents. certificate: DER, b"" if it presents none. unreachable: why it cannot be asked, "" if it can."""

    certificate: bytes = b""
    unreachable: str = ""


class Authorities:
    """The certificate authorities that sign serving certificates, from PEM."""

    def __init__(self, pem: str) -> None:
        found = (_parsed(library().x509.load_pem_x509_certificate, block) for block in _EACH.findall(pem.encode()))
        self._certificates = [certificate for certificate in found if certificate is not None]

    def __bool__(self) -> bool:
        return bool(self._certificates)

    def problem(self, certificate: t.Any, now: float) -> str:
        """Why a certificate is not one of theirs at this time, "" if it is."""
        moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
        if not certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc:
            return f"it is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} to {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC only"
        if any(_issued(certificate, authority) for authority in self._certificates):
            return ""
        return "the cluster's signer did not issue it"


def serves(served: Served, authorities: Authorities, now: float) -> str:
    """Why a kubelet does not serve with a certificate of the cluster's signer, "" if it does."""
    if served.unreachable:
        return served.unreachable
    certificate = _parsed(library().x509.load_der_x509_certificate, served.certificate)
    return "it presents no certificate" if certificate is None else authorities.problem(certificate, now)


def renewed(verdict: RequestVerdict, served: Served, authorities: Authorities, now: float) -> RequestVerdict:
    """The verdict on a request that the inventory does not allow."""
    if served.unreachable:
        why = f"{verdict.why}; whether it renews what the node serves with is unknown: {served.unreachable}"
        return verdict.refused("NODE_UNREACHABLE", why)
    certificate = _parsed(library().x509.load_der_x509_certificate, served.certificate)
    if certificate is None:
        return verdict
    problem = authorities.problem(certificate, now) or _difference(verdict, certificate)
    if problem:
        # Many kubelets serve with a certificate of their own until they have one of the signer, so that this is no renewal.
        return verdict.refused(
            verdict.code, f"{verdict.why}; it is no renewal of the node's current certificate: {problem}"
        )
    return dataclasses.replace(verdict, code="", why="", renewal=True)


def _difference(verdict: RequestVerdict, certificate: t.Any) -> str:
    """What the current certificate has otherwise than the request."""
    asked = requests.read(verdict.request.pem)
    if asked.other_names:
        return "kubelets request DNS names and addresses only"
    with warnings.catch_warnings():
        # See requests._subject.
        warnings.simplefilter("ignore")
        names = [str(attribute.value) for attribute in certificate.subject if attribute.oid.dotted_string == "2.5.4.3"]
    if names != [f"{NODE_PREFIX}{verdict.node}"]:
        return f"that is for {', '.join(names) or 'nobody'}"
    try:
        extension = certificate.extensions.get_extension_for_class(library().x509.SubjectAlternativeName)
    except (*library().errors, library().x509.ExtensionNotFound):
        return "that has no names"
    has = requests.alternative_names([extension.value])
    if tuple(map(sorted, has)) != (sorted(asked.dns_names), sorted(asked.addresses), []):
        return f"that has the names {', '.join(sorted((*has[0], *has[1], *has[2])))}"
    return ""


def _issued(certificate: t.Any, authority: t.Any) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            certificate.verify_directly_issued_by(authority)
    except library().errors:
        return False
    return True


def _parsed(load: t.Callable[[bytes], t.Any], data: bytes) -> t.Any:
    try:
        return load(data) if data else None
    except library().errors:
        return None
