# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory of two clusters of OpenShift that are not there yet, each with a load balancer, a boot server, and many machines with BMCs."""

from __future__ import annotations

import pathlib
import sys

import yaml

from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY
from ansible_collections.hwaccel.gpu.tests.live.support.site import Clusters

CLUSTERS = ("north", "south")
_LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}


def inventory(total: int, folder: pathlib.Path) -> tuple[Clusters, dict[str, Clusters]]:
    """Clusters, and machines by group. total: machines of all clusters, with load balancers and boot servers. folder: of the installations."""
    example = REPOSITORY / "examples" / "inventories" / "sno-edge" / "hosts.yml"
    known = yaml.safe_load(example.read_text(encoding="utf-8"))["gpu_clusters"]["hosts"]["edge"]
    given = {name: known[name] for name in ("cluster_openshift_pull_secret", "cluster_openshift_ssh_keys")}
    clusters: Clusters = {}
    machines: dict[str, Clusters] = {
        group: {} for group in ("load_balancers", "boot_servers", "bootstrap", "control_plane", "workers")
    }
    for number, cluster in enumerate(CLUSTERS):
        net = f"10.{40 + number}.0"
        clusters[cluster] = {
            **_LOCAL,
            **given,
            "hwaccel_installer": "openshift",
            "hwaccel_domain": f"{cluster}.example.com",
            "hwaccel_machine_network": f"{net}.0/24",
            "hwaccel_load_balancer_address": f"{net}.2",
            "hwaccel_new_cluster": True,
            "cluster_openshift_folder": str(folder / cluster),
            "cluster_openshift_installer": "/opt/openshift-install",
        }
        serving = {**_LOCAL, "hwaccel_cluster": cluster}
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
