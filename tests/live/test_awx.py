# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""examples/awx-project, run as AWX runs it, with the credential that AWX injects.

Runtime: three runs of site on a sandbox with one GPU node, and one short run of teardown.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet
from ansible_collections.hwaccel.gpu.tests.live.support import accounts, awx
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

FLEET = {
    "time_scale": 0.01,
    "pools": [{"name": "gpu", "count": 1, "labels": {"pool": "training"}, "kernel": "6.8.0-134-generic", "gpu": GPU}],
}
LOCAL = {"ansible_connection": "local"}
#: Of a template's own extra variables, which AWX hands over like answers: booleans and lists are texts in both.
VARIABLES = {
    "hwaccel_pools": json.dumps([{"name": "training", "selector": "pool=training", "gpu": GPU}]),
    "feature_discovery_adopt": "false",
    "driver_adopt": "true",
}
ANSWERS = awx.answers("site", hwaccel_max_failed="10%", hwaccel_excluded_nodes="[]", hwaccel_wait_timeout=240)
#: Nobody listens here: whoever takes it for a cluster fails.
NOWHERE = "https://127.0.0.1:1"


@dataclasses.dataclass(frozen=True)
class Place:
    sandbox: Sandbox
    folder: pathlib.Path
    host: str
    token: str
    ca: bytes

    @property
    def credential(self) -> dict[str, str]:
        return awx.bearer_token(self.folder, self.host, self.token, self.ca)

    def leaks(self, job: awx.Job) -> list[str]:
        """Where the token can be read."""
        told = {"stdout": job.stdout, "events": json.dumps(job.events), **job.kept()}
        assert any(name.startswith("job_events/") for name in told)
        return [name for name, text in told.items() if self.token in text]


@dataclasses.dataclass(frozen=True)
class First:
    """writers: who has written to the cluster with our client meanwhile."""

    job: awx.Job
    writers: set[str]


@pytest.fixture(scope="module")
def place(make_sandbox: t.Any, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Place]:
    """A cluster, and a robot that may do everything on it."""
    sandbox = make_sandbox(FLEET)
    client = connect({"kubeconfig": sandbox.kubeconfig})
    token = accounts.bearer(client, "default", "awx", seconds=3600)
    accounts.let_administer(client, "default", "awx")
    host, ca = accounts.endpoint(sandbox.kubeconfig)
    yield Place(sandbox, tmp_path_factory.mktemp("awx"), host, token, ca)
    sandbox.close()


@pytest.fixture(scope="module")
def first(place: Place) -> First:
    """A first launch by somebody who left most questions empty, at AWX's verbosity "3 (Debug)"."""
    audit = AuditLog(place.sandbox.audit_log)
    job = awx.launch(
        place.folder, "site", {"frankfurt": LOCAL}, {**VARIABLES, **ANSWERS}, place.credential, verbosity=awx.DEBUG
    )
    return First(job, {request.user for request in audit.our_writes()})


def test_site_runs_with_the_credential_of_the_job(first: First) -> None:
    assert first.job.rc == 0, first.job.stdout[-6000:]
    assert "[WARNING]" not in first.job.stdout
    assert first.writers == {"system:serviceaccount:default:awx"}


def test_the_summary_is_an_artifact_of_the_job(first: First) -> None:
    assert list(first.job.artifacts) == ["hwaccel_summary"]
    summary = first.job.artifacts["hwaccel_summary"]["frankfurt"]
    assert (summary["failed_nodes"], [(pool["pool"], pool["seen"]) for pool in summary["pools"]]) == (
        [],
        [("training", 8)],
    )


def test_who_looks_at_the_job_sees_how_far_a_gate_is(first: First) -> None:
    lines = first.job.stdout.splitlines()
    assert [line for line in lines if line.startswith("frankfurt: driver: ")], first.job.stdout[-6000:]


def test_no_event_no_artifact_and_no_line_holds_the_token(place: Place, first: First) -> None:
    assert "EXEC /bin/sh" in first.job.stdout, "only -vvv tells that"
    assert place.token in (first.job.folder / "command").read_text(encoding="utf-8"), (
        "the token is found where ansible-runner keeps it"
    )
    assert place.leaks(first.job) == []


def test_a_relaunch_changes_nothing(place: Place, first: First) -> None:
    """With the questions left open as AWX 24.6.1 leaves them."""
    audit = AuditLog(place.sandbox.audit_log)
    again = awx.launch(
        place.folder, "site", {"frankfurt": LOCAL}, {**VARIABLES, **awx.answers("site", None)}, place.credential
    )
    assert (again.rc, sum(again.stats["changed"].values())) == (0, 0), again.stdout[-6000:]
    assert [str(request) for request in audit.our_writes()] == []


def test_a_limit_leaves_one_of_two_clusters(place: Place, first: First) -> None:
    """Each with credentials of its own. That of the job is for one cluster, and leads nowhere here."""
    ca = place.credential["K8S_AUTH_SSL_CA_CERT"]
    own = {"host": place.host, "api_key": place.token, "ca_cert": ca}
    clusters = {
        "frankfurt": {**LOCAL, "hwaccel_connection": own},
        "madrid": {**LOCAL, "hwaccel_connection": {**own, "host": NOWHERE}},
    }
    elsewhere = awx.bearer_token(place.folder, NOWHERE, "planted", None)
    given = {**VARIABLES, **ANSWERS, "hwaccel_excluded_nodes": "gpu-0"}
    job = awx.launch(place.folder, "site", clusters, given, elsewhere, limit="frankfurt", verbosity=awx.DEBUG)
    assert (job.rc, job.stats["processed"], sum(job.stats["changed"].values())) == (0, {"frankfurt": 1}, 0), job.stdout[
        -6000:
    ]
    assert list(job.artifacts["hwaccel_summary"]) == ["frankfurt"]
    assert [pool["seen"] for pool in job.artifacts["hwaccel_summary"]["frankfurt"]["pools"]] == [], (
        "the only node was left out"
    )
    assert place.leaks(job) == []


def test_teardown_asks_which_cluster_is_meant(place: Place, first: First) -> None:
    """The job's credential has chosen the cluster, so the answer has to name it."""
    audit = AuditLog(place.sandbox.audit_log)
    uid = fleet.cluster_uid(connect({"kubeconfig": place.sandbox.kubeconfig}))
    told = {
        "00000000-0000-0000-0000-000000000000": "hwaccel_confirm names another cluster, so nothing was deleted",
        "": "this cluster was selected by K8S_AUTH_HOST of the environment",
    }
    for given, refused in told.items():
        job = awx.launch(
            place.folder,
            "teardown",
            {"frankfurt": LOCAL},
            awx.answers("teardown", hwaccel_confirm=given),
            place.credential,
        )
        assert job.rc != 0
        assert refused in job.stdout
        assert f"-e hwaccel_confirm={uid}" in job.stdout
    assert [str(request) for request in audit.our_writes()] == []
    job = awx.launch(
        place.folder, "teardown", {"frankfurt": LOCAL}, awx.answers("teardown", hwaccel_confirm=uid), place.credential
    )
    assert job.rc == 0, job.stdout[-6000:]
    assert f"frankfurt is the cluster with uid {uid}" in job.stdout
    assert [str(request) for request in audit.our_writes()] != []
