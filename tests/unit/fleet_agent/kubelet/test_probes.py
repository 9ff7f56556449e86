# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes over the network reach only ports and paths that the program serves."""

from __future__ import annotations

import pytest

NFD = "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"
PORTS = [{"name": "http", "containerPort": 8080}, {"name": "other", "containerPort": 9090}]


def collector(world, probe, *arguments):
    """It serves, whether it may read nodes or not."""
    world.api.forbidden.append(r"GET /api/v1/nodes")
    container = {"name": "gc", "image": NFD, "command": ["nfd-gc"], "args": list(arguments), "ports": PORTS}
    return world.pod(world.node(), {"containers": [{**container, "readinessProbe": {**probe, "periodSeconds": 1}}]})


@pytest.mark.parametrize(
    ("probe", "arguments"),
    [
        ({"httpGet": {"path": "/healthz", "port": 8080}}, ()),
        ({"httpGet": {"path": "/metrics", "port": "http"}}, ("-port=8080",)),
        ({"httpGet": {"path": "/healthz", "port": "other"}}, ("-port=9090",)),
        ({"tcpSocket": {"port": "http"}}, ()),
    ],
)
def test_a_probe_of_a_served_port_and_path_passes(world, probe, arguments):
    pod = collector(world, probe, *arguments)
    world.until(lambda: pod.main[0].ready)


@pytest.mark.parametrize(
    ("probe", "arguments", "message"),
    [
        ({"httpGet": {"path": "/healthy", "port": 8080}}, (), "HTTP probe failed with statuscode: 404"),
        ({"httpGet": {"path": "/healthz", "port": "other"}}, (), ":9090: connect: connection refused"),
        ({"httpGet": {"path": "/healthz", "port": "http"}}, ("-port=8081",), ":8080: connect: connection refused"),
        ({"httpGet": {"path": "/healthz", "port": "unknown"}}, (), "connection refused"),
        ({"tcpSocket": {"port": 9090}}, (), "dial tcp"),
    ],
)
def test_any_other_probe_fails_with_the_message_of_the_kubelet(world, probe, arguments, message):
    pod = collector(world, probe, *arguments)
    world.until(lambda: world.warnings)
    reason, text = world.warnings[0]
    assert (reason, pod.main[0].ready) == ("Unhealthy", False)
    assert message in text
