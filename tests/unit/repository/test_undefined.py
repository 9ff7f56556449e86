# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undefined references in variables: each playbook reports host and variable, and fails before it connects to a cluster or a machine.

Variables come from the argument specs, and playbooks from the folder, so new ones are included without a change here.
"""

from __future__ import annotations

import collections.abc as c
import http.server
import importlib.metadata
import pathlib
import threading
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_changelog import playbooks
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import EXISTING, TOP, run

PLAYBOOKS = sorted(playbooks())
#: The group whose hosts a playbook works on, where that is another than gpu_clusters.
MACHINES = {
    "node_runtime": "workers",
    "load_balancer": "load_balancers",
    "dns_pxe": "boot_servers",
    "machine_boot": "workers",
}
ROLES = sorted((path.name for path in (TOP / "roles").iterdir()), key=len, reverse=True)
#: On the oldest and the newest core one playbook is enough; testing each variable alone takes one host for each.
ONE_CORE = importlib.metadata.version("ansible-core").startswith("2.19.")
TEMPLATE = "{{ nowhere_defined }}"


class Counter:
    """Counts the requests of a run: an API server without objects, and an ssh that never connects."""

    def __init__(self, folder: pathlib.Path) -> None:
        counted = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                counted.append(self.path)
                self.send_error(404)

            do_POST = do_PATCH = do_DELETE = do_PUT = do_GET

            def log_message(self, *_given: t.Any) -> None:
                """Requests are not logged."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._connected = folder / "connected"
        self.ssh = folder / "ssh"
        self.ssh.write_text(f"#!/bin/sh\necho called >> {self._connected}\nexit 255\n", encoding="utf-8")
        self.ssh.chmod(0o755)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def connections(self) -> int:
        return len(self._connected.read_text(encoding="utf-8").split()) if self._connected.exists() else 0


@pytest.fixture
def counter(tmp_path: pathlib.Path) -> c.Iterator[Counter]:
    server = Counter(tmp_path)
    yield server
    server.server.shutdown()
    server.server.server_close()


def by_role() -> dict[str, list[str]]:
    """Names of hosts with the variables that are undefined on them: those of one role, or of the playbooks."""
    found: dict[str, list[str]] = {}
    for name in sorted(_variables.public()):
        found.setdefault(
            f"of-{next((role for role in ROLES if name.startswith(f'{role}_')), 'playbooks').replace('_', '-')}", []
        ).append(name)
    return found


def inventory(counter: Counter, hosts: dict[str, list[str]], group: str) -> dict[str, t.Any]:
    """Each cluster has its own credentials, because those of the environment are only used for a single cluster."""
    reached = {
        "hwaccel_connection": {"host": counter.url, "api_key": "none"},
        "ansible_ssh_executable": str(counter.ssh),
    }
    if group == "gpu_clusters":
        reached["ansible_connection"] = "local"
    others = (
        {}
        if group == "gpu_clusters"
        else {"gpu_clusters": {"hosts": {"valid": reached | {"ansible_connection": "local"}}}}
    )
    return {
        group: {"hosts": {host: reached | dict.fromkeys(names, TEMPLATE) for host, names in hosts.items()}},
        **others,
    }


def own_play(folder: pathlib.Path, tasks: list[dict[str, t.Any]], strategy: str = "linear") -> str:
    """The path of a playbook like one of a user."""
    path = folder / "play.yml"
    path.write_text(
        yaml.safe_dump([{"hosts": "all", "gather_facts": False, "strategy": strategy, "tasks": tasks}]),
        encoding="utf-8",
    )
    return str(path)


def check(counter: Counter, output: str, hosts: dict[str, list[str]]) -> None:
    missing = [
        (host, name)
        for host, names in hosts.items()
        for name in names
        if f"{name} of {host}: nowhere_defined is undefined. Next: define" not in output
    ]
    assert missing == [], output[-4000:]
    assert (counter.requests, counter.connections) == ([], 0)


