# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight costs with many machines: two clusters of OpenShift that are not there yet, each with a load balancer and a boot server.

Nothing is there of it: load balancers and boot servers are the machine of the tests, which is only read, and preflight asks no BMC. Their problems are
expected.

Runtime: three runs of preflight.
"""

from __future__ import annotations

import pathlib
import resource
import sys
import time

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY

CLUSTERS = ("north", "south")
#: Machines of both clusters, with load balancers and boot servers.
TOTALS = (50, 100, 200)
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}


def inventory(total: int, folder: pathlib.Path) -> tuple[site.Clusters, dict[str, site.Clusters]]:
    """Clusters, and machines by group. total: machines of all clusters."""
    example = REPOSITORY / "examples" / "inventories" / "sno-edge" / "hosts.yml"
    known = yaml.safe_load(example.read_text(encoding="utf-8"))["gpu_clusters"]["hosts"]["edge"]
    given = {name: known[name] for name in ("cluster_openshift_pull_secret", "cluster_openshift_ssh_keys")}
    clusters: site.Clusters = {}
    machines: dict[str, site.Clusters] = {
        group: {} for group in ("load_balancers", "boot_servers", "bootstrap", "control_plane", "workers")
    }
    for number, cluster in enumerate(CLUSTERS):
        net = f"10.{40 + number}.0"
        clusters[cluster] = {
            **LOCAL,
            **given,
            "hwaccel_installer": "openshift",
            "hwaccel_domain": f"{cluster}.example.com",
            "hwaccel_machine_network": f"{net}.0/24",
            "hwaccel_load_balancer_address": f"{net}.2",
            "hwaccel_new_cluster": True,
            "cluster_openshift_folder": str(folder / cluster),
            "cluster_openshift_installer": "/opt/openshift-install",
        }
        serving = {**LOCAL, "hwaccel_cluster": cluster}
        machines["load_balancers"][f"{cluster}-lb"] = {**serving, "hwaccel_address": f"{net}.2"}
        machines["boot_servers"][f"{cluster}-boot"] = {
            **serving,
            "hwaccel_address": f"{net}.3",
            "dns_pxe_interfaces": ["eth0"],
            "dns_pxe_networks": [{"network": f"{net}.0/24", "router": f"{net}.1"}],
        }
        roles = ["bootstrap", *["control_plane"] * 3, *["workers"] * (total // len(CLUSTERS) - 6)]
        for place, group in enumerate(roles):
            machines[group][f"{cluster}-{place}"] = {
                "hwaccel_cluster": cluster,
                "hwaccel_address": f"{net}.{place + 10}",
                "hwaccel_mac": f"52:54:00:{number:02x}:00:{place:02x}",
                "hwaccel_firmware": "uefi",
                "hwaccel_install": True,
                "hwaccel_install_device": "/dev/vda",
                "hwaccel_bmc_address": f"127.{10 + number}.0.{place + 10}",
                "hwaccel_bmc_username": "admin",
                "hwaccel_bmc_password": "unused",
            }
    return clusters, machines


def spent() -> float:
    """Seconds of processor time of all that has run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_preflight_is_linear_in_the_number_of_machines(tmp_path: pathlib.Path) -> None:
    costs: dict[int, float] = {}
    for total in TOTALS:
        clusters, machines = inventory(total, tmp_path)
        began, before = time.monotonic(), spent()
        run = site.playbook("preflight", clusters, machines=machines, warnings=[".*"], timeout=3000)
        costs[total] = spent() - before
        took = time.monotonic() - began
        print(
            f"preflight of {len(CLUSTERS)} clusters, {total} machines: {took:.0f} s, {costs[total]:.0f} s of processor time"
        )
        assert not [task for task in run.tasks if task["outcome"] in ("failed", "unreachable")][len(CLUSTERS) :]
        for cluster in CLUSTERS:
            # The machine of the tests is neither of them, and lacks what machines are started with.
            assert all(
                any(word in reason for word in ("lb", "boot", "openshift-install", "community.general"))
                for reason in run.summary[cluster]["stopped"]
            ), run.summary[cluster]["stopped"]
    few, some, many = (costs[total] for total in TOTALS)
    each = {50: (some - few) / (TOTALS[1] - TOTALS[0]), 100: (many - some) / (TOTALS[2] - TOTALS[1])}
    print(
        f"each machine more: {each[50]:.2f} s of processor time from {TOTALS[0]} on, {each[100]:.2f} s from {TOTALS[1]} on"
    )
    assert each[100] < 1.5 * each[50]
