# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of K3s: what data are encrypted with, and which ones servers cannot have."""

from __future__ import annotations

import hashlib

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import tokens

HASH = "ab" * 32


@pytest.mark.parametrize(
    "token", ["fresh", "fresh\n", "K10::fresh", f"K10{HASH}::fresh", f"K10{HASH}::server:fresh", "K10::server:fresh"]
)
def test_all_forms_of_a_token_have_one_password(token: str) -> None:
    assert tokens.password(token) == "fresh"
    assert tokens.storage_name(token) == hashlib.sha256(b"fresh").hexdigest()[:12]


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("", "it is empty"),
        (f"K10{HASH}::server:", "it is empty"),
        ("abcdef.0123456789abcdef", "bootstrap token"),
        ("two words", "without spaces"),
        ("a,b", "commas"),
        ("größe", "ASCII"),
        ("fresh", ""),
        ("1234567890abcdef" * 2, ""),
    ],
)
def test_tokens_that_servers_cannot_have(token: str, why: str) -> None:
    assert why in tokens.why_not(token) and bool(tokens.why_not(token)) == bool(why)
