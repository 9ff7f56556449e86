# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references, and the table of tags."""

from __future__ import annotations

import pytest

from fleet_agent.machine import images


@pytest.mark.parametrize(
    ("reference", "family", "found"),
    [
        ("nvcr.io/nvidia/driver:580.178.04-ubuntu24.04", "driver", True),
        ("mirror.example:5000/x/y/driver:595.91.07-rhel9", "driver", True),
        ("nvcr.io/nvidia/driver:580-6.8.0-106-generic-ubuntu24.04", "driver", True),
        ("nvcr.io/nvidia/driver:580-6.8.0-45-generic-ubuntu24.04", "driver", False),
        ("nvcr.io/nvidia/driver:580.178.04-ubuntu20.04", "driver", False),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "k8s-device-plugin", True),
        ("nvcr.io/nvidia/k8s-device-plugin:0.20.0", "k8s-device-plugin", False),
        ("nvcr.io/nvidia/k8s-device-plugin@sha256:" + "a" * 64, "k8s-device-plugin", True),
        ("nvcr.io/nvidia/k8s/k8s-device-plugin:v0.20.0", "", False),
        ("nvcr.io/nvidla/driver:580.178.04-ubuntu24.04", "", False),
        ("docker.io/library/busybox:1.36", "busybox", True),
        ("busybox:1.36", "busybox", True),
        ("docker.io/somebody/busybox:1.36", "", False),
        ("example.com/whatever:tag", "", False),
        ("nvcr.io/nvidla/driver@sha256:" + "a" * 64, "", False),
    ],
)
def test_only_known_tags_exist(reference, family, found):
    image = images.parse(reference)
    assert image.family == family
    assert images.exists(image) is found


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("a/b:1", "docker.io/a/b:1"),
        ("localhost/a:1", "localhost/a:1"),
        ("r.example/a/b:1", "r.example/a/b:1"),
    ],
)
def test_references_are_resolved_like_in_containerd(reference, name):
    assert images.qualified(images.parse(reference)) == name


@pytest.mark.parametrize("reference", ["", "a/UPPER:1", "a:b:c", "x@sha256:short", "a//b", "-x"])
def test_invalid_references_are_rejected(reference):
    assert images.parse(reference) is None


@pytest.mark.parametrize(
    ("tag", "content"),
    [
        ("595-5.14.0-570.el9.x86_64-rhel9", ("595", "rhel9", "5.14.0-570.el9.x86_64")),
        ("1-5.14.0-rhel9", None),
        ("595-rhel9", None),
        ("latest", None),
    ],
)
def test_a_driver_image_of_ones_own_has_what_its_tag_says(tag: str, content: tuple[str, str, str] | None) -> None:
    """It is not among the published ones."""
    found = images.own_driver_image(tag)
    assert images.driver_image(tag) is None
    assert (found and (found.version.partition(".")[0], found.os_tag, found.kernel)) == content
