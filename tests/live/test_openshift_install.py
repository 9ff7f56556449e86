# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One playbook from nothing to an installed cluster of OpenShift: a real API server and signers, and stand-ins of the install tool, machines and operators.

The API server presents a certificate with the name that the kubeconfig of an installation has, behind a relay.
"""

from __future__ import annotations

import base64
import collections.abc as c
import concurrent.futures
import json
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.fleet import NODE, cluster_uid
from ansible_collections.hwaccel.gpu.tests.live.conftest import MakeSandbox
from ansible_collections.hwaccel.gpu.tests.live.support import administrators, site
from ansible_collections.hwaccel.gpu.tests.live.support.approvals import join
from ansible_collections.hwaccel.gpu.tests.live.support.installing import DOMAIN, Installing
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import certificate

MACHINES: dict[str, dict[str, t.Any]] = {
    "bootstrap": {"boot": {"hwaccel_address": "10.33.3.10"}},
    "control_plane": {"m0": {"hwaccel_address": "10.33.3.11"}},
    "workers": {"w0": {"hwaccel_address": "10.33.3.12"}},
}


class Site:
    """machines: of the inventory, by groups. variables: of the cluster's host."""

    def __init__(
        self, place: pathlib.Path, world: Installing, machines: dict[str, dict[str, t.Any]], **variables: t.Any
    ) -> None:
        self.place, self.world, self.machines, self.variables = place, world, machines, variables
        self.folder = place / "installations" / "ocp"
        self.placed = place / "kubeconfig of ocp"
        (place / "tool").mkdir()
        tool = launcher.write(place / "tool", calls=str(place / "calls"))
        # Nobody serves the names of a cluster that is not there.
        self.tool = place / "openshift-install"
        self.tool.write_text(
            f'#!/bin/sh\n"{tool}" "$@" || exit $?\n'
            f'for last; do [ "$before" = --dir ] && dir=$last; before=$last; done\n'
            'case " $* " in *" create ignition-configs "*|*" create single-node-ignition-config "*|*" create pxe-files "*)\n'
            f'cp "{world.kubeconfig}" "$dir/auth/kubeconfig";; esac\n',
            encoding="utf-8",
        )
        self.tool.chmod(0o755)

    def host(self) -> dict[str, t.Any]:
        """Variables of the cluster."""
        example = REPOSITORY / "examples" / "inventories" / "sno-edge" / "hosts.yml"
        known = yaml.safe_load(example.read_text(encoding="utf-8"))["gpu_clusters"]["hosts"]["edge"]
        given = {name: known[name] for name in ("cluster_openshift_pull_secret", "cluster_openshift_ssh_keys")}
        return {
            **given,
            "ansible_connection": "local",
            "hwaccel_installer": "openshift",
            "hwaccel_domain": DOMAIN,
            "hwaccel_machine_network": "10.33.3.0/24",
            "hwaccel_api_endpoint": self.world.endpoint,
            "cluster_openshift_folder": str(self.folder),
            "hwaccel_kubeconfig_file": str(self.placed),
            **{f"cluster_openshift_{phase}_timeout": 120 for phase in ("api", "bootstrap", "nodes", "install")},
            "cluster_openshift_installer": str(self.tool),
            **self.variables,
        }

    def play(
        self,
        *arguments: str,
        playbook: str = "cluster_openshift",
        others: c.Mapping[str, dict[str, t.Any]] | None = None,
        machines: dict[str, dict[str, t.Any]] | None = None,
        warnings: t.Sequence[str] = (),
        **variables: t.Any,
    ) -> site.Run:
        """others: more clusters, each with the variables in which it differs from this one."""
        host = {**self.host(), **variables}
        clusters = {"ocp": host, **{name: {**host, **one} for name, one in (others or {}).items()}}
        return site.playbook(playbook, clusters, *arguments, machines=machines or self.machines, warnings=warnings)


