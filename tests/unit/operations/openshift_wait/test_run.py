# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for an install: phases, approvals, slices, the rate of requests, and what a wait in vain says."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    ApiError,
    CertificateRejected,
    Forbidden,
    Gone,
    ManyFaults,
    NotFound,
    Unauthorized,
)
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installs as i
from ansible_collections.hwaccel.gpu.tests.unit.operations.openshift_wait.install_cluster import (
    ADDRESSES,
    AWAY,
    GIVEN,
    MACHINES,
    MASTER,
    WORKER,
    InstallCluster,
)


def later(turns: int, *steps: t.Any) -> list[t.Any]:
    """Each step after as many turns in which nothing happens."""
    return [one for step in steps for one in (*([None] * turns), step)]


def course(cluster: InstallCluster) -> list[t.Any]:
    """What happens in the course of an install with one master and one worker."""
    return [
        cluster.infrastructure,
        lambda: cluster.bootstrap("progressing"),
        lambda: cluster.file(s.client(MASTER, "openshift")),
        lambda: cluster.join(MASTER, ADDRESSES[MASTER], ready=False),
        lambda: cluster.file(s.serving(MASTER, *s.dns(MASTER), *s.ips(ADDRESSES[MASTER]))),
        lambda: cluster.up(MASTER),
        lambda: cluster.bootstrap("complete"),
        lambda: cluster.etcd(False),
        lambda: cluster.etcd(True),
        lambda: cluster.release(Available=False, Progressing=True),
        lambda: cluster.operator("ingress", Available=False),
        lambda: cluster.file(s.client(WORKER, "openshift")),
        lambda: cluster.up(WORKER),
        lambda: cluster.operator("ingress", Available=True),
        lambda: cluster.release("Completed", Available=True, Progressing=False),
    ]


def installing(turns: int = 2) -> InstallCluster:
    cluster = InstallCluster()
    cluster.steps = later(turns, *course(cluster))
    return cluster


def test_an_install_from_its_first_answer_to_its_end() -> None:
    cluster = installing()
    outcome, lines = cluster.slices()
    assert outcome.failure is None, str(outcome.failure)
    values = outcome.values
    assert (values["state"], values["phase"], values["complete"]) == ("installed", "install", True)
    assert [one["node"] for one in values["approved"]] == [MASTER, MASTER, WORKER]
    assert values["missing_nodes"] == []
    text = "\n".join(lines)
    for words in (
        "bootstrap: the status in ConfigMap kube-system/bootstrap is progressing",
        "EtcdBootstrapMemberRemoved of Etcd cluster is not True",
        f"Node, not Ready: {MASTER}",
        "22623 answers 500 until masters serve it, which is normal",
        "bootstrapping: waiting for the end of bootstrap",
        "ingress is not available",
        "2 of 2 machines are complete",
    ):
        assert words in text, words


def test_without_slices_it_ends_alike() -> None:
    outcome = installing().wait()
    assert (outcome.failure, outcome.values["state"], outcome.changed) == (None, "installed", True)


@pytest.mark.parametrize(
    ("until", "state", "phase"),
    [("api", "bootstrapping", "api"), ("bootstrap", "installing", "bootstrap"), ("nodes", "installing", "nodes")],
)
def test_it_ends_with_the_phase_that_is_waited_for(until: str, state: str, phase: str) -> None:
    outcome, _lines = installing().slices(until=until)
    values = outcome.values
    assert (outcome.failure, values["state"], values["phase"], values["complete"]) == (None, state, phase, True)
    assert values["answers"] is True


def test_the_end_of_bootstrap_is_when_its_machine_can_go() -> None:
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.bootstrap("complete")
    cluster.etcd(False)
    outcome, _lines = cluster.slices(until="bootstrap", bootstrap_timeout=60.0)
    assert (outcome.values["state"], outcome.values["bootstrapped"]) == ("bootstrapped", True)
    assert outcome.failure is not None
    cluster.steps = [None, lambda: cluster.etcd(True)]
    outcome, _lines = cluster.slices(until="bootstrap")
    assert (outcome.failure, outcome.values["removable"]) == (None, True)


