# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid inputs in whole playbooks: all problems of a host are in one list, nothing is written, and no message has technical terms of Python or Ansible."""

from __future__ import annotations

import collections.abc as c
import importlib.metadata
import json
import pathlib
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import judge
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, ReceivedRequest, status
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples
from ansible_collections.hwaccel.gpu.tests.unit.inputs.bad_inputs import BAD, FORBIDDEN
from ansible_collections.hwaccel.gpu.tests.unit.inputs.good_inputs import GOOD
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import run

#: The oldest and the newest core run the site playbook, in check mode, on one cluster.
WHOLE = importlib.metadata.version("ansible-core").startswith("2.19.")
CLUSTERS = 8 if WHOLE else 1
NODES = [samples.node("gpu-1", labels={"pool": "training"}), samples.node("gpu-2", labels={"pool": "training"})]
PLAYBOOK = ("preflight",) if WHOLE else ("site", "--check")


def answer(request: ReceivedRequest) -> Answer:
    """One cluster for each first part of the path, with two nodes and nothing else."""
    _root, name, path = request.path.split("/", 2)
    if request.method != "GET":
        return status(403, "nothing is written here", "Forbidden")
    if path == "version":
        return Answer(body={"major": "1", "minor": "36", "gitVersion": "v1.36.4"})
    if path == "api/v1/namespaces/kube-system":
        return Answer(
            body={"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": f"uid-{name}"}}
        )
    if path.startswith("api/v1/namespaces/") and path.count("/") == 3:
        return status(404, "not found", "NotFound")
    groups = {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
    return Answer(
        body=groups
        if path == "apis"
        else {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": NODES if path == "api/v1/nodes" else []}
    )


@pytest.fixture
def api() -> c.Iterator[Fake]:
    server = Fake()
    server.answers = answer
    yield server
    server.close()


def cluster(api: Fake, name: str) -> dict[str, t.Any]:
    return {"ansible_connection": "local", "hwaccel_connection": {"host": f"{api.host}/{name}", "api_key": "planted"}}


def bad_clusters(api: Fake) -> dict[str, dict[str, t.Any]]:
    """Each has another invalid value of each variable, as long as there is one."""
    hosts: dict[str, dict[str, t.Any]] = {f"bad-{number}": {} for number in range(CLUSTERS)}
    for one, _parts in BAD:
        if free := [variables for variables in hosts.values() if not one.keys() & variables.keys()]:
            free[0].update(one)
    return {name: cluster(api, name) | variables for name, variables in hosts.items()}


def reported(output: str, host: str) -> tuple[int, str]:
    """Number of problems in the failure of a host, and the lines that were shown above it, without line ends."""
    failure = list(re.finditer(rf"fatal: \[{host}\]: FAILED! => (?=\{{)", output))[-1]
    message = json.JSONDecoder().raw_decode(output[failure.end() :])[0]["msg"]
    shown = output[: failure.start()].rpartition(f" {host}: ")[2]
    return int(message.partition(" problem")[0]), re.split(r" (?:bad-\d+|half-bad): |\[ERROR\]|fatal: ", shown)[0]


def test_a_preflight_reports_all_problems_at_once(tmp_path: pathlib.Path, api: Fake) -> None:
    hosts = bad_clusters(api)
    half_bad = {
        "hwaccel_pools": [{"name": "a", "selector": "pool=training"}, {"name": "b", "selector": "pool=trainig"}],
        "hwaccel_excluded_nodes": "gpu-1, gpu-22",
        "hwaccel_max_failed": "ten",
        "monitoring_patches": [{"target": {"kind": "Deployment"}, "patch": {"spec": {}}}],
        "driver_version": "latest",
    }
    given = {"gpu_clusters": {"hosts": {**hosts, "half-bad": cluster(api, "half-bad") | half_bad}}}
    code, output = run(tmp_path, *PLAYBOOK[:1], given, "--forks", "2", *PLAYBOOK[1:])
    assert code == 2, output
    found = {name: reported(output, name) for name in (*hosts, "half-bad")}
    for name, variables in hosts.items():
        expected = [" ".join(str(one.fault).split()) for one in judge.judge(variables)]
        assert len(expected) > 3
        # A cluster that could be reached may have more problems.
        places = [found[name][1].find(text) for text in expected]
        assert -1 not in places, (name, [text for text, place in zip(expected, places, strict=True) if place < 0])
        assert places == sorted(places), name
        assert found[name][0] >= len(expected)
    assert sum(count for count, _shown in found.values()) >= (90 if WHOLE else 40)
    count, shown = found["half-bad"]
    half = [
        "'ten' is neither a number of nodes nor a percentage (",
        "'latest' is not a driver version (",
        "the selector 'pool=trainig' matches no node (",
        "the cluster has no node gpu-22 (",
        "a patch matches no object of the set (",
    ]
    places = [shown.find(text) for text in half]
    assert (count, places) == (len(half), sorted(places)) and -1 not in places, shown
    for _count, shown in found.values():
        assert not re.search(FORBIDDEN, shown), shown
    assert "planted" not in output
    assert {request.method for request in api.received} <= {"GET"}


def test_a_preflight_accepts_valid_answers(tmp_path: pathlib.Path, api: Fake) -> None:
    """One answer of a survey for each variable, all on one cluster."""
    given: dict[str, t.Any] = {"hwaccel_stages": "feature_discovery, driver, device_plugin, monitoring"}
    variables = (
        "hwaccel_max_failed",
        "hwaccel_wait_timeout",
        "driver_adopt",
        "driver_version",
        "monitoring_thresholds",
        "monitoring_alerts",
        "driver_build",
    )
    for one in GOOD:
        given |= {name: value for name, value in one.items() if name in variables and name not in given}
    given["hwaccel_excluded_nodes"] = "gpu-1"
    given["hwaccel_pools"] = (
        '[{"name": "a", "selector": "pool=training", "gpu": {"count": "8", "ecc": "", "mig": "false"}}]'
    )
    code, output = run(tmp_path, "preflight", {"gpu_clusters": {"hosts": {"good": cluster(api, "good") | given}}})
    assert code == 0, output[-4000:]