@pytest.mark.parametrize("playbook", PLAYBOOKS if ONE_CORE else ["site"])
def test_every_playbook_reports_undefined_variables_before_the_first_request(
    tmp_path: pathlib.Path, counter: Counter, playbook: str
) -> None:
    hosts = by_role()
    assert sum(map(len, hosts.values())) > 300
    if playbook == "demo":
        # The demo creates its own cluster, so localhost has the variables.
        hosts = {"localhost": [name for names in hosts.values() for name in names]}
        given = {"all": {"hosts": {"localhost": dict.fromkeys(hosts["localhost"], TEMPLATE)}}}
    else:
        given = inventory(counter, hosts, MACHINES.get(playbook, "gpu_clusters"))
    if playbook in ("cluster_k3s", "cluster_kubeadm", "cluster_openshift"):
        server = {"hwaccel_cluster": f"of-{playbook.replace('_', '-')}", "ansible_ssh_executable": str(counter.ssh)}
        given["control_plane"] = {"hosts": {"server": server}}
    arguments = []
    if playbook == "node_runtime":
        # All hosts must be in one batch.
        hosts["of-playbooks"].remove("hwaccel_machines_at_a_time")
        arguments = ["-e", "hwaccel_machines_at_a_time=100%"]
    code, output = run(tmp_path, playbook, given, "--forks", "2", *arguments)
    assert code == 2, output
    check(counter, output, hosts)


def alone() -> list[str]:
    """Each variable that playbooks read, maybe before they check any, and one of each role: to the check those of a role are alike."""
    given = by_role()
    return [*given.pop("of-playbooks"), *(names[0] for names in given.values())]


def test_a_single_undefined_variable_stops_the_teardown(tmp_path: pathlib.Path, counter: Counter) -> None:
    names = alone() if ONE_CORE else ["hwaccel_cluster_uid", "hwaccel_connection"]
    hosts = {f"host-{number}": [name] for number, name in enumerate(names)}
    code, output = run(tmp_path, "teardown", inventory(counter, hosts, "gpu_clusters"), "--forks", "2")
    assert code == 2, output
    check(counter, output, hosts)
    assert output.count("fatal: [host-") == len(hosts)


@pytest.mark.parametrize(("name", "arguments"), [("hwaccel_connection", ()), ("hwaccel_cluster_uid", ("--check",))])
def test_the_cluster_of_the_environment_is_not_used_instead(
    tmp_path: pathlib.Path, counter: Counter, name: str, arguments: tuple[str, ...]
) -> None:
    """This reproduces a defect: with one cluster the environment selected it, and an undefined uid matched any cluster."""
    environment = {"K8S_AUTH_HOST": counter.url, "K8S_AUTH_API_KEY": "none"}
    code, output = run(
        tmp_path, "teardown", {"gpu_clusters": {"hosts": {"alpha": {name: "{{ staging }}"}}}}, *arguments, **environment
    )
    assert code == 2, output
    assert f"{name} of alpha: staging is undefined. Next: define staging for alpha, or remove it from {name}" in output
    assert counter.requests == []


@pytest.mark.parametrize("playbook", ["preflight", "site"] if ONE_CORE else ["preflight"])
def test_an_undefined_cluster_of_a_machine_is_reported_before_the_first_request(
    tmp_path: pathlib.Path, counter: Counter, playbook: str
) -> None:
    """These playbooks read no other variables of machines."""
    machines = {
        "worker-1": {"hwaccel_cluster": "{{ site_of_it }}", "hwaccel_bmc_password": TEMPLATE},
        "worker-2": {"hwaccel_cluster": "alpha"},
    }
    given = inventory(counter, {"alpha": [], "beta": ["hwaccel_cluster_uid"]}, "gpu_clusters") | {
        "workers": {"hosts": machines}
    }
    code, output = run(tmp_path, playbook, given)
    assert code == 2, output
    for message in (
        "hwaccel_cluster of worker-1: site_of_it is undefined. Next: define site_of_it for worker-1",
        "hwaccel_cluster_uid of beta: nowhere_defined",
    ):
        assert message in output, output[-3000:]
    assert "hwaccel_bmc_password" not in output and "of worker-2" not in output
    assert (counter.requests, counter.connections) == ([], 0)


