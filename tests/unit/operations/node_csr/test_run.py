# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the approver: what is written, reported and waited for."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, Gone, ManyFaults, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import run
from ansible_collections.hwaccel.gpu.plugins.modules import node_csr_approve as module
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_csr.csr_cluster import AUTHORITY, CsrCluster

CLIENT, SERVING = cases.good_client(), cases.good_serving()
STRANGER = s.serving(cases.WORKER, *s.ips("10.0.0.77"), name="csr-stranger")


def test_requests_of_expected_nodes_are_approved_by_one_write_each() -> None:
    cluster = CsrCluster(CLIENT, SERVING, STRANGER, CLIENT.but(name="other", signer="example.com/signer"))
    outcome = cluster.approve()
    assert (outcome.changed, outcome.failure) == (True, None)
    assert outcome.values["approved"] == [
        {"name": CLIENT.name, "node": cases.NEW, "signer": "client", "renewal": False},
        {"name": SERVING.name, "node": cases.WORKER, "signer": "serving", "renewal": False},
    ]
    assert cluster.writes == [f"replace CertificateSigningRequest {name}" for name in (CLIENT.name, SERVING.name)]
    condition = cluster.stored("CertificateSigningRequest", CLIENT.name)["status"]["conditions"][0]
    assert {key: condition[key] for key in ("type", "status", "reason")} == {
        "type": "Approved",
        "status": "True",
        "reason": "HwaccelNodeCSRApprove",
    }
    assert condition["lastUpdateTime"] == s.stamp(s.NOW)
    (ignored,) = outcome.values["ignored"]
    assert (ignored["name"], ignored["reason_code"], outcome.values["ignored_count"]) == (
        STRANGER.name,
        "NODE_UNREACHABLE",
        1,
    )
    assert cluster.conditions(STRANGER.name) == []
    assert outcome.values["missing_nodes"] == [cases.NEW, cases.UPPER, cases.DOTTED]


def test_other_signers_are_not_read() -> None:
    cluster = CsrCluster(CLIENT, CLIENT.but(name="other", signer="example.com/signer"))
    cluster.approve()
    reads = [
        request
        for request in cluster.requests
        if request.kind == "CertificateSigningRequest" and request.verb == "list"
    ]
    assert [request.selector for request in reads] == [
        "spec.signerName=kubernetes.io/kube-apiserver-client-kubelet",
        "spec.signerName=kubernetes.io/kubelet-serving",
    ]
    cluster.requests.clear()
    cluster.approve(signers=["serving"])
    assert [request.selector for request in cluster.sent("list", "CertificateSigningRequest")] == [reads[1].selector]


def test_nodes_are_read_once_and_after_the_requests() -> None:
    cluster = CsrCluster(CLIENT, SERVING, machines=True)
    cluster.approve()
    assert [request.kind for request in cluster.sent("list")] == ["CertificateSigningRequest"] * 2 + ["Machine", "Node"]


def test_the_second_run_changes_nothing() -> None:
    cluster = CsrCluster(CLIENT, SERVING)
    cluster.approve()
    written = list(cluster.writes)
    again = cluster.approve()
    assert (again.changed, again.values["approved"], cluster.writes) == (False, [], written)


def test_conditions_of_others_are_kept() -> None:
    obj = CLIENT.object()
    obj["status"]["conditions"] = [{"type": "example.com/Seen", "status": "False", "reason": "Test"}]
    cluster = CsrCluster()
    cluster.put(obj)
    cluster.approve()
    assert cluster.conditions(CLIENT.name) == ["example.com/Seen", "Approved"]


def test_check_mode_writes_nothing_and_predicts_the_run() -> None:
    cluster = CsrCluster(CLIENT, SERVING, STRANGER)
    planned = cluster.approve(check_mode=True, wait=True)
    assert (planned.changed, cluster.writes, planned.pending) == (True, [], None)
    assert "2 requests would be approved, 1 not approved (NODE_UNREACHABLE)" in planned.progress[0]
    done = cluster.approve()
    assert planned.values == done.values
    again = cluster.approve(check_mode=True)
    assert (again.changed, again.values["approved"]) == (False, [])


