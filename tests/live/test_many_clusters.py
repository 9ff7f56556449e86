# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One `site` over several clusters, one of which stops to respond during the run, while another is not reachable at all: the others do not wait.

Runtime: one run of site over three clusters; over eight in the slow form.
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import signal
import socket
import threading
import time
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

FLEET = {"time_scale": 0.01, "pools": [{"name": "gpu", "count": 1, "gpu": GPU}]}
#: Writes after which the API server stops, within the second stage.
WRITES = 25
#: Timeout: seconds per cluster, and factor for the time in which the clusters have started. A run takes three times as long as that start.
EACH, TIMES = 30, 6


def stop_during_the_run(sandbox: Sandbox, ended: threading.Event) -> bool:
    """After the stop, the port still accepts connections, without any response. False if the run has ended before."""
    audit = AuditLog(sandbox.audit_log)
    while len(audit.our_writes()) < WRITES:
        if ended.wait(0.05):
            return False
    sandbox.kill("kube-apiserver", signal.SIGSTOP)
    return True


def unreachable(kubeconfig: str, port: int) -> str:
    """The text of a kubeconfig with another port."""
    config = yaml.safe_load(pathlib.Path(kubeconfig).read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    return yaml.safe_dump(config)


def last_of(run: site.Run, name: str) -> float:
    """Seconds after which the stages of a cluster had completed, or it had stopped."""
    return max(task["ended"] for task in run.tasks if task["host"] == name and not task["name"].startswith("Summary"))


@pytest.mark.parametrize("healthy", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_cluster_waits_for_one_that_stopped(make_sandbox: t.Any, tmp_path: pathlib.Path, healthy: int) -> None:
    began = time.monotonic()
    sandboxes = {f"healthy-{number}": make_sandbox(FLEET) for number in range(healthy)}
    halted: Sandbox = make_sandbox(FLEET)
    # Retries of the stopped cluster end after these seconds: more than the others need, even on a machine on which their start was slow.
    retry_timeout = max(EACH * (healthy + 1), TIMES * (time.monotonic() - began))
    clusters = {
        name: site.cluster(sandbox.kubeconfig, hwaccel_stages=site.ALL)
        for name, sandbox in {**sandboxes, "halted": halted}.items()
    }
    clusters["halted"]["hwaccel_connection"]["retry_timeout"] = retry_timeout
    ended = threading.Event()
    with socket.socket() as held, concurrent.futures.ThreadPoolExecutor(1) as threads:
        # The socket is bound but does not listen, so no server answers here during the test.
        held.bind(("127.0.0.1", 0))
        (tmp_path / "kubeconfig").write_text(unreachable(halted.kubeconfig, held.getsockname()[1]), encoding="utf-8")
        watcher = threads.submit(stop_during_the_run, halted, ended)
        try:
            run = site.playbook(
                "site", {**clusters, "unreachable": site.cluster(str(tmp_path / "kubeconfig"))}, timeout=2400
            )
        finally:
            ended.set()
            stopped = watcher.result()
            halted.kill("kube-apiserver", signal.SIGCONT)
    assert stopped, run.stdout[-6000:]
    after = {name: last_of(run, name) for name in clusters}
    print(
        "\n".join(f"{name}: {seconds:.0f} s" for name, seconds in after.items()),
        *run.stdout.splitlines()[-40:],
        sep="\n",
    )
    assert run.rc != 0
    assert max(after[name] for name in sandboxes) < after["halted"], (
        "the others do not wait for the stages of the stopped cluster"
    )
    for name in sandboxes:
        assert (run.recap[name]["failures"], run.summary[name]["stopped"]) == (0, [])
        assert sum(pool["seen"] for pool in run.summary[name]["pools"]) == 8
    for name in ("halted", "unreachable"):
        assert any("127.0.0.1" in reason and "Next:" in reason for reason in run.summary[name]["stopped"]), run.summary[
            name
        ]
