# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tags select stages where a playbook has stages, and are refused everywhere else: a run never succeeds because a tag left everything out."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import EXISTING, TOP, run

FILES = {path.stem: path for path in sorted((TOP / "playbooks").glob("*.yml"))}
SHARED = yaml.safe_load((TOP / "playbooks" / "vars" / "cluster.yml").read_text(encoding="utf-8"))
STAGES: list[str] = SHARED["hwaccel_known_stages"]
#: One host in each group, of which none is reached.
GROUPS = {name: {"hosts": {name: {"ansible_connection": "local"}}} for name in SHARED["hwaccel_machine_groups"]} | {
    "gpu_clusters": {"hosts": {"one": EXISTING}}
}


def plays(name: str) -> list[dict[str, t.Any]]:
    return yaml.safe_load(FILES[name].read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_every_play_runs_with_every_tag(name: str) -> None:
    assert [play["name"] for play in plays(name) if "hosts" in play and play.get("tags") != ["always"]] == []


#: Playbooks that only others import, after a first play.
LATER = {
    "summary",
    "stages",
    "demo",
    "installers",
    "installers_plan",
    "installers_alone",
    "installers_run",
    "machines_plan",
    "openshift_state",
    "phase",
    "stages_plan",
}


@pytest.mark.parametrize("name", sorted(FILES.keys() - LATER))
def test_every_playbook_refuses_tags_that_do_not_exist_in_its_first_play(name: str) -> None:
    first, known = plays(name)[0], None
    while imported := first.get("ansible.builtin.import_playbook"):
        known = first.get("vars", {}).get("hwaccel_playbook_tags")
        first = plays(imported.removesuffix(".yml"))[0]
    if first == plays("clusters")[0]:
        assert known == (
            None
            if name in ("cluster_k3s", "cluster_kubeadm", "cluster_openshift", "clusters", "teardown")
            else "{{ hwaccel_known_stages }}"
        )
    else:
        assert "tasks/tags.yml" in [task.get("ansible.builtin.import_tasks") for task in first["tasks"]]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("site", f"choose stages among {', '.join(STAGES)}"),
        ("teardown", "remove --tags (AWX: Job Tags)"),
        ("node_runtime", "remove --tags (AWX: Job Tags)"),
    ],
)
def test_tags_that_do_not_exist_are_refused_before_anything_else(tmp_path: pathlib.Path, name: str, step: str) -> None:
    code, output = run(
        tmp_path, name, GROUPS, "--tags", "drivers,monitors", "--skip-tags", "molecule-notest", "--check"
    )
    assert code == 2, output[-3000:]
    assert f"These tags do not exist here: drivers, monitors. Next: {step}" in output
    assert output.count("TASK [") < 4


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        (("--tags", "gpu_validation,driver"), ["driver", "gpu_validation"]),
        (("--skip-tags", "monitoring"), [stage for stage in STAGES if stage != "monitoring"]),
        (("--tags", "driver,monitoring", "-e", "hwaccel_stages=driver"), ["driver"]),
    ],
)
def test_tags_select_stages(tmp_path: pathlib.Path, arguments: tuple[str, ...], taken: list[str]) -> None:
    code, output = run(tmp_path, "render", {"gpu_clusters": {"hosts": {"one": EXISTING}}}, *arguments)
    assert code == 0, output[-3000:]
    assert [
        stage
        for stage in STAGES
        if f"TASK [hwaccel.gpu.{stage} : render | Compute the plan, and stop if there are problems]" in output
    ] == taken
