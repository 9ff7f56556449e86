# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two simulated pods that run all-reduces: the collection can read their output."""

from __future__ import annotations

import hashlib
import json
import pathlib

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import bandwidth
from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, log
from fleet_agent.programs import all_reduce

IMAGE = "nvcr.io/nvidia/pytorch:26.08-py3"
FAST = {"transport": "IB", "bandwidth": 46.5}
PROGRAM = (pathlib.Path(__file__).parents[4] / "roles" / "gpu_validation" / "files" / "bandwidth.py").read_text(
    encoding="utf-8"
)
PARTS = {"PATIENCE_SECONDS": "60", "RANKS": "16", "DEVICES": "8", "NVIDIA_VISIBLE_DEVICES": "all"}


def run(world, name, interconnect, **values):
    node = world.node(name, interconnect=interconnect, host_driver="580.95.05")
    node.host.handlers["nvidia"] = ""
    made = container("c", IMAGE, ["python3", "-c", PROGRAM], **PARTS | values)
    made["env"].append({"name": "POD_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
    made["securityContext"] = {}
    return world.pod(node, {"restartPolicy": "Never", "runtimeClassName": "nvidia", "containers": [made]})


def text(pod):
    """The log without the timestamps of the container runtime."""
    return "\n".join(line.partition(" ")[2] for line in log(pod.main[0]).splitlines())


@pytest.mark.parametrize(
    ("second", "names", "reached"),
    [(FAST, ["IB"], 46.5), (FAST | {"bandwidth": 12.0}, ["IB"], 12.0), (None, ["Socket"], 1.0)],
)
def test_two_pods_connect_and_use_the_interconnect_of_both_nodes(world, second, names, reached):
    one = run(world, "n0", FAST, FIRST_RANK="0")
    world.until(lambda: bandwidth.LISTENING in text(one))
    assert "terminated" not in one.main[0].state
    address = text(one).partition(bandwidth.LISTENING)[2].split()[0]
    assert address == one.pod_ip
    other = run(world, "n1", second, FIRST_RANK="8", PEER_ADDRESS=address)
    world.until(lambda: all("terminated" in pod.main[0].state for pod in (one, other)))
    assert [bandwidth.networks(text(pod)) for pod in (one, other)] == [names, names]
    result = json.loads(text(one).splitlines()[-1])
    assert bandwidth.measured([result]) == reached
    assert result["bytes"] / result["seconds"] * 2 * (result["ranks"] - 1) / result["ranks"] == pytest.approx(
        result["bus_bandwidth"] * 1e9
    )


def test_a_pod_with_another_number_of_gpus_than_expected_fails(world):
    pod = run(world, "n0", FAST, FIRST_RANK="0", DEVICES="7")
    world.until(lambda: "terminated" in pod.main[0].state)
    assert "the pod sees 8 GPUs, 7 are expected" in text(pod) and pod.main[0].state["terminated"]["exitCode"] == 1


@pytest.mark.parametrize("command", [["python", "train.py"], ["python3", "-c", PROGRAM + "# changed"], ["python3"]])
def test_a_program_that_is_not_run_leaves_an_error_that_says_so(world, command):
    node = world.node(host_driver="580.95.05")
    node.host.handlers["nvidia"] = ""
    made = container("c", IMAGE, command, **PARTS, FIRST_RANK="0") | {"securityContext": {}}
    pod = world.pod(node, {"restartPolicy": "Never", "runtimeClassName": "nvidia", "containers": [made]})
    world.until(lambda: "terminated" in pod.main[0].state)
    assert "is not run in a sandbox" in text(pod)
    assert pod.main[0].state["terminated"]["exitCode"] == 1
    assert node.host.computing == {}


def test_a_variable_that_is_missing_is_an_error(world):
    pod = run(world, "n0", FAST)
    world.until(lambda: "terminated" in pod.main[0].state)
    assert "KeyError: 'FIRST_RANK'" in text(pod)


def test_the_program_of_the_role_is_the_one_that_is_known():
    """What it prints here is written after what it prints in tests/unit/roles/test_bandwidth.py. Next, after a change: the digest."""
    assert hashlib.sha256(PROGRAM.rstrip().encode()).hexdigest() == all_reduce.PROGRAM
