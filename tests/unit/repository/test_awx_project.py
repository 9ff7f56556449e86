# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""examples/awx-project: AWX accepts its surveys and finds its playbooks, and each question sets an existing variable. Jobs run in tests/live/test_awx.py."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.platforms import PLATFORMS
from ansible_collections.hwaccel.gpu.tests.live.support.awx import PROJECT, extra_variables, survey
from ansible_collections.hwaccel.gpu.tests.live.support.site import COLLECTIONS
from ansible_collections.hwaccel.gpu.tests.unit.programs import environment

TOP = pathlib.Path(__file__).resolve().parents[3]
SURVEYS = sorted(path.stem for path in (PROJECT / "surveys").glob("*.json"))
QUESTIONS = [(name, question) for name in SURVEYS for question in survey(name)]
#: Types that a default may have: SURVEY_TYPE_MAPPING of awx/main/constants.py without passwords.
ANSWERS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "textarea": (str,),
    "multiplechoice": (str,),
    "integer": (int,),
    "float": (str, float, int),
}
#: Types of variables that an answer of each type can set. The filter as_list reads lists.
READABLE = {
    "text": {"str", "path"},
    "textarea": {"str", "list of str", "list of dict"},
    "multiplechoice": {"str", "bool"},
    "integer": {"int", "float", "str"},
    "float": {"float", "str"},
}
ROW = re.compile(r"^\| `(hwaccel_\w+)` \| ([^|]+?) \|", re.MULTILINE)


def kinds() -> dict[str, str]:
    """Types of every variable that a user may set, of playbooks and of roles."""
    found = dict(ROW.findall((TOP / "docs" / "variables.md").read_text(encoding="utf-8")))
    for path in sorted(TOP.glob("roles/*/meta/argument_specs.yml")):
        for name, option in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"][
            "options"
        ].items():
            found[name] = option["type"] + (f" of {option['elements']}" if "elements" in option else "")
    return found


def choices(variable: str) -> set[str]:
    if variable == "hwaccel_distribution":
        return set(PLATFORMS)
    specs = TOP / "roles" / variable.partition("_")[0] / "meta" / "argument_specs.yml"
    return set(
        yaml.safe_load(specs.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"][variable]["choices"]
    )


@pytest.mark.parametrize(
    ("name", "question"), QUESTIONS, ids=[f"{name} {question['variable']}" for name, question in QUESTIONS]
)
def test_each_survey_question_sets_a_variable_of_a_matching_type(name: str, question: dict[str, t.Any]) -> None:
    assert kinds()[question["variable"]] in READABLE[question["type"]]
    assert set(question.get("choices", ())) <= (choices(question["variable"]) if "choices" in question else set())


@pytest.mark.parametrize("name", SURVEYS)
def test_awx_accepts_each_survey(name: str) -> None:
    """JobTemplateSurveySpec._validate_spec_data of awx/api/views/__init__.py."""
    spec = json.loads((PROJECT / "surveys" / f"{name}.json").read_text(encoding="utf-8"))
    assert {key: type(spec[key]) for key in ("name", "description", "spec")} == {
        "name": str,
        "description": str,
        "spec": list,
    }
    assert len({question["variable"] for question in spec["spec"]}) == len(spec["spec"]) > 0
    for question in spec["spec"]:
        assert {type(question[key]) for key in ("type", "question_name", "variable")} == {str}
        assert isinstance(question["required"], bool)
        assert question["default"] == "" or isinstance(question["default"], ANSWERS[question["type"]])
        assert {type(question[key]) for key in ("min", "max") if key in question} <= {int}
        assert ("choices" in question) == (question["type"] == "multiplechoice")


@pytest.mark.parametrize("name", SURVEYS)
def test_awx_finds_the_playbook_of_each_survey(name: str) -> None:
    """AWX lists files with a line like this: valid_playbook_re of awx/main/utils/ansible.py."""
    text = (PROJECT / f"{name}.yml").read_text(encoding="utf-8")
    assert re.search(r"^\s*?-?\s*?(?:hosts|(ansible\.builtin\.)?import_playbook):\s*?.*?$", text, re.MULTILINE)
    assert [play["ansible.builtin.import_playbook"] for play in yaml.safe_load(text)] == [f"hwaccel.gpu.{name}"]
    assert (TOP / "playbooks" / f"{name}.yml").exists()


def test_surveys_do_not_override_the_inventory() -> None:
    """An answer has precedence over the inventory, also an empty one."""
    inventory = yaml.safe_load((PROJECT / "inventory" / "clusters.yml").read_text(encoding="utf-8"))
    defined = {name for host in inventory["gpu_clusters"]["hosts"].values() for name in host}
    assert "hwaccel_pools" in defined
    assert defined & {question["variable"] for _name, question in QUESTIONS} == set()


def test_the_execution_environment_holds_the_collection() -> None:
    definition = yaml.safe_load((PROJECT / "execution-environment.yml").read_text(encoding="utf-8"))
    requirements = yaml.safe_load((PROJECT / definition["dependencies"]["galaxy"]).read_text(encoding="utf-8"))
    assert [one["name"] for one in requirements["collections"]] == ["hwaccel.gpu"]


MACHINES = '"machines": [{"kernel": "6.8.0-134-generic", "os_image": "Ubuntu 24.04.3 LTS"}]'
POOLS = f'[{{"name": "training", "selector": "pool=training", "gpu": {{"count": 8}}, {MACHINES}}}]'
SECRETS = {"hwaccel_image_pull_secrets": "mirror, backup"}


EMPTY = {"hwaccel_pools": POOLS, "driver_version": "", "hwaccel_namespace": "", "driver_adopt": "true"}
NULL = {
    "hwaccel_pools": POOLS.replace('"count": 8', '"product": "{{ 1 / 0 }}"'),
    "driver_version": "580.126.20",
    "hwaccel_namespace": None,
}


@pytest.mark.parametrize(("given", "driver"), [(EMPTY, "595.91.07"), (NULL, "580.126.20")], ids=["empty", "null"])
def test_answers_given_as_text_are_accepted(tmp_path: pathlib.Path, given: dict[str, t.Any], driver: str) -> None:
    """AWX passes answers marked as unsafe, so that they are not templated, and lists as JSON."""
    (tmp_path / "extravars").write_text(
        extra_variables({**given, **SECRETS, "hwaccel_render_to": str(tmp_path / "rendered")}), encoding="utf-8"
    )
    environ = environment(tmp_path, "K8S_AUTH_") | {
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_NOCOLOR": "1",
        "COLUMNS": "4000",
    }
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        "inventory/clusters.yml",
        "-e",
        f"@{tmp_path}/extravars",
        "render.yml",
    ]
    done = subprocess.run(
        command,
        cwd=PROJECT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout, done.stdout
    objects = [
        one
        for one in yaml.safe_load_all((tmp_path / "rendered" / "frankfurt" / "driver.yaml").read_text(encoding="utf-8"))
        if one
    ]
    driver_sets = [
        one
        for one in objects
        if one["kind"] == "DaemonSet" and one["metadata"]["name"].startswith("nvidia-driver-training-6")
    ]
    assert [one["metadata"]["labels"]["hwaccel.gpu/driver-version"] for one in driver_sets] == [driver]
    assert {one["metadata"]["namespace"] for one in driver_sets} == {"hwaccel-gpu"}
    assert [one["spec"]["template"]["spec"]["imagePullSecrets"] for one in driver_sets] == [
        [{"name": "mirror"}, {"name": "backup"}]
    ]
