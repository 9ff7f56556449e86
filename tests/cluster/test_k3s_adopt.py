# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that K3s' own script has made becomes one of the role, only with consent: its data, its nodes and its pods are as before.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig import k3s_by_hand
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, FOLDER, K3sSite
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

pytestmark = pytest.mark.slow
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
#: Given to the script by its caller.
SECRET = "5c1e7a0b9d"
SERVER = ("--disable", "traefik,servicelb", "--flannel-backend=host-gw", "--secrets-encryption", "--node-label", "a=b")
FILES = "/etc/systemd/system/k3s* /etc/rancher/k3s /usr/local/bin /var/lib/hwaccel-gpu"


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    return K3sSite(k3s_rig, servers=("s1",), agents=("a1",))


@pytest.fixture(scope="module")
def before(site: K3sSite, k3s_rig: K3sRig) -> dict[str, t.Any]:
    """What stays of the cluster that the script has made."""
    server, agent = site.machines["s1"], site.machines["a1"]
    k3s_by_hand.install_by_script(server, k3s_rig.k3s, "server", *SERVER, K3S_TOKEN=SECRET)
    url = f"https://{server.address}:6443"
    arguments = ("--kubelet-arg=max-pods=77",)
    k3s_by_hand.install_by_script(agent, k3s_rig.k3s, "agent", *arguments, K3S_TOKEN=SECRET, K3S_URL=url)
    server.wait("both nodes are Ready", lambda: len(ready(site)) == 2, seconds=120)
    for name in site.machines:
        site.start_pod(name)
    return lasting(site)


def ready(site: K3sSite) -> list[str]:
    nodes = site.client().list(NODE).items
    conditions = {
        one["metadata"]["name"]: {each["type"]: each["status"] for each in one["status"]["conditions"]} for one in nodes
    }
    return [name for name, found in conditions.items() if found.get("Ready") == "True"]


def lasting(site: K3sSite) -> dict[str, t.Any]:
    return {
        "uid": site.client().get(NAMESPACE, "kube-system")["metadata"]["uid"],
        "nodes": {one["metadata"]["name"]: one["metadata"]["uid"] for one in site.client().list(NODE).items},
        "authority": site.machines["s1"].read(f"{DATA}/server/tls/server-ca.crt"),
        "token": site.machines["s1"].read(f"{DATA}/server/token"),
        "containers": {name: site.container(name) for name in site.machines},
    }


def state(site: K3sSite) -> list[str]:
    """Files and processes of all machines."""
    shown = (
        f"ls -lR --time-style=full-iso {FILES} 2>/dev/null || :; systemctl show --property=InvocationID k3s k3s-agent"
    )
    return [one.sh(shown) for one in site.machines.values()]


def test_without_consent_nothing_is_changed(site: K3sSite, before: dict[str, t.Any]) -> None:
    was = state(site)
    run = site.play()
    assert run.rc != 0 and run.changed() == 0
    assert "cluster_k3s_adopt: true" in json.dumps(run.summary)
    assert state(site) == was


def test_what_the_cluster_keeps_has_to_be_set_before(site: K3sSite, before: dict[str, t.Any]) -> None:
    was = state(site)
    site.variables |= {"cluster_k3s_adopt": True, "cluster_k3s_dns_domain": "example.org"}
    run = site.play()
    del site.variables["cluster_k3s_dns_domain"]
    assert run.rc != 0 and run.changed() == 0
    assert "cluster-domain of the K3s that is adopted is not set" not in json.dumps(run.summary)
    assert "set cluster.local" in json.dumps(run.summary)
    assert state(site) == was


@pytest.fixture(scope="module")
def predicted(site: K3sSite, before: dict[str, t.Any]) -> dict[str, list[str]]:
    was = state(site)
    run = site.done("--check", "--diff")
    assert state(site) == was and SECRET not in run.stdout
    return {name: one["changes"] for name, one in run.summary.items()}


def test_check_mode_shows_what_changes(predicted: dict[str, list[str]]) -> None:
    assert "adopt K3s, as it runs" in predicted["s1"] and "adopt K3s, as it runs" in predicted["a1"]
    assert "disable: servicelb,traefik → coredns,local-storage,metrics-server,servicelb,traefik" in predicted["s1"]
    assert "node-label: a=b → not set" in predicted["s1"]
    assert "kubelet-arg: max-pods=77 → not set" in predicted["a1"]
    assert [one.partition(":")[0] for one in predicted["one"]] == ["update the server s1", "update a1"]


def test_it_is_adopted_and_its_pods_go_on(
    site: K3sSite, before: dict[str, t.Any], predicted: dict[str, list[str]]
) -> None:
    run = site.done("--diff")
    assert {name: one["changes"] for name, one in run.summary.items()} == predicted
    assert lasting(site) == before
    assert ready(site) == ["a1", "s1"] and site.cordoned() == set()
    assert SECRET not in run.stdout
    again = site.done()
    assert again.changed() == 0, [
        (one["host"], one["name"]) for one in again.tasks if one["result"].get("changed") is True
    ]
    assert lasting(site) == before


def test_its_token_is_where_only_root_can_read_it(site: K3sSite, before: dict[str, t.Any]) -> None:
    for machine in site.machines.values():
        # Shims of pods that go on have the environment of the K3s that has started them.
        shown = machine.sh(
            "cat /proc/[0-9]*/cmdline /etc/systemd/system/k3s* 2>/dev/null | tr '\\0' '\\n'; "
            "for unit in k3s k3s-agent; do cat /proc/$(systemctl show --value --property=MainPID $unit)/environ 2>/dev/null || :; done"
        )
        assert SECRET not in shown
        readable = machine.sh(f"grep -rl {SECRET} /etc /opt /run /tmp /root /var/lib/hwaccel-gpu 2>/dev/null || :")
        assert set(readable.split()) <= {"/etc/rancher/k3s/token", "/etc/rancher/k3s/agent-token"}
        modes = machine.sh("find /etc/rancher /var/lib/hwaccel-gpu -type f -printf '%m %p\\n'").splitlines()
        assert [line for line in modes if not line.startswith("600 ")] == []
        assert machine.sh("ls /usr/local/bin/k3s-*.sh /etc/systemd/system/k3s*.env 2>/dev/null || :") == ""


def test_the_cluster_is_removed_as_any_other(site: K3sSite, before: dict[str, t.Any]) -> None:
    site.done("-e", "cluster_k3s_entry=teardown", "-e", f"hwaccel_confirm={before['uid']}")
    for machine in site.machines.values():
        left = machine.sh(
            f"ls -d /etc/rancher /usr/local/bin/k3s* {FOLDER} /run/k3s /etc/systemd/system/k3s*.service 2>/dev/null || :; "
            "find /usr/local/bin -type l; ls -A /var/lib/rancher /var/lib/kubelet 2>/dev/null || :; "
            "ip -o link show | grep -E 'cni0|flannel' || :; pgrep -a 'k3s|containerd-shim' || :"
        )
        assert [line for line in left.splitlines() if line and not line.endswith(":")] == []
