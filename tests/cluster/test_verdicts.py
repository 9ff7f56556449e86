# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine of a batch that cannot join: the other does, the run tells why, and the next one completes it. With the credentials that a run leaves behind."""

from __future__ import annotations

import base64
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import CONFIGURATION, NAME, SECRETS, Site, nft
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import certificate

_TABLE = "inet unreachable"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("credentials")


@pytest.fixture(scope="module")
def site(rig: ClusterRig, folder: pathlib.Path) -> Site:
    site = Site(rig, servers=("s1",), agents=("a1", "a2"))
    site.variables["hwaccel_kubeconfig_file"] = str(folder / "admin.conf")
    # The default is five minutes.
    configuration: dict[str, t.Any] = {**CONFIGURATION, "JoinConfiguration": {"timeouts": {"discovery": "30s"}}}
    site.variables["cluster_kubeadm_configuration"] = configuration
    return site


@pytest.mark.slow
def test_a_field_that_kubeadm_does_not_know_makes_no_cluster(site: Site) -> None:
    """`kubeadm init` itself only warns of it."""
    usual = site.variables["cluster_kubeadm_configuration"]
    site.variables["cluster_kubeadm_configuration"] = {**usual, "ClusterConfiguration": {"apiServerr": {}}}
    run = site.play(timeout=1200)
    site.variables["cluster_kubeadm_configuration"] = usual
    print(run.summary[NAME]["reasons"])
    assert run.rc != 0
    assert "apiServerr" in " ".join(run.summary[NAME]["reasons"])
    made = f"/etc/kubernetes/admin.conf /etc/kubernetes/pki /var/lib/etcd {SECRETS}"
    assert {name: machine.sh(f"ls -d {made} 2>/dev/null || :") for name, machine in site.machines.items()} == {
        "s1": "",
        "a1": "",
        "a2": "",
    }


@pytest.mark.slow
def test_a_machine_that_does_not_reach_the_endpoint_gets_a_verdict_and_the_other_joins(
    site: Site, folder: pathlib.Path
) -> None:
    lost = site.machines["a2"]
    nft(lost, "add", "table", *_TABLE.split())
    nft(lost, "add", "chain", *_TABLE.split(), "out", "{ type filter hook output priority 0; }")
    address = site.machines["s1"].address
    nft(lost, "add", "rule", *_TABLE.split(), "out", f"ip daddr {address} tcp dport 6443 drop")
    run = site.play("cluster_kubeadm", timeout=2400)
    print(run.stdout[-6000:])
    assert run.rc != 0
    assert site.versions().keys() == {"s1", "a1"}
    assert run.summary["a1"]["succeeded"] and run.summary["s1"]["succeeded"]
    (reason,) = run.summary["a2"]["reasons"]
    assert "a2 did not become a healthy node: it does not reach the API server" in reason and address in reason
    assert run.summary[NAME]["reasons"] == [reason] and "Next: ask it from the machine" in reason
    assert site.secrets_left() == []
    nft(lost, "delete", "table", *_TABLE.split())
    again = site.done()
    assert [text.partition(":")[0] for text in again.summary[NAME]["changes"]][-1] == "join a2"
    assert site.versions().keys() == {"s1", "a1", "a2"}
    last = site.done()
    assert last.changed() == 0 and all(one["changes"] == [] for one in last.summary.values())


@pytest.mark.slow
def test_the_kubeconfig_is_on_the_controller_for_its_owner_only(site: Site, folder: pathlib.Path) -> None:
    path = folder / "admin.conf"
    assert path.stat().st_mode & 0o777 == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == f"https://{site.machines['s1'].address}:6443"
    site.variables["hwaccel_connection"] = {"kubeconfig": str(path)}
    run = site.done("-vvv", "--diff")
    assert run.changed() == 0
    key = config["users"][0]["user"]["client-key-data"]
    assert key not in run.stdout and base64.b64decode(key).decode("ascii") not in run.stdout


@pytest.mark.slow
def test_a_connection_to_another_cluster_stops_the_run_before_anything_is_changed(
    site: Site, folder: pathlib.Path
) -> None:
    config = yaml.safe_load((folder / "admin.conf").read_text())
    other = base64.b64encode(certificate().encode()).decode()
    config["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:9", "certificate-authority-data": other}
    site.variables["hwaccel_connection"] = {"kubeconfig": config, "retry_timeout": 0}
    run = site.play("cluster_kubeadm", timeout=600)
    assert run.rc != 0 and run.changed() == 0
    (reason,) = run.summary[NAME]["reasons"]
    assert "hwaccel_connection is that of another cluster than the one of the machines" in reason


@pytest.mark.slow
def test_a_cluster_whose_machine_is_silent_holds_up_no_other(
    site: Site, rig: ClusterRig, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is asked once: a machine that answers nothing takes the whole timeout of a connection each time."""
    site.variables.pop("hwaccel_connection", None)
    dark = rig.machine("dark")
    nft(dark, "add table inet dark; add chain inet dark in { type filter hook input priority 0; policy drop; }")
    mine = {
        group: {name: {**one, "hwaccel_cluster": NAME} for name, one in hosts.items()}
        for group, hosts in site.groups().items()
    }
    mine["control_plane"]["dark"] = {"hwaccel_cluster": "two"}
    known = {NAME: site.cluster(), "two": {**site.cluster(), "hwaccel_kubeconfig_file": ""}}
    run = rig.play("preflight", mine, clusters=known)
    assert run.rc != 0
    assert "dark cannot be reached" in run.stdout and "dark cannot be reached" not in str(run.summary[NAME])
    assert run.summary[NAME]["succeeded"] and not run.summary["two"]["succeeded"]
    looks = [
        one["seconds"] for one in run.tasks if one["host"] == "dark" and one["action"] == "hwaccel.gpu.machine_look"
    ]
    with capsys.disabled():
        print(f"\nlooks at a silent machine: {', '.join(f'{one:.1f} s' for one in looks)}")
    assert len(looks) > 1 and max(looks[1:]) < looks[0] / 2
