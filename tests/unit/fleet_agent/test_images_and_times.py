# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references, the table of tags, and delays against those measured on a real node."""

from __future__ import annotations

import pathlib
import sys
import time

import pytest

from fleet_agent import images

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from conftest import World
from stack import container, host


@pytest.mark.parametrize(("reference", "family", "found"), [
    ("nvcr.io/nvidia/driver:580.178.04-ubuntu24.04", "driver", True),
    ("mirror.example:5000/x/y/driver:595.91.07-rhel9", "driver", True),
    ("nvcr.io/nvidia/driver:580-6.8.0-106-generic-ubuntu24.04", "driver", True),
    ("nvcr.io/nvidia/driver:580-6.8.0-45-generic-ubuntu24.04", "driver", False),
    ("nvcr.io/nvidia/driver:580.178.04-ubuntu20.04", "driver", False),
    ("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "k8s-device-plugin", True),
    ("nvcr.io/nvidia/k8s-device-plugin:0.20.0", "k8s-device-plugin", False),
    ("nvcr.io/nvidia/k8s-device-plugin@sha256:" + "a" * 64, "k8s-device-plugin", True),
    ("example.com/whatever:tag", "", True),
])
def test_tags(reference, family, found):
    image = images.parse(reference)
    assert image.family == family
    assert images.exists(image) is found


@pytest.mark.parametrize(("reference", "name"), [
    ("busybox", "docker.io/library/busybox:latest"), ("a/b:1", "docker.io/a/b:1"), ("localhost/a:1", "localhost/a:1"), ("r.example/a/b:1", "r.example/a/b:1"),
])
def test_names_as_containerd_resolves_them(reference, name):
    assert images.qualified(images.parse(reference)) == name


@pytest.mark.parametrize("reference", ["", "a/UPPER:1", "a:b:c", "x@sha256:short", "a//b", "-x"])
def test_what_is_no_reference(reference):
    assert images.parse(reference) is None


@pytest.mark.slow
def test_delays_at_scale_one_are_those_of_a_real_node_within_30_percent():
    """Measured: a pod Ready in 1.2 to 1.5 s; two gated init containers and one container up in 2.3 s (images present)."""
    world = World(1.0)
    node = world.node()
    node.host.images.add("busybox:1.36")
    script = ["sh", "-c", "sleep 999"]
    plain = world.pod(node, {"containers": [container("c", "busybox:1.36", script)]})
    inits = [container(f"i{n}", "busybox:1.36", ["sh", "-c", "[ -d /run/x ]"]) for n in range(2)]
    for made in inits:
        made["volumeMounts"] = [{"name": "v", "mountPath": "/run/x"}]
    gated = world.pod(node, {"containers": [container("c", "busybox:1.36", script)], "initContainers": inits, "volumes": [host("v", "/run/x")]})
    begun = time.monotonic()
    world.until(lambda: plain.main[0].ready)
    first = time.monotonic() - begun
    world.until(lambda: gated.main[0].ready)
    second = time.monotonic() - begun
    world.pool.shutdown()
    assert 1.2 * 0.7 <= first <= 1.5 * 1.3
    assert 2.3 * 0.7 <= second <= 2.3 * 1.3
