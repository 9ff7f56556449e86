# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates of a real node: their files across a reboot, and the verdicts of node_gate on states that a real kubelet reports.

The minute before the driver's startup probe is real as well.
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
#: Files of the gates, in the order in which these open.
FILES = ("driver-ready", "toolkit-ready", "cuda-ready")
EXPORTER = defaults("monitoring")["monitoring_image"]
SECOND = "another-exporter"
DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets", True)


def files(node: KubernetesNode) -> set[str]:
    return set(node.machine.sh(f"ls -A {FOLDER} 2>/dev/null || :").split())


def step(cluster: Cluster, app: str) -> str:
    """The init container that runs or waits since the boot of the node, "" after the last one."""
    for one in cluster.pod(REAL, app)["status"].get("initContainerStatuses", ()):
        if one["state"].get("terminated", {}).get("exitCode") != 0:
            return str(one["name"])
    return ""


def after_boot(cluster: Cluster) -> dict[str, t.Any] | None:
    """The gate's row about the driver, after the kubelet has reported containers whose end it did not observe; None before."""
    faults = gate(cluster, "driver", check_mode=True).values["faults"] if lost(cluster) else []
    return next((row for row in faults if row["link"] == "driver"), None)


def ready(cluster: Cluster, app: str) -> bool:
    return reduce_pod(cluster.pod(REAL, app)).ready


def lost(cluster: Cluster) -> bool:
    """Whether a container of ours on the node has ended unobserved by the kubelet, now or in its last run."""
    pods = map(reduce_pod, cluster.client.list(POD, AGENTS, field_selector=f"spec.nodeName={REAL}").items)
    return any({one.reason, one.last_reason} & set(LOST) for pod in pods for one in (*pod.inits, *pod.containers))


def gate(cluster: Cluster, name: str, *, check_mode: bool = False, **options: t.Any) -> Outcome:
    """A gate as a role runs it, for the real node only, without quarantine."""
    settings = {"pools": parse_pools(POOLS), "exclude": frozenset(cluster.others(REAL)), "quarantine": False, **options}
    return run(Settings(name, **settings), cluster.client, check_mode=check_mode)


def fault(outcome: Outcome) -> dict[str, t.Any]:
    """The row about the real node, which has not passed."""
    (row,) = outcome.values["faults"]
    assert row["node"] == REAL
    return dict(row)


@contextlib.contextmanager
def exporter(cluster: Cluster, image: str) -> c.Iterator[c.Callable[[], str]]:
    """A DaemonSet with a newer exporter for the node, which the gate judges instead of ours. Yields a function that returns why its container waits."""
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
    labels = {"app": SECOND}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": SECOND, "namespace": AGENTS},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }
    cluster.client.create(daemon_set, DAEMON_SET)

    def pods() -> list[dict[str, t.Any]]:
        return cluster.client.list(POD, AGENTS, label_selector=f"app={SECOND}").items

    def reason() -> str:
        containers = [one for pod in pods() for one in reduce_pod(pod).containers]
        return containers[0].reason if containers else ""

    try:
        yield reason
    finally:
        cluster.client.delete(DAEMON_SET, SECOND, AGENTS)
    cluster.wait("the pods are deleted", lambda: not pods())


def test_an_image_that_cannot_be_pulled_is_reported_with_the_same_message_between_retries(
    cluster: Cluster, enabled: Enabled
) -> None:
    assert gate(cluster, "exporters").values["nodes"]["passed"] == 1
    rows = {}
    # On localhost, the connection is refused at once. containerd has only other tags of this image.
    with exporter(cluster, "localhost/k8s/dcgm-exporter:none") as reason:
        for state in ("ErrImagePull", "ImagePullBackOff"):
            cluster.wait(f"the kubelet reports {state}", lambda state=state: reason() == state)
            rows[state] = fault(gate(cluster, "exporters", check_mode=True))
        failed = gate(cluster, "exporters", wait_timeout=1.0)
    assert rows["ErrImagePull"] == rows["ImagePullBackOff"]
    row = rows["ErrImagePull"]
    assert (row["state"], row["link"]) == ("waiting", "exporter")
    assert row["pod"].startswith(f"{SECOND}-")
    assert row["reason"].startswith(f"container nvidia-dcgm-exporter of pod {row['pod']}: the image cannot be pulled: ")
    assert "localhost/k8s/dcgm-exporter:none" in row["reason"] and "pull secret" in row["next_step"], row
    assert failed.values["failed_nodes"] == [REAL]
    assert fault(failed)["reason"] == f"after 1 s: {row['reason']}"


