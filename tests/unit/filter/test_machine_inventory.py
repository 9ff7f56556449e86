# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that roles on machines take from an inventory."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.machine_inventory import machine_inventory
from ansible_collections.hwaccel.gpu.tests.unit.machines.counted import Counted

GROUPS = {
    "gpu_clusters": ["ocp", "edge"],
    "load_balancers": ["lb-0", "lb-1", "lb-9"],
    "bootstrap": ["boot"],
    "control_plane": ["m0", "k0"],
    "workers": ["w0"],
}
HOSTS: dict[str, dict[str, t.Any]] = {
    "ocp": {
        "hwaccel_distribution": "openshift",
        "hwaccel_machine_network": "10.0.0.0/24",
        "hwaccel_bootstrap": {"complete": False},
    },
    "edge": {
        "hwaccel_distribution": "k3s",
        "hwaccel_load_balancer_address": "10.0.0.6",
        "hwaccel_bootstrap": {"skipped": True},
    },
    "lb-0": {"ansible_host": "10.0.0.3"},
    "lb-1": {"ansible_host": "lb-1.example.com", "hwaccel_address": "10.0.0.4"},
    "lb-9": {"ansible_host": "10.0.0.9", "hwaccel_cluster": "edge"},
    "boot": {"ansible_host": "10.0.0.10", "hwaccel_cluster": "ocp"},
    "m0": {"ansible_host": "10.0.0.11", "hwaccel_cluster": "ocp"},
    "k0": {"hwaccel_address": "10.0.0.12", "hwaccel_cluster": "edge"},
    "w0": {"ansible_host": "10.0.0.21", "hwaccel_cluster": "ocp"},
}


def test_a_load_balancer_without_a_cluster_serves_all_clusters() -> None:
    found = machine_inventory(GROUPS, "load_balancer", HOSTS, "lb-0")
    assert [
        (cluster["name"], cluster["profile"], cluster["address"], cluster["bootstrap_complete"])
        for cluster in found["clusters"]
    ] == [
        ("ocp", "openshift", "", False),
        ("edge", "k3s", "10.0.0.6", None),
    ]
    assert [(machine["name"], machine["role"], machine["cluster"]) for machine in found["machines"]] == [
        ("boot", "bootstrap", "ocp"),
        ("m0", "master", "ocp"),
        ("k0", "master", "edge"),
        ("w0", "worker", "ocp"),
    ]
    assert found["peers"] == [{"name": "lb-0", "address": "10.0.0.3"}, {"name": "lb-1", "address": "10.0.0.4"}]


def test_a_load_balancer_of_one_cluster_serves_no_other() -> None:
    found = machine_inventory(GROUPS, "load_balancer", HOSTS, "lb-9")
    assert [cluster["name"] for cluster in found["clusters"]] == ["edge"]
    assert [machine["name"] for machine in found["machines"]] == ["k0"]
    assert [peer["name"] for peer in found["peers"]] == ["lb-9"]


def test_bootstrap_of_a_new_cluster_is_not_complete_until_it_answers() -> None:
    for answer, complete in (({"skipped": True}, False), ({"complete": None}, False), ({"complete": True}, True)):
        hosts = {**HOSTS, "edge": {**HOSTS["edge"], "hwaccel_new_cluster": "yes", "hwaccel_bootstrap": answer}}
        assert (
            machine_inventory(GROUPS, "load_balancer", hosts, "lb-9")["clusters"][0]["bootstrap_complete"] is complete
        )


def test_a_cluster_that_is_installed_is_not_new_if_its_plan_does_not_initialize_it() -> None:
    init, join = ({"steps": [{"do": do}], "faults": []} for do in ("init", "join agents"))
    declared = {"hwaccel_installer": "kubeadm", "hwaccel_new_cluster": True}
    for more, joined in (
        ({**declared, "cluster_plan": init}, {"edge": []}),
        ({**declared, "cluster_plan": init, "cluster_made": True}, {}),
        # Its machines may be off.
        ({"cluster_plan": init}, {}),
        # A declaration that was left in the inventory.
        ({**declared, "cluster_plan": join}, {}),
        # Machines could not be looked at, so nothing is known.
        ({"cluster_plan": {"steps": [], "faults": [{"text": "silent"}]}}, {}),
        (declared, {"edge": []}),
    ):
        hosts = {**HOSTS, "edge": {**HOSTS["edge"], "hwaccel_installer": "kubeadm", **more}}
        assert machine_inventory(GROUPS, "dns_pxe", hosts, "lb-9")["joined"] == joined


