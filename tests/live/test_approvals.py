# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate requests at a real API server and its signers: which are signed, races, and what approving everything gives away.

Runtime: one sandbox, a minute.
"""

from __future__ import annotations

import base64
import collections.abc as c
import concurrent.futures
import pathlib
import typing as t

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.kubelets import serving_certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, Forbidden, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import CSR, NODE
from ansible_collections.hwaccel.gpu.tests.live.support import adhoc
from ansible_collections.hwaccel.gpu.tests.live.support.approvals import (
    NAMESPACE,
    Approvals,
    Between,
    kubelet,
)
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.rights import RoleBook, requests_of, unused
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.approval.cases import Case

SECRETS = Resource("", "v1", "Secret", "secrets", True)
FLEET: dict[str, t.Any] = {"time_scale": 0.02, "pools": [{"name": "cpu", "count": 1}]}
CLIENT, SERVING = cases.good_client(), cases.good_serving()
#: Profiles other than openshift file the same serving requests.
PROFILES = ("openshift", "kubeadm", "custom")
CUSTOM = {"bootstrap_user": "joiner", "bootstrap_groups": ["joiners"]}


@pytest.fixture(scope="module")
def shared(make_sandbox: t.Any, tmp_path_factory: pytest.TempPathFactory) -> Approvals:
    return Approvals(make_sandbox(FLEET), tmp_path_factory.mktemp("approver"))


@pytest.fixture
def approvals(shared: Approvals) -> c.Iterator[Approvals]:
    yield shared
    shared.clear()


def every(profile: str) -> list[Case]:
    found = [*cases.table(profile), *cases.hostile(profile)]
    return [case for case in found if case.live and (profile == "openshift" or case.decided_by_profile)]


@pytest.mark.parametrize("profile", PROFILES)
def test_legitimate_requests_are_signed_and_hostile_ones_are_not(approvals: Approvals, profile: str) -> None:
    wrong, refused_by_server = [], []
    for case in every(profile):
        try:
            approvals.file(case.filed)
        except ApiError as error:
            # Nothing else than a hostile request may fail here.
            assert case.code, f"{case.name}: {error}"
            refused_by_server.append(case.name)
            continue
        outcome = approvals.approve(profile=profile, **(CUSTOM if profile == "custom" else {}))
        codes = [one["reason_code"] for one in outcome.values["ignored"]]
        expected = [] if case.code in ("", "UNKNOWN_SIGNER") else [case.code]
        if (codes, outcome.changed) != (expected, not case.code):
            wrong.append(f"{case.name}: {codes}, changed={outcome.changed}, not {case.code}")
        if not case.code:
            verify(approvals.certificate(case.filed.name), case)
        else:
            assert approvals.decided(case.filed.name) == list(case.filed.conditions), case.name
            assert not approvals.stored(case.filed.name)["status"].get("certificate"), case.name
        approvals.delete(case.filed.name)
    assert wrong == []
    print(
        f"{profile}: {len(every(profile))} requests; the API server itself refuses: {', '.join(refused_by_server) or 'none'}"
    )


def verify(certificate: str, case: Case) -> None:
    """The certificate is for what was requested, and nothing more."""
    found = x509.load_pem_x509_certificate(base64.b64decode(certificate))
    requested = x509.load_pem_x509_csr(case.filed.pem()) if case.filed.key else None
    assert {one.value for one in found.subject} == {value for _kind, value in case.filed.subject}, case.name
    names = {extension.oid.dotted_string: extension.value for extension in found.extensions}.get("2.5.29.17", ())
    assert set(names) == set(case.filed.names), case.name
    if requested is not None:
        assert found.public_key() == requested.public_key(), case.name


def test_a_machine_joins_renews_and_is_waited_for(approvals: Approvals, tmp_path: pathlib.Path) -> None:
    name = "worker-7.gpu.example.com"
    machine = approvals.machine(tmp_path, name)
    expected = [{"name": name, "ip_addresses": ["10.33.3.27"]}]
    client_request = s.client(name, key=machine.key)
    approvals.file(client_request, machine.bootstrap)
    assert approvals.approve(expected_nodes=expected).values["missing_nodes"] == [name]
    node = machine.node(approvals.certificate(client_request.name))
    serving = s.serving(name, *s.dns(name), *s.ips("10.33.3.27"), key=machine.key)
    approvals.file(serving, node)
    assert [one["reason_code"] for one in approvals.approve(expected_nodes=expected).values["ignored"]] == [
        "NODE_MISSING"
    ]

    # Its kubelet listens on loopback, where its serving certificate is presented by a real handshake.
    with kubelet(*machine.write(_self_signed(machine.key))) as port:
        approvals.join(name, "127.0.0.1", port=port, client=node)
        waiting = approvals.approve(expected_nodes=expected, ask=serving_certificate, wait=True, wait_timeout=0.1)
        assert "the cluster's signer did not issue it" in str(waiting.failure)
        assert [one["name"] for one in waiting.values["approved"]] == [serving.name]
    with kubelet(*machine.write(approvals.certificate(serving.name))) as port:
        node.patch(
            NODE, name, "", {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}, subresource="status"
        )
        done = approvals.approve(expected_nodes=expected, ask=serving_certificate, wait=True, wait_timeout=240.0)
        assert (done.failure, done.changed, done.values["missing_nodes"]) == (None, False, [])

        # The same names again: a renewal, although this inventory does not have the node.
        renewal = serving.but(name="renewal", key=s.ec_key())
        approvals.file(renewal, node)
        others = approvals.approve(ask=serving_certificate)
        assert others.values["approved"] == [{"name": "renewal", "node": name, "signer": "serving", "renewal": True}]
        approvals.certificate("renewal")
        more = serving.but(name="more", names=(*serving.names, *s.dns("api-int.gpu.example.com")), key=s.ec_key())
        approvals.file(more, node)
        (ignored,) = approvals.approve(expected_nodes=expected, ask=serving_certificate).values["ignored"]
        assert (ignored["name"], ignored["reason_code"]) == ("more", "SAN_NOT_ALLOWED")
    approvals.delete("more")

    # kube-controller-manager approves the renewal of the client certificate by itself.
    own = s.client(name, name="own-renewal", key=s.ec_key())
    approvals.file(own, node)
    approvals.certificate("own-renewal")
    assert "AutoApproved" in str(approvals.stored("own-renewal")["status"]["conditions"])
    approvals.admin.delete(NODE, name)


def _self_signed(key: t.Any) -> str:
    authority = s.Authority("worker-7@1790000000")
    authority.key = key
    own = authority._sign(authority.name, key, (), s.NOW - 3600 * 24 * 3650, s.NOW + 3600 * 24 * 3650)
    return base64.b64encode(own.public_bytes(serialization.Encoding.PEM)).decode()


def test_the_module_by_ansible(approvals: Approvals, tmp_path: pathlib.Path) -> None:
    """Check mode, the run, and a run that waits for machines that never come: with progress, and without the token."""
    approvals.file(CLIENT)
    given = {"kubeconfig": approvals.kubeconfig, "profile": "openshift", "expected_nodes": cases.EXPECTED[:2]}
    status, planned, _printed = adhoc.task("node_csr_approve", given, "--check", home=tmp_path)
    assert (status, planned["changed"], approvals.decided(CLIENT.name)) == (0, True, [])
    status, done, _printed = adhoc.task("node_csr_approve", given, home=tmp_path)
    assert (status, done["approved"], approvals.decided(CLIENT.name)) == (0, planned["approved"], ["Approved"])
    status, failed, printed = adhoc.task(
        "node_csr_approve", given | {"wait": True, "wait_timeout": 3, "require_serving": False}, "-vvv", home=tmp_path
    )
    assert (status, failed["changed"], failed["missing_nodes"]) == (2, False, [cases.NEW])
    assert f"localhost: 0 requests approved, 1 of 2 expected nodes are complete, waiting for {cases.NEW}" in printed
    assert f"node {cases.NEW} is not complete: it has not joined. Next: check the kubelet's log" in failed["msg"]
    secret = (pathlib.Path(approvals.kubeconfig).parent / "token").read_text()
    assert secret not in printed + str(failed)
    assert "pending" not in failed


def test_two_approvers_at_once(approvals: Approvals) -> None:
    names = [f"race-{number}.gpu.example.com" for number in range(20)]
    expected = [{"name": name} for name in names]
    for name in names:
        approvals.file(s.client(name))
    audit = AuditLog(approvals.sandbox.audit_log)
    clients = [connect({"kubeconfig": approvals.kubeconfig}) for _one in range(2)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda client: approvals.approve(client, expected_nodes=expected), clients))
    assert [run.failure for run in runs] == [None, None]
    approved = [one["name"] for run in runs for one in run.values["approved"]]
    assert sorted(approved) == sorted(f"csr-{name}" for name in names)
    writes = [request for request in audit.our_writes() if request.subresource == "approval"]
    assert len(writes) == len(names)
    assert all(approvals.decided(f"csr-{name}") == ["Approved"] for name in names)


def test_a_request_that_is_replaced_between_read_and_approval(approvals: Approvals) -> None:
    approvals.file(CLIENT)
    rogue = CLIENT.but(subject=s.node_subject("rogue"))

    def replace() -> None:
        approvals.delete(CLIENT.name)
        approvals.file(rogue)

    outcome = approvals.approve(Between(approvals.approver, replace))  # type: ignore[arg-type]
    assert (outcome.changed, outcome.values["approved"]) == (False, [])
    assert approvals.decided(CLIENT.name) == []
    assert [one["reason_code"] for one in approvals.approve().values["ignored"]] == ["NOT_IN_INVENTORY"]


def test_a_node_of_that_name_appears_meanwhile(approvals: Approvals) -> None:
    approvals.file(CLIENT)

    def join() -> None:
        approvals.join(cases.NEW, cases.NEW_ADDRESS)
        label(approvals, CLIENT.name)

    try:
        outcome = approvals.approve(Between(approvals.approver, join))  # type: ignore[arg-type]
        assert (outcome.changed, approvals.decided(CLIENT.name)) == (False, [])
        assert [one["reason_code"] for one in approvals.approve().values["ignored"]] == ["NODE_EXISTS"]
    finally:
        approvals.admin.delete(NODE, cases.NEW)


def test_an_old_request_that_is_filed_again(approvals: Approvals) -> None:
    text = CLIENT.but(key=s.ec_key()).pem()
    old = CLIENT.but(written=lambda _pem: text)
    approvals.file(old)
    assert approvals.approve().changed
    approvals.join(cases.NEW, cases.NEW_ADDRESS)
    try:
        approvals.delete(old.name)
        approvals.file(old)
        (ignored,) = approvals.approve().values["ignored"]
        assert (ignored["reason_code"], approvals.decided(old.name)) == ("NODE_EXISTS", [])
    finally:
        approvals.admin.delete(NODE, cases.NEW)


def test_a_request_that_is_gone_and_one_that_changes(approvals: Approvals) -> None:
    for filed in (CLIENT, SERVING):
        approvals.file(filed)
    gone = approvals.approve(Between(approvals.approver, lambda: approvals.delete(CLIENT.name)))  # type: ignore[arg-type]
    assert [one["name"] for one in gone.values["approved"]] == [SERVING.name]
    approvals.file(CLIENT)

    between = Between(approvals.approver, lambda: label(approvals, CLIENT.name))
    changed = approvals.approve(between)  # type: ignore[arg-type]
    assert ([one["name"] for one in changed.values["approved"]], between.writes) == ([CLIENT.name], 2)
    approvals.certificate(CLIENT.name)


def test_copies_second_names_and_floods(approvals: Approvals) -> None:
    key = s.ec_key()
    approvals.file(CLIENT.but(key=key))
    approvals.file(cases.good_client(node=cases.UPPER).but(key=key))
    assert {one["reason_code"] for one in approvals.approve().values["ignored"]} == {"KEY_REUSED"}
    approvals.clear()
    for number, node in enumerate((cases.NEW, "worker-1", cases.NEW)):
        approvals.file(cases.good_client(node=node).but(name=f"csr-{number}"))
    outcome = approvals.approve(max_pending=2)
    assert (outcome.changed, "3 requests of the last hour" in str(outcome.failure)) == (False, True)
    outcome = approvals.approve()
    reasons = {one["name"]: one["reason_code"] for one in outcome.values["ignored"]}
    assert sorted(reasons.values()) == ["SUPERSEDED", "TWO_NAMES"]
    assert len(outcome.values["approved"]) == 1


def approve_all(approvals: Approvals) -> None:
    """Seed 000: oc get csr -ojson | jq -r '.items[] | select(.status == {}) | .metadata.name' | xargs oc adm certificate approve"""
    _approve(approvals, [obj for obj in approvals.admin.list(CSR).items if not obj.get("status")])


def approve_pending(approvals: Approvals) -> None:
    """The bootstrap machine, approve-csr.sh: oc get csr --no-headers | grep Pending | cut -f1 -d" " | xargs oc adm certificate approve"""
    pending = [obj for obj in approvals.admin.list(CSR).items if not (obj.get("status") or {}).get("conditions")]
    _approve(approvals, pending)


def _approve(approvals: Approvals, requests: list[dict[str, t.Any]]) -> None:
    condition = {"type": "Approved", "status": "True", "reason": "KubectlApprove", "message": "approved by kubectl"}
    for obj in requests:
        approvals.admin.replace(obj | {"status": {"conditions": [condition]}}, CSR, subresource="approval")


@pytest.mark.parametrize("loop", [approve_all, approve_pending])
def test_approving_everything_hands_out_cluster_admin(
    approvals: Approvals, tmp_path: pathlib.Path, loop: c.Callable[[Approvals], None]
) -> None:
    """The control: whoever reads the bootstrap token from port 22623 becomes the administrator."""
    attacker = approvals.machine(tmp_path, "attacker")
    subject = ((s.NameOID.ORGANIZATION_NAME, "system:cluster-admins"), (s.NameOID.COMMON_NAME, "attacker"))
    request = CLIENT.but(name="attack", signer="kubernetes.io/kube-apiserver-client", subject=subject, key=attacker.key)
    approvals.file(request, attacker.bootstrap)
    with pytest.raises(Forbidden):
        attacker.bootstrap.list(SECRETS, "kube-system")
    assert approvals.approve().values["ignored_count"] == 0
    assert (approvals.decided("attack"), approvals.stored("attack")["status"]) == ([], {})

    loop(approvals)
    admin = attacker.node(approvals.certificate("attack"))
    assert admin.list(SECRETS, "kube-system").items is not None
    assert admin.allowed("*", Resource("*", "*", "", "*", False))


def test_a_missing_right_is_named_and_nothing_is_approved(approvals: Approvals) -> None:
    approvals.file(CLIENT)
    approvals.file(SERVING)
    roles = approvals.admin.resource("rbac.authorization.k8s.io/v1", "ClusterRole")
    whole = approvals.admin.get(roles, NAMESPACE)
    limited = [rule for rule in whole["rules"] if "signers" not in rule["resources"]]
    signers = {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["approve"]}
    limited.append(signers | {"resourceNames": ["kubernetes.io/kubelet-serving"]})
    approvals.admin.patch(roles, NAMESPACE, "", {"rules": limited})
    signer = Resource("certificates.k8s.io", "v1", "Signer", "signers", False)

    def allowed() -> bool:
        return approvals.approver.allowed("approve", signer, name="kubernetes.io/kube-apiserver-client-kubelet")

    try:
        until(lambda: not allowed(), "the role to change")
        with pytest.raises(ManyFaults, match="approve signers"):
            approvals.approve()
        assert approvals.decided(CLIENT.name) == []
    finally:
        approvals.admin.patch(roles, NAMESPACE, "", {"rules": whole["rules"]})
        until(allowed, "the role to be restored")
    assert approvals.approve().changed


def test_each_right_of_the_example_is_used_and_no_other_is_needed(approvals: Approvals) -> None:
    """Permission to approve signers has no request of its own: admission asks for it, see the test before."""
    book, audit = RoleBook(approvals.admin), AuditLog(approvals.sandbox.audit_log)
    uid = approvals.admin.get(Resource("", "v1", "Namespace", "namespaces", False), "kube-system")["metadata"]["uid"]
    approvals.file(CLIENT)
    # A conflict, and a renewal that is none.
    approvals.file(SERVING.but(names=s.dns("api-int.gpu.example.com")))
    approvals.approve(Between(approvals.approver, lambda: label(approvals, CLIENT.name)), cluster_uid=uid)  # type: ignore[arg-type]
    approvals.approve(profile="kubeadm", wait=True, wait_timeout=5.0, expected_nodes=[{"name": "cpu-0"}])
    requests = requests_of(audit, (NAMESPACE,))
    missing = [right for right in unused(book.granted((NAMESPACE,)), requests) if right.resource != "signers"]
    assert [str(right) for right in missing] == []
    assert {str(request) for request in requests if request.status == 403} == set()


def label(approvals: Approvals, name: str) -> None:
    approvals.admin.patch(CSR, name, "", {"metadata": {"labels": {"changed": "true"}}})
