# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""openshift_wait with the rights of examples/csr-approver alone: they are enough until a cluster is installed, each is used, and missing ones are all named.

The API server and its signers are real. Machines and operators are those of support/installing.py, which are stand-ins.

Runtime: one sandbox, a minute.
"""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import json
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.kubelets import serving_certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.bootstrap import CONFIG_MAP, ETCD, VERSION
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import CSR
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.settings import Settings
from ansible_collections.hwaccel.gpu.tests.live.conftest import MakeSandbox
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import await_right, endpoint, token
from ansible_collections.hwaccel.gpu.tests.live.support.approvals import EXAMPLE, NAMESPACE
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.installing import DOMAIN, Installing
from ansible_collections.hwaccel.gpu.tests.live.support.rights import RoleBook, requests_of, unused
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import put

MACHINES: dict[str, dict[str, t.Any]] = {
    "control_plane": {"m0": {"hwaccel_address": "10.33.3.11"}},
    "workers": {"w0": {"hwaccel_address": "10.33.3.12"}},
}
EXPECTED = [
    {"name": f"{name}.{DOMAIN}", "ip_addresses": [one["hwaccel_address"]]}
    for group in MACHINES.values()
    for name, one in group.items()
]
NEEDED = ("clusterversions", "clusteroperators", "infrastructures", "etcds", "configmaps")


class Waiting:
    """An installation that has not begun, and a wait with the account of the example."""

    def __init__(self, world: Installing, place: pathlib.Path) -> None:
        self.world, self.admin = world, world.admin
        for name in ("rights", "openshift"):
            self._apply(name)
        server, authority = endpoint(world.sandbox.kubeconfig)
        (place / "ca.crt").write_bytes(authority)
        bearer = token(self.admin, NAMESPACE, "approver", {"expirationSeconds": 7200})
        self.client = connect({"host": server, "ca_cert": str(place / "ca.crt"), "api_key": bearer, "retry_timeout": 0})
        await_right(self.client, "update", CSR, subresource="approval")

    def _apply(self, name: str) -> None:
        for obj in yaml.safe_load((EXAMPLE / f"{name}.yaml").read_text(encoding="utf-8"))["items"]:
            put(self.admin, obj)

    def grant(self) -> None:
        self._apply("wait")
        for verb in ("list", "watch"):
            await_right(self.client, verb, VERSION)

    def wait(self, until: str, *, check_mode: bool = False, **limits: float) -> Outcome:
        settings = Settings(name=DOMAIN, until=until, expected_nodes=EXPECTED, **limits)
        return run.wait(settings, self.client, Clock(), serving_certificate, check_mode=check_mode)


@pytest.fixture(scope="module")
def waiting(make_sandbox: MakeSandbox, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Waiting]:
    place = tmp_path_factory.mktemp("waiting")
    with Installing(make_sandbox({"pools": []}), place) as world:
        yield Waiting(world, place)


def test_missing_rights_are_all_named(waiting: Waiting) -> None:
    with pytest.raises(ManyFaults) as caught:
        waiting.wait("install", check_mode=True)
    found = {fault.what for fault in caught.value.faults}
    assert {name for name in NEEDED if any(f"permission to list {name}" in what for what in found)} == set(NEEDED)
    assert not any("nodes" in what or "certificatesigningrequests" in what for what in found), found


def test_the_rights_are_enough_and_each_is_used(
    waiting: Waiting, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each list is watched in turn, which takes a minute by default.
    monkeypatch.setattr(run, "IDLE", 0.5)
    monkeypatch.setattr(run, "SETTLED", 2.0)
    waiting.grant()
    book, audit = RoleBook(waiting.admin), AuditLog(waiting.world.sandbox.audit_log)
    looked = waiting.wait("install", check_mode=True)
    assert (looked.failure, looked.changed, looked.values["state"]) == (None, False, "bootstrapping")
    late = waiting.wait("bootstrap", bootstrap_timeout=5.0)
    assert late.values["state"] == "bootstrapping" and late.failure is not None
    begin(waiting)
    held = waiting.wait("bootstrap", bootstrap_timeout=5.0)
    assert held.values["state"] == "bootstrapped" and held.failure is not None
    (tmp_path / "auth").mkdir()
    (tmp_path / "auth" / "kubeconfig").touch()
    (tmp_path / "metadata.json").write_text(json.dumps({"infraID": "ocp-x1y2z"}), encoding="utf-8")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        machines = pool.submit(waiting.world.install, tmp_path, MACHINES)
        done = waiting.wait("install", nodes_timeout=120.0, install_timeout=120.0)
        machines.result(timeout=120)
    assert (done.failure, done.values["state"], done.values["complete"]) == (None, "installed", True)
    assert {one["node"] for one in done.values["approved"]} == {one["name"] for one in EXPECTED}
    again = waiting.wait("install", check_mode=True)
    assert (again.failure, again.changed, again.values["state"]) == (None, False, "installed")
    requests = requests_of(audit, (NAMESPACE,))
    assert {str(request) for request in requests if request.status == 403} == set()
    # Those of node_csr_approve beside them are read with get.
    granted = book.granted((NAMESPACE,))
    of_the_wait = [right for right in granted if right.resource in NEEDED and right.verb in ("list", "watch")]
    assert {right.resource for right in of_the_wait} == set(NEEDED)
    assert [str(right) for right in unused(of_the_wait, requests)] == []


def begin(waiting: Waiting) -> None:
    """The bootstrap machine has done its part, and etcd still has its member."""
    condition = {
        "type": "EtcdBootstrapMemberRemoved",
        "status": "False",
        "reason": "AsExpected",
        "message": "",
        "lastTransitionTime": "2026-11-30T06:00:00Z",
    }
    metadata = {"name": "bootstrap", "namespace": "kube-system"}
    etcd = {
        "apiVersion": ETCD.api_version,
        "kind": ETCD.kind,
        "metadata": {"name": "cluster"},
        "spec": {"managementState": "Managed"},
    }
    config = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": metadata,
        "data": {"status": "complete"},
    }
    for obj in (config, etcd):
        put(waiting.admin, obj)
    waiting.admin.patch(ETCD, "cluster", "", {"status": {"conditions": [condition]}}, subresource="status")
