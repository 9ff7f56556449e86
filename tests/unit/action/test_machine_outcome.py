# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outcomes of a role on machines, and the block that ends the run, by real runs with a small role: whatever a task fails with is told once more, at the end."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import jsonschema
import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit import programs
from ansible_collections.hwaccel.gpu.tests.unit.action import plays

#: What the role does on each machine, in the order of the batches: five machines, one whose batch fails as a whole, and one after it.
TASKS = """
- name: Plan
  ansible.builtin.set_fact:
    pretend_predicted: ["write /etc/{{ inventory_hostname }}"]
- name: Refuse
  ansible.builtin.fail:
    msg: ["one is wrong. Next: mend it", "two is wrong. Next: mend it too"]
  when: inventory_hostname == 'lists'
- name: Write credentials
  ansible.builtin.command:
    argv: [sh, -c, "echo planted >&2; exit 1"]
  no_log: true
  when: inventory_hostname == 'hides'
- name: Run one after the other
  ansible.builtin.command:
    argv: [sh, -c, "{{ item }}"]
  loop: ["exit 0", "echo the disk is full >&2; exit 3"]
  changed_when: false
  vars:
    undefined_by_then: "{{ nobody_defines_this }}"
  when: inventory_hostname in ['loops', 'alone']
- name: Lose the connection
  ansible.builtin.ping:
  vars:
    ansible_connection: ssh
    ansible_ssh_executable: /bin/false
  when: inventory_hostname == 'loses'
"""
HOSTS = ("fine", "lists", "hides", "loops", "loses", "alone", "waits")
PLAY = """
- hosts: all
  gather_facts: false
  serial: [5, 1, 1]
  tasks:
    - ansible.builtin.import_tasks: "{root}/playbooks/tasks/machines.yml"
      vars: &role {{hwaccel_machines_role: pretend, hwaccel_machines_part: "{{{{ part }}}}"}}
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.import_tasks: "{root}/playbooks/tasks/machines_summary.yml"
      vars: *role
"""


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The collection with one role more."""
    base = plays.collection_with(tmp_path_factory.mktemp("collections"), {}, {})
    here = base / "ansible_collections" / "hwaccel" / "gpu"
    (here / "plugins" / "modules").rmdir()
    (here / "plugins" / "modules").symlink_to(plays.ROOT / "plugins" / "modules")
    for part in ("main", "preflight"):
        path = here / "roles" / "pretend" / "tasks" / f"{part}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TASKS, encoding="utf-8")
    return base


def run(
    collections: pathlib.Path, folder: pathlib.Path, part: str, hosts: tuple[str, ...] = HOSTS
) -> tuple[int, str, dict[str, dict[str, object]]]:
    (folder / "play.yml").write_text(PLAY.format(root=plays.ROOT), encoding="utf-8")
    inventory = {
        "all": {
            "hosts": {
                name: {"ansible_connection": "local", "ansible_python_interpreter": sys.executable} for name in hosts
            }
        }
    }
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory, sort_keys=False), encoding="utf-8")
    environ = programs.environment(folder) | {
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_NOCOLOR": "1",
        "HOME": str(folder),
    }
    given = ["-e", f"part={part}", "-e", f"hwaccel_summary_file={folder}/summary.json"]
    command = [str(plays.PROGRAM), "-i", "hosts.yml", *given, "play.yml"]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    written = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    jsonschema.validate(written, json.loads((plays.ROOT / "docs" / "summary.schema.json").read_text(encoding="utf-8")))
    return done.returncode, done.stdout + done.stderr, written["machines"]


def test_whatever_fails_is_told_at_the_end(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    code, output, machines = run(collections, tmp_path, "main")
    # As Ansible itself does where it has lost a machine.
    assert code == 4, output[-3000:]
    assert {name: one["state"] for name, one in machines.items()} == {
        "fine": "done",
        "lists": "failed",
        "hides": "failed",
        "loops": "failed",
        "loses": "lost",
        "alone": "failed",
        "waits": "not begun",
    }
    block = output.partition("TASK [Summary | Show the result]")[2].partition("TASK [")[0]
    assert block.splitlines()[1] == "7 machines: 4 failed, 1 lost, 1 not begun; 1 machine changed"
    assert "  lists:\n    one is wrong\n      Next: mend it\n    two is wrong\n      Next: mend it too\n" in block
    assert (
        " non-zero return code: the disk is full\n      Next: correct what the task 'Run one after the other'" in block
    )
    assert "  loops, alone:\n" in block
    assert "  hides:\n    the task 'Write credentials' failed, and its result is not shown" in block
    assert "planted" not in output and "planted" not in json.dumps(machines)
    assert "  loses:\n    the connection to the machine was lost during the run\n      Next: verify" in block
    assert "  waits: all machines of an earlier batch failed\n" in block
    assert machines["fine"]["changes"] == ["write /etc/fine"]
    ended = output.partition("TASK [Summary | Fail if there are problems]")[2]
    assert "5 machines have failed: lists, hides, loops, loses, alone. Next: correct" in ended


def test_preflight_reaches_machines_after_a_batch_of_which_all_failed(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    code, output, machines = run(collections, tmp_path, "preflight")
    assert code == 4 and machines["waits"]["state"] == "done", output[-3000:]


def test_a_run_on_which_all_is_well_succeeds(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    code, output, machines = run(collections, tmp_path, "main", ("fine", "well"))
    assert (code, [one["succeeded"] for one in machines.values()]) == (0, [True, True]), output[-3000:]
    assert "All 2 machines are configured; 2 machines changed" in output


#: The load balancer of the first cluster fails. The second cluster has one that is well.
PHASES = """
- hosts: gpu_clusters
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        hwaccel_phase_machines:
          load_balancer: {{serves: true, hosts: "{{{{ served[inventory_hostname][0] }}}}"}}
          node_runtime: {{serves: false, hosts: "{{{{ served[inventory_hostname][1] }}}}"}}
        # As the role cluster keeps what it has done.
        cluster_openshift_progress: "{{{{ far if inventory_hostname == 'two' else {{}} }}}}"
        cluster_taken: "{{{{ ['join also: it is no member'] if inventory_hostname == 'two' else [] }}}}"
      vars:
        far: {{state: booting, phase: api, since: "2026-12-01T06:00:00Z", why: no answer, next_step: wait}}
        served: {{one: [[lists], [fine, hides]], two: [[well], [also]]}}
