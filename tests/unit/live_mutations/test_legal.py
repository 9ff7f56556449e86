# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other legal values."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.live.mutations.legal import another


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("spec", "template", "spec", "hostPath", "type"), "DirectoryOrCreate", "Directory"),
        (("spec", "updateStrategy", "type"), "OnDelete", "RollingUpdate"),
        (("rules", 0, "verbs", 1), "get", "list"),
        (("env", 0, "value"), "cdi", "legacy"),
        (("metadata", "labels", "pod-security.kubernetes.io/enforce"), "privileged", "baseline"),
        (("env", 0, "value"), "/run/nvidia", None),
        (("metadata", "name"), "all", None),
    ],
)
def test_other_values_of_a_schema(path: tuple[str | int, ...], value: str, expected: str | None) -> None:
    assert another(path, value) == expected