def test_check_mode_reports_all_missing_permissions() -> None:
    cluster = CsrCluster(CLIENT, machines=True)
    cluster.forbidden = {("update", "certificatesigningrequests/approval"), ("approve", "signers"), ("watch", "nodes")}
    with pytest.raises(ManyFaults) as caught:
        cluster.approve(check_mode=True, wait=True)
    text = str(caught.value)
    assert text.count("is missing") == 4
    assert "permission to update certificatesigningrequests/approval.certificates.k8s.io is missing" in text
    assert "permission to approve signers.certificates.k8s.io kubernetes.io/kubelet-serving is missing" in text
    assert "examples/csr-approver" in text


def test_a_refused_request_reports_all_missing_permissions() -> None:
    cluster = CsrCluster(CLIENT, SERVING)
    cluster.forbidden = {("update", "certificatesigningrequests/approval"), ("get", "nodes")}
    with pytest.raises(ManyFaults) as caught:
        cluster.approve()
    assert str(caught.value).count("is missing") == 2
    assert cluster.writes == []


def test_a_refusal_that_is_no_missing_permission_is_reported_as_it_is() -> None:
    cluster = CsrCluster(CLIENT)
    cluster.fail(Forbidden("approving", "", "the webhook refuses it", "ask its owner"), "replace")
    with pytest.raises(ManyFaults, match="the webhook refuses it"):
        cluster.approve()


def test_nothing_is_denied_unless_it_is_requested() -> None:
    bad = CLIENT.but(name="bad", subject=s.node_subject("rogue"))
    late = CLIENT.but(name="late", age=8000)
    cluster = CsrCluster(SERVING, bad, late)
    assert cluster.approve().values["denied"] == []
    assert cluster.conditions("bad") == []
    planned = cluster.approve(check_mode=True, deny_refused=True)
    done = cluster.approve(deny_refused=True)
    assert planned.values["denied"] == done.values["denied"]
    assert [(one["name"], one["reason_code"]) for one in done.values["denied"]] == [("bad", "NOT_IN_INVENTORY")]
    assert (done.changed, cluster.conditions("bad"), cluster.conditions("late")) == (True, ["Denied"], [])
    again = cluster.approve(deny_refused=True)
    assert (again.changed, again.values["denied"]) == (False, [])


def test_a_flood_fails_and_approves_nothing() -> None:
    cluster = CsrCluster(CLIENT, SERVING)
    outcome = cluster.approve(max_pending=1)
    assert "2 requests of the last hour are pending, and the limit is 1" in str(outcome.failure)
    assert (outcome.changed, cluster.writes, outcome.values["ignored_count"]) == (False, [], 2)
    assert cluster.approve(max_pending=1, check_mode=True).failure is not None


def test_only_the_first_requests_are_listed() -> None:
    many = [CLIENT.but(name=f"csr-{number:03}", usages=("any",)) for number in range(250)]
    values = CsrCluster(*many).approve(max_pending=1000).values
    assert (len(values["ignored"]), values["ignored_count"]) == (200, 250)


def test_machines_of_the_platform_are_left_to_it() -> None:
    cluster = CsrCluster(CLIENT, SERVING, machines=True)
    addresses = [
        {"type": "InternalDNS", "address": f"{cases.NEW.upper()}."},
        {"type": "InternalIP", "address": "10.0.0.9"},
    ]
    for name, status in (("a", {"addresses": addresses}), ("b", {"nodeRef": {"name": cases.WORKER}}), ("c", {})):
        cluster.put(
            {"kind": "Machine", "metadata": {"name": name, "namespace": "openshift-machine-api"}, "status": status}
        )
    outcome = cluster.approve()
    assert {one["reason_code"] for one in outcome.values["ignored"]} == {"MACHINE_EXISTS"}
    assert not outcome.changed
    kubeadm = s.client(cases.UPPER, "kubeadm")
    cluster.file(kubeadm)
    cluster.requests.clear()
    assert cluster.approve(profile="kubeadm").changed
    assert cluster.sent("list", "Machine") == []


def test_a_renewal_asks_the_kubelet_and_reads_the_authority() -> None:
    names = (*SERVING.names, *s.ips("10.0.0.77"))
    renewal = SERVING.but(names=names)
    cluster = CsrCluster(renewal)
    cluster.join(cases.WORKER, "10.33.3.20", port=10350)
    cluster.kubelets["10.33.3.20"] = AUTHORITY.issue(cases.WORKER, *names)
    outcome = cluster.approve()
    assert outcome.values["approved"] == [
        {"name": SERVING.name, "node": cases.WORKER, "signer": "serving", "renewal": True}
    ]
    assert cluster.dialed == [("10.33.3.20", 10350)]
    assert "renews" in cluster.stored("CertificateSigningRequest", SERVING.name)["status"]["conditions"][0]["message"]


