# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a cluster that is installed, and the file with its kubeconfig, by real runs of the playbooks' tasks."""

from __future__ import annotations

import base64
import json
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._kubeconfig_file import kept, refused
from ansible_collections.hwaccel.gpu.tests.unit.action import plays
from ansible_collections.hwaccel.gpu.tests.unit.filter.test_cluster_connection import kubeconfig
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import certificate

SERVER = "api.example.com:6443"
#: Of the kubeconfig, in base64 and as it is.
SECRETS = ("a2V5",)
TASKS = """
- hwaccel.gpu.machine_outcome: {{role: cluster_kubeadm, state: done}}
- hwaccel.gpu.machine_outcome: {{role: cluster_kubeadm, state: left_out, reasons: ["{{{{ why }}}}"]}}
  when: why is defined
- ansible.builtin.import_tasks: "{root}/playbooks/tasks/connection.yml"
  vars: {{hwaccel_machines_role: cluster_kubeadm, hwaccel_connection_writes: "{{{{ writes | bool }}}}"}}
- ansible.builtin.copy:
    content: "{{{{ {{'outcome': ansible_facts.cluster_kubeadm_outcome, 'connection': hwaccel_connection | default({{}})}} | to_json }}}}"
    dest: "{folder}/result.json"
  check_mode: false
  no_log: true
"""


class Found(t.NamedTuple):
    outcome: dict[str, t.Any]
    connection: dict[str, t.Any]
    output: str


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return plays.whole_collection(tmp_path_factory.mktemp("collections"))


def connected(collections: pathlib.Path, folder: pathlib.Path, *arguments: str, **variables: t.Any) -> Found:
    """The tasks after a run of the installer. Variables without a value are not set."""
    admin = {"kubeconfig": yaml.safe_load(kubeconfig(f"https://{SERVER}"))}
    given = {
        "writes": True,
        "cluster_connection": admin,
        "cluster_settings": {"endpoint": SERVER},
        "cluster_reissued": False,
        **variables,
    }
    variables = {name: value for name, value in given.items() if value is not None}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"alpha": variables}}}))
    tasks = TASKS.format(root=plays.ROOT, folder=folder)
    code, output = plays.play(collections, folder, tasks, "-vvv", "--diff", *arguments, hosts="hosts.yml")
    assert code == 0, output
    result = json.loads((folder / "result.json").read_text())
    assert not [secret for secret in SECRETS if secret in output]
    return Found(result["outcome"], result["connection"], output)


def test_the_kubeconfig_is_written_once_for_its_owner_only(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "admin.conf"
    planned = connected(collections, tmp_path, writes=False, hwaccel_kubeconfig_file=str(path))
    checked = connected(collections, tmp_path, "--check", hwaccel_kubeconfig_file=str(path))
    assert not path.exists()
    run = connected(collections, tmp_path, hwaccel_kubeconfig_file=str(path))
    changes = [f"write the kubeconfig {path}"]
    assert planned.outcome["changes"] == checked.outcome["changes"] == run.outcome["changes"] == changes
    assert path.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(path.read_text()) == run.connection["kubeconfig"]
    assert run.connection["kubeconfig"]["clusters"][0]["cluster"]["server"] == f"https://{SERVER}"
    assert connected(collections, tmp_path, hwaccel_kubeconfig_file=str(path)).outcome["changes"] == []
    path.chmod(0o644)
    assert connected(collections, tmp_path, hwaccel_kubeconfig_file=str(path)).outcome["changes"] == changes
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.glob(".admin*")] == []


