# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""examples/awx-project, run as AWX runs it, with the credential that AWX injects.

Runtime: four runs of site on a sandbox with one GPU node, one of status, and one short run of teardown.
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
#: Extra variables of the job template. In these, as in answers, AWX passes booleans and lists as texts.
VARIABLES = {
    "hwaccel_pools": json.dumps([{"name": "training", "selector": "pool=training", "gpu": GPU}]),
    "feature_discovery_adopt": "false",
    "driver_adopt": "true",
}
ANSWERS = awx.answers("site", hwaccel_max_failed="10%", hwaccel_excluded_nodes="[]", hwaccel_wait_timeout=240)
#: No server listens here, so a run that uses it as a cluster fails.
NOWHERE = "https://127.0.0.1:1"


@dataclasses.dataclass(frozen=True)
class Controller:
    """A sandbox, and what AWX needs for jobs on it."""

    sandbox: Sandbox
    folder: pathlib.Path
    host: str
    token: str
    ca: bytes

    @property
    def credential(self) -> dict[str, str]:
        return awx.bearer_token(self.folder, self.host, self.token, self.ca)

    def leaks(self, job: awx.Job) -> list[str]:
        """Outputs and files that contain the token."""
        outputs = {"stdout": job.stdout, "events": json.dumps(job.events), **job.kept()}
        assert any(name.startswith("job_events/") for name in outputs)
        return [name for name, text in outputs.items() if self.token in text]


@dataclasses.dataclass(frozen=True)
class First:
    """writers: users of the writes that our client sent during the job."""

    job: awx.Job
    writers: set[str]


@pytest.fixture(scope="module")
def controller(make_sandbox: t.Any, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Controller]:
    """With a ServiceAccount that is bound to cluster-admin."""
    sandbox = make_sandbox(FLEET)
    client = connect({"kubeconfig": sandbox.kubeconfig})
    token = accounts.bearer(client, "default", "awx", seconds=3600)
    accounts.bind_cluster_admin(client, "default", "awx")
    host, ca = accounts.endpoint(sandbox.kubeconfig)
    yield Controller(sandbox, tmp_path_factory.mktemp("awx"), host, token, ca)
    sandbox.close()


