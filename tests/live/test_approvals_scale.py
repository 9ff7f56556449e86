# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""500 pending requests beside 5,000 of other signers: one write for each, six reads, ten seconds and 120 MiB.

Runtime: a minute, most of it for filing them.
"""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support.approvals import Approvals
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s

FLEET: dict[str, t.Any] = {"time_scale": 0.02, "pools": [{"name": "cpu", "count": 1}]}
PENDING, OTHERS = 500, 5_000
MOST_SECONDS, MOST_MIB, MOST_READS = 10.0, 120, 6
#: The module as ansible-core runs it, in a process of its own, which prints its result and then its resources.
RUN = """
import atexit, json, resource, sys, time
from ansible.module_utils import basic
from ansible_collections.hwaccel.gpu.plugins.modules import node_csr_approve
basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = sys.stdin.buffer.read(), "legacy"
began = time.monotonic()
def report():
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = {"seconds": time.monotonic() - began, "cpu": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}
    print("\\n" + json.dumps(spent))
atexit.register(report)
node_csr_approve.main()
"""


def name(number: int) -> str:
    return f"gpu-{number}.gpu.example.com"


def address(number: int) -> str:
    return f"10.33.{4 + number // 250}.{number % 250 + 1}"


def fill(approvals: Approvals) -> None:
    """The first half of the machines are Nodes that file serving requests, the others file client requests."""

    def pending(number: int) -> None:
        if number < PENDING // 2:
            approvals.join(name(number), address(number))
            approvals.file(s.serving(name(number), *s.dns(name(number)), *s.ips(address(number))))
        else:
            approvals.file(s.client(name(number)))

    other = s.client("other", signer="network.openshift.io/signer")
    client = approvals.identity(other)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(pending, range(PENDING)))
        list(pool.map(lambda number: approvals.file(other.but(name=f"other-{number}"), client), range(OTHERS)))


def run_module(given: dict[str, t.Any]) -> tuple[dict[str, t.Any], dict[str, float]]:
    """The result, and seconds, seconds of processor time and MiB."""
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": given})
    done = subprocess.run([sys.executable, "-c", RUN], input=arguments, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    assert (done.returncode, len(lines)) == (0, 3), done.stdout[-3000:] + done.stderr
    return json.loads(lines[0]), json.loads(lines[2])


@pytest.mark.slow
def test_hundreds_of_requests_beside_thousands(make_sandbox: t.Any, tmp_path: pathlib.Path) -> None:
    approvals = Approvals(make_sandbox(FLEET), tmp_path)
    fill(approvals)
    expected = [{"name": name(number), "ip_addresses": [address(number)]} for number in range(PENDING)]
    given = {"kubeconfig": approvals.kubeconfig, "expected_nodes": expected, "profile": "openshift"}
    audit = AuditLog(approvals.sandbox.audit_log)
    result, used = run_module(given)
    requests = audit.ours()
    writes = [request for request in requests if request.is_write]
    reads = [request for request in requests if not request.is_write]
    print(
        f"{PENDING} pending requests beside {OTHERS}: {used['seconds']:.1f} s ({used['cpu']:.1f} s CPU), "
        f"{used['mib']:.0f} MiB, {len(writes)} writes, {len(reads)} reads"
    )
    assert (len(result["approved"]), result["ignored_count"], result["changed"]) == (PENDING, 0, True)
    assert (len(writes), {request.subresource for request in writes}) == (PENDING, {"approval"})
    assert len(reads) <= MOST_READS, [str(request) for request in reads]
    assert not any("network.openshift.io" in request.uri for request in requests)
    assert used["mib"] <= MOST_MIB
    assert used["seconds"] <= MOST_SECONDS
    approvals.certificate(f"csr-{name(0)}-serving")
