# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Day 2 of a cluster of OpenShift: workers are added, a machine is replaced, and the authority of 22623 is rotated meanwhile.

As in test_openshift_install.py, API server and signers are real, and the install tool, machines and operators are stand-ins. What boot servers make of the
pointers is in tests/unit/machines/openshift/test_booting.py.
"""

from __future__ import annotations

import base64
import collections.abc as c
import concurrent.futures
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import pointers
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.tests.live.conftest import MakeSandbox
from ansible_collections.hwaccel.gpu.tests.live.support.installing import DOMAIN, Installing
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.live.test_openshift_install import MACHINES, Site
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import put
from ansible_collections.hwaccel.gpu.tests.unit.approval.signing import Authority

CONSENT = {"hwaccel_install": True}
OPERATOR = "openshift-machine-config-operator"


def inventory(*workers: str, **servers: t.Any) -> dict[str, dict[str, t.Any]]:
    """The machines of the installation with consent, these workers in addition, and one that is off and has none. servers: variables of the boot server."""
    own = {group: {name: {**one, **CONSENT} for name, one in hosts.items()} for group, hosts in MACHINES.items()}
    more = {name: {"hwaccel_address": f"10.33.3.{20 + number}", **CONSENT} for number, name in enumerate(workers)}
    own["workers"] |= {**more, "spare": {"hwaccel_address": "10.33.3.99"}}
    return {**own, "boot_servers": {"pxe": servers}}


def authority(world: Installing, name: str, pem: str) -> None:
    """What OpenShift's installer and machine-config-operator write. name: of the ConfigMap."""
    namespace, key = (OPERATOR, "ca-bundle.crt") if name != "root-ca" else ("kube-system", "ca.crt")
    metadata = {"name": name, "namespace": namespace}
    put(world.admin, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: pem}})