def test_an_installed_cluster_waits_for_nobody() -> None:
    cluster = InstallCluster()
    cluster.install()
    outcome = cluster.wait()
    assert (outcome.failure, outcome.changed, outcome.values["complete"]) == (None, False, True)
    assert (cluster.writes, cluster.sent("watch"), outcome.warnings) == ([], [], [])


def added(*steps: t.Any) -> InstallCluster:
    """An installed cluster whose inventory has a worker more."""
    cluster = InstallCluster()
    cluster.install()
    cluster.remove("Node", WORKER)
    cluster.kubelets.pop(ADDRESSES[WORKER])
    cluster.steps = later(2, *steps)
    return cluster


def joining(cluster: InstallCluster) -> list[t.Any]:
    return [
        lambda: cluster.file(s.client(WORKER, "openshift")),
        lambda: cluster.join(WORKER, ADDRESSES[WORKER], ready=False),
        lambda: cluster.file(s.serving(WORKER, *s.dns(WORKER), *s.ips(ADDRESSES[WORKER]))),
        lambda: cluster.up(WORKER),
    ]


@pytest.mark.parametrize("name", [WORKER, WORKER.partition(".")[0]])
def test_an_installed_cluster_waits_for_a_node_that_is_added(name: str) -> None:
    cluster = added()
    cluster.steps = later(2, *joining(cluster))
    outcome, lines = cluster.slices(added_nodes=[name])
    assert (outcome.failure, outcome.values["complete"], outcome.values["missing_nodes"]) == (None, True, [])
    assert {one["node"] for one in outcome.values["approved"]} == {WORKER}
    assert any("waiting for all expected nodes" in line for line in lines)


def test_a_node_that_is_added_and_does_not_come_fails_at_its_limit() -> None:
    outcome, _lines = added().slices(added_nodes=[WORKER], nodes_timeout=60.0)
    assert outcome.failure is not None and f"{WORKER}" in str(outcome.failure)


@pytest.mark.parametrize("ready", [None, False])
def test_an_installed_cluster_waits_for_no_other_machine(ready: bool | None) -> None:
    """One that is off, or in maintenance, also if the inventory declares that it is to be installed."""
    cluster = added()
    if ready is not None:
        cluster.join(WORKER, ADDRESSES[WORKER], ready=ready)
    outcome = cluster.wait(added_nodes=[] if ready is None else [WORKER])
    assert (outcome.failure, outcome.values["complete"], cluster.sent("watch")) == (None, True, [])


def test_a_machine_that_replaces_another_one_is_waited_for() -> None:
    cluster = added()
    cluster.join(WORKER, ADDRESSES[WORKER], ready=False)
    cluster.steps = later(2, *joining(cluster))
    outcome, _lines = cluster.slices(added_nodes=[WORKER], allow_rejoin=[WORKER.partition(".")[0]])
    assert (outcome.failure, outcome.values["complete"]) == (None, True)
    assert {one["node"] for one in outcome.values["approved"]} == {WORKER}


def test_a_machine_that_has_asked_is_waited_for() -> None:
    """As one that somebody has started by hand."""
    cluster = added()
    first, *others = joining(cluster)
    first()
    cluster.steps = later(2, *others)
    outcome, _lines = cluster.slices()
    assert (outcome.failure, outcome.values["missing_nodes"]) == (None, [])
    assert [one["node"] for one in outcome.values["approved"]] == [WORKER, WORKER]


def test_an_installed_cluster_has_had_its_bootstrap() -> None:
    cluster = InstallCluster()
    cluster.install()
    cluster.etcd(False)
    outcome = cluster.wait()
    assert (outcome.failure, outcome.values["complete"], outcome.values["removable"]) == (None, True, False)


def test_an_installed_cluster_that_is_degraded_is_a_warning() -> None:
    cluster = InstallCluster()
    cluster.install()
    cluster.operator("ingress", Available=True, Degraded=True)
    outcome = cluster.wait()
    assert (outcome.failure, outcome.values["state"], cluster.sent("watch")) == (None, "degraded", [])
    (warning,) = outcome.warnings
    assert "dgxpod.example.com is degraded" in warning
    assert outcome.values["lagging"] == [{"name": "ingress", "reason": "Test: Degraded is True"}]