def test_machines_need_not_name_the_only_cluster() -> None:
    groups = {"gpu_clusters": ["ocp"], "load_balancers": ["lb-0"], "workers": ["w0"]}
    hosts = {**HOSTS, "w0": {"ansible_host": "10.0.0.21"}}
    assert machine_inventory(groups, "load_balancer", hosts, "lb-0")["machines"] == [
        {"name": "w0", "cluster": "ocp", "role": "worker", "address": "10.0.0.21"}
    ]


def test_an_unsupported_role_is_reported() -> None:
    with pytest.raises(
        AnsibleFilterError,
        match=r"does not support role 'driver': set one of approvals, cluster, cluster_openshift, dns_pxe, evidence",
    ):
        machine_inventory(GROUPS, "driver", HOSTS, "lb-0")


def test_boot_servers_get_what_openshift_install_has_made() -> None:
    groups = {"gpu_clusters": ["ocp"], "boot_servers": ["boot"], "workers": ["w0"]}
    release = {
        kind: {"location": f"https://example.com/{kind}", "sha256": "0" * 64}
        for kind in ("kernel", "initramfs", "rootfs")
    }
    made = {"path": "/srv/ocp", "publishable": {"worker.ign": "1" * 64}, "artifacts": release}
    hosts: dict[str, dict[str, t.Any]] = {
        "ocp": {"cluster_openshift_installation": made},
        "boot": {"dns_pxe_profiles": [{"role": "worker", "install_device": "/dev/nvme0n1"}]},
        "w0": {},
    }
    found = machine_inventory(groups, "dns_pxe", hosts, "boot")
    assert found["ignitions"] == [{"path": "ocp/worker.ign", "source": "/srv/ocp/worker.ign"}]
    assert [one["install_device"] for one in found["profiles"]] == ["/dev/nvme0n1"]
    assert len(found["artifacts"]) == 3
    hosts["ocp"] = {}
    assert machine_inventory(groups, "dns_pxe", hosts, "boot")["profiles"] == hosts["boot"]["dns_pxe_profiles"]


def test_machines_of_a_cluster_whose_files_could_not_be_made_stay_as_they_are_and_others_are_installed() -> None:
    groups = {"gpu_clusters": ["edge", "sno"], "boot_servers": ["boot"], "control_plane": ["e0", "s0"]}
    awaited = {"hwaccel_without_nodes": True, "cluster_openshift_awaited": ["master.ign", "worker.ign"]}
    failed = {"hwaccel_phase_outcomes": {"installation": {"state": "failed"}}}
    hosts: dict[str, dict[str, t.Any]] = {
        "edge": {**awaited, "ansible_facts": failed},
        "sno": {**awaited, "ansible_facts": {"hwaccel_phase_outcomes": {"installation": {"state": "done"}}}},
        "boot": {},
        "e0": {"hwaccel_cluster": "edge"},
        "s0": {"hwaccel_cluster": "sno"},
    }
    found = machine_inventory(groups, "dns_pxe", hosts, "boot")
    assert {one["cluster"] for one in found["profiles"]} == {"sno"}
    assert not [one for one in (*found["artifacts"], *found["ignitions"]) if one["path"].startswith("edge/")]
    assert found["joined"] == {"sno": []}, "the nodes of edge are unknown, so that none of its machines is installed"
    assert [one["name"] for one in found["machines"]] == ["e0", "s0"], "they keep their addresses and names"
    hosts["edge"]["ansible_facts"] = {}
    assert machine_inventory(groups, "dns_pxe", hosts, "boot")["joined"] == {"edge": [], "sno": []}


