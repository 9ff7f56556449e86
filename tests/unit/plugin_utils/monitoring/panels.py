# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries of a dashboard like Grafana sends them, and those for which a Prometheus has no data."""

from __future__ import annotations

import re
import time
import typing as t

from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.monitoring.server import Prometheus

#: Seconds of the queried range.
_RANGE = 5


def filled_in(query: str) -> str:
    """The query with variables replaced like in Grafana, with all nodes, namespaces and pods selected."""
    text = re.sub(r"\$(node|namespace|pod)\b", ".+", query).replace("$__rate_interval", "5m")
    return re.sub(r"^label_values\((.+), \w+\)$", r"\1", text)


def without_data(prometheus: Prometheus, model: dict[str, t.Any]) -> list[tuple[str, str, str]]:
    """Dashboard, panel or variable, and query of everything on a dashboard without data of the last seconds. `model`: JSON model of Grafana."""
    now, empty = time.time(), []
    for panel in model["panels"]:
        for query in (target["expr"] for target in panel["targets"]):
            if not prometheus.get(
                "query_range", query=filled_in(query), start=str(now - _RANGE), end=str(now), step="1"
            )["result"]:
                empty.append((model["title"], panel["title"], query))
    for variable in model["templating"]["list"]:
        label_query = (
            re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            if variable["type"] == "query"
            else None
        )
        if label_query and not prometheus.get(
            f"label/{label_query[2]}/values", **{"match[]": filled_in(label_query[1])}
        ):
            empty.append((model["title"], variable["name"], label_query[0]))
    return empty