def test_what_has_just_been_installed_has_to_stay_so_for_a_while() -> None:
    cluster = InstallCluster()
    cluster.install()
    cluster.release("Partial", Available=False, Progressing=True)
    cluster.steps = [
        lambda: cluster.release("Completed", Available=True),
        *[None] * 6,
        lambda: cluster.operator("etcd", Available=True, Progressing=True),
        *[None] * 6,
        lambda: cluster.operator("etcd", Available=True),
    ]
    outcome, _lines = cluster.slices()
    assert (outcome.failure, outcome.values["complete"], cluster.steps) == (None, True, [])


def silent(minutes: float, **options: t.Any) -> InstallCluster:
    cluster = InstallCluster(away=True)
    assert cluster.time is not None
    until = cluster.time.now + minutes * 60

    def comes() -> None:
        if cluster.time and cluster.time.now >= until:
            cluster.away = None

    cluster.time.on_sleep = comes
    return cluster


def test_an_api_that_is_not_there_yet_is_waited_for() -> None:
    cluster = silent(5)
    cluster.install()
    outcome, lines = cluster.slices()
    assert (outcome.failure, outcome.values["complete"]) == (None, True)
    assert any("the API does not answer: no answer: connection refused" in line for line in lines)
    assert any("booting: waiting for the API, 20 min left" in line for line in lines)


@pytest.mark.parametrize("turns", [0, 3])
def test_an_api_that_is_silent_for_a_while_is_no_end(turns: int) -> None:
    cluster = installing(turns)
    assert cluster.time is not None
    count = iter(range(10**6))

    def moves(_request: Request) -> None:
        cluster.away = AWAY if next(count) % 40 in (20, 21, 22) else None

    cluster.before.insert(0, moves)
    outcome, _lines = cluster.slices()
    assert (outcome.failure, outcome.values["complete"]) == (None, True), str(outcome.failure)


@pytest.mark.parametrize("kinds", [True, False])
@pytest.mark.parametrize("phase", ["bootstrap", "nodes", "install"])
def test_at_most_12_requests_a_minute_while_nothing_happens(phase: str, kinds: bool) -> None:
    """kinds: whether those of OpenShift exist."""
    cluster = InstallCluster()
    for kind in () if kinds else ("ClusterVersion", "ClusterOperator", "Infrastructure", "Etcd"):
        cluster.fail(NotFound("the server could not find the requested resource"), "list", kind=kind)
    cluster.infrastructure()
    cluster.bootstrap("complete" if phase != "bootstrap" else "progressing")
    if phase != "bootstrap":
        cluster.etcd(True)
    cluster.join(MASTER, ADDRESSES[MASTER])
    cluster.file(s.client(WORKER, "openshift").but(usages=("any",)))
    cluster.release(Available=False, Progressing=True)
    if phase == "install":
        for name in ADDRESSES:
            cluster.up(name)
    times = sent(cluster)
    outcome, _lines = cluster.slices(**{f"{phase}_timeout": 3600.0})
    assert (outcome.values["phase"], outcome.failure is None) == (phase, False)
    assert most(times) in range(6, 13)


def sent(cluster: InstallCluster) -> list[float]:
    """When requests are sent."""
    times: list[float] = []
    cluster.before.insert(0, lambda _request: times.append(cluster.time.now if cluster.time else 0.0))
    return times


def most(times: list[float]) -> int:
    """Requests in the minute with the most, without what is read when it begins and ends."""
    middle = [time for time in times if times[0] + 90 <= time <= times[-1] - 30]
    return max(sum(start <= time < start + 60 for time in middle) for start in middle)


def test_an_api_that_is_silent_is_asked_rarely() -> None:
    cluster = silent(10**6)
    times = sent(cluster)
    outcome, _lines = cluster.slices(api_timeout=1200.0)
    assert outcome.failure is not None
    assert most(times) in range(4, 13)


