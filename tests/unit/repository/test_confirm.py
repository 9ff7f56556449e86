# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Teardown of a cluster that only environment variables select, on an API server that records its requests."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit.api import fake
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import TOP, run

UID = "2a62dddd-a928-4c56-bbe1-dfc0e441394a"
ROLES = ("monitoring", "gpu_validation", "device_plugin", "driver", "feature_discovery")


def answer(request: fake.ReceivedRequest) -> fake.Answer:
    if request.path == "/version":
        return fake.Answer(body={"gitVersion": "v1.36.4"})
    if request.path == "/api/v1/namespaces/kube-system":
        return fake.Answer(body={"metadata": {"name": "kube-system", "uid": UID}})
    if request.path == "/api/v1/nodes":
        return fake.Answer(body={"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "gpu-0"}}]})
    if request.path == "/apis":
        return fake.Answer(body={"kind": "APIGroupList", "groups": []})
    return fake.status(404, "not here", "NotFound")


@pytest.fixture
def server() -> t.Iterator[fake.Fake]:
    api = fake.Fake()
    api.answers = answer
    yield api
    api.close()


def teardown(folder: pathlib.Path, server: fake.Fake, *arguments: str, name: str = "teardown") -> tuple[int, str]:
    return run(
        folder,
        name,
        {"gpu_clusters": {"hosts": {"prod": {}}}},
        *arguments,
        K8S_AUTH_HOST=server.host,
        K8S_AUTH_API_KEY="secret-token",
    )


def test_teardown_without_confirmation_fails_and_names_the_command_that_confirms(
    tmp_path: pathlib.Path, server: fake.Fake
) -> None:
    code, output = teardown(tmp_path, server)
    assert code == 2, output
    assert (
        "this cluster was selected by K8S_AUTH_HOST of the environment, not by the inventory, so nothing was deleted (prod)"
        in output
    )
    assert (
        f"the cluster with uid {UID}, kubernetes v1.36.4, 1 node, API server {server.host}, connected with the given options"
        in output
    )
    assert f"run ansible-playbook -i {tmp_path}/inventory.yml hwaccel.gpu.teardown -e hwaccel_confirm={UID}" in output
    assert "secret-token" not in output
    assert {request.method for request in server.received} == {"GET"}


@pytest.mark.parametrize("arguments", [(), ("--check",)])
def test_teardown_with_a_wrong_confirmation_fails(
    tmp_path: pathlib.Path, server: fake.Fake, arguments: tuple[str, ...]
) -> None:
    code, output = teardown(tmp_path, server, "-e", "hwaccel_confirm=2a62dddd", *arguments)
    assert code == 2, output
    assert (
        f"hwaccel_confirm names another cluster, so nothing was deleted (prod): it is 2a62dddd, and this is the cluster with uid {UID}"
        in output
    )
    assert {request.method for request in server.received} == {"GET"}


@pytest.mark.parametrize("name", ["hwaccel_only_pools", "hwaccel_only_nodes"])
def test_a_teardown_that_is_meant_for_a_part_of_the_cluster_is_refused(
    tmp_path: pathlib.Path, server: fake.Fake, name: str
) -> None:
    code, output = teardown(tmp_path, server, "-e", f"hwaccel_confirm={UID}", "-e", f"{name}=training")
    assert code == 2, output
    assert f"{name} cannot restrict this playbook, which works on the whole cluster. Next: remove it" in output
    assert "1 problem found; nothing was changed" in output
    assert server.received == []


def test_roles_alone_use_the_same_variable_for_confirmation(tmp_path: pathlib.Path, server: fake.Fake) -> None:
    tasks = [
        {
            "block": [{"ansible.builtin.include_role": {"name": f"hwaccel.gpu.{role}", "tasks_from": "teardown"}}],
            "rescue": [{"ansible.builtin.debug": {"msg": f"{role} refused"}}],
        }
        for role in ROLES
    ]
    variables = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    play = {"hosts": "all", "gather_facts": False, "connection": "local", "vars": variables, "tasks": tasks}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    _code, output = teardown(tmp_path, server, name=str(tmp_path / "play.yml"))
    assert output.count(f"run again with -e hwaccel_confirm={UID}") >= len(ROLES)
    assert [role for role in ROLES if f"{role} refused" not in output] == []
    assert {request.method for request in server.received} == {"GET"}


def test_every_role_on_clusters_that_deletes_objects_confirms_first() -> None:
    """Before them only variables are checked. Roles on machines need no confirmation, because the inventory names each host; those that
    install clusters remove whole ones, and ask for a confirmation always (role cluster). A new role on clusters is found by its teardown and added to ROLES.
    """
    texts = {path.parents[1].name: path.read_text(encoding="utf-8") for path in TOP.glob("roles/*/tasks/teardown.yml")}
    confirming = {
        role for role, text in texts.items() if "hwaccel.gpu.cluster_confirm" in "".join(text.split("- name: ")[1:3])
    }
    assert (
        confirming
        == texts.keys()
        - {
            "cluster",
            "cluster_k3s",
            "cluster_kubeadm",
            "cluster_openshift",
            "dns_pxe",
            "load_balancer",
            "machine_boot",
            "node_runtime",
            "sandbox",
        }
        == set(ROLES)
    )
    # It removes machines only once they are in cluster_confirmed, which this sets by the confirmation.
    assert "__cluster_confirm" in texts["cluster"] and "command" not in texts["cluster"]


def test_every_machine_has_recorded_a_removal_before_one_of_them_leaves() -> None:
    """This reproduces a defect: a run that was killed once the servers were gone was not continued by its own confirmation, the UID."""
    plays = yaml.safe_load((TOP / "playbooks" / "installers_run.yml").read_text(encoding="utf-8"))
    parts = [task.get("vars", {}).get("hwaccel_machines_part") for play in plays for task in play.get("tasks", ())]
    assert parts.index("mark") + 1 == parts.index("leave")


@pytest.mark.parametrize(("role", "begins"), [("cluster_kubeadm", "restore"), ("cluster_k3s", "recover")])
def test_a_restoration_acts_only_where_it_is_confirmed(role: str, begins: str) -> None:
    """It replaces the data of a cluster. Everything that writes is in recover.yml, which the filter lets begin by the confirmation."""
    folder = TOP / "roles" / role / "tasks"
    tasks = yaml.safe_load((folder / "restore.yml").read_text(encoding="utf-8"))
    scripts = [one for one in tasks if "ansible.builtin.script" in one]
    assert [one["ansible.builtin.script"]["cmd"].split()[1] for one in scripts] == ["look", "verify"]
    assert {next(key for key in one if "." in key) for one in tasks} <= {
        "ansible.builtin.script",
        "ansible.builtin.set_fact",
        "ansible.builtin.include_tasks",
        "hwaccel.gpu.show",
    }
    text = (folder / f"{begins}.yml").read_text(encoding="utf-8")
    assert f"if {role}_restoration.acts and not ansible_check_mode" in text