def added(site: Site, name: str, machines: dict[str, dict[str, t.Any]], **variables: t.Any) -> Run:
    """A run in which a machine starts as soon as it is waited for."""
    address = machines["workers"][name]["hwaccel_address"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        joining = pool.submit(site.world.join, f"{name}.{DOMAIN}", address)
        run = site.play(machines=machines, **variables)
        joining.result(timeout=10)
    assert run.rc == 0, run.stdout[-8000:]
    return run


def pointer(run: Run) -> dict[str, t.Any]:
    (found,) = run.results("machine_config_server_info", "ocp")
    return found


def calls(site: Site) -> str:
    """What the install tool was called with."""
    return (site.place / "calls").read_text(encoding="utf-8")


def rests(run: Run, site: Site, before: str) -> None:
    """It has looked once, and found nothing to do: neither waits the run, nor asks it for a pointer, nor runs the install tool."""
    changed = [task["name"] for task in run.tasks if task["outcome"] == "changed"]
    assert run.rc == 0 and run.changed() == 0, (changed, run.stdout[-8000:])
    assert len(run.results("openshift_wait", "ocp")) == 1
    assert run.results("machine_config_server_info", "ocp") == []
    assert calls(site) == before


@pytest.fixture(scope="module")
def ocp(make_sandbox: MakeSandbox, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    place = tmp_path_factory.mktemp("ocp")
    with Installing(make_sandbox({"pools": []}), place) as world, concurrent.futures.ThreadPoolExecutor() as pool:
        made = Site(place, world, MACHINES)
        machines = pool.submit(world.install, made.folder, MACHINES)
        run = made.play()
        machines.result(timeout=10)
        assert run.rc == 0, run.stdout[-8000:]
        worker = pointers.read((made.folder / "worker.ign").read_bytes())
        assert worker is not None
        authority(world, "root-ca", worker.authorities)
        yield made


def test_an_installed_cluster_waits_for_nobody(ocp: Site) -> None:
    """Not for a machine of the inventory either that is off and not to be installed."""
    rests(ocp.play(machines=inventory()), ocp, calls(ocp))


def test_a_worker_is_added_with_a_pointer_of_the_cluster(ocp: Site) -> None:
    machines = inventory("w1")
    checked = ocp.play("--check", machines=machines)
    assert checked.summary["ocp"]["changes"] == [f"add w1.{DOMAIN} to the cluster"], checked.stdout[-4000:]
    run = added(ocp, "w1", machines)
    assert run.summary["ocp"]["changes"] == [f"add w1.{DOMAIN} to the cluster"]
    assert {one["node"] for one in run.results("openshift_wait", "ocp")[-1]["approved"]} == {f"w1.{DOMAIN}"}
    # Of the stand-in, which writes what openshift-install does.
    assert pointer(run)["pointers"]["worker"] == (ocp.folder / "worker.ign").read_text(encoding="utf-8")
    assert (pointer(run)["config_map"], pointer(run)["rotated"]) == ("kube-system/root-ca", False)
    rests(ocp.play(machines=machines), ocp, calls(ocp))


def test_a_rotated_authority_is_in_the_pointer_of_the_next_worker(ocp: Site) -> None:
    rotated = Authority("machine-config-server-ca").pem
    authority(ocp.world, "machine-config-server-ca", rotated)
    run = added(ocp, "w2", inventory("w2"))
    made = pointer(run)
    assert (made["config_map"], made["rotated"]) == (f"{OPERATOR}/machine-config-server-ca", True)
    assert "which is another one than when the cluster was installed" in run.stdout
    merged = json.loads(made["pointers"]["worker"])["ignition"]
    (source,) = merged["security"]["tls"]["certificateAuthorities"]
    assert base64.b64decode(source["source"].partition(",")[2]).decode() == rotated
    assert merged["config"]["merge"] == [{"source": f"https://api-int.{DOMAIN}:22623/config/worker"}]
    rests(ocp.play(machines=inventory("w2")), ocp, calls(ocp))


def test_a_machine_is_replaced_under_its_name(ocp: Site) -> None:
    machines = inventory(dns_pxe_install_again=["w0"])
    before = ocp.world.admin.get(NODE, f"w0.{DOMAIN}")["metadata"]["uid"]
    ocp.world.lose(f"w0.{DOMAIN}")
    run = added(ocp, "w0", machines, cluster_openshift_allow_rejoin=[f"w0.{DOMAIN}"])
    assert {one["node"] for one in run.results("openshift_wait", "ocp")[-1]["approved"]} == {f"w0.{DOMAIN}"}
    assert ocp.world.admin.get(NODE, f"w0.{DOMAIN}")["metadata"]["uid"] == before
    rests(ocp.play(machines=inventory()), ocp, calls(ocp))


def test_a_worker_is_added_although_the_program_of_the_release_is_gone(ocp: Site) -> None:
    """Boot servers then name what has to be in the inventory."""
    before = calls(ocp)
    run = added(ocp, "w3", inventory("w3"), cluster_openshift_installer=str(ocp.place / "gone"))
    assert pointer(run)["pointers"] and calls(ocp) == before


@pytest.mark.parametrize("folder", [True, False])
def test_a_cluster_whose_folder_is_lost_is_never_made_anew(ocp: Site, folder: bool) -> None:
    """folder: whether the inventory still has the path. Otherwise the cluster is known by its connection only."""
    kept = ocp.place / "kept"
    ocp.folder.parent.rename(kept)
    try:
        without = {
            "cluster_openshift_folder": "",
            "cluster_openshift_installer": "",
            "cluster_openshift_pull_secret": "",
        }
        given = {"hwaccel_connection": {"kubeconfig": ocp.world.sandbox.kubeconfig}, **({} if folder else without)}
        name = f"w{4 if folder else 5}"
        machines = inventory(name)
        run = added(ocp, name, machines, **given)
        assert run.summary["ocp"]["changes"] == [f"add {name}.{DOMAIN} to the cluster"]
        assert pointer(run)["ignition_version"] == pointers.VERSION
        rests(ocp.play(machines=machines, **given), ocp, calls(ocp))
        assert not ocp.folder.exists()
    finally:
        if ocp.folder.parent.exists():
            ocp.folder.parent.rename(ocp.place / f"made {folder}")
        kept.rename(ocp.folder.parent)