def test_a_wait_in_vain_says_the_cause_in_its_first_lines() -> None:
    cluster = silent(10**6)
    machines = [
        dict(MACHINES[0], stage="kernel", refused="/images/rootfs.img was refused with status 404"),
        *MACHINES[1:],
    ]
    outcome, _lines = cluster.slices(machines=machines)
    lines = str(outcome.failure).splitlines()
    assert lines[0] == (
        "dgxpod.example.com: the API was waited for in vain for 20 min, since 2027-01-15T08:00:00Z (phase api, booting: "
        f"{i.BOOTSTRAP}, {MASTER}, {WORKER} have started from the network, and no API answers yet)."
    )
    assert lines[1].startswith("Most likely: rootfs cannot be downloaded")
    assert lines[2] == "Last observation: the API does not answer: no answer: connection refused"
    assert lines[3].startswith("- ") and outcome.values["since"] == "2027-01-15T08:00:00Z"
    assert outcome.values["cause"]["what"] == "rootfs cannot be downloaded"
    assert outcome.values["complete"] is False


def test_a_wait_ends_with_its_limit_and_not_with_a_pause() -> None:
    cluster = silent(10**6)
    assert cluster.time is not None
    begin = cluster.time.now
    assert cluster.wait(api_timeout=4.0).failure is not None
    assert cluster.time.now - begin == pytest.approx(4.0)


def test_a_refused_request_is_the_cause() -> None:
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.bootstrap("progressing")
    cluster.file(s.client(MASTER, "openshift").but(usages=("any",)))
    outcome, _lines = cluster.slices(bootstrap_timeout=120.0)
    assert f"certificate request of {MASTER} is not approved (BAD_USAGE)" in str(outcome.failure)
    assert outcome.values["ignored_count"] == 1
    assert [one["step"] for one in outcome.values["machines"]] == ["22623", "certificate request", "22623"]


def test_operators_are_read_once_more_before_a_cause_is_named() -> None:
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.bootstrap("progressing")
    cluster.operator("network", Available=False, Degraded=True)
    outcome, _lines = cluster.slices(expected_nodes=[], machines=[], bootstrap_timeout=60.0)
    assert "Most likely: operator network is not available" in str(outcome.failure)


def test_what_was_observed_is_kept_if_the_api_goes_away_at_the_end() -> None:
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.bootstrap("progressing")
    assert cluster.time is not None
    end = cluster.time.now + 60.0

    def gone(_request: Request) -> None:
        if cluster.time and cluster.time.now >= end:
            raise AWAY

    cluster.on("", gone)
    outcome, _lines = cluster.slices(expected_nodes=[], machines=[], bootstrap_timeout=60.0)
    assert outcome.failure is not None and outcome.values["state"] == "bootstrapping"
    assert "the API does not answer at the moment" in outcome.values["why"]
    assert outcome.values["answers"] is False


def test_an_installed_cluster_that_is_silent_is_not_waited_for() -> None:
    cluster = silent(10**6)
    outcome = cluster.wait(installation={"path": "/srv/dgxpod", "installed": True})
    assert (outcome.values["state"], outcome.pending) == ("unreachable", None)
    assert str(outcome.failure).startswith(
        "dgxpod.example.com is unreachable, and nothing is waited for.\nMost likely: "
    )
    assert "start its machines" in str(outcome.failure)


@pytest.mark.parametrize(
    ("error", "why", "state", "words"),
    [
        (CertificateRejected, "the server's certificate is not accepted: self-signed", "foreign", "another authority"),
        (CertificateRejected, "the server's certificate is not accepted: Hostname mismatch", "foreign", "Hostname"),
        (CertificateRejected, "not accepted: certificate is not yet valid", "booting", "a clock is behind"),
        (CertificateRejected, "not accepted: certificate has expired", "booting", "files of the installation have"),
        (CertificateRejected, "the server does not accept the client certificate", "foreign", "credentials"),
        (Unauthorized, "the server does not accept the credentials", "foreign", "does not accept the credentials"),
    ],
)
def test_what_answers_in_another_way(error: type[ApiError], why: str, state: str, words: str) -> None:
    cluster = InstallCluster()
    cluster.away = error("listing", "https://api:6443", why)
    outcome, _lines = cluster.slices(api_timeout=60.0)
    assert (outcome.values["state"], words in str(outcome.failure)) == (state, True), str(outcome.failure)


def test_another_cluster_is_refused_at_once_whenever_it_answers() -> None:
    cluster = silent(3)
    cluster.infrastructure("dgxpod-other")
    outcome, _lines = cluster.slices()
    assert outcome.values["state"] == "foreign"
    assert "infraID of the files is dgxpod-x7k2p" in str(outcome.failure)


