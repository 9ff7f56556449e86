# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks over inventories that have no cluster for them, as a user starts them: nothing is done, so they must not end green."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

import ansible_collections.hwaccel.gpu as collection

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
TOP = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOKS = ("preflight", "site", "feature_discovery", "driver", "device_plugin", "monitoring", "render", "teardown")
NO_GROUP = {"workers": {"hosts": {"machine": {}}}}
#: What somebody else brings needs no fleet, so that rendering it takes a second and no cluster.
OTHERS = {f"{role}_provider": "existing" for role in ("feature_discovery", "driver", "device_plugin")}
WITH_GROUP = {**NO_GROUP, "gpu_clusters": {"hosts": {"one": OTHERS, "two": OTHERS}}}


def run(folder: pathlib.Path, name: str, groups: dict[str, t.Any], *arguments: str, **environment: str) -> tuple[int, str]:
    """name: of a playbook of the collection, or the path of another."""
    (folder / "inventory.yml").write_text(yaml.safe_dump(groups), encoding="utf-8")
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_"))}
    # As a shell sets it.
    environ |= {"PWD": str(folder)}
    environ |= {"ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_HOME": str(folder / "ansible"), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "4000", **environment}
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", name if "/" in name else f"hwaccel.gpu.{name}", *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    return done.returncode, " ".join(done.stdout.split())


def first_play(path: pathlib.Path) -> dict[str, t.Any]:
    entry = yaml.safe_load(path.read_text(encoding="utf-8"))[0]
    return first_play(path.parent / imported) if (imported := entry.get("ansible.builtin.import_playbook", "")) else entry


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_the_first_play_looks_for_clusters(name: str) -> None:
    assert first_play(TOP / "playbooks" / f"{name}.yml") == first_play(TOP / "playbooks" / "clusters.yml")


@pytest.mark.parametrize("path", sorted((TOP / "playbooks").glob("*.yml")), ids=lambda path: path.stem)
def test_the_hosts_of_the_first_play_are_found_by_a_filter_of_ours(path: pathlib.Path) -> None:
    """summary.yml is imported by others alone, after their plays."""
    if path.stem != "summary":
        assert "| hwaccel.gpu." in first_play(path)["hosts"]


#: Writes down each process that loads the file.
WATCHED = """import os, sys
def seen(event, given):
    if event == "exec" and getattr(given[0], "co_filename", "").endswith("plugins/filter/as_list.py"):
        with open(os.environ["SEEN"], "a") as file:
            print(os.getpid(), file=file)
sys.addaudithook(seen)
"""


def test_filters_are_loaded_once_and_not_by_each_task(tmp_path: pathlib.Path) -> None:
    """Ansible loads all of a collection's filters with the first, which costs each worker half a second where the process that forks it has not."""
    (tmp_path / "sitecustomize.py").write_text(WATCHED, encoding="utf-8")
    seen = tmp_path / "seen"
    code, output = run(tmp_path, "render", WITH_GROUP, "-e", f"hwaccel_render_to={tmp_path}/rendered", PYTHONPATH=str(tmp_path), SEEN=str(seen))
    assert code == 0, output
    assert len(seen.read_text(encoding="utf-8").split()) == 1


@pytest.mark.parametrize(
    ("groups", "arguments", "told"),
    [
        (NO_GROUP, (), "the inventory has no host in the group gpu_clusters. Next: make each cluster a host of that group"),
        ({}, (), "the inventory has no host in the group gpu_clusters"),
        (WITH_GROUP, ("--limit", "machine"), "the limit of this run leaves none of one, two"),
    ],
)
def test_a_run_without_a_cluster_is_refused(tmp_path: pathlib.Path, groups: dict[str, t.Any], arguments: tuple[str, ...], told: str) -> None:
    code, output = run(tmp_path, "site", groups, *arguments)
    assert code == 2, output
    assert told in output


@pytest.mark.parametrize(("arguments", "done"), [((), ["one", "two"]), (("--limit", "one,machine"), ["one"])])
def test_clusters_are_worked_on_with_and_without_a_limit(tmp_path: pathlib.Path, arguments: tuple[str, ...], done: list[str]) -> None:
    code, output = run(tmp_path, "render", WITH_GROUP, "-e", f"hwaccel_render_to={tmp_path}/rendered", *arguments)
    assert code == 0, output
    assert sorted(path.name for path in (tmp_path / "rendered").iterdir()) == done


def test_a_run_without_a_machine_is_refused_and_warns_of_nothing(tmp_path: pathlib.Path) -> None:
    code, output = run(tmp_path, "node_runtime", {"gpu_clusters": WITH_GROUP["gpu_clusters"]})
    assert code == 2, output
    assert "There is no machine to work on: the groups control_plane, workers and edge_nodes have no host" in output
    assert "WARNING" not in output