def test_the_authority_can_be_given_or_is_an_error() -> None:
    names = (*SERVING.names, *s.ips("10.0.0.77"))
    cluster = CsrCluster(SERVING.but(names=names))
    cluster.kubelets["10.33.3.20"] = AUTHORITY.issue(cases.WORKER, *names)
    cluster.remove("ConfigMap", "csr-controller-ca", "openshift-config-managed")
    with pytest.raises(
        Exception,
        match="the CA of serving certificates is unknown",
    ):
        cluster.approve()
    assert cluster.approve(serving_ca=AUTHORITY.pem).changed


def test_a_node_without_an_address_cannot_be_asked() -> None:
    cluster = CsrCluster(STRANGER)
    cluster.put({"kind": "Node", "metadata": {"name": cases.WORKER}, "status": {}})
    (ignored,) = cluster.approve().values["ignored"]
    assert "the status of the Node has no InternalIP" in ignored["detail"]
    assert cluster.dialed == []


def test_another_cluster_is_refused() -> None:
    cluster = CsrCluster(CLIENT)
    with pytest.raises(ManyFaults):
        cluster.approve(cluster_uid="another")
    assert cluster.approve(cluster_uid="uid-kube-system").changed


ONE = [{"name": cases.NEW, "ip_addresses": [cases.NEW_ADDRESS]}]
NEW_SERVING = s.serving(cases.NEW, *s.dns(cases.NEW), *s.ips(cases.NEW_ADDRESS))


class Joining:
    """What a machine does while the approver watches: one step for each of its turns."""

    def __init__(self, cluster: CsrCluster, *steps: object) -> None:
        self.cluster, self.steps = cluster, list(steps)
        cluster.on("watch", self._turn)

    def _turn(self, _request: Request) -> None:
        assert self.cluster.time is not None
        self.cluster.time.advance(1.5)
        if self.steps and callable(step := self.steps.pop(0)):
            step()


def joining(cluster: CsrCluster) -> Joining:
    def serve() -> None:
        cluster.kubelets[cases.NEW_ADDRESS] = AUTHORITY.issue(cases.NEW, *NEW_SERVING.names)

    def ready() -> None:
        cluster.join(cases.NEW, cases.NEW_ADDRESS)

    return Joining(
        cluster,
        lambda: cluster.file(CLIENT),
        None,
        lambda: cluster.join(cases.NEW, cases.NEW_ADDRESS, ready=False),
        lambda: cluster.file(NEW_SERVING),
        None,
        ready,
        None,
        serve,
    )


def test_it_waits_until_the_expected_nodes_serve_with_certificates() -> None:
    cluster = CsrCluster(nodes=())
    joining(cluster)
    outcome = cluster.approve(expected_nodes=ONE, wait=True)
    assert outcome.failure is None, str(outcome.failure)
    assert cluster.decided == [CLIENT.name, NEW_SERVING.name]
    assert (outcome.changed, outcome.values["missing_nodes"]) == (True, [])
    assert "0 of 1 expected nodes are complete" in outcome.progress[0]
    assert "2 requests approved, 1 of 1 expected nodes are complete" in outcome.progress[-1]
    assert any("it is not Ready: the network is not ready" in line for line in outcome.progress)
    assert any("it has no serving certificate" in line for line in outcome.progress)
    cluster.requests.clear()
    again = cluster.approve(expected_nodes=ONE, wait=True)
    assert (again.changed, again.failure, cluster.sent("watch")) == (False, None, [])


def test_slices_continue_where_they_ended() -> None:
    cluster = CsrCluster(nodes=())
    joining(cluster)
    resume, changed, slices = {}, False, 0
    while True:
        outcome = cluster.approve(expected_nodes=ONE, wait=True, slice_of=3.0, resume=resume)
        changed, slices = changed or outcome.changed, slices + 1
        if outcome.pending is None:
            break
        assert outcome.progress
        resume = outcome.pending
        assert cluster.time is not None
        cluster.time.advance(1)
    assert (changed, slices > 2) == (True, True)
    assert [one["name"] for one in outcome.values["approved"]] == [CLIENT.name, NEW_SERVING.name]


