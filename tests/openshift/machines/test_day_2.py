# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What comes after an installation on emulated computers: the bootstrap machine becomes a worker, another one is added when the authority of 22623 was rotated,
and is replaced under its name, and the boot server is a new one.

Tests use the same machines, in their order. What the same runs ask and approve is in tests/live/test_openshift_added.py.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import is_ready, until
from ansible_collections.hwaccel.gpu.tests.openshift.rig import coreos, trial
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import CoreOS
from ansible_collections.hwaccel.gpu.tests.openshift.rig.metal import DOMAIN, NAME, Layout
from ansible_collections.hwaccel.gpu.tests.openshift.rig.trial import Trial

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(rig: BootRig, system: CoreOS, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Trial]:
    with trial.empty(rig, system, tmp_path_factory.mktemp("day-2"), Layout(workers=0, reused=True)) as made:
        yield made


@pytest.fixture(scope="module")
def installed(made: Trial) -> Trial:
    made.is_installed(made.done())
    return made


@pytest.fixture(scope="module")
def added(installed: Trial) -> Trial:
    """With a worker more, which joins by an authority that the installation's files do not have."""
    installed.chain.rotate()
    installed.machines.layout = dataclasses.replace(installed.machines.layout, workers=1)
    run = installed.done()
    waits = run.results("openshift_wait", NAME)
    assert {one["node"] for wait in waits for one in wait.get("approved", ())} == {f"worker-0.{DOMAIN}"}
    assert "which is another one than when the cluster was installed" in run.stdout
    installed.is_installed(run)
    return installed


def booted(made: Trial, name: str) -> str:
    """An identifier of the boot that a Node runs since."""
    return str(made.chain.plane.admin.get(NODE, f"{name}.{DOMAIN}")["status"]["nodeInfo"]["bootID"])


def test_a_bootstrap_machine_becomes_a_worker(installed: Trial) -> None:
    assert installed.machines.hyper.state("bootstrap-0") == "running"
    installed.are_written(bootstrap_0=2)
    installed.rests()


def test_a_worker_is_added_and_the_authority_of_22623_is_another_one(added: Trial) -> None:
    added.are_written(bootstrap_0=2)
    added.rests()


def test_a_machine_is_replaced_under_its_name(added: Trial) -> None:
    before = added.chain.plane.admin.get(NODE, f"worker-0.{DOMAIN}")["metadata"]["uid"], booted(added, "worker-0")
    added.machines.hyper.remove("worker-0")
    # As the node lifecycle controller does after the grace period, which the rig makes long for busy machines.
    gone = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "its kubelet is silent"}
    body = {"status": {"conditions": [gone]}}
    added.chain.plane.admin.patch(NODE, f"worker-0.{DOMAIN}", "", body, subresource="status")
    added.machines.served = {"dns_pxe_install_again": ["worker-0"]}
    added.machines.told = {"cluster_openshift_allow_rejoin": [f"worker-0.{DOMAIN}"]}
    run = added.done()
    added.machines.served, added.machines.told = {}, {}
    added.is_installed(run)
    uid, boot = before
    assert added.chain.plane.admin.get(NODE, f"worker-0.{DOMAIN}")["metadata"]["uid"] == uid
    assert booted(added, "worker-0") != boot
    # Without the two variables, the boot server takes back what it has kept for another installation.
    again = added.done()
    assert again.changed() == again.changed("boot")
    added.rests()


def test_a_new_boot_server_lets_machines_boot_their_disks(added: Trial) -> None:
    """Its memory of who has been installed is gone with the previous one."""
    machines = added.machines
    written = machines.counted(coreos.WRITES)
    machines.rig.remove(machines.boot)
    machines.boot = machines.rig.machine("boot")
    run = added.done()
    assert run.changed("boot") > 0
    boot = booted(added, "worker-0")
    machines.hyper.virsh("reset", "worker-0")
    until(lambda: booted(added, "worker-0") != boot, "worker-0 to be a Node again", 300)
    assert is_ready(added.chain.plane.admin.get(NODE, f"worker-0.{DOMAIN}"))
    assert machines.counted(coreos.WRITES) == written
    # A GPU is validated anew after a restart of its node.
    added.is_installed(added.done())
    added.rests()
