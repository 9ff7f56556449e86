# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exporter reads its environment as dcgm-exporter 4.6.0 does."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, log, mount

IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"
COUNTERS = "/etc/counters/counters.csv"


def exporter(world, **values):
    world.store.data[("configmap", "ns", "counters")] = {"counters.csv": "DCGM_FI_DEV_GPU_TEMP, gauge, temperature\n"}
    node = world.node(host_driver="580.95.05", host_toolkit=True)
    made = container("c", IMAGE, ["dcgm-exporter"], mount("counters", "/etc/counters"), privileged=False, **values)
    probe = {"httpGet": {"path": "/health", "port": 9400}, "periodSeconds": 1}
    volumes = [{"name": "counters", "configMap": {"name": "counters"}}]
    return world.pod(node, {"containers": [{**made, "readinessProbe": probe}], "volumes": volumes}).main[0]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"DCGM_EXPORTER_LISTEN": ":9400", "DCGM_EXPORTER_COLLECTORS": COUNTERS},
        {"DCGM_EXPORTER_COLLECTORS": "/etc/dcgm-exporter/dcp-metrics-included.csv"},
    ],
)
def test_it_serves_its_metrics(world, values):
    started = exporter(world, **values)
    world.until(lambda: started.ready)


@pytest.mark.parametrize("listen", [":9401", "127.0.0.1:9400"])
def test_a_port_that_the_kubelet_cannot_reach_is_not_ready(world, listen):
    started = exporter(world, DCGM_EXPORTER_LISTEN=listen)
    world.until(lambda: any("connection refused" in message for _reason, message in world.warnings))
    assert not started.ready


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"DCGM_EXPORTER_COLLECTORS": "/etc/counters/none.csv"},
            "Could not read metrics file '/etc/counters/none.csv'",
        ),
        ({"DCGM_EXPORTER_LISTEN": "9400x"}, "Failed to Listen and Server HTTP server."),
    ],
)
def test_a_setting_that_it_cannot_use_ends_it(world, values, message):
    started = exporter(world, **values)
    world.until(lambda: started.restarts >= 1)
    assert message in log(started)
