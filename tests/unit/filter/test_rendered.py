# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects rendered as the text that is applied, from values of every supported ansible-core."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.rendered import rendered
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.test_manifests import Templated
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack


def test_rendered_text_is_sorted_patched_and_stable() -> None:
    objects = [
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": "a", "namespace": "b"},
            "data": {"z": "1\n2\n", "a": "x"},
        }
    ]
    text = rendered(objects, [{"target": {"kind": "ConfigMap"}, "patch": {"data": {"more": "yes"}}}])
    assert text == rendered(objects, [{"target": {"kind": "ConfigMap"}, "patch": {"data": {"more": "yes"}}}])
    assert stack.yaml.safe_load(text)["data"] == {"a": "x", "more": "yes", "z": "1\n2\n"}
    assert text.index("  a: x") < text.index("  more: ")
    with pytest.raises(AnsibleFilterError, match="ConfigMap"):
        rendered(objects, [{"target": {"kind": "ConfigMap", "name": "other"}, "patch": {"data": {}, "x": 1}}])


def _itself(text: str) -> str:
    return text


class Unsafe(Templated):
    """Like ansible-core 2.16 marks values that contain an extra variable of AWX: even its str() is no plain text."""

    __str__ = _itself


def test_texts_of_every_core_are_rendered() -> None:
    body = {
        Unsafe("apiVersion"): Unsafe("v1"),
        "kind": "ConfigMap",
        "metadata": {"name": Unsafe("a"), "namespace": "b"},
    }
    assert rendered([body]).splitlines() == [
        "---",
        "apiVersion: v1",
        "kind: ConfigMap",
        "metadata:",
        "  name: a",
        "  namespace: b",
    ]
