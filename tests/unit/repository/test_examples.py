# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example inventory of machines that boot, as Ansible reads it: no role reports a problem."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_inputs import cluster_inputs
from ansible_collections.hwaccel.gpu.plugins.filter.cluster_plan import cluster_plan
from ansible_collections.hwaccel.gpu.plugins.filter.machine_inventory import machine_inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import Found
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import faults, model
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.desired import desired
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s import test_plan as k3s

TOP = pathlib.Path(__file__).parents[3]


@dataclasses.dataclass(frozen=True)
class Inventory:
    groups: dict[str, list[str]]
    hostvars: dict[str, dict[str, t.Any]]

    def settings(self, role: str, host: str, **given: t.Any) -> dict[str, t.Any]:
        """Settings of a role on a host: its defaults, the variables of the inventory, and those that the playbook passes."""
        defaults = yaml.safe_load((TOP / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8"))
        configured = {name: value for name, value in self.hostvars[host].items() if name.startswith(f"{role}_")}
        return {name.removeprefix(f"{role}_"): value for name, value in {**defaults, **configured}.items()} | given


@pytest.fixture(scope="module")
def dgxpod() -> Inventory:
    loader = DataLoader()
    read = InventoryManager(loader, sources=[str(TOP / "examples" / "inventories" / "dgxpod" / "hosts.yml")])
    variables = VariableManager(loader, read)
    return Inventory(read.get_groups_dict(), {host.name: variables.get_vars(host=host) for host in read.get_hosts()})


def test_a_load_balancer_serves_openshift_to_all_machines(dgxpod: Inventory) -> None:
    found = machine_inventory(dgxpod.groups, "load_balancer", dgxpod.hostvars, "lb")
    plan = desired(dgxpod.settings("load_balancer", "lb", clusters=found["clusters"], machines=found["machines"]), "")
    assert plan.faults == ()
    members = {service.name: [member.name for member in service.members] for service in plan.services}
    control = ["bootstrap-0", "master-0", "master-1", "master-2"]
    assert members == {
        "dgxpod-api": control,
        "dgxpod-machine-config": control,
        "dgxpod-ingress-https": ["worker-0", "worker-1"],
        "dgxpod-ingress-http": ["worker-0", "worker-1"],
    }


#: What a preflight finds: no folder, whose files the same run is going to make.
AWAITED = {"cluster_openshift_awaited": ["bootstrap.ign", "master.ign", "worker.ign"], "hwaccel_new_cluster": True}


def test_a_boot_server_installs_all_machines_of_a_new_cluster(dgxpod: Inventory) -> None:
    variables = {**dgxpod.hostvars, "dgxpod": {**dgxpod.hostvars["dgxpod"], **AWAITED}}
    found = machine_inventory(dgxpod.groups, "dns_pxe", variables, "boot")
    settings = dgxpod.settings("dns_pxe", "boot", address="10.33.3.18", **found)
    site, wrong = model.read(settings)
    assert site and wrong == [] and faults.found(site, settings) == []
    assert {machine.name for machine in site.machines if site.installed_now(machine)} == {
        machine.name for machine in site.machines
    }
    assert len(site.machines) == 6
    devices = {machine.role: found.device(machine) for machine in site.machines if (found := site.profile(machine))}
    assert devices == {
        "bootstrap": "/dev/vda",
        "master": "/dev/vda",
        "worker": "/dev/disk/by-path/pci-0000:01:00.0-scsi-0:2:0:0",
    }


def _request(dgxpod: Inventory, host: str, role: str) -> dict[str, t.Any]:
    """Settings of machine_boot, as its defaults take them from the inventory."""
    configured = {key.removeprefix("hwaccel_"): value for key, value in dgxpod.hostvars[host].items()}
    machine = {
        "name": host,
        "cluster": "dgxpod",
        "role": role,
        **{key: configured[key] for key in ("address", "mac", "firmware")},
    }
    sizes = {key: configured.get(f"vm_{key}", "") for key in ("memory", "vcpus", "disk", "pool", "bridge")} | {
        "path": configured.get("vm_disk_path", "")
    }
    on = configured.get("hypervisor", "")
    vm = {**sizes, "hypervisor": on, "known": on in dgxpod.groups["hypervisors"], "secure_boot": False, "small": False}
    bmc = {
        "address": configured.get("bmc_address", ""),
        "username": configured.get("bmc_username", ""),
        "has_password": True,
        "system": "",
        "verify": True,
    }
    options = {"boot": "network", "power": "on", "named": False, "logs": True, "http": False, "media": ""}
    return {**machine, **options, "provider": configured["power_provider"], "vm": vm, "bmc": bmc}


def test_bootstrap_and_masters_are_virtual_machines_of_the_minimum_size_for_openshift(dgxpod: Inventory) -> None:
    groups = {"bootstrap": "bootstrap", "control_plane": "master", "workers": "worker"}
    entries = [_request(dgxpod, host, role) for group, role in groups.items() for host in dgxpod.groups[group]]
    assert request.faults(entries, {"community.libvirt": "2.0.0"}) == []
    virtual = {entry["name"]: vm_settings for entry in entries if (vm_settings := request.read(entry).vm)}
    minimum = ("br0", 16384, 4, 100)
    assert {
        host: (vm_settings.on, vm_settings.bridge, vm_settings.memory, vm_settings.vcpus, vm_settings.disk)
        for host, vm_settings in virtual.items()
    } == {
        "bootstrap-0": ("kvm-0", *minimum),
        "master-0": ("kvm-0", *minimum),
        "master-1": ("kvm-1", *minimum),
        "master-2": ("kvm-2", *minimum),
    }


def inventory_of(example: str) -> tuple[dict[str, list[str]], dict[str, dict[str, t.Any]]]:
    """Groups, and variables by host."""
    loader = DataLoader()
    read = InventoryManager(loader, sources=[str(TOP / "examples" / "inventories" / example / "hosts.yml")])
    variables = VariableManager(loader, read)
    return read.get_groups_dict(), {host.name: variables.get_vars(host=host) for host in read.get_hosts()}


@pytest.mark.parametrize(
    ("example", "cluster", "endpoint", "steps"),
    [
        (
            "k3s-ha-airgap",
            "plant",
            "10.0.0.5:6443",
            [("init", ["s1"]), ("join server", ["s2"]), ("join server", ["s3"]), ("join agents", ["gpu1"])],
        ),
        (
            "jetson-edge",
            "edge",
            "192.0.2.11:6443",
            [("init", ["s1"]), *(("join agents", [name]) for name in ("gpu1", "orin1", "orin2"))],
        ),
    ],
)
def test_bare_machines_of_an_example_become_a_cluster_of_k3s(
    example: str, cluster: str, endpoint: str, steps: list[tuple[str, list[str]]]
) -> None:
    groups, hostvars = inventory_of(example)
    found = machine_inventory(groups, "cluster", hostvars, cluster)
    assert found["endpoint"] == endpoint
    plans = {one["host"]: {"found": Found().as_dict(), "identity": {}} for one in found["machines"]}
    wish = {**found, "version": hostvars[cluster]["cluster_k3s_version"], "at_a_time": "10%"}
    plan = cluster_plan(found["machines"], "cluster_k3s", plans=plans, wish=wish)
    assert plan["faults"] == []
    assert [(one["do"], one["hosts"]) for one in plan["steps"]] == steps
    variables = _variables.plain(hostvars[cluster])
    given = {
        name.removeprefix("cluster_k3s_"): value for name, value in variables.items() if name.startswith("cluster_k3s_")
    }
    for machine in found["machines"]:
        made = k3s.plan(k3s.BARE, {**k3s.SETTINGS, **_variables.plain({**found, **machine}), **given})
        assert made["faults"] == [] and made["programs"], machine["host"]


def test_bare_machines_of_an_example_become_a_highly_available_cluster() -> None:
    groups, hostvars = inventory_of("kubeadm-ha")
    found = machine_inventory(groups, "cluster", hostvars, "production")
    assert found["endpoint"] == "10.0.0.5:6443"
    plans = {one["host"]: {"found": Found().as_dict(), "identity": {}} for one in found["machines"]}
    wish = {**found, "version": hostvars["production"]["cluster_kubeadm_version"], "at_a_time": "10%"}
    plan = cluster_plan(found["machines"], "cluster_kubeadm", plans=plans, wish=wish)
    assert plan["faults"] == []
    assert [(one["do"], one["hosts"]) for one in plan["steps"]] == [
        ("init", ["cp1"]),
        ("join server", ["cp2"]),
        ("join server", ["cp3"]),
        ("join agents", ["gpu1"]),
        ("join agents", ["gpu2"]),
    ]
    balanced = machine_inventory(groups, "load_balancer", hostvars, "lb")
    assert [one["profile"] for one in balanced["clusters"]] == ["kubeadm"]
    for variable in ("hwaccel_retired", "hwaccel_lost"):
        leaving = {**hostvars, "cp1": {**hostvars["cp1"], variable: True}}
        served = [one["name"] for one in machine_inventory(groups, "load_balancer", leaving, "lb")["machines"]]
        assert "cp1" not in served and {"cp2", "cp3"} < set(served)


def _files_of(example: str, cluster: str) -> dict[str, t.Any]:
    """What the installer of OpenShift gets, which has no problem with it."""
    groups, hostvars = inventory_of(example)
    found = machine_inventory(groups, "cluster_openshift", hostvars, cluster)
    variables = _variables.plain(hostvars[cluster])
    own = "cluster_openshift_"
    given = {name.removeprefix(own): value for name, value in variables.items() if name.startswith(own)}
    networks = {"cluster_network": ["10.128.0.0/14"], "service_network": ["172.30.0.0/16"]}
    of_cluster = {"domain": variables["hwaccel_domain"], "machine_network": [variables["hwaccel_machine_network"]]}
    settings = {**networks, **of_cluster, **given, **found}
    assert cluster_inputs(settings, "cluster_openshift")["faults"] == []
    rows = cluster_inputs(settings, "cluster_openshift", "files")
    return {one["path"]: yaml.safe_load(one["content"]) for one in rows}


def test_the_installer_accepts_three_masters_whose_workers_join_by_themselves() -> None:
    files = _files_of("dgxpod", "dgxpod")
    config = files["install-config.yaml"]
    assert (config["metadata"]["name"], config["controlPlane"]["replicas"]) == ("dgxpod", 3)
    assert config["compute"][0]["replicas"] == 0 and config["platform"] == {"none": {}}
    assert "agent-config.yaml" not in files


def test_the_installer_accepts_a_machine_that_an_agent_installs() -> None:
    files = _files_of("sno-edge", "edge")
    _groups, hostvars = inventory_of("sno-edge")
    config = files["install-config.yaml"]
    assert (config["metadata"]["name"], config["baseDomain"]) == ("edge", "example.com")
    assert config["platform"] == {"none": {}} and "bootstrapInPlace" not in config
    (host,) = files["agent-config.yaml"]["hosts"]
    assert host["rootDeviceHints"] == {"deviceName": hostvars["sno-0"]["hwaccel_install_device"]}
    assert host["interfaces"][0]["macAddress"] == hostvars["sno-0"]["hwaccel_mac"]
    spec = files["openshift/99_hwaccel-gpu-machineconfig-master.yaml"]["spec"]
    assert spec["kernelArguments"] == ["intel_iommu=on", "iommu=pt"]


def test_a_machine_of_an_example_boots_the_agent_without_a_word_of_it_in_the_inventory() -> None:
    groups, hostvars = inventory_of("sno-edge")
    names = [f"boot-artifacts/agent.x86_64-{end}" for end in ("initrd.img", "rootfs.img", "vmlinuz")]
    known = {
        **hostvars,
        "edge": {**hostvars["edge"], "cluster_openshift_awaited": names, "hwaccel_without_nodes": True},
    }
    found = machine_inventory(groups, "dns_pxe", known, "boot")
    settings = Inventory(groups, known).settings("dns_pxe", "boot", address="192.0.2.2", **found)
    site, wrong = model.read(settings)
    assert site and wrong == [] and faults.found(site, settings) == []
    (machine,) = site.machines
    assert site.installed_now(machine) and site.boots_keys(machine)
    # What the inventory says now is enough for it to be installed, and to be started.
    assert [name for name, one in machine_inventory(groups, "phases", hostvars, "").items() if one["hosts"]] == [
        "installation",
        "dns_pxe",
        "machine_boot",
        "nodes_joined",
    ]
