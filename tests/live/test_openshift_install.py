# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One playbook from nothing to an installed cluster of OpenShift: a real API server and signers, and stand-ins of the install tool, machines and operators.

The API server presents a certificate with the name that the kubeconfig of an installation has, behind a relay.
"""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import json
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.live.conftest import MakeSandbox
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.installing import DOMAIN, Installing
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher

MACHINES: dict[str, dict[str, t.Any]] = {
    "bootstrap": {"boot": {"hwaccel_address": "10.33.3.10"}},
    "control_plane": {"m0": {"hwaccel_address": "10.33.3.11"}},
    "workers": {"w0": {"hwaccel_address": "10.33.3.12"}},
}


class Site:
    def __init__(self, place: pathlib.Path, world: Installing) -> None:
        self.place, self.world = place, world
        self.folder = place / "installations" / "ocp"
        (place / "tool").mkdir()
        tool = launcher.write(place / "tool", calls=str(place / "calls"))
        # Nobody serves the names of a cluster that is not there.
        self.tool = place / "openshift-install"
        self.tool.write_text(
            f'#!/bin/sh\n"{tool}" "$@" || exit $?\n'
            f'for last; do [ "$before" = --dir ] && dir=$last; before=$last; done\n'
            f'case " $* " in *" create ignition-configs "*) cp "{world.kubeconfig}" "$dir/auth/kubeconfig";; esac\n',
            encoding="utf-8",
        )
        self.tool.chmod(0o755)

    def play(self, *arguments: str, warnings: t.Sequence[str] = (), **variables: t.Any) -> site.Run:
        example = REPOSITORY / "examples" / "inventories" / "sno-edge" / "hosts.yml"
        known = yaml.safe_load(example.read_text(encoding="utf-8"))["gpu_clusters"]["hosts"]["edge"]
        given = {name: known[name] for name in ("cluster_openshift_pull_secret", "cluster_openshift_ssh_keys")}
        host = {
            **given,
            "ansible_connection": "local",
            "hwaccel_installer": "openshift",
            "hwaccel_domain": DOMAIN,
            "hwaccel_machine_network": "10.33.3.0/24",
            "hwaccel_api_endpoint": self.world.endpoint,
            "cluster_openshift_folder": str(self.folder),
            **{f"cluster_openshift_{phase}_timeout": 120 for phase in ("api", "bootstrap", "nodes", "install")},
            "cluster_openshift_installer": str(self.tool),
            **variables,
        }
        return site.playbook("cluster_openshift", {"ocp": host}, *arguments, machines=MACHINES, warnings=warnings)


@pytest.fixture(scope="module")
def ocp(make_sandbox: MakeSandbox, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    place = tmp_path_factory.mktemp("ocp")
    with Installing(make_sandbox({"pools": []}), place) as world:
        yield Site(place, world)


def test_check_mode_tells_the_steps_and_touches_nothing(ocp: Site) -> None:
    run = ocp.play("--check")
    assert run.rc == 0, run.stdout[-6000:]
    assert not ocp.folder.exists() and not (ocp.place / "calls").exists()
    assert run.summary["ocp"]["changes"] == ["create the files of the installation", "install OpenShift on m0"]


def test_one_command_waits_until_it_is_installed_and_the_second_changes_nothing(ocp: Site) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        machines = pool.submit(ocp.world.install, ocp.folder, MACHINES)
        run = ocp.play()
        machines.result(timeout=10)
    assert run.rc == 0, run.stdout[-8000:]
    assert run.summary["ocp"]["state"] == "done"
    (waited,) = run.results("openshift_wait", "ocp")[-1:]
    assert {one["node"] for one in waited["approved"]} == {f"m0.{DOMAIN}", f"w0.{DOMAIN}"}
    assert waited["state"] == "installed" and waited["complete"]
    before = {path: path.read_bytes() for path in ocp.folder.rglob("*") if path.is_file()}
    again = ocp.play()
    changed = [task["name"] for task in again.tasks if task["outcome"] == "changed"]
    assert again.rc == 0 and again.changed() == 0, (changed, again.stdout[-8000:])
    assert {path: path.read_bytes() for path in ocp.folder.rglob("*") if path.is_file()} == before


def test_an_installed_cluster_that_is_silent_or_another_one_stops_the_run(ocp: Site) -> None:
    silent = ocp.play(warnings=["the cluster does not answer"], hwaccel_api_endpoint="127.0.0.1:1")
    assert silent.rc != 0 and "it was installed, and does not answer now" in silent.stdout, silent.stdout[-4000:]
    record = json.loads((ocp.folder / "metadata.json").read_text(encoding="utf-8"))
    ocp.world.rename("other-x1y2z")
    try:
        other = ocp.play()
        assert other.rc != 0 and f"infraID in metadata.json is {record['infraID']}" in other.stdout, other.stdout[
            -4000:
        ]
    finally:
        ocp.world.rename(record["infraID"])
