# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of container processes."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.roles import stack
from ansible_collections.hwaccel.gpu.tests.unit.roles.test_manifests import containers


@pytest.mark.parametrize("role", stack.ROLES)
def test_containers_that_write_to_the_host_run_as_root(role: str) -> None:
    """Root owns folders that the kubelet creates for host paths, and capabilities of a privileged container also need root."""
    for name, spec, container in containers(role):
        hosts = {volume["name"] for volume in spec.get("volumes", ()) if "hostPath" in volume}
        writes = any(
            mount["name"] in hosts and not mount.get("readOnly") for mount in container.get("volumeMounts", ())
        )
        if writes or container.get("securityContext", {}).get("privileged"):
            assert stack.user_of(spec, container) == 0, f"{name} {container['name']}"


def test_no_other_container_runs_as_root_without_a_reason() -> None:
    """Gates of the device plugin and the exporter read a file of root on the host, and the exporter connects to the kubelet's socket."""
    found = {
        (name, one["name"])
        for role in stack.ROLES
        for name, spec, one in containers(role)
        if stack.user_of(spec, one) == 0 and not one.get("securityContext", {}).get("privileged")
    }
    assert found == {
        ("nvidia-device-plugin", "cuda-proof"),
        ("gpu-feature-discovery", "cuda-proof"),
        ("nvidia-dcgm-exporter", "driver-proof"),
        ("nvidia-dcgm-exporter", "nvidia-dcgm-exporter"),
    }
