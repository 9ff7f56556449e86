# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of two pods, run as two pods run it: several processes on each side, over loopback, with a stub of PyTorch."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import bandwidth

TOP = pathlib.Path(__file__).parents[3]
PROGRAM = TOP / "roles" / "gpu_validation" / "files" / "bandwidth.py"
STUB = pathlib.Path(__file__).with_name("pytorch")


class Pods:
    """Programs of pods, which end with the test."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.started: list[subprocess.Popen[str]] = []

    def start(self, first: int, **values: str) -> subprocess.Popen[str]:
        """With two GPUs of four."""
        known = {"DEVICES": "2", "FIRST_RANK": str(first), "RANKS": "4", "PATIENCE_SECONDS": "60", "STUB_GPUS": "2"}
        own = {"POD_ADDRESS": "127.0.0.1"} | ({"PEER_ADDRESS": "127.0.0.1"} if first else {})
        stub = {"PYTHONPATH": str(STUB), "STUB_PORT": str(self.port), "PATH": os.environ["PATH"]}
        command = [sys.executable, "-c", PROGRAM.read_text(encoding="utf-8").rstrip()]
        pipes: dict[str, t.Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.started.append(subprocess.Popen(command, env=known | own | stub | values, **pipes))
        return self.started[-1]

    def end(self) -> None:
        for pod in self.started:
            pod.kill()
            pod.communicate()


@pytest.fixture
def pods() -> t.Iterator[Pods]:
    found = Pods()
    yield found
    found.end()


def test_the_first_pod_measures_what_all_ranks_sum(pods: Pods) -> None:
    first, second = pods.start(0), pods.start(2)
    (output, _none), (other, _none) = first.communicate(timeout=60), second.communicate(timeout=60)
    assert (first.returncode, second.returncode, other) == (0, 0, ""), output + other
    listening, result = output.splitlines()
    assert listening == f"{bandwidth.LISTENING}127.0.0.1"
    found = json.loads(result)
    assert bandwidth.measured([found]) == found["bus_bandwidth"]
    assert (found["ranks"], found["bytes"] in (1 << 24, 1 << 27, 1 << 30)) == (4, True)
    assert found["bytes"] / found["seconds"] * 2 * 3 / 4 == pytest.approx(found["bus_bandwidth"] * 1e9)


def test_a_wrong_sum_is_an_error(pods: Pods) -> None:
    first, second = pods.start(0, STUB_ERROR="0.5"), pods.start(2)
    output = first.communicate(timeout=60)[0] + second.communicate(timeout=60)[0]
    assert "an all-reduce of 16777216 bytes over 4 GPUs has a wrong sum" in output
    assert (first.returncode, second.returncode) == (1, 1)


def test_another_number_of_gpus_is_an_error(pods: Pods) -> None:
    pod = pods.start(0, STUB_GPUS="3")
    assert "the pod sees 3 GPUs, 2 are expected" in pod.communicate(timeout=60)[0]
    assert pod.returncode == 1


def test_a_peer_that_does_not_come_is_not_waited_for_without_end(pods: Pods) -> None:
    pod = pods.start(0, PATIENCE_SECONDS="1", DEVICES="1", STUB_GPUS="1", RANKS="2")
    assert "timed out" in pod.communicate(timeout=60)[0]
    assert pod.returncode == 1
