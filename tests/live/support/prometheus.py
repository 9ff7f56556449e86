# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Definitions of prometheus-operator's kinds with schemas that take anything: stand-ins for those of the operator, which is not there."""

from __future__ import annotations

import typing as t

KINDS = {"servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"}


def kind_of(plural: str, kind: str) -> dict[str, t.Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}],
        },
    }
