# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a teardown, nothing of the stack is left in the cluster, and on the machine only what NVIDIA's programs do not remove at their end.

These tests are the last of a session, for any selection of files (conftest.py).
"""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.teardown import Teardown, marks

#: Prefixes of Node Feature Discovery, of NVIDIA's programs, and ours.
PREFIXES = ("feature.node.kubernetes.io/", "nfd.node.kubernetes.io/", "nvidia.com/", "hwaccel.gpu/")
#: Prefixes of paths on the machine, and why these files remain. Those in /run are removed by the next boot.
REMAINING = {
    "/etc/containerd/config.toml": "the toolkit rewrote it with an import of conf.d; at its end it removes its drop-in and leaves the import "
    "(nvidia-container-toolkit, pkg/config/engine/containerd/config_drop_in.go, simplify)",
    "/usr/local/nvidia/toolkit/": "the toolkit's programs, with which running containers were started; its installer removes none",
    "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json": "of the device plugin, for containers that have GPUs",
    "/var/run/cdi/management.nvidia.com-gpu.yaml": "of the toolkit",
    "/run/nvidia/nvidia-driver.": "the driver container's lock, and the configuration that it has loaded",
    "/run/nvidia/validations/.cuda-proof": "the proof of this boot, for GPUs that are in use when a validator starts again",
    "/run/nvidia/validations/.failed": "a probe has failed once, as when the driver ends before the validator",
}
SOMETIMES = ("/run/nvidia/validations/.failed",)

pytestmark = pytest.mark.slow


def test_no_object_is_left_behind_and_none_is_missing(torn_down: Teardown) -> None:
    assert torn_down.run.rc == 0, torn_down.run.stdout[-6000:]
    until(lambda: not torn_down.left_behind(), "controllers to clean up", seen=torn_down.left_behind)


def test_no_label_or_taint_is_left_on_a_node_and_no_gpu_is_allocatable(cluster: Cluster, torn_down: Teardown) -> None:
    assert marks(cluster, PREFIXES) == {}
    assert cluster.gpus(REAL)[1] == "0", (
        "the kubelet keeps the name of the resource; its capacity is 0 five minutes later"
    )


def test_gates_and_runtime_are_removed_from_the_machine_and_remaining_files_are_known(torn_down: Teardown) -> None:
    left = torn_down.files_left()
    assert not {f"/run/nvidia/validations/{gate}-ready" for gate in ("driver", "toolkit", "cuda")} & left.keys(), (
        "a gate remains open without a validator"
    )
    assert [path for path in left if not path.startswith(tuple(REMAINING))] == []
    # All of these exist on a node that has had the stack; a row without such a file has to be removed from the table.
    assert [
        start for start in REMAINING if start not in SOMETIMES and not any(path.startswith(start) for path in left)
    ] == []
