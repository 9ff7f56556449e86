# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a teardown leaves of the stack: in the cluster nothing, on the machine what NVIDIA's programs do not take back when they end.

Its tests are the last of a session, whichever files are asked for (conftest.py).
"""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.departure import Departure, marks

#: Of Node Feature Discovery, of NVIDIA's programs, and ours.
PREFIXES = ("feature.node.kubernetes.io/", "nfd.node.kubernetes.io/", "nvidia.com/", "hwaccel.gpu/")
#: Beginnings of paths on the machine, and why these files stay. All in /run go with the next boot.
STAYS = {
    "/etc/containerd/config.toml": "the toolkit wrote it anew with an import of conf.d; when it ends it takes its drop-in away and leaves the import "
    "(nvidia-container-toolkit, pkg/config/engine/containerd/config_drop_in.go, simplify)",
    "/usr/local/nvidia/toolkit/": "the toolkit's programs, which containers that still run were started with; its installer takes none away",
    "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json": "of the device plugin, for containers that have GPUs",
    "/var/run/cdi/management.nvidia.com-gpu.yaml": "of the toolkit",
    "/run/nvidia/nvidia-driver.": "the driver container's lock, and which configuration it has loaded",
    "/run/nvidia/validations/.cuda-proof": "the proof of this boot, for GPUs that are in use when a validator comes again",
    "/run/nvidia/validations/.failed": "that a probe has failed once, as it does when the driver goes before the validator",
}
SOMETIMES = ("/run/nvidia/validations/.failed",)

pytestmark = pytest.mark.slow


def test_no_object_is_left_and_none_is_missing(departed: Departure) -> None:
    assert departed.gone.rc == 0, departed.gone.stdout[-6000:]
    until(lambda: not departed.left_behind(), "controllers to clean up", seen=departed.left_behind)


def test_no_mark_is_left_on_a_node_and_no_gpu_is_offered(cluster: Cluster, departed: Departure) -> None:
    assert marks(cluster, PREFIXES) == {}
    assert cluster.gpus(REAL)[1] == "0", "kubelet keeps the key; capacity goes to 0 too, five minutes later"


def test_gates_and_runtime_are_gone_from_the_machine_and_what_stays_is_known(departed: Departure) -> None:
    left = departed.files_left()
    assert not {f"/run/nvidia/validations/{gate}-ready" for gate in ("driver", "toolkit", "cuda")} & left.keys(), (
        "a gate stays open that nobody keeps true"
    )
    assert [path for path in left if not path.startswith(tuple(STAYS))] == []
    # Each of them is there on a node that has had the stack; one that no longer is should leave the table.
    assert [
        start for start in STAYS if start not in SOMETIMES and not any(path.startswith(start) for path in left)
    ] == []