def test_a_file_with_other_credentials_is_a_problem_before_anything_is_changed(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "config"
    text = kubeconfig("https://10.0.0.1:6443") + "# planted\n"
    path.write_text(text)
    found = connected(collections, tmp_path, writes=False, hwaccel_kubeconfig_file=str(path))
    assert found.outcome["state"] == "problems"
    assert "something else than the kubeconfig of this cluster" in found.outcome["reasons"][0]
    assert path.read_text() == text and "planted" not in found.output
    for text in ("token: planted", "- [", "[]"):
        path.write_text(text)
        assert "planted" not in str(refused(path, SERVER)[0])
    assert "has no folder" in str(refused(tmp_path / "none" / "config", SERVER)[0])


def test_check_mode_tells_of_a_file_whose_kubeconfig_is_yet_to_come(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "admin.conf"
    new = connected(
        collections,
        tmp_path,
        "--check",
        hwaccel_kubeconfig_file=str(path),
        cluster_connection=None,
        cluster_reissued=True,
    )
    assert new.outcome["changes"] == [f"write the kubeconfig {path}"] and new.connection == {}
    connected(collections, tmp_path, hwaccel_kubeconfig_file=str(path))
    renewed = connected(collections, tmp_path, "--check", hwaccel_kubeconfig_file=str(path), cluster_reissued=True)
    assert renewed.outcome["changes"] == [f"write the kubeconfig {path}"]


def test_a_connection_of_the_inventory_to_this_cluster_is_used(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "viewer.conf"
    path.write_text(kubeconfig("https://127.0.0.1:9"))
    found = connected(collections, tmp_path, hwaccel_connection={"kubeconfig": str(path)})
    assert found.outcome["state"] == "done" and found.connection == {"kubeconfig": str(path)}
    absent = connected(collections, tmp_path, hwaccel_connection={"kubeconfig": str(tmp_path / "none")})
    assert absent.connection["kubeconfig"]["users"][0]["name"] == "admin"


def test_a_connection_to_another_cluster_is_a_problem_before_anything_is_changed(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    other = yaml.safe_load(kubeconfig("https://127.0.0.1:9"))
    other["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(certificate().encode()).decode()
    given = {"kubeconfig": other, "retry_timeout": 0}
    for made in ({"cluster_connection": None}, {}):
        found = connected(collections, tmp_path, writes=False, hwaccel_connection=given, **made)
        assert found.outcome["state"] == "problems" and found.outcome["changes"] == []
        assert "hwaccel_connection is that of a" in found.outcome["reasons"][0]
        assert found.connection == given


def test_a_failed_installer_keeps_its_reasons(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    failed = {"state": "failed", "batch": ["alpha"], "reasons": ["why"], "changes": ["planned"]}
    path = tmp_path / "admin.conf"
    found = connected(
        collections, tmp_path, why="why", cluster_kubeadm_predicted=["planned"], hwaccel_kubeconfig_file=str(path)
    )
    assert found.outcome == failed and path.exists()


REMOVAL = """
- hwaccel.gpu.kubeconfig_file: &removal
    path: "{{{{ path }}}}"
    kubeconfig: "{{{{ connection.kubeconfig }}}}"
    server: api.example.com:6443
    state: absent
  check_mode: true
  register: checked
- ansible.builtin.stat: {{path: "{{{{ path }}}}"}}
  register: found
- hwaccel.gpu.kubeconfig_file: *removal
  register: first
- hwaccel.gpu.kubeconfig_file: *removal
  register: again
- ansible.builtin.copy:
    content: "{{{{ [checked.changed, found.stat.exists, first.changed, again.changed, again.kept] | to_json }}}}"
    dest: "{folder}/removed.json"
"""


def test_the_file_is_removed_once(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "admin.conf"
    path.write_text(kubeconfig(f"https://{SERVER}"))
    known = {"path": str(path), "connection": {"kubeconfig": yaml.safe_load(kubeconfig(f"https://{SERVER}"))}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"alpha": known}}}))
    tasks = REMOVAL.format(folder=tmp_path)
    code, output = plays.play(collections, tmp_path, tasks, "-vvv", "--diff", hosts="hosts.yml")
    assert code == 0, output
    assert json.loads((tmp_path / "removed.json").read_text()) == [True, True, True, False, ""]
    assert not path.exists() and not [secret for secret in SECRETS if secret in output]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (kubeconfig("https://api.other.com:6443"), "not the kubeconfig of the single server"),
        (kubeconfig(f"https://{SERVER}").replace("a2V5", "b3RoZXI="), "its credentials are not those"),
        ("what somebody else has written", "not the kubeconfig of the single server"),
        # With certificates of a router that has others by now.
        (kubeconfig(f"https://{SERVER}").replace("certificate-authority-data: ", "certificate-authority-data: QQ"), ""),
    ],
)
def test_a_file_of_somebody_else_is_not_removed(tmp_path: pathlib.Path, text: str, why: str) -> None:
    path = tmp_path / "admin.conf"
    path.write_text(text)
    found = kept(path, yaml.safe_load(kubeconfig(f"https://{SERVER}")), SERVER)
    assert found == why if not why else why in str(found)