def test_a_node_without_serving_certificate_is_complete_if_none_is_required() -> None:
    cluster = CsrCluster(nodes=())
    cluster.join(cases.NEW, cases.NEW_ADDRESS)
    outcome = cluster.approve(expected_nodes=ONE, wait=True, require_serving=False)
    assert (outcome.failure, cluster.dialed) == (None, [])


@pytest.mark.parametrize(
    ("age", "filed_for", "failure"),
    [
        (3600.0, cases.NEW, None),
        (3750.0, cases.NEW, "it has no serving certificate"),
        (3600.0, cases.WORKER, "it has no serving"),
    ],
)
def test_of_an_unreachable_kubelet_a_certificate_counts_that_its_node_was_issued(
    age: float, filed_for: str, failure: str | None
) -> None:
    cluster = CsrCluster(s.serving(filed_for, certificate="issued", conditions=("Approved",), age=age), nodes=())
    cluster.join(cases.NEW, cases.NEW_ADDRESS)
    node = cluster.stored("Node", cases.NEW)
    node["metadata"]["creationTimestamp"] = s.stamp(s.NOW - 3600 - 30)
    cluster.put(node)
    Joining(cluster)
    outcome = cluster.approve(expected_nodes=ONE, wait=True, wait_timeout=5.0)
    assert (failure or "None") in str(outcome.failure)
    assert cluster.dialed


def test_after_the_timeout_each_missing_node_has_its_cause() -> None:
    cluster = CsrCluster(CLIENT.but(usages=("any",)), nodes=())
    cluster.join(cases.UPPER, "10.33.3.22", ready=False)
    Joining(cluster)
    outcome = cluster.approve(wait=True, wait_timeout=30.0)
    text = str(outcome.failure)
    assert text.startswith("4 of 4 expected nodes are not complete after 30 s:")
    assert f"node {cases.NEW}: it has not joined (BAD_USAGE)" in text
    assert f"node {cases.DOTTED} is not complete: it has not joined. Next: check the kubelet's log" in text
    assert f"node {cases.UPPER} is not complete: it is not Ready: the network is not ready" in text
    assert outcome.values["ignored_count"] == 1


def test_kubelets_are_asked_in_turn() -> None:
    """Of a hundred, those that do not answer do not keep the others from being asked."""
    names = [f"gpu-{number:02}" for number in range(80)]
    cluster = CsrCluster(nodes=())
    for number, name in enumerate(names):
        cluster.join(name, f"10.0.0.{number + 1}")
    for number in range(40, 80):
        cluster.kubelets[f"10.0.0.{number + 1}"] = AUTHORITY.issue(names[number])
    Joining(cluster)
    outcome = cluster.approve(expected_nodes=[{"name": name} for name in names], wait=True, wait_timeout=20.0)
    assert "40 of 80 expected nodes are not complete" in str(outcome.failure)
    assert "40 of 80 expected nodes are complete" in outcome.progress[-1]
    rounds = len(cluster.sent("list", "Node"))
    assert len(cluster.dialed) <= 32 * rounds


def test_an_expired_watch_lists_again() -> None:
    cluster = CsrCluster(nodes=())
    joining(cluster)
    cluster.fail(Gone("too old"), "watch", times=2)
    assert cluster.approve(expected_nodes=ONE, wait=True).failure is None


def test_a_server_that_does_not_answer_is_an_error_of_the_run() -> None:
    cluster = CsrCluster(CLIENT)
    cluster.fail(Unreachable("listing", "https://api:6443", "no answer", "wait"), "list")
    with pytest.raises(Unreachable):
        cluster.approve()


def test_changes_of_other_nodes_are_not_waited_for() -> None:
    cluster = CsrCluster(nodes=())
    lists: list[int] = []
    Joining(cluster, *([lambda: cluster.join("another", "10.0.0.5")] * 30))
    cluster.on("list", lambda request: lists.append(1) if request.kind == "Node" else None)
    cluster.approve(expected_nodes=ONE, wait=True, wait_timeout=45.0)
    # Three watches of 1.5 s each, and a list after them.
    assert len(lists) <= 11


def test_the_module_passes_its_options_on() -> None:
    assert set(module.ARGUMENT_SPEC) == set(run.Settings.__dataclass_fields__)