def test_nodes_whose_requests_are_approved() -> None:
    groups = {
        "gpu_clusters": ["ocp", "edge"],
        "bootstrap": ["boot"],
        "control_plane": ["m0"],
        "workers": ["w0", "w1", "w2"],
    }
    hosts: dict[str, dict[str, t.Any]] = {
        "ocp": {"hwaccel_domain": "ocp.example.com"},
        "edge": {},
        "boot": {"hwaccel_cluster": "ocp", "ansible_host": "10.0.0.10"},
        "m0": {"hwaccel_cluster": "ocp", "ansible_host": "10.0.0.11", "hwaccel_further_names": ["etcd.example.com"]},
        "w0": {"hwaccel_cluster": "ocp", "hwaccel_address": "10.0.0.21", "hwaccel_further_addresses": ["10.1.0.21"]},
        "w1": {"hwaccel_cluster": "ocp", "ansible_host": "w1.example.com", "hwaccel_node_name": "gpu.lab"},
        "w2": {"hwaccel_cluster": "ocp", "hwaccel_retired": True},
    }
    found = machine_inventory(groups, "approvals", hosts, "ocp")
    assert found["expected_node_of"] == dict(zip(("m0", "w0", "w1"), found["expected_nodes"], strict=True))
    assert found["expected_nodes"] == [
        {"name": "m0.ocp.example.com", "ip_addresses": ["10.0.0.11"], "dns_names": ["etcd.example.com"]},
        {"name": "w0.ocp.example.com", "ip_addresses": ["10.0.0.21", "10.1.0.21"], "dns_names": []},
        {"name": "gpu.lab", "ip_addresses": [], "dns_names": []},
    ]
    assert machine_inventory(groups, "approvals", hosts, "edge")["expected_nodes"] == []
    alone = {"gpu_clusters": ["edge"], "workers": ["w0", "w0"]}
    assert machine_inventory(alone, "approvals", {"edge": {}, "w0": {}}, "edge")["expected_nodes"] == [
        {"name": "w0", "ip_addresses": [], "dns_names": []}
    ]


TWOFOLD = {**GROUPS, "workers": ["w0", "boot"]}


@pytest.mark.parametrize(
    ("state", "role", "installs"),
    [
        ({}, "bootstrap", True),
        ({"complete": True, "removable": False}, "bootstrap", False),
        ({"complete": True, "removable": True}, "gpu", True),
    ],
)
@pytest.mark.parametrize("of", ["dns_pxe", "load_balancer"])
def test_a_machine_of_bootstrap_and_workers_is_one_after_the_other(
    of: str, state: dict[str, t.Any], role: str, installs: bool
) -> None:
    boot = {**HOSTS["boot"], "hwaccel_install": True, "hwaccel_role": "gpu"}
    hosts = {**HOSTS, "boot": boot, "ocp": {**HOSTS["ocp"], "cluster_openshift_bootstrap": state}}
    found = machine_inventory(TWOFOLD, of, {**hosts, "pxe": {"hwaccel_cluster": "ocp"}}, "pxe")
    (machine,) = [one for one in found["machines"] if one["name"] == "boot"]
    assert (machine["role"], machine["install"]) == (role, installs)


def test_the_installer_gets_both_at_any_time() -> None:
    """Its inputs are compared with those of before."""
    for state in ({}, {"complete": True, "removable": True}):
        hosts = {**HOSTS, "ocp": {**HOSTS["ocp"], "cluster_openshift_bootstrap": state}}
        found = machine_inventory(TWOFOLD, "cluster_openshift", hosts, "ocp")["machines"]
        assert [(one["host"], one["role"]) for one in found] == [
            ("boot", "bootstrap"),
            ("m0", "master"),
            ("w0", "worker"),
            ("boot", "worker"),
        ]
        names = [one["name"] for one in machine_inventory(TWOFOLD, "approvals", hosts, "ocp")["expected_nodes"]]
        assert names == ["m0", "w0", "boot"]


@pytest.mark.parametrize(
    ("role", "host"),
    [
        ("approvals", "ocp"),
        ("cluster", "ocp"),
        ("cluster_openshift", "ocp"),
        ("dns_pxe", "lb-0"),
        ("installers", ""),
        ("load_balancer", "lb-0"),
        ("phases", ""),
    ],
)
def test_each_host_is_read_once_at_most(role: str, host: str) -> None:
    known = Counted({**HOSTS, "ocp": {**HOSTS["ocp"], "hwaccel_installer": "openshift"}})
    machine_inventory(GROUPS, role, known, host)
    assert set(known.read.values()) == {1}
