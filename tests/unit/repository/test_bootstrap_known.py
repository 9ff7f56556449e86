# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run takes from a look at a cluster for its load balancers: Ansible evaluates the tasks of the role cluster_openshift that keep it."""

from __future__ import annotations

import json
import pathlib
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.unit.action import plays

ROLE = plays.ROOT / "roles" / "cluster_openshift"
NAME = "cluster_openshift_bootstrap"
HAS = {"state": "bootstrapped", "answers": True, "bootstrapped": True, "removable": False}
KNOWN = {"complete": True, "removable": False}
NOT_YET = {"state": "booting", "answers": False, "bootstrapped": False, "removable": False}
#: Of a machine that has been a node.
NODES = {"machines": [{"name": "master-0", "joined": True}]}
#: What was known before, the last look, what boot servers say, and what is known then.
CASES: dict[str, tuple[t.Any, dict[str, t.Any], dict[str, t.Any], t.Any]] = {
    "answers": (None, HAS, NODES, KNOWN),
    "first": (None, NOT_YET, {"machines": [{"name": "master-0", "joined": False}]}, {**KNOWN, "complete": False}),
    # The load balancer would get the bootstrap machine back, which may be gone.
    "silent": (None, NOT_YET, NODES, {}),
    "later": (KNOWN, {**NOT_YET, "state": "bootstrapping"}, {}, KNOWN),
    "away": (KNOWN, {**NOT_YET, "state": "unreachable"}, {}, KNOWN),
    "nothing": (None, {}, {}, "not set"),
}


def keeping(file: str) -> dict[str, t.Any]:
    """The task of a file that sets nothing but how far the bootstrap is."""
    tasks = yaml.safe_load((ROLE / "tasks" / file).read_text(encoding="utf-8"))
    (found,) = [one for one in tasks if list(one.get("ansible.builtin.set_fact", ())) == [NAME]]
    return dict(found)


def test_silence_of_a_cluster_that_has_had_nodes_says_nothing_of_its_bootstrap(tmp_path: pathlib.Path) -> None:
    hosts = {
        name: {"__cluster_openshift_far": far, "__cluster_openshift_evidence": evidence, "before": before}
        for name, (before, far, evidence, _expected) in CASES.items()
    }
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"gpu_clusters": {"hosts": hosts}}))
    own = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    states = {"__cluster_openshift_before_api": own["__cluster_openshift_before_api"]}
    tasks: list[dict[str, t.Any]] = [
        {"ansible.builtin.set_fact": {NAME: "{{ before }}"}, "when": "before is not none"},
        keeping("wait.yml"),
        keeping("observe.yml"),
        {
            "ansible.builtin.copy": {
                "content": f"{{{{ {NAME} | default('not set') | to_json }}}}",
                "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}.json",
            }
        },
    ]
    for task in tasks:
        when = task.get("when", [])
        task["vars"] = states
        task["when"] = ["inventory_hostname in groups.gpu_clusters", *(when if isinstance(when, list) else [when])]
    code, output = plays.play(
        plays.whole_collection(tmp_path / "collections"), tmp_path, yaml.safe_dump(tasks), hosts="hosts.yml"
    )
    assert code == 0, output[-3000:]
    found = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in CASES}
    assert found == {name: expected for name, (_before, _far, _evidence, expected) in CASES.items()}
