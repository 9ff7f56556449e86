# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One `site` over several clusters, of which one stops answering in its middle and one was never there: the others do not wait for them.

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
#: Writes after which its API server stops: in the middle of the second stage.
ENOUGH = 25
#: Seconds for each cluster at least, and how many times as long as it took to start them: a run takes three times as long.
EACH, TIMES = 30, 6


def stop_amid_the_run(sandbox: Sandbox, ended: threading.Event) -> bool:
    """From then on its port still takes connections, and nobody answers on them. False where the run ended before."""
    audit = AuditLog(sandbox.audit_log)
    while len(audit.our_writes()) < ENOUGH:
        if ended.wait(0.05):
            return False
    sandbox.kill("kube-apiserver", signal.SIGSTOP)
    return True


def refusing(kubeconfig: str, port: int) -> str:
    config = yaml.safe_load(pathlib.Path(kubeconfig).read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    return yaml.safe_dump(config)


def last_of(run: site.Run, name: str) -> float:
    """Seconds after which a cluster had gone through its stages, or stopped."""
    return max(task["ended"] for task in run.tasks if task["host"] == name and not task["name"].startswith("Summary"))


@pytest.mark.parametrize("healthy", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_nobody_waits_for_a_cluster_that_stopped(make_sandbox: t.Any, tmp_path: pathlib.Path, healthy: int) -> None:
    began = time.monotonic()
    well = {f"well-{number}": make_sandbox(FLEET) for number in range(healthy)}
    halted: Sandbox = make_sandbox(FLEET)
    # After these seconds the stopped one is given up: more than the others can need, on a machine that has needed so long to start them all.
    patience = max(EACH * (healthy + 1), TIMES * (time.monotonic() - began))
    clusters = {
        name: site.cluster(sandbox.kubeconfig, hwaccel_stages=site.ALL)
        for name, sandbox in {**well, "halted": halted}.items()
    }
    clusters["halted"]["hwaccel_connection"]["retry_timeout"] = patience
    ended = threading.Event()
    with socket.socket() as held, concurrent.futures.ThreadPoolExecutor(1) as threads:
        # Bound and not listening: nobody answers here as long as the test runs.
        held.bind(("127.0.0.1", 0))
        (tmp_path / "dark").write_text(refusing(halted.kubeconfig, held.getsockname()[1]), encoding="utf-8")
        watcher = threads.submit(stop_amid_the_run, halted, ended)
        try:
            run = site.playbook("site", {**clusters, "dark": site.cluster(str(tmp_path / "dark"))}, timeout=2400)
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
    assert max(after[name] for name in well) < after["halted"], (
        "the stages of one cluster are no barrier for the others"
    )
    for name in well:
        assert (run.recap[name]["failures"], run.summary[name]["stopped"]) == (0, [])
        assert sum(pool["seen"] for pool in run.summary[name]["pools"]) == 8
    for name in ("halted", "dark"):
        assert any("127.0.0.1" in reason and "Next:" in reason for reason in run.summary[name]["stopped"]), run.summary[
            name
        ]
