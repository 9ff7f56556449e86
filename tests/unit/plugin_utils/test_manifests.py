# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests of roles, like the filters receive them from every supported ansible-core."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import parse_manifests


class Templated(str):
    """Like ansible-core 2.16 returns the result of a template."""


@pytest.mark.parametrize("kind", [str, Templated])
def test_texts_of_every_core_are_read(kind: type[str]) -> None:
    assert parse_manifests([kind("kind: A\n---\n---\nkind: B\n"), kind("")]) == [{"kind": "A"}, {"kind": "B"}]


@pytest.mark.parametrize("text", ["- a", "a: 1", "kind: [", "text"])
def test_a_manifest_that_is_no_object_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="a manifest is no"):
        parse_manifests([Templated(text)])
