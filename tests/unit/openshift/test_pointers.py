# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pointers, as openshift-install writes them and as they are read."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import ignition, pointers
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.pointers import Pointer
from ansible_collections.hwaccel.gpu.tests.unit.approval.signing import Authority

ROOT, OTHER = Authority("root-ca").pem, Authority("machine-config-server-ca").pem
DOMAIN = "ocp.example.com"


def test_a_pointer_names_the_pool_and_the_authority_and_nothing_else() -> None:
    made = Pointer("3.2.0", ROOT).of(DOMAIN, "worker")
    url = f"data:text/plain;charset=utf-8;base64,{base64.b64encode(ROOT.encode()).decode()}"
    assert json.loads(made) == {
        "ignition": {
            "version": "3.2.0",
            "config": {"merge": [{"source": "https://api-int.ocp.example.com:22623/config/worker"}]},
            "security": {"tls": {"certificateAuthorities": [{"source": url}]}},
        }
    }
    assert made == Pointer("3.2.0", ROOT).of(DOMAIN, "worker")


@pytest.mark.parametrize("version", [pointers.VERSION, "3.6.0"])
def test_ignition_takes_a_pointer_which_has_no_key(version: str) -> None:
    found = ignition.read(Pointer(version, ROOT + OTHER).of(DOMAIN, "master").encode(), "master.ign")
    assert (found.version, found.faults, found.private_keys) == (version, (), ())
    assert [one.subject for one in found.certificates] == ["CN=root-ca", "CN=machine-config-server-ca"]


def test_what_was_written_is_read_again() -> None:
    written = Pointer("3.6.0", ROOT + OTHER)
    assert pointers.read(written.of(DOMAIN, "worker").encode()) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"ignition": null}',
        '{"ignition": {"version": "3.2.0"}}',
        '{"ignition": {"version": "3.2.0", "security": {"tls": {"certificateAuthorities": [{"source": "https://x/ca"}]}}}}',
        '{"ignition": {"version": "2.2.0", "security": {"tls": {"certificateAuthorities": []}}}}',
        '{"ignition": {"version": 3, "security": {"tls": {"certificateAuthorities": []}}}}',
    ],
)
def test_what_is_no_pointer_is_none(text: str) -> None:
    assert pointers.read(text.encode()) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ROOT, ""),
        (OTHER + ROOT, ""),
        ("", "no complete certificate"),
        ("ca", "no complete certificate"),
        (ROOT + "-----BEGIN CERTIFICATE-----\nMIIB", "no complete certificate"),
        (ROOT.replace("MII", "AII", 1), "certificate 1 cannot be read"),
    ],
)
def test_only_certificates_can_be_trusted(text: str, why: str) -> None:
    assert why in pointers.why_not(text) and bool(pointers.why_not(text)) == bool(why)


def test_the_same_certificates_are_the_same_authorities() -> None:
    windows = ROOT.replace("\n", "\r\n")
    assert pointers.same(ROOT + OTHER, f"# a comment\n{OTHER}\n{windows}")
    assert not pointers.same(ROOT, ROOT + OTHER)
    assert not pointers.same(ROOT, OTHER)
