# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From bare machines to a GPU on which a pod has computed, by site, and from one version to the next, for real.

Three servers behind a load balancer and two agents, one of them with GPUs of tests/node. Tests use the same cluster, in their order.
"""

from __future__ import annotations

import contextlib
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig import audit, programs
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig, ensure_parts
from ansible_collections.hwaccel.gpu.tests.cluster.rig.probe import Probe, asked_from
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import CONFIGURATION, FOLDER, Site, begun, gpu_site, memory
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow

#: On the servers: what the API server logs, and where.
_AUDIT, _LOG = "/etc/kubernetes-audit", "/var/log/kubernetes"
_AUDITED = {
    "extraArgs": [
        {"name": "audit-policy-file", "value": f"{_AUDIT}/policy.yaml"},
        {"name": "audit-log-path", "value": f"{_LOG}/audit.log"},
    ],
    "extraVolumes": [
        {"name": name, "hostPath": path, "mountPath": path, "pathType": "DirectoryOrCreate"}
        for name, path in {"audit-policy": _AUDIT, "audit-log": _LOG}.items()
    ],
}

#: Of system-upgrade-controller, as its own manifest has it, without the schema.
_CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_PLAN = Resource("upgrade.cattle.io", "v1", "Plan", "plans", True)
_PLANS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "plans.upgrade.cattle.io"},
    "spec": {
        "group": _PLAN.group,
        "names": {"kind": _PLAN.kind, "plural": _PLAN.plural},
        "scope": "Namespaced",
        "versions": [
            {
                "name": _PLAN.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
#: Of the machines of such a cluster together, in MiB.
_MEMORY = 3584


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = gpu_site(rig, ("cp1", "cp2", "cp3"), ("w1", "w2"), "lb")
    for name in site.servers:
        site.machines[name].write(f"{_AUDIT}/policy.yaml", audit.policy("kubernetes-admin"))
    site.variables["cluster_kubeadm_configuration"] = {**CONFIGURATION, "ClusterConfiguration": {"apiServer": _AUDITED}}
    return site


def writes(site: Site) -> list[str]:
    return audit.writes((site.machines[name] for name in site.servers), f"{_LOG}/audit.log")


def etcd_since(site: Site) -> dict[str, str]:
    """When etcd has started, by server: field 22 of its stat (proc_pid_stat(5))."""
    asks = "sed 's/.*) //' /proc/$(pidof -s etcd)/stat | cut -d ' ' -f 20"
    found = {name: site.machines[name].sh(asks).strip() for name in site.servers}
    assert all(text.isdecimal() for text in found.values()), found
    return found


def test_site_makes_the_cluster_and_a_pod_computes_on_its_gpus(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    checked = site.play("site", "--check")
    assert checked.rc == 0, checked.stdout[-6000:]
    assert site.machines["cp1"].sh("ls /etc/kubernetes /usr/bin/kubeadm 2>/dev/null || :") == ""
    began = time.monotonic()
    made = site.play("site")
    between = time.monotonic()
    assert made.rc == 0, made.stdout[-8000:]
    assert gpus_of(site.client().get(NODE, "w1")) == 2
    written = writes(site)
    assert written
    used = {name: memory(machine) for name, machine in site.machines.items()}
    middle = time.monotonic()
    second = site.play("site")
    with capsys.disabled():
        print(f"\nsite: {between - began:.0f} s; the second run: {time.monotonic() - middle:.0f} s")
        print(f"memory: {sum(used.values())} MiB ({', '.join(f'{name} {one}' for name, one in used.items())})")
    assert (second.rc, second.changed()) == (0, 0), second.stdout[-6000:]
    assert writes(site) == written
    assert sum(used.values()) <= _MEMORY, used


def test_nodes_that_another_one_upgrades_are_left_to_it(site: Site) -> None:
    client = site.client()
    client.create(_PLANS, _CRD)
    plan = {
        "apiVersion": "upgrade.cattle.io/v1",
        "kind": "Plan",
        "metadata": {"name": "agents", "namespace": "default"},
    }

    def planned() -> bool:
        # Each API server serves a new kind after a moment of its own.
        with contextlib.suppress(NotFound):
            return all(site.client(name).list(_PLAN) is not None for name in site.servers)
        return False

    site.machines["cp1"].wait("all API servers know Plans", planned)
    client.create(plan, _PLAN)
    site.parts = ensure_parts(say, programs.next_patch(programs.VERSION))
    try:
        run = site.play()
    finally:
        site.parts = None
        client.delete(_CRD, "plans.upgrade.cattle.io")
    assert run.rc != 0 and run.changed() == 0
    (reason,) = run.summary["one"]["reasons"]
    assert "system-upgrade-controller has Plans in the cluster (default/agents)" in reason
    assert set(site.versions().values()) == {programs.VERSION}


def test_an_upgrade_that_was_killed_goes_on_and_clients_do_not_notice(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    new = site.parts = ensure_parts(say, programs.next_patch(programs.VERSION))
    planned = site.done("--check").summary["one"]["changes"]
    assert [text.partition(":")[0] for text in planned] == [
        "upgrade the server cp1",
        "upgrade the server cp2",
        "upgrade the server cp3",
        "upgrade w1, w2",
    ]
    assert set(site.versions().values()) == {programs.VERSION}
    before = etcd_since(site)
    second = site.machines["cp2"]
    balancer = site.machines["lb"].address
    with Probe(balancer) as probe, asked_from(site.machines["w2"].port.namespace, balancer) as worker:
        # In the turn of the second server, the first one is done.
        killed = site.rig.killed(
            "cluster_kubeadm",
            site.groups(),
            lambda: begun(second),
            {"one": site.cluster()},
        )
        assert killed
        assert not begun(site.machines["cp1"])
        assert site.versions()["cp1"] == new.programs.version
        run = site.done()
    with capsys.disabled():
        for place, one in {"the controller": probe, "w2": worker}.items():
            print(
                f"\n{place}: {len(one.answered)} requests answered, {len(one.lost)} lost; longest time without an answer: {one.gap:.1f} s"
            )
    for one in (probe, worker):
        assert one.share_lost <= 0.01, one.lost
        assert one.gap <= 3, one.lost
    # The killed run has left its secrets on the first server.
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "update the server cp1",
        *(text.partition(":")[0] for text in planned[1:]),
    ]
    assert set(site.versions().values()) == {new.programs.version}
    assert etcd_since(site) == before
    assert site.cordoned() == set()
    assert site.done().changed() == 0


def test_a_snapshot_was_taken_before_that_can_be_read(site: Site) -> None:
    names = site.machines["cp1"].sh(f"ls {FOLDER}/snapshots").split()
    assert names
    check = "import hashlib,sys; data=open(sys.argv[1],'rb').read(); print(hashlib.sha256(data[:-32]).digest()==data[-32:], len(data))"
    for name in names:
        good, size = site.machines["cp1"].execute("python3", "-c", check, f"{FOLDER}/snapshots/{name}").stdout.split()
        assert good == "True" and int(size) > 100_000


def test_no_server_is_taken_away_while_another_one_is_not_healthy(site: Site) -> None:
    site.parts = ensure_parts(say, programs.next_patch(site.versions()["cp1"]))
    before = site.versions()
    site.machines["cp3"].sh("systemctl stop kubelet")
    try:
        run = site.play("cluster_kubeadm")
        assert run.rc != 0
        (reason,) = run.summary["one"]["reasons"]
        assert "The run stops at cp1, because cp3 is not healthy: the kubelet: " in reason
        assert site.versions() == before
        assert site.cordoned() == set()
        assert not begun(site.machines["cp1"])
    finally:
        site.machines["cp3"].sh("systemctl start kubelet")
