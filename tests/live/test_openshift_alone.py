# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of OpenShift without a bootstrap machine, from nothing to installed: real API servers and signers, and stand-ins as in test_openshift_install.py."""

from __future__ import annotations

import concurrent.futures
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.conftest import MakeSandbox
from ansible_collections.hwaccel.gpu.tests.live.support.installing import DOMAIN, Installing
from ansible_collections.hwaccel.gpu.tests.live.test_openshift_install import Site

MACHINE = {"hwaccel_address": "10.33.3.11", "hwaccel_mac": "52:54:00:33:03:11", "hwaccel_install_device": "/dev/vda"}
MACHINES: dict[str, dict[str, t.Any]] = {"control_plane": {"m0": MACHINE}}
FILES = {"agent": "boot-artifacts/agent.x86_64-initrd.img", "in_place": "bootstrap-in-place-for-live-iso.ign"}


@pytest.mark.parametrize("method", FILES)
def test_one_command_waits_until_it_is_installed_and_the_second_changes_nothing(
    method: str, make_sandbox: MakeSandbox, tmp_path: pathlib.Path
) -> None:
    with Installing(make_sandbox({"pools": []}), tmp_path) as world:
        ocp = Site(tmp_path, world, MACHINES, cluster_openshift_method=method)
        checked = ocp.play("--check")
        assert checked.rc == 0 and not ocp.folder.exists(), checked.stdout[-6000:]
        assert checked.summary["ocp"]["changes"] == [
            "create the files of the installation",
            "install OpenShift on m0",
            f"write the kubeconfig {ocp.placed}",
        ]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            machines = pool.submit(ocp.world.install, ocp.folder, MACHINES)
            run = ocp.play()
            machines.result(timeout=10)
        assert run.rc == 0 and run.summary["ocp"]["state"] == "done", run.stdout[-8000:]
        (waited,) = run.results("openshift_wait", "ocp")[-1:]
        assert (waited["state"], [one["node"] for one in waited["approved"]]) == ("installed", [f"m0.{DOMAIN}"] * 2)
        assert (ocp.folder / FILES[method]).exists()
        again = ocp.play()
        changed = [task["name"] for task in again.tasks if task["outcome"] == "changed"]
        assert again.rc == 0 and changed == [], again.stdout[-8000:]
        (found,) = again.results("openshift_install", "ocp")[-1:]
        assert (found["row"], FILES[method] in found["publishable"]) == (12, False), "it holds the keys of the cluster"
        silent = ocp.play(warnings=["the cluster does not answer"], hwaccel_api_endpoint="127.0.0.1:1")
        assert silent.rc != 0 and "it was installed, and does not answer now" in silent.stdout, silent.stdout[-4000:]