def test_empty_values_count_as_unset(tmp_path: pathlib.Path) -> None:
    empty: list[object] = ["", None, {}, []]
    hosts = {f"host-{number}": dict.fromkeys(sorted(_variables.public()), value) for number, value in enumerate(empty)}
    code, output = run(tmp_path, own_play(tmp_path, [{"hwaccel.gpu.variables": None}]), {"all": {"hosts": hosts}})
    assert code == 0, output


@pytest.mark.parametrize("strategy", ["linear", "free"])
def test_a_role_alone_reports_all_undefined_variables_at_once(
    tmp_path: pathlib.Path, counter: Counter, strategy: str
) -> None:
    taken = {"linear": [("sandbox", "main")], "free": [("node_runtime", "teardown"), ("dns_pxe", "preflight")]}[
        strategy
    ]
    alone = {
        "hwaccel_pools": [{"name": "{{ pool }}", "selector": "{{ labels.of_it }}"}],
        "driver_version": TEMPLATE,
        "labels": {},
    }
    given = inventory(counter, {"alpha": []}, "workers") | {
        "gpu_clusters": {"hosts": {"prod": {"hwaccel_cluster_uid": TEMPLATE}}}
    }
    given["workers"]["hosts"]["alpha"] |= alone
    play = own_play(tmp_path, included(taken), strategy)
    code, output = run(tmp_path, play, given, "--limit", "alpha", "--tags", "some")
    assert code == 0, output
    for message in (
        "hwaccel_pools[0].name of alpha: pool is undefined. Next: define pool for alpha, or remove it from hwaccel_pools",
        "hwaccel_pools[0].selector of alpha: of_it is undefined in a value that it refers to. Next: correct the expression, or "
        "remove hwaccel_pools from the variables",
        "driver_version of alpha: nowhere_defined is undefined",
        "hwaccel_cluster_uid of prod: nowhere_defined is undefined",
    ):
        assert output.count(message) >= len(taken), message
    assert output.count('"msg": "refused"') == len(taken)
    assert (counter.requests, counter.connections) == ([], 0)


def included(roles: c.Iterable[tuple[str, str]]) -> list[dict[str, t.Any]]:
    """Tasks of a user for roles and entry points, each of which may fail."""
    return [
        {
            "block": [
                {"ansible.builtin.include_role": {"name": f"hwaccel.gpu.{role}", "tasks_from": entry}, "tags": ["some"]}
            ],
            "rescue": [{"ansible.builtin.debug": {"msg": "refused"}, "tags": ["some"]}],
        }
        for role, entry in roles
    ]


