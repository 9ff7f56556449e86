# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that is hardened as K3s' guide for the CIS benchmark has it: a server and an agent whose kernels have other settings before.

Settings of the kernel that have no namespace are files in machines of the rig (SHIELDED), which the real kubelet compares as it does with those of a kernel.
"""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig, system_images
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.trial import Trial
from ansible_collections.hwaccel.gpu.tests.cluster.test_k3s_gpus import made as gpu_site
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD

pytestmark = pytest.mark.slow
SYSCTLS = ("vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops")
WANTED, BEFORE = ("1", "10", "1"), ("0", "0", "0")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts", True)
POLICY = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", True)
FILES = "/etc/rancher/k3s/hardening-* /etc/sysctl.d/90-hwaccel-gpu-k3s-hardening.conf"


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, servers=("s1",), agents=("a1",))
    site.variables["cluster_k3s_hardening"] = "cis"
    for name in site.machines:
        write(site, name, BEFORE)
    return site


def write(site: K3sSite, name: str, values: tuple[str, ...]) -> None:
    rows = zip(SYSCTLS, values, strict=True)
    site.machines[name].sh("".join(f"echo {value} >/proc/sys/{one.replace('.', '/')}\n" for one, value in rows))


def kernel(site: K3sSite, name: str) -> tuple[str, ...]:
    return tuple(site.machines[name].sh(f"sysctl --values {' '.join(SYSCTLS)}").split())


def pod(namespace: str, name: str) -> dict[str, t.Any]:
    container = {"name": "a", "image": system_images()["pause"], "securityContext": {"privileged": True}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], "nodeName": "a1", "automountServiceAccountToken": False},
    }


@pytest.fixture(scope="module")
def made(site: K3sSite) -> K3sSite:
    site.done()
    return site


def test_nodes_are_ready_on_kernels_with_the_settings_of_the_guide(made: K3sSite) -> None:
    nodes = {one["metadata"]["name"]: one for one in made.client().list(NODE).items}
    ready = {
        name: {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"]
        for name, node in nodes.items()
    }
    assert ready == {"s1": "True", "a1": "True"}
    for name in made.machines:
        assert kernel(made, name) == WANTED
        assert "protectKernelDefaults: true" in made.machines[name].read(
            f"{DATA}/agent/etc/kubelet.conf.d/00-k3s-defaults.conf"
        )


def test_only_namespaces_that_say_so_take_pods_with_privileges(made: K3sSite) -> None:
    client = made.client()
    with pytest.raises(Forbidden, match=r"violates PodSecurity .*restricted"):
        client.create(pod("default", "privileged"), POD)
    level = {"pod-security.kubernetes.io/enforce": "privileged"}
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "agents", "labels": level}}, NAMESPACE)
    made.machines["s1"].wait(
        "the namespace has its ServiceAccount",
        lambda: client.list(ACCOUNT, namespace="agents").items != [],
    )
    for namespace in ("agents", "kube-system"):
        client.create(pod(namespace, "privileged"), POD)
        made.machines["a1"].wait(
            f"the pod in {namespace} runs",
            lambda namespace=namespace: client.get(POD, "privileged", namespace)["status"]["phase"] == "Running",
        )
        client.delete(POD, "privileged", namespace)


def test_the_audit_log_has_requests_without_their_contents_and_only_root_reads_it(made: K3sSite) -> None:
    server = made.machines["s1"]
    log = f"{DATA}/server/logs/audit.log"
    assert server.sh(f"stat -c %a {log} {DATA}/server/logs").split() == ["600", "700"]
    assert '"level":"Metadata"' in server.sh(f"head -n 1 {log}")
    assert '"requestObject"' not in server.read(log)


def test_namespaces_of_every_cluster_have_network_policies(made: K3sSite) -> None:
    found = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in made.client().list(POLICY).items}
    assert {(name, "intra-namespace") for name in ("kube-system", "default", "kube-public")} < found
    assert ("kube-system", "dns") in found


def test_a_second_run_changes_nothing(made: K3sSite) -> None:
    run = made.done()
    assert run.changed() == 0, run.stdout[-4000:]


def test_a_kernel_with_other_settings_ends_k3s_and_a_run_corrects_it(made: K3sSite) -> None:
    write(made, "a1", BEFORE)
    agent = made.machines["a1"]
    agent.sh("systemctl restart --no-block k3s-agent")
    agent.wait(
        "the kubelet refuses it",
        lambda: "invalid kernel flag: " in agent.sh("journalctl --no-pager -u k3s-agent -n 200"),
    )
    made.done()
    assert kernel(made, "a1") == WANTED
    assert made.done().changed() == 0


def test_without_it_a_cluster_is_as_k3s_makes_it(made: K3sSite) -> None:
    made.variables["cluster_k3s_hardening"] = ""
    checked = made.done("--check")
    run = made.done()
    assert run.summary["one"]["changes"] == checked.summary["one"]["changes"]
    client = made.client()
    assert client.list(POLICY).items == []
    client.create(pod("default", "privileged"), POD)
    client.delete(POD, "privileged", "default")
    for machine in made.machines.values():
        assert machine.sh(f"ls {FILES} 2>/dev/null || :") == ""
    assert made.done().changed() == 0


def test_a_running_cluster_is_hardened_in_the_usual_turns(made: K3sSite) -> None:
    made.variables["cluster_k3s_hardening"] = "cis"
    run = made.done()
    steps = [text for text in run.summary["one"]["changes"] if text.startswith("update ")]
    assert [text.partition(":")[0] for text in steps] == ["update the server s1", "update a1"]
    client = made.client()
    assert client.list(POLICY).items != []
    with pytest.raises(Forbidden, match="violates PodSecurity"):
        client.create(pod("default", "privileged"), POD)


def test_a_removed_cluster_leaves_kernels_as_they_were(made: K3sSite, tmp_path: pathlib.Path) -> None:
    trial = Trial(made, 0, tmp_path)
    made.done(*trial.teardown())
    trial.is_gone()
    for name, machine in made.machines.items():
        assert kernel(made, name) == BEFORE
        assert machine.sh(f"ls {FILES} 2>/dev/null || :") == ""


def test_the_gpu_stack_runs_on_a_hardened_cluster(k3s_rig: K3sRig, tmp_path: pathlib.Path) -> None:
    site = gpu_site(k3s_rig, tmp_path, ("s2",), ("a2",))
    site.variables["cluster_k3s_hardening"] = "cis"
    run = site.play("site")
    assert run.rc == 0, run.stdout[-8000:]
    assert gpus_of(site.client().get(NODE, "a2")) == 2
    with pytest.raises(Forbidden, match="violates PodSecurity"):
        site.client().create(pod("default", "privileged"), POD)