- hosts: lists,well
  gather_facts: false
  strategy: free
  tasks:
    - ansible.builtin.include_tasks: "{root}/playbooks/tasks/machines.yml"
      vars: {{hwaccel_machines_role: pretend, hwaccel_machines_part: main, hwaccel_phase: load_balancer}}
- hosts: fine,hides,also
  gather_facts: false
  strategy: free
  tasks:
    - ansible.builtin.include_tasks: "{root}/playbooks/tasks/machines.yml"
      vars: {{hwaccel_machines_role: pretend, hwaccel_machines_part: main, hwaccel_phase: node_runtime}}
- ansible.builtin.import_playbook: "{root}/playbooks/summary.yml"
"""


def test_a_phase_that_fails_holds_back_later_ones_of_its_cluster_only(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "play.yml").write_text(PHASES.format(root=plays.ROOT), encoding="utf-8")
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    machines = {name: {**local, "hwaccel_cluster": "one"} for name in ("lists", "fine", "hides")}
    machines |= {name: {**local, "hwaccel_cluster": "two"} for name in ("well", "also")}
    groups = {"gpu_clusters": {"hosts": {"one": local, "two": local}}, "workers": {"hosts": machines}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(groups), encoding="utf-8")
    environ = programs.environment(tmp_path) | {
        # As it will be from core 2.24 on.
        "ANSIBLE_INJECT_FACT_VARS": "false",
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_NOCOLOR": "1",
        "HOME": str(tmp_path),
    }
    command = [
        str(plays.PROGRAM), "-i", "hosts.yml", "-e", f"hwaccel_summary_file={tmp_path}/summary.json", "play.yml",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2, done.stdout[-3000:]
    written = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    jsonschema.validate(written, json.loads((plays.ROOT / "docs" / "summary.schema.json").read_text(encoding="utf-8")))
    one, two = (written["clusters"][name] for name in ("one", "two"))
    assert one["machine_faults"] == {
        "lists": [
            "load_balancer: one is wrong. Next: mend it",
            "load_balancer: two is wrong. Next: mend it too",
        ]
    }
    # What was planned there has perhaps been done in part.
    assert (one["machine_steps"], one["succeeded"]) == ([], False)
    assert two["machine_faults"] == {}
    far = {"state": "booting", "phase": "api", "since": "2026-12-01T06:00:00Z", "why": "no answer", "next_step": "wait"}
    assert two["installation"] == far and "installation" not in one
    assert two["machine_steps"] == [
        "load_balancer: well: write /etc/well",
        "node_runtime: also: write /etc/also",
        "join also: it is no member",
    ]
    assert "Machines that failed:\n  lists: load_balancer: one is wrong" in done.stdout
    assert "1 machine has failed: lists" in done.stdout
    # Nothing has run on the other machines of the cluster, although a task would fail there.
    assert "planted" not in done.stdout + done.stderr and "fatal: [hides]" not in done.stdout


#: The cluster `one` goes on without the machine `hides`, and leaves `fine` as it is.
LEFT = """
- hwaccel.gpu.machine_outcome: {role: pretend, state: done}
- hwaccel.gpu.machine_outcome: {role: pretend, state: left}
  when: inventory_hostname == 'fine'
