# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of all algorithms, with the names that installers give them, alone and in bundles."""

from __future__ import annotations

import datetime
import warnings

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import packages
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import MissingPackage
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import certificates
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i


def read(text: str, path: str = "/a.crt") -> list[certificates.Certificate]:
    return list(certificates.certificates(text.encode("utf-8"), path))


@pytest.mark.parametrize(
    ("algorithm", "key"), [("rsa", "RSA 2048"), ("ecdsa", "ECDSA secp384r1"), ("ed25519", "Ed25519")]
)
def test_keys_of_all_algorithms(algorithm: str, key: str) -> None:
    (found,) = read(i.certificate("kubelet-signer", i.NOW, i.DAY, algorithm))
    assert found == certificates.Certificate(
        "/a.crt", 1, "CN=kubelet-signer", "signer", key, i.NOW, i.NOW + datetime.timedelta(days=1)
    )


def test_the_name_of_73_characters_is_read_without_a_warning() -> None:
    assert len(i.BOOTSTRAPPER) == 73
    text = i.certificate(i.BOOTSTRAPPER, i.NOW, 10 * i.YEAR)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = read(text)
    assert (found.subject, found.role) == (f"CN={i.BOOTSTRAPPER}", "leaf")


@pytest.mark.parametrize(
    ("name", "authority", "role"),
    [
        ("root-ca", None, "signer"),
        ("kube-apiserver-to-kubelet-signer", None, "signer"),
        ("system:kube-apiserver", None, "leaf"),
        ("journal-gatewayd", None, "leaf"),
        ("Example Corporation", True, "signer"),
        ("Example Corporation", False, "leaf"),
        ("Example Corporation", None, "leaf"),
    ],
)
def test_roles_are_those_of_the_names_and_else_of_the_constraints(name: str, authority: bool | None, role: str) -> None:
    assert [one.role for one in read(i.certificate(name, i.NOW, i.DAY, authority=authority))] == [role]


def test_bundles_have_positions_and_text_between() -> None:
    first, second = (i.certificate(name, i.NOW, i.DAY) for name in ("root-ca", "aggregator"))
    found = read(f"# comment\n{first}\n# another\r\n{second}".replace("\n", "\r\n"))
    assert [(one.position, one.subject) for one in found] == [(1, "CN=root-ca"), (2, "CN=aggregator")]


def test_indented_blocks_are_read() -> None:
    text = i.certificate("root-ca", i.NOW, i.DAY)
    indented = "".join(f"    {line}\n" for line in text.splitlines())
    assert [one.subject for one in read(f"kind: ConfigMap\ndata:\n  ca.crt: |\n{indented}")] == ["CN=root-ca"]


def test_a_script_that_cuts_certificates_has_none() -> None:
    script = "sed -n '/-----BEGIN CERTIFICATE-----/,/-----END CERTIFICATE-----/p'"
    assert read(script) == []
    assert certificates.damaged(script.encode())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-----BEGIN CERTIFICATE-----\nQ\n-----END CERTIFICATE-----", "the base64 of certificate 1 is not valid"),
        ("-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----", "certificate 1 cannot be read"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "certificate 1 cannot be read"),
    ],
)
def test_what_is_no_certificate_is_unreadable(text: str, why: str) -> None:
    with pytest.raises(certificates.Unreadable, match=why):
        read(text)


def test_a_certificate_that_is_cut_off_is_unreadable() -> None:
    lines = i.certificate("root-ca", i.NOW, i.DAY).splitlines(keepends=True)
    good = i.certificate("aggregator", i.NOW, i.DAY)
    with pytest.raises(certificates.Unreadable, match="certificate 2 cannot be read"):
        read(good + "".join([*lines[:3], lines[-1]]))
    assert certificates.damaged("".join(lines[:-1]).encode())
    assert not certificates.damaged("".join(lines).encode())


def test_a_long_subject_is_shortened() -> None:
    (found,) = read(i.certificate("a" * 2000, i.NOW, i.DAY))
    assert len(found.subject) == 301


def test_without_cryptography_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(MissingPackage) as caught:
        packages.cryptography()
    assert "-m pip install cryptography" in str(caught.value)


def test_an_old_cryptography_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography import x509

    class Old:
        """A certificate class of a version before 42.0."""

    monkeypatch.setattr(x509, "Certificate", Old)
    with pytest.raises(MissingPackage) as caught:
        packages.cryptography()
    assert "the installed version is older" in str(caught.value)
