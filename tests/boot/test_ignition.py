# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ignition on machines that boot from dns_pxe: it resolves the name of the cluster to the load balancer of the role load_balancer, and reads the config of the
machine through it, over TLS, from the cluster's server of machine configs.

Two machines start at once, each from the network and with its own disk. The ignition file of one contains the authority that has signed the certificate of
this server, that of the other contains the authority of another cluster.
"""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import copy
import dataclasses
import json
import subprocess

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pki import ensure_pki
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import DOMAIN, PORT, Site, mac
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import Computers
from ansible_collections.hwaccel.gpu.tests.boot.rig.ignition import (
    ARGUMENTS,
    PASSED,
    Disk,
    igniting,
    pointer,
)
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.authority import Authority
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.openshift.rig.machine_configs import (
    ROLE_FILE,
    ROLE_UNIT,
    SECURE,
    MachineConfigServer,
    await_listening,
    served,
)
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.machine_configs import CLUSTER

NAME = f"api-int.{DOMAIN}"
ROLES = ("worker", "master")
#: What kubelet would ask for its certificate with.
KUBECONFIG = "the bootstrap identity"
UNITS = "/etc/systemd/system"


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The parts of a cluster that starting machines need: a boot server, a load balancer, and a bootstrap machine with the configs."""

    site: Site
    balancer: Machine
    configs: MachineConfigServer

    def balance(self) -> Run:
        return self.site.rig.play(
            "load_balancer", copy.deepcopy(self.site.groups), clusters=copy.deepcopy(self.site.clusters)
        )


@dataclasses.dataclass(frozen=True)
class Started:
    """A machine that has started: its console output, and its disk."""

    console: str
    disk: Disk


@pytest.fixture(scope="module")
def cluster(rig: BootRig, computers: Computers, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("ignition")
    authorities = {}
    for owner in ("own", "other"):
        ensure_pki(folder / owner)
        authorities[owner] = Authority(folder / owner)
    site = Site.of(rig, rig.machine("boot"), folder)
    igniting(folder / "installer", computers.machine).put_in(site)
    for profile in site.variables["dns_pxe_profiles"]:
        profile["arguments"] += ARGUMENTS
    for role, owner in (("worker", "own"), ("master", "other")):
        file = pointer(f"https://{NAME}:{SECURE}/config/{role}", authorities[owner].certificate)
        (folder / f"{role}.ign").write_text(json.dumps(file), encoding="ascii")
    site.groups["workers"]["worker-0"]["hwaccel_firmware"] = "bios"
    balancer, bootstrap = rig.machine("balancer"), rig.host("configs")
    site.groups["load_balancers"] = {balancer.name: {}}
    site.groups["bootstrap"]["bootstrap-0"]["hwaccel_address"] = bootstrap.address
    site.clusters["ocp"] |= {"hwaccel_distribution": "openshift", "hwaccel_load_balancer_address": balancer.address}
    identity = authorities["own"].issue("machine-config-server", names=(NAME,))
    configs = MachineConfigServer(folder / "configs")
    offered = served(CLUSTER, {CLUSTER: KUBECONFIG}, authorities["own"].certificate, *ROLES)
    configs.write(offered, identity.certificate.encode(), identity.key.encode())
    await_listening(bootstrap.spawn(*configs.command(), stdout=subprocess.PIPE))
    yield Cluster(site, balancer, configs)
    bootstrap.stop_programs()
    for machine in (balancer, site.server):
        rig.remove(machine)


@pytest.fixture(scope="module")
def started(cluster: Cluster, computers: Computers) -> dict[str, Started]:
    """Machines by role."""
    with concurrent.futures.ThreadPoolExecutor(2) as at_once:
        for run in (at_once.submit(cluster.balance), at_once.submit(cluster.site.play)):
            assert run.result().rc == 0, run.result().stdout[-8000:]
        disks = {role: Disk.of(computers.machine, role) for role in ROLES}
        # Without a trusted certificate, Ignition retries forever.
        untrusted = f"GET https://{NAME}:{SECURE}/config/master: attempt #4"
        ends = {
            "worker": at_once.submit(computers.boot, mac(152), second_disk=disks["worker"].path),
            "master": at_once.submit(computers.boot, mac(151), second_disk=disks["master"].path, until=untrusted),
        }
        return {role: Started(end.result(), disks[role]) for role, end in ends.items()}


def test_the_config_of_a_role_is_on_the_disk_of_a_machine_with_that_role(
    cluster: Cluster, started: dict[str, Started]
) -> None:
    console, disk = started["worker"].console, started["worker"].disk
    assert PASSED in console, console[-5000:]
    assert f"GET http://{cluster.site.server.address}:{PORT}/ignition/ocp/worker.ign" in console, (
        "it reads the served ignition file first"
    )
    assert (disk.read(ROLE_FILE), disk.mode(ROLE_FILE)) == ("worker", "0640")
    assert (disk.read("/etc/kubernetes/kubeconfig"), disk.mode("/etc/kubernetes/kubeconfig")) == (KUBECONFIG, "0644")
    assert "ExecStart=/bin/echo worker\n" in disk.read(f"{UNITS}/{ROLE_UNIT}")
    assert disk.read("/etc/systemd/system-preset/20-ignition.preset") == f"enable {ROLE_UNIT}\n"
    requests = cluster.configs.requests()
    assert {(one.address, one.status) for one in requests} == {(cluster.balancer.address, 200)}, (
        "the requests come through the load balancer"
    )
    assert [one for one in requests if not one.agent.startswith("Ignition/")] == []
    assert [
        one for one in requests if not one.accept.startswith("application/vnd.coreos.ignition+json;version=3.")
    ] == []


def test_a_machine_with_another_authority_gets_no_config(cluster: Cluster, started: dict[str, Started]) -> None:
    console, disk = started["master"].console, started["master"].disk
    assert "certificate signed by unknown authority" in console, console[-5000:]
    assert PASSED not in console
    assert (disk.read(ROLE_FILE), disk.read(f"{UNITS}/{ROLE_UNIT}")) == ("", "")
    assert "SELINUXTYPE" in disk.read("/etc/selinux/config"), "the disk can be read"
    assert {one.path for one in cluster.configs.requests()} == {"/config/worker"}