@pytest.mark.slow
def test_a_crash_loop_is_reported_with_count_and_log(cluster: Cluster, enabled: Enabled) -> None:
    """The exporter crashes because its container has no driver."""
    with exporter(cluster, EXPORTER) as reason:
        cluster.wait("the kubelet backs off", lambda: reason() == "CrashLoopBackOff")
        row = fault(gate(cluster, "exporters", wait_timeout=90.0))
    assert (row["state"], row["link"]) == ("failed", "exporter")
    assert (
        row["reason"]
        == f"container nvidia-dcgm-exporter of pod {row['pod']} crashed {CRASHES} times, last with exit code 1"
    )
    assert "Failed to initialize NVML" in row["log_tail"]


@pytest.mark.slow
def test_a_reboot_closes_all_gates_and_a_failing_driver_keeps_them_closed(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    assert set(FILES) <= files(node)
    with node.faulty({"load": FAULT}):
        node.machine.reboot()
        row = cluster.wait("the gate reports the driver after the boot", lambda: after_boot(cluster), 180)
        assert row["state"] == "waiting" and not any(word in row["reason"] for word in LOST), row
        row = fault(gate(cluster, "driver", wait_timeout=300.0))
        assert (row["state"], row["link"]) == ("failed", "driver"), row
        count = re.fullmatch(
            r"container nvidia-driver-ctr of pod \S+ crashed (?:at least )?(\d+) times, last with exit code 1",
            row["reason"],
        )
        assert count and int(count.group(1)) >= CRASHES, row
        assert FAULT in row["log_tail"] and row["next_step"].startswith("Secure Boot refuses the unsigned module"), row

        assert not files(node) & {*FILES, ".driver-ctr-ready"}
        assert step(cluster, "nvidia-container-toolkit-daemonset") == "driver-validation"
        # Without the toolkit, the other pods have no runtime, so the API shows the states of their containers before the boot.
        assert not ready(cluster, "nvidia-operator-validator")
        assert not ready(cluster, "nvidia-device-plugin-daemonset")
        assert cluster.gpus(REAL)[1] == "0"

    assert gate(cluster, "driver", wait_timeout=420.0).values["nodes"]["passed"] == 1
    cluster.wait("GPUs are allocatable again", lambda: cluster.gpus(REAL)[1] == "2")
    times = [float(node.machine.sh(f"stat -c %.Y {FOLDER}/{file}")) for file in FILES]
    assert times == sorted(times)
    boot = node.machine.read("/proc/sys/kernel/random/boot_id").strip()
    assert all(f"BOOT_ID={boot}" in node.machine.read(f"{FOLDER}/{file}").splitlines() for file in FILES)


@pytest.mark.slow
def test_a_killed_driver_closes_the_gate_until_it_runs_again(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    """The kernel modules stay loaded and the device plugin keeps running, so no pod loses its GPU."""
    plugin = cluster.pod(REAL, "nvidia-device-plugin-daemonset")["status"]["containerStatuses"][0]["containerID"]
    node.machine.sh("kill -KILL $(pidof -s nvidia-driver)")
    cluster.wait("the gate is closed", lambda: "cuda-ready" not in files(node), 90)
    cluster.wait("the gate is open again", lambda: "cuda-ready" in files(node), 240)
    assert cluster.gpus(REAL)[1] == "2"
    assert (
        cluster.pod(REAL, "nvidia-device-plugin-daemonset")["status"]["containerStatuses"][0]["containerID"] == plugin
    )