@pytest.mark.parametrize("name", ["driver_version", "hwaccel_pools", "hwaccel_cluster_uid"])
def test_a_role_on_clusters_alone_refuses_an_undefined_variable(
    tmp_path: pathlib.Path, counter: Counter, name: str
) -> None:
    """Ansible's validation of the role's arguments or our own: the first one reports it."""
    entries = [("driver", "main"), ("driver", "render"), ("driver", "teardown")]
    given = inventory(counter, {"alpha": [name]}, "gpu_clusters")
    code, output = run(tmp_path, own_play(tmp_path, included(entries)), given, "--tags", "some")
    assert code == 0, output
    assert output.count("'nowhere_defined' is undefined") + output.count("nowhere_defined is undefined") >= len(entries)
    assert output.count('"msg": "refused"') == len(entries)
    assert (counter.requests, counter.connections) == ([], 0)


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"cluster", "machine", "variables"}))
def test_every_role_checks_the_variables_first(role: str) -> None:
    """By a dependency, or by the first task of each of its entry points."""
    folder = TOP / "roles" / role
    dependencies = yaml.safe_load((folder / "meta" / "main.yml").read_text(encoding="utf-8"))["dependencies"]
    assert dependencies in ([], ["hwaccel.gpu.variables"])
    if dependencies:
        return
    specs = yaml.safe_load((folder / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    for entry in specs:
        first = yaml.safe_load((folder / "tasks" / f"{entry}.yml").read_text(encoding="utf-8"))[0]
        assert {"hwaccel.gpu.stage", "hwaccel.gpu.stage_plan", "hwaccel.gpu.variables"} & first.keys(), entry
        assert first["tags"] == ["always"], entry


#: Expressions and the expected message; "" means that there is no problem.
EXPRESSIONS = {
    "{{ known }}": "",
    "plain { text }": "",
    "{{ missing | default('x') }}": "",
    "{{ omit }}": "",
    "{{ known ~ missing }}": "missing is undefined",
    "https://{{ missing }}:6443": "missing is undefined",
    "{{ indirect }}": "missing is undefined",
    "{{ nested }}": "missing is undefined",
    "{{ nested.inner.part }}": "missing is undefined",
    "{{ known_map.part }}": "part is undefined in a value that it refers to",
    "{{ known_list[4] }}": "4 is undefined in a value that it refers to",
    "{{ hostvars['nobody'].x }}": "the inventory has no host nobody",
    "{{ hostvars['beta'].theirs }}": "missing is undefined",
    "{{ undef(hint='ask the platform team') }}": "something in it is undefined (ask the platform team)",
    "{{ 1 / 0 }}": "it cannot be evaluated",
    "{{ unclosed": "it cannot be evaluated",
    "{{ known | no_such_filter }}": "it cannot be evaluated",
    "{{ missing | upper }}": "missing is undefined",
    "{{ lookup('ansible.builtin.file', '/nowhere/at/all') }}": "it cannot be evaluated",
}


def test_the_undefined_part_is_named_in_any_expression(tmp_path: pathlib.Path) -> None:
    known = {
        "known": "here",
        "known_map": {},
        "known_list": [],
        "indirect": "{{ missing }}",
        "nested": {"inner": {"part": "{{ missing }}"}},
    }
    hosts = {f"host-{number}": {**known, "driver_version": text} for number, text in enumerate(EXPRESSIONS)}
    hosts["beta"] = {"theirs": "{{ missing }}"}
    _code, output = run(tmp_path, own_play(tmp_path, [{"hwaccel.gpu.variables": None}]), {"all": {"hosts": hosts}})
    for number, (text, message) in enumerate(EXPRESSIONS.items()):
        expected = f"driver_version of host-{number}: {message}" if message else f"ok: [host-{number}]"
        assert expected in output, (text, message, output)
    for technical in ("<class", "object of type", "dict object", "Traceback"):
        assert technical not in output


def misspelled_run(folder: pathlib.Path, *arguments: str) -> tuple[int, str]:
    """Roles leave facts behind, which the next role must not report."""
    given = {"gpu_clusters": {"hosts": dict.fromkeys(("one", "two"), EXISTING | {"hwaccel_max_faild": 3})}}
    return run(folder, "render", given, "-e", "driver_versoin=580.95.05", *arguments)


def test_a_misspelled_variable_is_reported_once_for_all_hosts_and_roles(tmp_path: pathlib.Path) -> None:
    code, output = misspelled_run(tmp_path)
    assert code == 0, output[-3000:]
    for message in (
        "hwaccel_max_faild has no effect: hwaccel.gpu has no variable of this name. Did you mean hwaccel_max_failed?",
        "driver_versoin has no effect: hwaccel.gpu has no variable of this name. Did you mean driver_version?",
    ):
        assert output.count(message) == 1, output[-3000:]
    assert output.count("has no effect") == 2


def test_a_strict_run_must_be_true_or_false(tmp_path: pathlib.Path) -> None:
    code, output = misspelled_run(tmp_path, "-e", "hwaccel_strict=very")
    assert code == 2, output[-3000:]
    assert "hwaccel_strict of one: 'very' is neither true nor false. Next: set it to one of them" in output


def test_a_misspelled_variable_fails_a_strict_run(tmp_path: pathlib.Path) -> None:
    code, output = misspelled_run(tmp_path, "-e", "hwaccel_strict=true")
    assert code == 2, output[-3000:]
    assert "Did you mean hwaccel_max_failed? Next: correct its name, or remove it" in output
    assert "Did you mean driver_version? Next: correct its name, or remove it" in output
