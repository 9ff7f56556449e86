# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two clusters of OpenShift in one run of site: one that installs, beside one whose API never answers.

The world of the first one is that of test_openshift_install.py. Of the second one there are the files of its installation, and nothing else.
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import socket
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.conftest import MakeSandbox
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.installing import Installing
from ansible_collections.hwaccel.gpu.tests.live.test_openshift_install import MACHINES, Site

#: This is about clusters that are made, and not about what is deployed on them.
WITHOUT_STAGES = ("--skip-tags", "feature_discovery,driver,device_plugin,monitoring,gpu_validation")
#: Seconds in which the API of the cluster that hangs has to answer.
PATIENCE = 20
OF_OCP = {
    group: {name: {**one, "hwaccel_cluster": "ocp"} for name, one in hosts.items()} for group, hosts in MACHINES.items()
}
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}


def both() -> dict[str, dict[str, t.Any]]:
    """Machines of both clusters."""
    return {
        group: {
            **hosts,
            **{
                f"hung-{name}": {
                    "hwaccel_cluster": "hung",
                    "hwaccel_node_name": name,
                    "hwaccel_address": one["hwaccel_address"].replace("10.33.3.", "10.33.4."),
                }
                for name, one in hosts.items()
            },
        }
        for group, hosts in OF_OCP.items()
    }


def hung(place: pathlib.Path, port: int) -> dict[str, dict[str, t.Any]]:
    """The other cluster, whose API is not at this port."""
    return {
        "hung": {
            "hwaccel_domain": "hung.example.com",
            "hwaccel_machine_network": "10.33.4.0/24",
            "hwaccel_api_endpoint": f"127.0.0.1:{port}",
            "cluster_openshift_folder": str(place / "installations" / "hung"),
            "hwaccel_kubeconfig_file": str(place / "hung.kubeconfig"),
            "cluster_openshift_api_timeout": PATIENCE,
        }
    }


def waits(run: site.Run, host: str) -> list[dict[str, t.Any]]:
    """Tasks that have waited for a cluster, each with after how many seconds of the run it began and ended."""
    found = [task for task in run.tasks if task["host"] == host and task["action"].endswith("openshift_wait")]
    return [{**task, "began": task["ended"] - task["seconds"]} for task in found]


@pytest.fixture(scope="module")
def ocp(make_sandbox: MakeSandbox, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Site]:
    place = tmp_path_factory.mktemp("ocp")
    with Installing(make_sandbox({"pools": []}), place) as world:
        yield Site(place, world, MACHINES)


def test_one_of_two_clusters_is_taken_with_all_that_belongs_to_it(ocp: Site) -> None:
    machines = both()
    for kind in ("load_balancers", "boot_servers"):
        machines[kind] = {
            f"{name}-{kind[:4]}": {**LOCAL, "hwaccel_cluster": name, "hwaccel_address": f"10.33.{net}.{last}"}
            for name, net in (("ocp", 3), ("hung", 4))
            for last in ([2] if kind == "load_balancers" else [3])
        }
    power = {"hwaccel_bmc_address": "127.0.0.1:1", "hwaccel_bmc_username": "admin", "hwaccel_bmc_password": "x"}
    for group in MACHINES:
        machines[group] = {name: {**one, **power} for name, one in machines[group].items()}
    run = ocp.play(
        "--check",
        *("-e", "hwaccel_only_clusters=ocp"),
        playbook="site",
        others=hung(ocp.place, 1),
        machines=machines,
        # What a machine of the tests has no program for is not the matter here.
        warnings=[".*"],
    )
    touched = {task["host"] for task in run.tasks} - {"localhost"}
    assert touched == {"ocp", "ocp-load", "ocp-boot", *(name for hosts in MACHINES.values() for name in hosts)}
    assert set(run.summary) == {"ocp"}


def test_one_cluster_installs_beside_one_that_hangs(ocp: Site, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as held, concurrent.futures.ThreadPoolExecutor() as pool:
        # The socket is bound but does not listen, so no server answers here during the run.
        held.bind(("127.0.0.1", 0))
        machines = pool.submit(ocp.world.install, ocp.folder, MACHINES)
        run = ocp.play(
            *WITHOUT_STAGES,
            playbook="site",
            others=hung(ocp.place, held.getsockname()[1]),
            machines=both(),
        )
        machines.result(timeout=10)
    mine, its = waits(run, "ocp"), waits(run, "hung")
    with capsys.disabled():
        for name, rows in (("ocp", mine), ("hung", its)):
            print(f"\n{name}:", *(f"{one['outcome']} {one['began']:.0f}-{one['ended']:.0f} s" for one in rows))
    assert run.rc != 0
    assert run.summary["ocp"]["succeeded"] and run.summary["ocp"]["stopped"] == [], run.stdout[-8000:]
    assert mine[-1]["result"]["state"] == "installed"
    (why,) = run.summary["hung"]["stopped"]
    assert "hung.example.com" in why and "was waited for in vain" in why and "Next:" in why, why
    # A wait has several legs, of which the last one fails.
    outcomes = [one["outcome"] for one in its]
    assert outcomes[-1] == "failed" and outcomes.count("failed") == 1, "it is waited for once in a run"
    assert not run.summary["hung"]["succeeded"]
    # Nothing was done with its machines, neither were they asked.
    assert {task["host"] for task in run.tasks} == {"localhost", "ocp", "hung"}