@pytest.fixture(scope="module")
def first(controller: Controller) -> First:
    """A first launch with few answers, at AWX's verbosity "3 (Debug)"."""
    audit = AuditLog(controller.sandbox.audit_log)
    job = awx.launch(
        controller.folder,
        "site",
        {"frankfurt": LOCAL},
        {**VARIABLES, **ANSWERS},
        controller.credential,
        verbosity=awx.DEBUG,
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


def test_the_output_of_the_job_shows_the_progress_of_a_gate(first: First) -> None:
    lines = first.job.stdout.splitlines()
    assert [line for line in lines if line.startswith("frankfurt: driver: ")], first.job.stdout[-6000:]


def test_no_event_no_artifact_and_no_line_contains_the_token(controller: Controller, first: First) -> None:
    assert "Running module file" in first.job.stdout, "only -vvv prints that"
    assert controller.token in (first.job.folder / "command").read_text(encoding="utf-8"), (
        "ansible-runner's own record contains the token"
    )
    assert controller.leaks(first.job) == []


def test_a_relaunch_changes_nothing(controller: Controller, first: First) -> None:
    """Unanswered questions are null, as in AWX 24.6.1."""
    audit = AuditLog(controller.sandbox.audit_log)
    again = awx.launch(
        controller.folder,
        "site",
        {"frankfurt": LOCAL},
        {**VARIABLES, **awx.answers("site", None)},
        controller.credential,
    )
    assert (again.rc, sum(again.stats["changed"].values())) == (0, 0), again.stdout[-6000:]
    assert [str(request) for request in audit.our_writes()] == []


def test_the_state_of_a_healthy_cluster_is_an_artifact(controller: Controller, first: First) -> None:
    audit = AuditLog(controller.sandbox.audit_log)
    job = awx.launch(controller.folder, "status", {"frankfurt": LOCAL}, VARIABLES, controller.credential)
    assert (job.rc, job.artifacts["hwaccel_summary"]["frankfurt"]["succeeded"]) == (0, True), job.stdout[-6000:]
    assert [str(request) for request in audit.our_writes()] == []


def test_a_failed_node_is_reported_once_and_last(controller: Controller, first: First) -> None:
    """As lines, by the runner that AWX uses."""
    controller.sandbox.add_fault("driver_load_failure", node="gpu-0")
    controller.sandbox.reboot("gpu-0")
    job = awx.launch(controller.folder, "site", {"frankfurt": LOCAL}, {**VARIABLES, **ANSWERS}, controller.credential)
    controller.sandbox.clear_faults()
    controller.sandbox.reboot("gpu-0")
    assert (job.rc, job.artifacts["hwaccel_summary"]["frankfurt"]["failed_nodes"]) == (2, ["gpu-0"]), job.stdout[-6000:]
    text = job.stdout
    assert text.count("gpu-0 (pool training) failed at gate driver") == 1
    assert "\\n" not in text
    failed = text[text.index("TASK [Summary | Show the result]") :].partition("\nFailed:\n")[2]
    order = [
        failed.index(part) for part in ("gpu-0 (pool training)", "    Log: ", "    Next: ", "TASK [Summary | Fail")
    ]
    assert order == sorted(order)


def test_a_limit_runs_on_one_of_two_clusters(controller: Controller, first: First) -> None:
    """Each cluster has its own credentials. The credential of the job would be for a single cluster, and is not valid here."""
    ca = controller.credential["K8S_AUTH_SSL_CA_CERT"]
    own = {"host": controller.host, "api_key": controller.token, "ca_cert": ca}
    clusters = {
        "frankfurt": {**LOCAL, "hwaccel_connection": own},
        "madrid": {**LOCAL, "hwaccel_connection": {**own, "host": NOWHERE}},
    }
    elsewhere = awx.bearer_token(controller.folder, NOWHERE, "planted", None)
    variables = {**VARIABLES, **ANSWERS, "hwaccel_excluded_nodes": "gpu-0"}
    job = awx.launch(controller.folder, "site", clusters, variables, elsewhere, limit="frankfurt", verbosity=awx.DEBUG)
    assert (job.rc, job.stats["processed"], sum(job.stats["changed"].values())) == (0, {"frankfurt": 1}, 0), job.stdout[
        -6000:
    ]
    assert list(job.artifacts["hwaccel_summary"]) == ["frankfurt"]
    assert [pool["seen"] for pool in job.artifacts["hwaccel_summary"]["frankfurt"]["pools"]] == [], (
        "the only node is excluded"
    )
    assert controller.leaks(job) == []


def test_teardown_requires_a_confirmation_of_the_cluster(controller: Controller, first: First) -> None:
    """The job's credential selects the cluster, so an answer has to confirm the uid."""
    audit = AuditLog(controller.sandbox.audit_log)
    uid = fleet.cluster_uid(connect({"kubeconfig": controller.sandbox.kubeconfig}))
    refusals = {
        "00000000-0000-0000-0000-000000000000": "hwaccel_confirm names another cluster, so nothing was deleted",
        "": "this cluster was selected by K8S_AUTH_HOST of the environment",
    }
    for answer, message in refusals.items():
        job = awx.launch(
            controller.folder,
            "teardown",
            {"frankfurt": LOCAL},
            awx.answers("teardown", hwaccel_confirm=answer),
            controller.credential,
        )
        assert job.rc != 0
        assert message in job.stdout
        assert f"-e hwaccel_confirm={uid}" in job.stdout
    assert [str(request) for request in audit.our_writes()] == []
    job = awx.launch(
        controller.folder,
        "teardown",
        {"frankfurt": LOCAL},
        awx.answers("teardown", hwaccel_confirm=uid),
        controller.credential,
    )
    assert job.rc == 0, job.stdout[-6000:]
    assert f"frankfurt is the cluster with uid {uid}" in job.stdout
    assert [str(request) for request in audit.our_writes()] != []
