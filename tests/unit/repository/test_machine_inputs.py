# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid inputs of the roles on machines: all are reported at once, before a connection to a machine, without technical terms of Python or Ansible."""

from __future__ import annotations

import importlib.metadata
import json
import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inputs
from ansible_collections.hwaccel.gpu.tests.unit.inputs.bad_inputs import FORBIDDEN
from ansible_collections.hwaccel.gpu.tests.unit.repository import bad_openshift_inputs
from ansible_collections.hwaccel.gpu.tests.unit.repository.bad_machine_inputs import BAD, GOOD
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_host_variables import GIVEN as OF_MACHINES
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import TOP, run

GIVEN = {**OF_MACHINES, "cluster_openshift": bad_openshift_inputs.GIVEN}
GROUPS = {
    "load_balancer": "load_balancers",
    "dns_pxe": "boot_servers",
    "machine_boot": "workers",
    "node_runtime": "workers",
}
#: Variables that the playbooks set for the roles, from variables of machines and clusters.
OF_PLAYBOOKS = {
    "cluster_k3s": ("inventory",),
    "cluster_kubeadm": ("inventory",),
    "cluster_openshift": ("inventory", "known"),
    "load_balancer": ("clusters", "machines", "peers"),
    "dns_pxe": ("clusters", "machines", "joined"),
    "machine_boot": ("servers", "connection"),
}
#: Any dictionary is valid here, as far as its own keys are not known.
DOCUMENTS = tuple(f"cluster_openshift_{name}" for name in ("pull_secret", "install_config", "agent_config"))
#: On the oldest and the newest core one playbook is enough.
ONE_CORE = importlib.metadata.version("ansible-core").startswith("2.19.")


def failure_messages(output: str) -> dict[str, list[str]]:
    """The message of the last failure of each host."""
    found = {}
    for mark in re.finditer(r"fatal: \[([\w-]+)\]: FAILED! => (?=\{)", output):
        found[mark[1]] = json.JSONDecoder().raw_decode(output[mark.end() :])[0]["msg"]
    return found


def reported(summary: pathlib.Path) -> dict[str, list[str]]:
    """The problems of each machine, as the run has summarized them."""
    machines = json.loads(summary.read_text(encoding="utf-8"))["machines"]
    return {name: one["reasons"] for name, one in machines.items()}


def texts(role: str, given: dict[str, t.Any]) -> list[str]:
    faults = inputs.judge(role, _variables.options()[role], {f"{role}_{name}": value for name, value in given.items()})
    return [str(fault) for fault in faults]


def test_a_file_of_which_only_its_path_is_known_yet_is_no_problem() -> None:
    """Check mode and preflight of a cluster of OpenShift that the same run is going to make."""
    file = {"path": "ocp/kernel", "source": "openshift-install", "checksum": "unknown", "assumed": True}
    assert texts("dns_pxe", {"artifacts": [file], "ignitions": [file]}) == []
    assert texts("dns_pxe", {"ignitions": [{**file, "assumed": "yes"}]}), "nobody else leaves out what is needed"


def test_an_ignition_file_may_be_given_itself() -> None:
    assert texts("dns_pxe", {"ignitions": [{"path": "ocp/worker.ign", "content": "{}"}]}) == []


@pytest.mark.parametrize("role", inputs.ROLES)
def test_invalid_values_are_reported(role: str) -> None:
    assert len(BAD[role]) >= 30
    for name, value, parts in BAD[role]:
        assert f"{role}_{name}" in _variables.options()[role]
        found = texts(role, {name: value})
        assert found and all(part in " ".join(found) for part in parts), (name, value, found)
        assert all("Next: " in text and f"{role}_{name}" in text for text in found), found
        assert not re.search(FORBIDDEN, " ".join(found)), found


