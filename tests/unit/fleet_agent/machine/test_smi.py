# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated nvidia-smi says what the real one said on a host with an H100 (nvidia_smi.yml)."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, log
from fleet_agent.machine.hostfs import gpu_uuid

RECORDED = yaml.safe_load(pathlib.Path(__file__).with_name("nvidia_smi.yml").read_text(encoding="utf-8"))
DRIVER = "580.95.05"
END = "=== status"


def on_the_host(world, node, script):
    """What a privileged container prints that has the host's files below /host."""
    spec = container("c", "nvcr.io/nvidia/gpu-operator:v26.7.0", ["sh", "-c", script])
    spec["volumeMounts"] = [{"name": "host", "mountPath": "/host"}]
    volume = {"name": "host", "hostPath": {"path": "/"}}
    pod = world.pod(node, {"restartPolicy": "Never", "volumes": [volume], "containers": [spec]})
    world.until(lambda: "terminated" in pod.main[0].state)
    # Without time stamps, and without the first line, which is the simulator's.
    return "".join(line.partition(" ")[2] + "\n" for line in log(pod.main[0]).splitlines()[1:])


@pytest.fixture
def answers(world):
    """answers(several arguments): (output, exit status) of each on a host with one H100."""
    gpu = {"product": "NVIDIA-H100-80GB-HBM3", "count": 1, "memory_mib": 81559, "ecc": True, "mig_capable": True}
    node = world.node(gpu=gpu, host_driver=DRIVER)

    def run(*cases):
        script = "; ".join(f"chroot /host nvidia-smi {arguments}; echo '{END}' $?" for arguments in cases)
        found, text = [], on_the_host(world, node, script)
        for _case in cases:
            output, _end, rest = text.partition(END)
            status, _newline, text = rest.partition("\n")
            found.append((output.replace(gpu_uuid(node.name, 0), "{uuid}").replace(DRIVER, "{driver}"), int(status)))
        return found

    return run


def test_it_says_what_the_real_one_said(answers):
    rows = RECORDED["simulated"]
    expected = {row["arguments"]: (row["output"], row["status"]) for row in rows}
    assert dict(zip(expected, answers(*expected), strict=True)) == expected
    assert len(rows) == len(expected) >= 27


def test_what_is_not_simulated_is_an_error(answers):
    cases = [row["arguments"] for row in RECORDED["not simulated"]]
    assert [status != 0 for _output, status in answers(*cases)] == [True] * len(cases)


def test_a_query_can_be_for_one_gpu(world):
    gpu = {"product": "NVIDIA-L40S", "count": 4, "memory_mib": 46068, "mig_capable": False}
    node = world.node(gpu=gpu, host_driver=DRIVER)
    script = "chroot /host nvidia-smi --query-gpu=index,uuid,count -i 2 --format=csv,noheader"
    assert on_the_host(world, node, script) == f"2, {gpu_uuid(node.name, 2)}, 4\n"
