# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates of a real node: its files over a reboot, and what node_gate makes of the states that a real kubelet tells. The API's fields are read, no column.

The minute before the driver's startup probe is real too.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.trouble import CRASHES, LOST
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS
from ansible_collections.hwaccel.gpu.tests.node.conftest import POOLS, REAL, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import defaults

FOLDER = "/run/nvidia/validations"
FAULT = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
#: In the order in which they open.
FILES = ("driver-ready", "toolkit-ready", "cuda-ready")
EXPORTER = defaults("monitoring")["monitoring_image"]
ANOTHER = "another-exporter"
DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets", True)


def files(node: KubernetesNode) -> set[str]:
    return set(node.machine.sh(f"ls -A {FOLDER} 2>/dev/null || :").split())


def step(cluster: Cluster, app: str) -> str:
    """The init container that a pod is at since the node's boot, "" past the last."""
    for one in cluster.pod(REAL, app)["status"].get("initContainerStatuses", ()):
        if one["state"].get("terminated", {}).get("exitCode") != 0:
            return str(one["name"])
    return ""


def after_boot(cluster: Cluster) -> dict[str, t.Any] | None:
    """What the gate says of the driver once the kubelet has told of ends that nobody saw, None before that."""
    faults = gate(cluster, "driver", check_mode=True).values["faults"] if lost(cluster) else []
    return next((row for row in faults if row["link"] == "driver"), None)


def ready(cluster: Cluster, app: str) -> bool:
    return reduce_pod(cluster.pod(REAL, app)).ready


def lost(cluster: Cluster) -> bool:
    """Whether a container of ours on the node has an end that nobody saw, now or as its last run."""
    pods = map(reduce_pod, cluster.client.list(POD, AGENTS, field_selector=f"spec.nodeName={REAL}").items)
    return any({one.reason, one.last_reason} & set(LOST) for pod in pods for one in (*pod.inits, *pod.containers))


def gate(cluster: Cluster, name: str, *, check_mode: bool = False, **options: t.Any) -> Outcome:
    """Of the real node alone, as a role calls it; nothing is marked."""
    settings = {"pools": parse_pools(POOLS), "exclude": frozenset(cluster.others(REAL)), "quarantine": False, **options}
    return run(Settings(name, **settings), cluster.client, check_mode=check_mode)


def told(outcome: Outcome) -> dict[str, t.Any]:
    """Of the node, which has not passed."""
    (row,) = outcome.values["faults"]
    assert row["node"] == REAL
    return dict(row)


@contextlib.contextmanager
def exporter(cluster: Cluster, image: str) -> c.Iterator[c.Callable[[], str]]:
    """A DaemonSet with a younger exporter for the node, which is the one that counts; says what its container waits for."""
    probe = {"httpGet": {"path": "/health", "port": 9400}}
    container = {
        "name": "nvidia-dcgm-exporter",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "readinessProbe": probe,
    }
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": REAL},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
    }
    labels = {"app": ANOTHER}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": ANOTHER, "namespace": AGENTS},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }
    cluster.client.create(daemon_set, DAEMON_SET)

    def pods() -> list[dict[str, t.Any]]:
        return cluster.client.list(POD, AGENTS, label_selector=f"app={ANOTHER}").items

    def reason() -> str:
        containers = [one for pod in pods() for one in reduce_pod(pod).containers]
        return containers[0].reason if containers else ""

    try:
        yield reason
    finally:
        cluster.client.delete(DAEMON_SET, ANOTHER, AGENTS)
    cluster.wait("it is gone", lambda: not pods())


