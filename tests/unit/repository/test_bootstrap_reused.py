# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the phases of site ask of the power of a bootstrap machine: Ansible evaluates the variables with which they include machine_boot."""

from __future__ import annotations

import json
import pathlib
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.unit.action import plays

PHASES = plays.ROOT / "playbooks" / "tasks" / "phases"
ASKED = ("machine_boot_role", "machine_boot_power", "machine_boot_named", "machine_boot_connection")
#: By cluster what the run has found out of its bootstrap machine.
STATES: dict[str, dict[str, t.Any]] = {
    "early": {"complete": True, "removable": False},
    "late": {"complete": True, "removable": True},
    "agent": {},
}
#: What the inventory has of them, and what the run has.
CONNECTIONS: dict[str, dict[str, t.Any]] = {
    "early": {
        "hwaccel_connection": {"kubeconfig": "that of the inventory"},
        "cluster_connection": {"kubeconfig": "that of the installation"},
    },
    "late": {"cluster_connection": {"kubeconfig": "that of the installation"}},
}


def phase(name: str) -> dict[str, t.Any]:
    """Variables of the task that includes machine_boot."""
    (task,) = yaml.safe_load((PHASES / f"{name}.yml").read_text(encoding="utf-8"))
    found: dict[str, t.Any] = task["vars"]
    return found


def asked(folder: pathlib.Path, again: bool) -> dict[str, list[t.Any]]:
    """Role, power and names that are asked for, by machine. again: in the phase bootstrap_reused."""
    machines = {f"{kind}-{cluster}": cluster for cluster in STATES for kind in ("spare", "both", "done", "worker")}
    groups: dict[str, t.Any] = {
        "gpu_clusters": {
            name: {"cluster_openshift_bootstrap": state} | CONNECTIONS[name] if state else {}
            for name, state in STATES.items()
        },
        "bootstrap": {name: {"hwaccel_cluster": of} for name, of in machines.items() if not name.startswith("worker")},
        "workers": {name: {"hwaccel_cluster": of} for name, of in machines.items() if not name.startswith("spare")},
        # As dns_pxe has found out: the files of `done` were fetched.
        "boot_servers": {
            "pxe": {"__machine_looked": {"plan": {"writes": [["late", "both-late"], ["early", "both-early"]]}}}
        },
    }
    (folder / "hosts.yml").write_text(yaml.safe_dump({name: {"hosts": hosts} for name, hosts in groups.items()}))
    variables = phase("machine_boot") | (phase("bootstrap_reused") if again else {})
    task = {
        "ansible.builtin.copy": {
            "content": "{{ found | to_json }}",
            "dest": f"{folder}/{{{{ inventory_hostname }}}}.json",
        },
        "vars": {**variables, "hwaccel_lone_cluster": "", "found": [f"{{{{ {name} }}}}" for name in ASKED]},
        "when": "inventory_hostname in groups.bootstrap + groups.workers",
    }
    code, output = plays.play(
        plays.whole_collection(folder / "collections"), folder, yaml.safe_dump([task]), hosts="hosts.yml"
    )
    assert code == 0, output[-3000:]
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in machines}


def without_connection(found: dict[str, list[t.Any]]) -> dict[str, list[t.Any]]:
    return {name: values[:3] for name, values in found.items()}


def test_the_cluster_is_asked_for_its_nodes_that_has_answered_for_the_first_time(tmp_path: pathlib.Path) -> None:
    """Otherwise the bootstrap machine stays on, as it might run a node."""
    found = {name: values[3] for name, values in asked(tmp_path, again=False).items()}
    assert found["spare-late"] == {"kubeconfig": "that of the installation"}
    assert found["spare-early"] == {"kubeconfig": "that of the inventory"}
    assert found["spare-agent"] == {}


def test_a_bootstrap_machine_is_switched_off_and_one_that_is_a_worker_too_is_not(tmp_path: pathlib.Path) -> None:
    found = without_connection(asked(tmp_path, again=False))
    assert found["spare-early"] == ["bootstrap", "on", []] == found["both-early"] == found["spare-agent"]
    assert found["spare-late"] == ["bootstrap", "off", []]
    assert found["both-late"] == ["worker", "on", []] == found["done-late"] == found["worker-early"]


def test_it_is_started_anew_by_name_as_long_as_it_has_not_fetched_the_file_of_a_worker(tmp_path: pathlib.Path) -> None:
    found = without_connection(asked(tmp_path, again=True))
    assert found["both-late"] == ["worker", "cycle", ["both-late"]]
    assert found["done-late"] == ["worker", "on", []]
    # The boot server wants it to be installed as a bootstrap machine.
    assert found["both-early"] == ["bootstrap", "on", []]