@pytest.fixture(scope="module")
def ocp(make_sandbox: MakeSandbox, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    place = tmp_path_factory.mktemp("ocp")
    with Installing(make_sandbox({"pools": []}), place) as world:
        yield Site(place, world, MACHINES)


def test_check_mode_tells_the_steps_and_touches_nothing(ocp: Site) -> None:
    run = ocp.play("--check")
    assert run.rc == 0, run.stdout[-6000:]
    assert not ocp.folder.exists() and not (ocp.place / "calls").exists()
    assert not ocp.placed.exists()
    assert run.summary["ocp"]["changes"] == [
        "create the files of the installation",
        "install OpenShift on m0",
        f"write the kubeconfig {ocp.placed}",
    ]


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
    assert ocp.placed.stat().st_mode & 0o777 == 0o600
    assert f"the password of the user kubeadmin is in {ocp.folder}/auth/kubeadmin-password" in run.stdout
    before = {path: path.read_bytes() for path in [*ocp.folder.rglob("*"), ocp.placed] if path.is_file()}
    again = ocp.play()
    changed = [task["name"] for task in again.tasks if task["outcome"] == "changed"]
    assert again.rc == 0 and again.changed() == 0, (changed, again.stdout[-8000:])
    assert {path: path.read_bytes() for path in before} == before
    password = (ocp.folder / "auth" / "kubeadmin-password").read_text(encoding="ascii")
    assert password and password not in run.stdout + again.stdout


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


def test_the_router_s_new_ca_is_taken_over_and_nodes_that_left_are_only_told(ocp: Site) -> None:
    config = yaml.safe_load(ocp.placed.read_text(encoding="utf-8"))
    assert config["clusters"][0]["cluster"]["server"] == f"https://api.{DOMAIN}:6443"
    before, rotated = ocp.placed.read_bytes(), certificate(common="router")
    administrators.router(ocp.world.admin, rotated)
    join(ocp.world.admin, f"old.{DOMAIN}", "127.0.0.1")
    try:
        checked = ocp.play("--check", "--diff")
        assert checked.summary["ocp"]["changes"] == [f"write the kubeconfig {ocp.placed}"], checked.stdout[-4000:]
        assert ocp.placed.read_bytes() == before and "certificate-authority-data" not in checked.stdout
        assert f"no machines of the inventory, and they are left as they are: old.{DOMAIN}" in checked.stdout
        run = ocp.play("--diff")
        assert run.rc == 0 and run.changed() == 1, run.stdout[-4000:]
        assert ocp.world.admin.get(NODE, f"old.{DOMAIN}")["metadata"].get("deletionTimestamp") is None
    finally:
        ocp.world.admin.delete(NODE, f"old.{DOMAIN}")
    found = yaml.safe_load(ocp.placed.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
    own = yaml.safe_load(pathlib.Path(ocp.world.kubeconfig).read_text(encoding="utf-8"))["clusters"][0]["cluster"]
    trusted = base64.b64decode(found["certificate-authority-data"]).decode()
    assert trusted == rotated + base64.b64decode(own["certificate-authority-data"]).decode()
    assert ocp.placed.stat().st_mode & 0o777 == 0o600


def test_kubeadmin_goes_once_somebody_else_has_logged_in(ocp: Site) -> None:
    admin = ocp.world.admin
    administrators.provider(admin, "staff")
    administrators.bind(admin, "keepers", "alice")
    refused = ocp.play(cluster_openshift_remove_kubeadmin=True)
    changed = [task["name"] for task in refused.tasks if task["outcome"] == "changed"]
    assert refused.rc != 0 and changed == [] and administrators.has_kubeadmin(admin)
    assert "alice may do everything, and have not logged in by an identity provider" in refused.stdout, refused.stdout[
        -4000:
    ]
    administrators.log_in(admin, "alice", "staff")
    checked = ocp.play("--check", cluster_openshift_remove_kubeadmin=True)
    gone = "remove the user kubeadmin, since alice has logged in by identity provider staff, and may do everything"
    assert checked.summary["ocp"]["changes"] == [gone] and administrators.has_kubeadmin(admin), checked.stdout[-4000:]
    run = ocp.play("-vvv", cluster_openshift_remove_kubeadmin=True)
    assert run.rc == 0 and run.changed() == 1 and not administrators.has_kubeadmin(admin), run.stdout[-4000:]
    assert run.summary["ocp"]["changes"] == [gone]
    assert administrators.HASH not in run.stdout
    assert base64.b64encode(administrators.HASH.encode()).decode() not in run.stdout
    again = ocp.play(cluster_openshift_remove_kubeadmin=True)
    assert again.rc == 0 and again.changed() == 0, again.stdout[-4000:]


def test_teardown_keeps_the_keys_and_touches_no_object(ocp: Site) -> None:
    """Programs are fetched from a mirror, which is not here: their folder is made as fetch.yml makes it."""
    programs = ocp.folder.parent / ".openshift-install" / "0123456789ab"
    programs.mkdir(parents=True)
    (programs / "openshift-install").write_text("#!/bin/sh\n", encoding="utf-8")
    uid, infrastructure = (
        cluster_uid(ocp.world.admin),
        json.loads((ocp.folder / "metadata.json").read_text())["infraID"],
    )
    files = {path.relative_to(ocp.folder): path.read_bytes() for path in ocp.folder.rglob("*") if path.is_file()}
    teardown = {"cluster_openshift_entry": "teardown"}

    def refused(words: str, **variables: t.Any) -> None:
        run = ocp.play(**teardown, **variables)
        assert run.rc != 0 and run.changed() == 0 and words in run.stdout, run.stdout[-4000:]
        assert ocp.placed.exists() and ocp.folder.exists() and programs.exists()

    refused(f"run again with -e hwaccel_confirm={uid}")
    # Silent, it is known by its name, and nobody has to know the UID of a cluster that is gone.
    refused("run again with -e hwaccel_confirm=ocp", hwaccel_confirm=uid, hwaccel_api_endpoint="127.0.0.1:1")
    ocp.world.rename("other-x1y2z")
    refused(f"another cluster answers as {DOMAIN}", hwaccel_confirm=uid)
    ocp.world.rename(infrastructure)
    objects = _objects(ocp)
    checked = ocp.play("--check", **teardown, hwaccel_confirm=uid)
    assert checked.rc == 0 and ocp.placed.exists() and ocp.folder.exists() and programs.exists(), checked.stdout[-4000:]
    run = ocp.play("--diff", **teardown, hwaccel_confirm=uid)
    assert run.rc == 0 and run.changed() == 3, run.stdout[-4000:]
    assert (
        run.summary["ocp"]["changes"]
        == checked.summary["ocp"]["changes"]
        == [
            f"remove the kubeconfig {ocp.placed}",
            f"remove {programs.parent}",
            f"move {ocp.folder} to a backup beside it, with the keys of the cluster",
        ]
    )
    assert not ocp.placed.exists() and not ocp.folder.exists() and not programs.parent.exists()
    (backup,) = [path for path in ocp.folder.parent.glob("ocp.bak-*") if path.is_dir()]
    assert backup.stat().st_mode & 0o777 == 0o700 and str(backup) in run.stdout
    assert {path.relative_to(backup): path.read_bytes() for path in backup.rglob("*") if path.is_file()} == files
    assert _objects(ocp) == objects
    again = ocp.play(**teardown)
    assert again.rc == 0 and again.changed() == 0, again.stdout[-4000:]


def _objects(ocp: Site) -> dict[str, str]:
    """Versions of what the cluster has of this installation."""
    admin = ocp.world.admin
    kinds = ("Infrastructure", "ClusterVersion", "ClusterOperator", "OAuth")
    resources = [NODE, *(admin.resource("config.openshift.io/v1", kind) for kind in kinds)]
    return {
        f"{one.kind} {obj['metadata']['name']}": obj["metadata"]["uid"]
        for one in resources
        for obj in admin.list(one).items
    }
