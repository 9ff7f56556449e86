# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From empty disks to validated GPUs, by one command: a bootstrap machine, a master and a worker are emulated computers, whose disks Ignition configures.

The first run is killed, and the same command goes on. Real are boot server, load balancer, hypervisor, Ignition, the control plane from Ignition's keys and
the signers of certificates. Stand-ins are the install tool, CoreOS, the server of machine configs, kubelets, operators, and GPUs.
"""

from __future__ import annotations

import collections.abc as c
import json
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.openshift.rig import coreos
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import CoreOS
from ansible_collections.hwaccel.gpu.tests.openshift.rig.metal import NAME, Layout, Metal
from ansible_collections.hwaccel.gpu.tests.openshift.rig.trial import Trial, empty


@pytest.fixture(scope="module")
def trial(rig: BootRig, system: CoreOS, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Trial]:
    with empty(rig, system, tmp_path_factory.mktemp("chain"), Layout()) as trial:
        yield trial


@pytest.fixture(scope="module")
def machines(trial: Trial) -> Metal:
    return trial.machines


@pytest.fixture(scope="module")
def checked(machines: Metal) -> Run:
    """Check mode from nothing."""
    return machines.play("--check")


@pytest.fixture(scope="module")
def untouched(machines: Metal, checked: Run) -> dict[str, t.Any]:
    """What check mode has left."""
    return {
        "domains": machines.hyper.virsh("list", "--all", "--name"),
        "folder": machines.installation.parent.exists(),
        "calls": machines.calls.exists(),
        "boots": machines.boot.sh("ls /etc/hwaccel-gpu 2>/dev/null || :"),
        "balances": machines.balancer.sh("ls /etc/hwaccel-gpu 2>/dev/null || :"),
    }


@pytest.fixture(scope="module")
def killed(machines: Metal, untouched: dict[str, t.Any]) -> bool:
    """A run that is killed while machines are written."""
    return machines.killed(lambda: coreos.WRITES in machines.console("master-0"))


@pytest.fixture(scope="module")
def made(trial: Trial, killed: bool) -> tuple[Run, float]:
    """The run that goes on, and its seconds."""
    began = time.monotonic()
    return trial.done(), time.monotonic() - began


def test_check_mode_has_the_whole_plan_and_touches_nothing(checked: Run, untouched: dict[str, t.Any]) -> None:
    assert checked.rc == 0, checked.stdout[-8000:]
    assert untouched == {"domains": "", "folder": False, "calls": False, "boots": "", "balances": ""}
    told = json.dumps(checked.summary[NAME])
    for text in (
        "create the files of the installation",
        "copy ignition/ocp/bootstrap.ign (assumed: this run makes it first)",
        "install OpenShift on master-0",
    ):
        assert text in told


def test_one_command_installs_a_cluster_with_validated_gpus(
    made: tuple[Run, float], killed: bool, trial: Trial, capsys: pytest.CaptureFixture[str]
) -> None:
    run, seconds = made
    with capsys.disabled():
        print(f"\nfrom the kill to validated GPUs: {seconds:.0f} s")
    assert killed, "the run has ended before machines were written"
    trial.is_installed(run)


def test_each_disk_is_written_once_and_keys_are_made_once(made: tuple[Run, float], trial: Trial) -> None:
    trial.are_written()
    assert len(trial.calls()) == 1


def test_the_bootstrap_machine_is_out_of_the_load_balancer_and_off_once_it_can_go(
    made: tuple[Run, float], trial: Trial
) -> None:
    machines, chain = trial.machines, trial.chain
    assert machines.hyper.state("bootstrap-0") == "shut off"
    assert machines.hyper.state("master-0") == machines.hyper.state("worker-0") == "running"
    assert "bootstrap-0" not in machines.balancer.sh("cat /etc/hwaccel-gpu/load_balancer/haproxy/*")
    etcd = chain.plane.admin.get(chain.plane.admin.resource("operator.openshift.io/v1", "Etcd"), "cluster")
    (removed,) = (
        one["lastTransitionTime"]
        for one in etcd["status"]["conditions"]
        if one["type"] == "EtcdBootstrapMemberRemoved" and one["status"] == "True"
    )
    log = machines.hyper.machine.sh("grep 'shutting down' /var/log/libvirt/qemu/bootstrap-0.log")
    assert log[:19].replace(" ", "T") >= removed.rstrip("Z"), (log, removed)


def test_an_installed_cluster_that_does_not_answer_is_left_as_it_is(made: tuple[Run, float], trial: Trial) -> None:
    trial.chain.plane.stop()
    try:
        problems = trial.refuses("the cluster does not answer, and nothing is done .*: it was installed")
    finally:
        trial.chain.plane.start()
    assert problems
    for text in problems:
        assert "it was installed" in text and "Next: start its machines" in text


def test_an_installed_cluster_whose_folder_is_lost_is_left_as_it_is(made: tuple[Run, float], trial: Trial) -> None:
    """Without hwaccel_connection of the cluster, only the memory of the boot server knows of it."""
    folder = trial.machines.installation.parent
    kept = folder.rename(folder.with_name("kept"))
    try:
        (problem,) = trial.refuses()
    finally:
        kept.rename(folder)
    assert "the files of the installation are gone and cannot be created again" in problem
    assert (
        "master-0, worker-0 have been installed with the previous ones" in problem
        and "Next: copy the folder back" in problem
    )


def test_a_second_run_has_nothing_to_do_and_writes_nothing(made: tuple[Run, float], trial: Trial) -> None:
    """Nor have the runs that were refused left anything to do."""
    trial.rests()
