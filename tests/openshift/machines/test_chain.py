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

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.openshift.rig import coreos, metal
from ansible_collections.hwaccel.gpu.tests.openshift.rig.chain import Chain
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import CoreOS
from ansible_collections.hwaccel.gpu.tests.openshift.rig.metal import DOMAIN, GPU, MACHINES, NAME, Metal
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import STATES


@pytest.fixture(scope="module")
def chain(system: CoreOS, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Chain]:
    images = [f"nvcr.io/nvidia/driver:{metal.precompiled(system)}"]
    with Chain(tmp_path_factory.mktemp("chain"), metal.expected(), images, GPU) as chain:
        yield chain


@pytest.fixture(scope="module")
def machines(rig: BootRig, system: CoreOS, chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Metal:
    return Metal(rig, system, tmp_path_factory.mktemp("metal"))


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
def made(machines: Metal, chain: Chain, killed: bool) -> tuple[Run, float]:
    """The run that goes on, and its seconds."""
    began = time.monotonic()
    return machines.play(), time.monotonic() - began


@pytest.fixture(scope="module")
def again(machines: Metal, made: tuple[Run, float], chain: Chain) -> tuple[Run, list[str]]:
    """Another run, and its requests that write."""
    before = len(chain.plane.audit_log.read_text(encoding="utf-8").splitlines())
    run = machines.play()
    lines = chain.plane.audit_log.read_text(encoding="utf-8").splitlines()[before:]
    rows = [json.loads(line) for line in lines]
    return run, [
        f"{row['verb']} {row['requestURI']}"
        for row in rows
        if row.get("userAgent", "").startswith("hwaccel.gpu/") and row["verb"] not in ("get", "list", "watch")
    ]


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
    made: tuple[Run, float], killed: bool, chain: Chain, machines: Metal, capsys: pytest.CaptureFixture[str]
) -> None:
    run, seconds = made
    with capsys.disabled():
        print(f"\nfrom the kill to validated GPUs: {seconds:.0f} s")
    assert killed, "the run has ended before machines were written"
    assert run.rc == 0, run.stdout[-8000:] + chain.failed + "".join(machines.console(name)[-1500:] for name in MACHINES)
    assert tuple(chain.operators.done) == STATES
    assert gpus_of(chain.plane.admin.get(NODE, f"worker-0.{DOMAIN}")) == GPU["count"]
    (validated,) = run.results("node_validate", NAME)
    assert not validated.get("failed"), validated


def test_each_disk_is_written_once_and_keys_are_made_once(made: tuple[Run, float], machines: Metal) -> None:
    consoles = {name: machines.console(name) for name in MACHINES}
    assert {name: text.count(coreos.WRITES) for name, text in consoles.items()} == dict.fromkeys(MACHINES, 1)
    assert {name: text.count(coreos.IGNITED) for name, text in consoles.items()} == dict.fromkeys(MACHINES, 1)
    calls = [json.loads(line)["arguments"] for line in machines.calls.read_text(encoding="utf-8").splitlines()]
    assert len([words for words in calls if "ignition-configs" in words]) == 1, calls


def test_the_bootstrap_machine_is_out_of_the_load_balancer_and_off_once_it_can_go(
    made: tuple[Run, float], chain: Chain, machines: Metal
) -> None:
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


def test_a_second_run_has_nothing_to_do_and_writes_nothing(again: tuple[Run, list[str]]) -> None:
    run, written = again
    assert (run.rc, run.changed()) == (0, 0), run.stdout[-6000:]
    assert written == []