def test_an_image_that_cannot_be_pulled_is_told_with_the_same_words_between_the_tries(
    cluster: Cluster, enabled: Enabled
) -> None:
    assert gate(cluster, "exporters").values["nodes"]["passed"] == 1
    seen = {}
    # Where nobody answers at once; containerd has other tags of it only.
    with exporter(cluster, "localhost/k8s/dcgm-exporter:none") as reason:
        for state in ("ErrImagePull", "ImagePullBackOff"):
            cluster.wait(f"the kubelet says {state}", lambda state=state: reason() == state)
            seen[state] = told(gate(cluster, "exporters", check_mode=True))
        failed = gate(cluster, "exporters", wait_timeout=1.0)
    assert seen["ErrImagePull"] == seen["ImagePullBackOff"]
    row = seen["ErrImagePull"]
    assert (row["state"], row["link"]) == ("waiting", "exporter")
    assert row["pod"].startswith(f"{ANOTHER}-")
    assert row["reason"].startswith(f"container nvidia-dcgm-exporter of pod {row['pod']}: the image cannot be pulled: ")
    assert "localhost/k8s/dcgm-exporter:none" in row["reason"] and "pull secret" in row["next_step"], row
    assert failed.values["failed_nodes"] == [REAL]
    assert told(failed)["reason"] == f"after 1 s: {row['reason']}"


@pytest.mark.slow
def test_a_crash_loop_is_told_with_its_count_and_its_log(cluster: Cluster, enabled: Enabled) -> None:
    """An exporter without a driver in its container."""
    with exporter(cluster, EXPORTER) as reason:
        cluster.wait("the kubelet backs off", lambda: reason() == "CrashLoopBackOff")
        row = told(gate(cluster, "exporters", wait_timeout=90.0))
    assert (row["state"], row["link"]) == ("failed", "exporter")
    assert (
        row["reason"]
        == f"container nvidia-dcgm-exporter of pod {row['pod']} crashed {CRASHES} times, last with exit code 1"
    )
    assert "Failed to initialize NVML" in row["log_tail"]


@pytest.mark.slow
def test_a_reboot_closes_all_gates_and_a_driver_that_fails_keeps_them_shut(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    assert set(FILES) <= files(node)
    with node.faulty({"load": FAULT}):
        node.machine.reboot()
        row = cluster.wait("the gate tells of the driver after the boot", lambda: after_boot(cluster), 180)
        assert row["state"] == "waiting" and not any(word in row["reason"] for word in LOST), row
        row = told(gate(cluster, "driver", wait_timeout=300.0))
        assert (row["state"], row["link"]) == ("failed", "driver"), row
        count = re.fullmatch(
            r"container nvidia-driver-ctr of pod \S+ crashed (?:at least )?(\d+) times, last with exit code 1",
            row["reason"],
        )
        assert count and int(count.group(1)) >= CRASHES, row
        assert FAULT in row["log_tail"] and row["next_step"].startswith("Secure Boot refuses the unsigned module"), row

        assert not files(node) & {*FILES, ".driver-ctr-ready"}
        assert step(cluster, "nvidia-container-toolkit-daemonset") == "driver-validation"
        # Without the toolkit there is no runtime for the others, so of their containers the API knows what was before the boot.
        assert not ready(cluster, "nvidia-operator-validator")
        assert not ready(cluster, "nvidia-device-plugin-daemonset")
        assert cluster.gpus(REAL)[1] == "0"

    assert gate(cluster, "driver", wait_timeout=420.0).values["nodes"]["passed"] == 1
    cluster.wait("GPUs can be allocated again", lambda: cluster.gpus(REAL)[1] == "2")
    times = [float(node.machine.sh(f"stat -c %.Y {FOLDER}/{file}")) for file in FILES]
    assert times == sorted(times)
    boot = node.machine.read("/proc/sys/kernel/random/boot_id").strip()
    assert all(f"BOOT_ID={boot}" in node.machine.read(f"{FOLDER}/{file}").splitlines() for file in FILES)


@pytest.mark.slow
def test_a_driver_that_was_killed_closes_the_gate_and_opens_it_again(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    """Its modules stay loaded, and the plugin goes on: nobody's GPU is taken away."""
    plugin = cluster.pod(REAL, "nvidia-device-plugin-daemonset")["status"]["containerStatuses"][0]["containerID"]
    node.machine.sh("kill -KILL $(pidof -s nvidia-driver)")
    cluster.wait("the gate is closed", lambda: "cuda-ready" not in files(node), 90)
    cluster.wait("it is open again", lambda: "cuda-ready" in files(node), 240)
    assert cluster.gpus(REAL)[1] == "2"
    assert (
        cluster.pod(REAL, "nvidia-device-plugin-daemonset")["status"]["containerStatuses"][0]["containerID"] == plugin
    )
