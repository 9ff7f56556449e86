# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A dashboard's queries as Grafana asks them, and those that a Prometheus has no data for."""

from __future__ import annotations

import re
import time
import typing as t

from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.server import Prometheus

#: Seconds that are looked at.
_RANGE = 5


def filled_in(query: str) -> str:
    """As Grafana does it, with all nodes, namespaces and pods chosen."""
    text = re.sub(r"\$(node|namespace|pod)\b", ".+", query).replace("$__rate_interval", "5m")
    return re.sub(r"^label_values\((.+), \w+\)$", r"\1", text)


def without_data(prometheus: Prometheus, model: dict[str, t.Any]) -> list[tuple[str, str, str]]:
    """Dashboard, panel or choice, and query of everything on a dashboard that shows nothing of the last seconds. model: as Grafana reads it."""
    now, empty = time.time(), []
    for panel in model["panels"]:
        for query in (target["expr"] for target in panel["targets"]):
            if not prometheus.get(
                "query_range", query=filled_in(query), start=str(now - _RANGE), end=str(now), step="1"
            )["result"]:
                empty.append((model["title"], panel["title"], query))
    for variable in model["templating"]["list"]:
        asked = (
            re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            if variable["type"] == "query"
            else None
        )
        if asked and not prometheus.get(f"label/{asked[2]}/values", **{"match[]": filled_in(asked[1])}):
            empty.append((model["title"], variable["name"], asked[0]))
    return empty
