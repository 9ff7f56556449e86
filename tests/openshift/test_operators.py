# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for OpenShift's operators: its state machine, and what an API server with OpenShift's schemas and the collection make of its reports.

Runtime: one control plane, half a minute.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import causes
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.install_state import state
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import (
    ANSWERS,
    Api,
    Installation,
    Snapshot,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bootstrap
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.world import World
from ansible_collections.hwaccel.gpu.tests.live.support.approvals import join
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import find_programs
from ansible_collections.hwaccel.gpu.tests.openshift.rig import operators, reports
from ansible_collections.hwaccel.gpu.tests.openshift.rig.control_plane import ControlPlane
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import (
    BOOTSTRAPPED,
    INSTALLED,
    OPERATORS,
    PULL_REFUSED,
    REMOVABLE,
    STARTED,
    Expected,
    Faults,
    Operators,
    Seen,
    following,
)
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import furnish

M0, M1, M2, W0 = (f"{name}.dgxpod.example.com" for name in ("m0", "m1", "m2", "w0"))
THREE, ONE = Expected((M0, M1, M2), (W0,)), Expected((M0,))
PACE = 0.2
#: Seconds in which the operators would have gone on if they went by time.
A_WHILE = 10 * PACE
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
COMPLETE = Seen(bootstrap=reports.COMPLETE)
FIRST = frozenset(OPERATORS[:7])


def seen(*ready: str, **fields: object) -> Seen:
    return dataclasses.replace(Seen(frozenset(ready)), **fields)  # type: ignore[arg-type]


#: What is there, which installation, faults, and what has to be next.
CASES: dict[str, tuple[Seen, Expected, Faults, Seen]] = {
    "nothing": (seen(), THREE, Faults(), seen(bootstrap=reports.PROGRESSING)),
    "masters are up before there is a ConfigMap": (
        seen(M0, M1, M2), THREE, Faults(), seen(M0, M1, M2, bootstrap=reports.PROGRESSING),
    ),
    "one of three masters": (
        seen(M0, W0, bootstrap=reports.PROGRESSING), THREE, Faults(), seen(M0, W0, bootstrap=reports.PROGRESSING),
    ),
    "two of three masters": (
        seen(M0, M2, bootstrap=reports.PROGRESSING), THREE, Faults(), seen(M0, M2, bootstrap=reports.COMPLETE),
    ),
    "one of one master": (
        seen(M0, bootstrap=reports.PROGRESSING), ONE, Faults(), seen(M0, bootstrap=reports.COMPLETE),
    ),
    "bootstrap is stuck": (
        seen(M0, bootstrap=reports.PROGRESSING), ONE, Faults(bootstrap_stuck=True), seen(M0, bootstrap=reports.PROGRESSING),
    ),
    "it stays complete when masters restart": (
        seen(bootstrap=reports.COMPLETE), THREE, Faults(), seen(bootstrap=reports.COMPLETE, removed=True),
    ),
    "the member stays": (
        seen(M0, bootstrap=reports.COMPLETE), ONE, Faults(member_stays=True), seen(M0, bootstrap=reports.COMPLETE),
    ),
    "no operator before the member has left": (
        seen(M0, bootstrap=reports.COMPLETE), ONE, Faults(), seen(M0, bootstrap=reports.COMPLETE, removed=True),
    ),
    "operators of the control plane wait for all masters": (
        seen(M0, M1, bootstrap=reports.COMPLETE, removed=True), THREE, Faults(),
        seen(M0, M1, bootstrap=reports.COMPLETE, removed=True),
    ),
    "operators of the control plane": (
        seen(M0, bootstrap=reports.COMPLETE, removed=True), ONE, Faults(),
        seen(M0, bootstrap=reports.COMPLETE, removed=True, good=FIRST),
    ),
    "one of them is degraded": (
        seen(M0, bootstrap=reports.COMPLETE, removed=True), ONE, Faults(degraded={"etcd": "x"}),
        seen(M0, bootstrap=reports.COMPLETE, removed=True, good=FIRST - {"etcd"}),
    ),
    "the last wait for workers": (
        seen(M0, M1, M2, bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS[:11])), THREE, Faults(),
        seen(M0, M1, M2, bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS[:11])),
    ),
    "without workers they are on masters": (
        seen(M0, bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS[:11])), ONE, Faults(),
        seen(M0, bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS)),
    ),
    "all are good": (
        seen(M0, bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS)), ONE, Faults(),
        seen(M0, bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS), completed=True),
    ),
    "one of all is degraded": (
        seen(M0, bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS)), ONE, Faults(degraded={"dns": "x"}),
        seen(M0, bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS) - {"dns"}),
    ),
    "installed stays installed": (
        seen(bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS), completed=True), ONE,
        Faults(unavailable={"dns": "x"}),
        seen(bootstrap=reports.COMPLETE, removed=True, good=frozenset(OPERATORS) - {"dns"}, completed=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_step_follows_from_what_is_there(case: str) -> None:
    before, expected, faults, after = CASES[case]
    assert following(before, expected, faults) == after


@pytest.fixture(scope="module")
def plane(disk: Disk, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[ControlPlane]:
    with ControlPlane(find_programs(), disk, tmp_path_factory.mktemp("operators") / "state") as started:
        furnish(started.admin, disk)
        yield started


def answers(client: Client) -> Snapshot:
    """The cluster as an install is read by the collection, whose files are known."""
    world = World()
    world.read(client, ("infrastructure", "bootstrap", "etcd", "version", "operators", "nodes"), time.time())
    found = world.answers((), None)
    now = datetime.datetime.now(datetime.UTC)
    return Snapshot("dgxpod", now, Installation("folder", files=True), api=Api(ANSWERS), answers=found)


def register(client: Client, *names: str) -> None:
    for name in names:
        join(client, name, "127.0.0.1")
        role = "worker" if name == W0 else "master"
        client.patch(NODE, name, "", {"metadata": {"labels": {f"node-role.kubernetes.io/{role}": ""}}})


def test_an_installation_from_nothing_to_the_end(plane: ControlPlane) -> None:
    admin = plane.admin
    with Operators(plane.kubeconfig, THREE, PACE) as running:
        running.wait(STARTED)
        time.sleep(A_WHILE)
        assert list(running.done) == [STARTED]
        found = answers(admin)
        assert (state(found).name, len(found.answers.operators)) == ("bootstrapping", len(OPERATORS))
        assert not any(one.available for one in found.answers.operators)
        assert {one.reason for one in found.answers.operators if one.name == "ingress"} == {
            f"Ingress_NotAvailable: waiting for {W0}"
        }

        register(admin, M0, M2)
        running.wait(REMOVABLE)
        time.sleep(A_WHILE)
        assert list(running.done) == [STARTED, BOOTSTRAPPED, REMOVABLE]
        assert running.done[BOOTSTRAPPED] < running.done[REMOVABLE]
        assert (bootstrap.state(admin)["complete"], bootstrap.state(admin)["removable"]) == (True, True)
        assert state(answers(admin)).name == "installing"

        register(admin, M1)
        until(lambda: len(good(admin)) == 11, "operators on masters", seen=lambda: good(admin))
        plane.stop()
        time.sleep(A_WHILE)
        plane.start()
        register(admin, W0)
        running.wait(INSTALLED)
    assert state(answers(admin)).name == "installed"
    router = admin.get(CONFIG_MAP, "default-ingress-cert", "openshift-config-managed")["data"]["ca-bundle.crt"]
    assert router.startswith("-----BEGIN CERTIFICATE-----")
    pools = admin.list(admin.resource("machineconfiguration.openshift.io/v1", "MachineConfigPool")).items
    assert {one["metadata"]["name"]: one["status"]["readyMachineCount"] for one in pools} == {"master": 3, "worker": 1}
    version = admin.get(admin.resource(reports.CONFIG, "ClusterVersion"), "version")
    (manifest,) = (one for one in plane.disk.manifests() if one["kind"] == "ClusterVersion")
    assert version["spec"]["clusterID"] == manifest["spec"]["clusterID"]


def good(client: Client) -> list[str]:
    return [one.name for one in answers(client).answers.operators if one.available]


def revisions(client: Client) -> dict[str, str]:
    kinds = [client.resource(reports.CONFIG, kind) for kind in ("ClusterVersion", "ClusterOperator", "Infrastructure")]
    kinds += [client.resource(reports.OPERATOR, "Etcd"), CONFIG_MAP]
    found = [one for kind in kinds for one in client.list(kind).items]
    return {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in found}


def test_another_one_takes_over_and_has_nothing_to_write(plane: ControlPlane) -> None:
    admin = plane.admin
    before = revisions(admin)
    assert len(before) > len(OPERATORS)
    with Operators(plane.kubeconfig, THREE, PACE) as running:
        running.wait(INSTALLED)
        time.sleep(A_WHILE)
    assert revisions(admin) == before


def test_faults_are_seen_as_the_collection_knows_them_and_end(plane: ControlPlane) -> None:
    admin = plane.admin
    with Operators(plane.kubeconfig, THREE, PACE) as running:
        running.wait(INSTALLED)
        running.faults = Faults(
            degraded={"ingress": PULL_REFUSED}, unavailable={"console": "RouteHealth: no such host"}
        )
        until(lambda: state(answers(admin)).name == "degraded", "the fault to be seen")
        assert causes.likely(answers(admin)).what == "a registry refuses the pull secret"
        until(lambda: "console" not in good(admin), "the console to be away")
        running.faults = Faults()
        until(lambda: state(answers(admin)).name == "installed", "the fault to end", seen=lambda: good(admin))


def test_an_error_of_the_api_ends_them_with_its_message(plane: ControlPlane) -> None:
    """A report that the schema refuses must not be lost."""
    with (
        pytest.raises(AssertionError, match=r"version in body must be of type string"),
        Operators(plane.kubeconfig, dataclasses.replace(ONE, release=7), PACE) as running,  # type: ignore[arg-type]
    ):
        running.wait(operators.INSTALLED)