def test_check_mode_reads_once_and_predicts_approvals() -> None:
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.file(s.client(MASTER, "openshift"))
    outcome = cluster.wait(check_mode=True)
    assert (outcome.failure, outcome.changed, cluster.writes, cluster.sent("watch")) == (None, True, [], [])
    assert (outcome.values["state"], outcome.values["complete"]) == ("bootstrapping", False)
    assert [one["node"] for one in outcome.values["approved"]] == [MASTER]
    silent_one = silent(10**6).wait(check_mode=True)
    assert (silent_one.failure, silent_one.values["state"]) == (None, "booting")


def test_without_expected_nodes_no_request_is_read() -> None:
    cluster = InstallCluster()
    cluster.install()
    outcome = cluster.wait(expected_nodes=[], machines=[])
    assert (outcome.failure, outcome.values["complete"], cluster.sent("", "CertificateSigningRequest")) == (
        None,
        True,
        [],
    )
    assert not [request for request in cluster.requests if request.kind == "CertificateSigningRequest"]


def test_a_watch_that_has_expired_lists_again() -> None:
    cluster = installing()
    cluster.fail(Gone("too old"), "watch", at=3, times=5)
    outcome, _lines = cluster.slices()
    assert outcome.failure is None


def test_what_does_not_matter_is_no_event() -> None:
    """Kubelets report their conditions again and again."""
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.bootstrap("progressing")
    cluster.join(MASTER, ADDRESSES[MASTER])
    cluster.steps = [lambda: cluster.join(MASTER, ADDRESSES[MASTER])] * 500
    cluster.slices(until="bootstrap", bootstrap_timeout=1200.0)
    assert len(cluster.requests) <= 12 * 20


def test_missing_permissions_are_reported_together() -> None:
    cluster = InstallCluster()
    cluster.forbidden = {("list", "clusterversions"), ("watch", "etcds"), ("approve", "signers")}
    cluster.fail(Forbidden("listing ClusterVersions"), "list", kind="ClusterVersion")
    with pytest.raises(ManyFaults) as caught:
        cluster.wait()
    text = str(caught.value)
    assert "permission to list clusterversions.config.openshift.io is missing" in text
    assert "permission to watch etcds.operator.openshift.io is missing" in text
    assert "permission to approve signers.certificates.k8s.io" in text


def test_approvals_before_an_error_are_reported() -> None:
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.file(s.client(MASTER, "openshift"))
    cluster.file(s.client(WORKER, "openshift"))
    cluster.fail(AWAY, "replace", at=2, times=1)
    outcome = cluster.wait(slice_of=0.5)
    assert (outcome.changed, len(outcome.values["approved"]), outcome.pending is None) == (True, 1, False)
    assert cluster.time is not None
    cluster.time.advance(10.0)
    outcome = cluster.wait(slice_of=30.0, resume=outcome.pending)
    assert [one["node"] for one in outcome.values["approved"]] == [MASTER, WORKER]
    assert len(cluster.writes) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"api_timeout": 0.0}, "api_timeout 0 cannot be used"),
        ({"install_timeout": float("nan")}, "install_timeout nan cannot be used"),
        ({"installation": {"not_after": "tomorrow"}}, "'tomorrow' cannot be used (installation.not_after)"),
        ({"installation": {"not_after": "2026-12-01T06:00:00"}}, "with its zone"),
        ({"machines": [MACHINES[1], MACHINES[1]]}, f"machine {MASTER} cannot be told from another one"),
        ({"machines": MACHINES[:2]}, f"expected node {WORKER} has no machine"),
        ({"expected_nodes": GIVEN["expected_nodes"][:1]}, f"machine {WORKER} is not expected"),
        ({"expected_nodes": [{"name": "localhost"}]}, "'localhost' cannot be used"),
        ({"allow_rejoin": ["stranger"]}, "node stranger cannot rejoin"),
        ({"serving_ca": "nonsense"}, "serving_ca cannot be used"),
    ],
)
def test_options_that_cannot_be_used_are_an_error_before_anything_is_read(
    options: dict[str, t.Any], words: str
) -> None:
    cluster = InstallCluster()
    with pytest.raises(ManyFaults) as caught:
        cluster.wait(**options)
    assert words in str(caught.value)
    assert cluster.requests == []
