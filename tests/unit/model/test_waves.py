# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which objects are applied and deleted."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import waves


def test_waves_are_in_the_defined_order_and_in_reverse() -> None:
    kinds = [
        ("example.com", "Thing"),
        ("apps", "DaemonSet"),
        ("", "ConfigMap"),
        ("", "Namespace"),
        waves.CRD,
        ("node.k8s.io", "RuntimeClass"),
        waves.API_SERVICE,
    ]
    order = [
        waves.CRD,
        ("", "Namespace"),
        ("node.k8s.io", "RuntimeClass"),
        ("", "ConfigMap"),
        ("apps", "DaemonSet"),
        waves.API_SERVICE,
        ("example.com", "Thing"),
    ]
    assert [group[0] for _wave, group in waves.in_waves(kinds, lambda kind: kind)] == order
    assert [group[0] for _wave, group in waves.in_waves(kinds, lambda kind: kind, backwards=True)] == order[::-1]