- hwaccel.gpu.machine_outcome: {role: pretend, state: left_out, reasons: [it has no disk]}
  delegate_to: "{{ item }}"
  delegate_facts: true
  loop: [hides]
  when: inventory_hostname == 'one'
- ansible.builtin.debug:
    msg: "{{ ansible_facts.pretend_outcome.state }}: {{ ansible_facts.pretend_outcome.reasons }} {{ ansible_facts.pretend_outcome.changes }}"
"""


def test_machines_that_a_run_leaves_have_no_changes_and_those_that_it_leaves_out_a_reason(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    hosts = {name: {"pretend_predicted": [f"write /etc/{name}"]} for name in ("fine", "hides", "one")}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    environ = {"ANSIBLE_INJECT_FACT_VARS": "false"}
    code, output = plays.play(collections, tmp_path, LEFT, hosts="hosts.yml", environ=environ)
    assert code == 0, output
    assert sorted(line.strip() for line in output.splitlines() if '"msg"' in line) == [
        '"msg": "done: [] [\'write /etc/one\']"',
        '"msg": "done: [] []"',
        "\"msg\": \"failed: ['it has no disk'] ['write /etc/hides']\"",
    ]


#: The installer of a cluster fails in one of its phases, which has a later one.
OF_A_CLUSTER = """
- ansible.builtin.set_fact:
    hwaccel_phase_machines: {{bootstrap: {{serves: false, hosts: [loops]}}, cluster: {{serves: false, hosts: []}}}}
- ansible.builtin.include_tasks: "{root}/playbooks/tasks/machines.yml"
  vars: {{hwaccel_machines_role: pretend, hwaccel_machines_part: main, hwaccel_phase: "{{{{ item }}}}"}}
  loop: [bootstrap, cluster]
- ansible.builtin.debug:
    msg: "{{{{ ansible_facts.hwaccel_phase_outcomes.cluster.state }}}}; {{{{ its.state }}}}: {{{{ its.reasons }}}}"
  vars: {{its: "{{{{ ansible_facts.pretend_outcome }}}}"}}
"""


def test_a_cluster_keeps_why_it_has_failed_where_later_phases_leave_it(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    groups = {"gpu_clusters": {"hosts": {"loops": local}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(groups), encoding="utf-8")
    tasks = OF_A_CLUSTER.format(root=plays.ROOT)
    code, output = plays.play(
        collections, tmp_path, tasks, hosts="hosts.yml", environ={"ANSIBLE_INJECT_FACT_VARS": "false"}
    )
    assert code == 0, output
    (told,) = (line for line in output.splitlines() if '"msg"' in line and "held" in line)
    assert "held; failed: " in told and "the disk is full" in told, output[-3000:]
