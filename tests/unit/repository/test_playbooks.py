# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks on inventories without a cluster, as a user starts them: they do nothing, so they must fail."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.tests.unit import programs

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
TOP = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOKS = ("preflight", "site", "feature_discovery", "driver", "device_plugin", "monitoring", "render", "teardown")
NO_GROUP = {"workers": {"hosts": {"machine": {}}}}
#: Existing deployments need no fleet, so that rendering takes a second and no cluster.
EXISTING = {f"{role}_provider": "existing" for role in ("feature_discovery", "driver", "device_plugin")}
WITH_GROUP = {**NO_GROUP, "gpu_clusters": {"hosts": {"one": EXISTING, "two": EXISTING}}}


def run(
    folder: pathlib.Path, name: str, groups: dict[str, t.Any], *arguments: str, **environment: str
) -> tuple[int, str]:
    """`name` is a playbook of the collection, or the path of another playbook."""
    (folder / "inventory.yml").write_text(yaml.safe_dump(groups), encoding="utf-8")
    environ = programs.environment(folder, "K8S_AUTH_")
    # A shell sets PWD to the working directory.
    environ |= {"PWD": str(folder)}
    environ |= {"ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "4000", **environment}
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        "inventory.yml",
        name if "/" in name else f"hwaccel.gpu.{name}",
        *arguments,
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, " ".join(done.stdout.split())


def first_play(path: pathlib.Path) -> dict[str, t.Any]:
    entry = yaml.safe_load(path.read_text(encoding="utf-8"))[0]
    return (
        first_play(path.parent / imported) if (imported := entry.get("ansible.builtin.import_playbook", "")) else entry
    )


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_the_first_play_checks_that_there_are_clusters(name: str) -> None:
    assert first_play(TOP / "playbooks" / f"{name}.yml") == first_play(TOP / "playbooks" / "clusters.yml")


@pytest.mark.parametrize("path", sorted((TOP / "playbooks").glob("*.yml")), ids=lambda path: path.stem)
def test_the_hosts_of_the_first_play_are_selected_by_a_filter_of_the_collection(path: pathlib.Path) -> None:
    """Playbooks that others import after their plays are excepted."""
    if path.stem not in ("stages", "summary", "phase", "machines_plan"):
        assert "| hwaccel.gpu." in first_play(path)["hosts"]


#: Records each process that loads the file. A sitecustomize that the tests already use is loaded after it.
WATCHED = """import os, sys
sys.path.remove(os.path.dirname(__file__))
del sys.modules["sitecustomize"]
try:
    import sitecustomize
except ImportError:
    pass
def seen(event, given):
    if event == "exec" and getattr(given[0], "co_filename", "").endswith("plugins/filter/as_list.py"):
        with open(os.environ["SEEN"], "a") as file:
            print(os.getpid(), file=file)
sys.addaudithook(seen)
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of a run on all clusters: rendered objects, and the processes that loaded filters."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "sitecustomize.py").write_text(WATCHED, encoding="utf-8")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    code, output = run(
        folder,
        "render",
        WITH_GROUP,
        "-e",
        f"hwaccel_render_to={folder}/rendered",
        PYTHONPATH=path,
        SEEN=str(folder / "seen"),
    )
    assert code == 0, output
    return folder


def test_filters_are_loaded_once_per_run(watched: pathlib.Path) -> None:
    """Ansible loads all filters of a collection with the first one. If the parent process has not loaded them, each worker spends half a second on it."""
    assert len((watched / "seen").read_text(encoding="utf-8").split()) == 1


@pytest.mark.parametrize(
    ("groups", "arguments", "message"),
    [
        (
            NO_GROUP,
            (),
            "the inventory has no host in the group gpu_clusters. Next: add each cluster as a host to that group",
        ),
        ({}, (), "the inventory has no host in the group gpu_clusters"),
        (WITH_GROUP, ("--limit", "machine"), "the limit of this run excludes all of one, two"),
    ],
)
def test_a_run_without_a_cluster_fails(
    tmp_path: pathlib.Path, groups: dict[str, t.Any], arguments: tuple[str, ...], message: str
) -> None:
    code, output = run(tmp_path, "site", groups, *arguments)
    assert code == 2, output
    assert message in output


def rendered(folder: pathlib.Path) -> list[str]:
    """Clusters for which objects were rendered."""
    return sorted(path.name for path in (folder / "rendered").iterdir())


def test_objects_of_all_clusters_are_rendered(watched: pathlib.Path) -> None:
    assert rendered(watched) == ["one", "two"]


def test_only_clusters_within_the_limit_are_rendered(tmp_path: pathlib.Path) -> None:
    """The first stage alone shows which clusters are rendered."""
    arguments = (
        "-e",
        f"hwaccel_render_to={tmp_path}/rendered",
        "-e",
        "hwaccel_stages=feature_discovery",
        "--limit",
        "one,machine",
    )
    code, output = run(tmp_path, "render", WITH_GROUP, *arguments)
    assert code == 0, output
    assert rendered(tmp_path) == ["one"]


def test_examples_of_clusters_that_are_made_are_rendered_for_their_distributions(tmp_path: pathlib.Path) -> None:
    examples = COLLECTIONS / "ansible_collections/hwaccel/gpu/examples/inventories"
    names = ("kubeadm-ha", "k3s-ha-airgap", "jetson-edge")
    inventories = [f"--inventory={examples / name / 'hosts.yml'}" for name in names]
    code, output = run(tmp_path, "render", NO_GROUP, *inventories, "-e", f"hwaccel_render_to={tmp_path}/rendered")
    assert code == 0, output
    assert rendered(tmp_path) == ["edge", "plant", "production"]
    classes = {
        path.parent.name for path in tmp_path.glob("rendered/*/driver.yaml") if "kind: RuntimeClass" in path.read_text()
    }
    # K3s brings that of its clusters.
    assert classes == {"production"}


def test_a_run_without_a_machine_fails_without_warnings(tmp_path: pathlib.Path) -> None:
    code, output = run(tmp_path, "node_runtime", {"gpu_clusters": WITH_GROUP["gpu_clusters"]})
    assert code == 2, output
    assert "There is no machine: the groups control_plane, workers and edge_nodes have no host" in output
    assert "WARNING" not in output


def test_what_becomes_of_a_machine_that_is_installed_first_is_kept(tmp_path: pathlib.Path) -> None:
    """It does not answer at first, and is assumed to be empty. What a later phase comes to there counts, and not the assumption."""
    assumes = yaml.safe_load((TOP / "playbooks" / "tasks" / "awaited.yml").read_text(encoding="utf-8"))
    outcome = "hwaccel.gpu.machine_outcome"
    fails = {"ansible.builtin.fail": {"msg": "no answer"}}
    unanswered = [
        {"block": [fails], "rescue": [{outcome: {"role": role, "state": "failed"}}]}
        for role in ("node_runtime", "cluster_kubeadm")
    ]
    refuses = {
        "ansible.builtin.set_fact": {
            "__machine_looked": {},
            "cluster_kubeadm_faults": [{"text": "it has no default route"}],
        }
    }
    states = " ".join(
        f"{{{{ ansible_facts.{name}.state }}}}"
        for name in ("cluster_kubeadm_outcome", "hwaccel_phase_outcomes.cluster", "hwaccel_phase_outcomes.node_runtime")
    )
    tasks = [
        {"ansible.builtin.set_fact": {"__machine_looked": {"away": True, "msg": "w1 cannot be reached: it is off"}}},
        *unanswered,
        *assumes,
        refuses,
        {outcome: {"role": "cluster_kubeadm", "state": "done", "phase": "cluster"}},
        {"ansible.builtin.debug": {"msg": f"{states} {{{{ hwaccel_awaited }}}}"}},
    ]
    play = {
        "hosts": "w1",
        "gather_facts": False,
        "connection": "local",
        "vars": {"hwaccel_machines_role": "cluster_kubeadm"},
        "tasks": tasks,
    }
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
    one = {"hwaccel_installer": "kubeadm"}
    groups = {"gpu_clusters": {"hosts": {"one": one}}, "workers": {"hosts": {"w1": {"hwaccel_cluster": "one"}}}}
    code, output = run(tmp_path, str(tmp_path / "play.yml"), groups)
    assert code == 0, output
    assert "failed failed done w1 cannot be reached: it is off" in output, output


def test_a_machine_that_is_lost_after_it_was_reached_fails_with_the_reason(tmp_path: pathlib.Path) -> None:
    """It is pinged once in a run. The task that observes it hides its result."""
    lost = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    tasks = [
        {"ansible.builtin.set_fact": {"__machine_looked": {"reached": True}}},
        {"ansible.builtin.include_role": {"name": "hwaccel.gpu.node_runtime", "tasks_from": "preflight"}},
    ]
    play = {"hosts": "w1", "gather_facts": False, "tasks": tasks}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
    groups = {**WITH_GROUP, "workers": {"hosts": {"w1": lost}}}
    code, output = run(tmp_path, str(tmp_path / "play.yml"), groups)
    assert code == 2, output
    text = " ".join(output.split())
    assert (
        "w1 cannot be reached any more: Failed to connect to the host via ssh: ssh: connect to host 127.0.0.1 port 1"
        in text
    ), output
    assert "could not be observed" not in text, output


def test_each_play_reads_the_files_of_the_variables_that_it_uses() -> None:
    """A task whose condition is rarely true shows only then that a variable is not there: the second run on machines that were started and installed."""
    folder = TOP / "playbooks"
    defined = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (folder / "vars").glob("*.yml")}
    faults = []
    for path in sorted(folder.glob("*.yml")):
        for play in yaml.safe_load(path.read_text(encoding="utf-8")):
            if "hosts" not in play:
                continue
            read = [file for file in defined if f"vars/{file}" in play.get("vars_files", [])]
            known = {*play.get("vars", {}), *(name for file in read for name in defined[file])}
            text = yaml.safe_dump({key: value for key, value in play.items() if key not in ("vars", "vars_files")})
            faults += [
                f"{path.name}: {play['name']}: {name} is in vars/{file}"
                for file, names in defined.items()
                for name in names
                if name not in known and name.startswith("hwaccel_") and re.search(rf"(?<![.\w]){name}\b", text)
            ]
    assert not faults


def test_plays_that_delegate_to_machines_leave_their_python_alone() -> None:
    """vars/cluster.yml sets the Python of modules that run on the controller. A play's variable is also that of the hosts to which its tasks are delegated."""
    for path in sorted((TOP / "playbooks").glob("*.yml")):
        for play in yaml.safe_load(path.read_text(encoding="utf-8")):
            files = play.get("vars_files", [])
            assert not {"vars/cluster.yml", "vars/installers.yml"} <= set(files), f"{path.name}: {play['name']}"
            for task in play.get("tasks", ()) if "vars/cluster.yml" not in files else ():
                if "group/hwaccel.gpu.cluster" in task.get("module_defaults", {}):
                    assert "ansible_python_interpreter" in task["vars"], f"{path.name}: {task['name']}"


def test_outcomes_of_machines_are_read_as_facts() -> None:
    """They are facts of an action, which core 2.20 and later warn of where they are read as variables. The role machine_boot sets one itself."""
    name = r"(?:cluster_kubeadm|dns_pxe|load_balancer|node_runtime)_outcome\b|hwaccel_phase_outcomes\b|'_outcome'"
    faults = []
    for path in [*(TOP / "playbooks").rglob("*.yml"), *(TOP / "roles").glob("*/*/*.yml")]:
        if path.parent.name == "meta" or path.name == "public.yml":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = [
                one
                for one in re.finditer(name, line)
                if not re.search(r"ansible_facts(\.|\[[^]]*)$", line[: one.start()])
            ]
            faults += [f"{path.relative_to(TOP)}:{number}: {line.strip()}" for _one in found]
    assert faults == []