@pytest.mark.parametrize("role", inputs.ROLES)
def test_valid_values_are_accepted(role: str) -> None:
    for given in GOOD[role]:
        assert {f"{role}_{name}" for name in given} <= set(_variables.options()[role])
        assert texts(role, given) == []
    assert texts(role, GIVEN[role]) == []
    defaults = yaml.safe_load((TOP / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    plain = {name.removeprefix(f"{role}_"): value for name, value in defaults.items() if "{{" not in str(value)}
    assert len(plain) > 10 and texts(role, plain) == []


@pytest.mark.parametrize("role", inputs.ROLES)
def test_every_variable_of_the_role_rejects_values_of_a_wrong_type(role: str) -> None:
    """The argument specification lists them, so a new variable is covered without a change here."""
    known = {
        name: option
        for name, option in _variables.options()[role].items()
        if name.removeprefix(f"{role}_") not in ("nodes", "joined", "inventory", "known")
    }
    for name, option in known.items():
        kinds = [{"a": [1]}, [[["x"]]]] if option.get("type") != "dict" else ["words", [[1]]]
        if name in DOCUMENTS:
            kinds = kinds[1:]
        assert all(inputs.judge(role, {name: option}, {name: kind}) for kind in kinds), name
        if option.get("type") in ("int", "float", "bool"):
            assert all(inputs.judge(role, {name: option}, {name: word}) for word in ("words", "", "1 2")), name


@pytest.mark.parametrize("role", inputs.ROLES if ONE_CORE else ("dns_pxe",))
def test_a_playbook_reports_all_problems_before_it_connects_to_a_machine(tmp_path: pathlib.Path, role: str) -> None:
    """The first invalid value of each variable is used. The machine's ssh would record that it was called."""
    given: dict[str, t.Any] = {}
    for name, value, _parts in BAD[role]:
        if name in OF_PLAYBOOKS.get(role, ()):
            continue
        given.setdefault(f"{role}_{name}", value)
    called = tmp_path / "called"
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho called >> {called}\nexit 255\n", encoding="utf-8")
    ssh.chmod(0o755)
    hosts = {"bad": {"ansible_ssh_executable": str(ssh), **given}}
    if role == "machine_boot":
        # This machine is valid, and is not started either.
        bmc = {
            "bmc_address": "127.0.0.9",
            "bmc_username": "ops",
            "bmc_password": "x",
            "address": "10.0.0.11",
            "provider": "ipmi",
        }
        hosts["good"] = {f"machine_boot_{name}": value for name, value in bmc.items()}
    if role in GROUPS:
        groups: dict[str, t.Any] = {GROUPS[role]: {"hosts": hosts}}
    else:
        # Its variables are those of the cluster.
        cluster = {"bad": {"hwaccel_installer": role.removeprefix("cluster_"), "ansible_connection": "local", **given}}
        groups = {
            "gpu_clusters": {"hosts": cluster},
            "control_plane": {"hosts": {"cp1": {"ansible_ssh_executable": str(ssh)}}},
        }
    code, output = run(tmp_path, role, groups, "-e", "hwaccel_summary_file=summary.json")
    assert code == 2, output[-3000:]
    found = reported(tmp_path / "summary.json")
    for name, value in given.items():
        assert all(text in found["bad"] for text in texts(role, {name.removeprefix(f"{role}_"): value})), (
            name,
            found["bad"],
        )
    for texts_found in found.values():
        assert not re.search(FORBIDDEN, "\n".join(texts_found)), texts_found
    # Each is shown once, as lines, and never as a list of Python.
    for first in {text.partition(". Next: ")[0] for text in found["bad"]}:
        assert output.count(first) == 1, first
    assert not called.exists() and "planted" not in output
    if role == "machine_boot":
        assert found["good"] == []
        assert "Start machines" not in output


BATCHES = ("ten", -1, 0, "0%", "150%", "10 %", "1.5", True, [1, "20%"], {"a": 1}, "5 machines")


def test_batches_are_numbers_or_percentages() -> None:
    for value in BATCHES:
        found = [str(fault) for fault in inputs.batch(value, "hwaccel_boots_at_a_time")]
        assert (
            len(found) == 1
            and "is neither a number of machines nor a percentage (hwaccel_boots_at_a_time). Next: give" in found[0]
        )
        assert not re.search(FORBIDDEN, found[0])
    for value in (1, "1", "10%", "100%", 500, " 5 ", "", None, [], {}):
        assert inputs.batch(value, "") == []


WRONG_BATCHES = [
    ("node_runtime", "hwaccel_machines_at_a_time", "ten"),
    ("node_runtime", "hwaccel_machines_at_a_time", -1),
    ("machine_boot", "hwaccel_boots_at_a_time", "many"),
    ("machine_boot", "hwaccel_boots_at_a_time", ["1", "20%"]),
]


@pytest.mark.parametrize(("playbook", "name", "value"), WRONG_BATCHES if ONE_CORE else WRONG_BATCHES[:1])
def test_an_invalid_batch_is_reported_and_not_used(
    tmp_path: pathlib.Path, playbook: str, name: str, value: t.Any
) -> None:
    """It becomes the `serial` of a play, which Ansible reads before the first task."""
    hosts = {f"m{number}": {"ansible_connection": "local"} for number in range(30)}
    code, output = run(tmp_path, playbook, {"workers": {"hosts": hosts}}, "-e", json.dumps({name: value}))
    assert code == 2, output[-3000:]
    found = failure_messages(output)
    assert found and {str(text) for text in found.values()} == {
        str([str(fault) for fault in inputs.batch(value, name)])
    }
    # The default batch of machines, or the one host of the first play.
    assert len(found) == (3 if playbook == "node_runtime" else 1)
    assert not re.search(FORBIDDEN, str(found)) and "Invalid" not in output
