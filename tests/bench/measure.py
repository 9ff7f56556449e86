# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one command and measures wall time, CPU and peak memory of all its processes, and requests to the API server."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

import reaper
from support.audit import AuditLog

#: User agent of the benchmark's own requests (created nodes, drift), which are not counted.
OWN_AGENT = "hwaccel-bench"
RECAP = re.compile(r"changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)")


@dataclasses.dataclass(frozen=True)
class Cost:
    """peak_mib: of the largest process. requests, writes: of the administrator. changed: number of tasks in Ansible's recap."""

    wall: float
    cpu: float
    peak_mib: float
    requests: int
    writes: int
    changed: int


class Stage:
    """A sandbox, its audit log and a folder for playbooks."""

    def __init__(self, kubeconfig: pathlib.Path, audit_log: pathlib.Path, work: pathlib.Path) -> None:
        self.kubeconfig = kubeconfig
        self.audit_log = audit_log
        self.work = work
        work.mkdir(parents=True, exist_ok=True)

    def playbook(self, name: str, tasks: list[dict[str, Any]], variables: dict[str, Any] | None = None) -> pathlib.Path:
        play = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "tasks": tasks,
            "vars": variables or {},
        }
        path = self.work / f"{name}.yml"
        path.write_text(json.dumps([play]), encoding="utf-8")
        return path

    def run(
        self,
        playbook: pathlib.Path | str,
        *arguments: str,
        expect_success: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Cost:
        command = [
            "ansible-playbook",
            "-i",
            "localhost,",
            "-e",
            "ansible_python_interpreter={{ ansible_playbook_python }}",
            str(playbook),
            *arguments,
        ]
        reaper.adopt_orphans()
        log = AuditLog(self.audit_log)
        output = self.work / "output.log"
        start = time.monotonic()
        with open(output, "w", encoding="utf-8") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=os.environ | {"ANSIBLE_NOCOLOR": "1"} | (environment or {}),
            )
            status, usage = os.wait4(process.pid, 0)[1:]
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - start
        used = [usage, *module_servers()]
        text = output.read_text(encoding="utf-8")
        if process.returncode and expect_success:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{text[-6000:]}")
        recap = RECAP.findall(text)
        counted = [request for request in log.requests() if self.is_counted(request)] if self.audit_log.exists() else []
        return Cost(
            wall=wall,
            cpu=sum(one.ru_utime + one.ru_stime for one in used),
            peak_mib=max(one.ru_maxrss for one in used) / 1024,
            requests=len(counted),
            writes=sum(request.is_write for request in counted),
            changed=sum(int(row[0]) for row in recap),
        )

    def await_rest(self, quiet: float = 10.0, limit: float = 900.0) -> None:
        """Waits until no node has been written to for `quiet` seconds: controllers process new nodes for minutes and would affect measurements."""
        end = time.monotonic() + limit
        while True:
            log = AuditLog(self.audit_log)
            time.sleep(quiet)
            if not any(request.is_write and request.resource == "nodes" for request in log.requests()):
                return
            if time.monotonic() >= end:
                raise SystemExit(f"nodes are still written to after {limit:.0f} s")

    @staticmethod
    def is_counted(request: Any) -> bool:
        """Whether an Ansible run sent the request, and no component of the control plane, simulated node or this benchmark."""
        return not request.user.startswith("system:") and not request.user_agent.startswith(
            (OWN_AGENT, "kwok", "kube-", "fleet", "hwaccel-fleet")
        )


def module_servers() -> list[resource.struct_rusage]:
    """Of the processes that ran the modules of a run that has ended. They are no children of ansible-playbook, and end with it."""
    return [
        os.wait4(pid, 0)[2]
        for pid in reaper.children()
        if not (line := reaper.command_line(pid)) or "_module_server.py" in line
    ]


def medians(rounds: int, contenders: Mapping[str, Callable[[], Cost]]) -> dict[str, Cost]:
    """Runs each contender once per round; returns medians of times and memory, and the largest counts."""
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    for _round in range(rounds):
        for name, once in contenders.items():
            costs[name].append(once())
    return {name: middle(of_one) for name, of_one in costs.items()}


def middle(costs: Sequence[Cost]) -> Cost:
    return Cost(
        wall=statistics.median(cost.wall for cost in costs),
        cpu=statistics.median(cost.cpu for cost in costs),
        peak_mib=statistics.median(cost.peak_mib for cost in costs),
        requests=max(cost.requests for cost in costs),
        writes=max(cost.writes for cost in costs),
        changed=max(cost.changed for cost in costs),
    )
