# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid values of public variables are reported before the first request, and valid ones are accepted."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import CLUSTER_SPEC, PROXY_HEADERS_SPEC
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import connection
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import judge, on_cluster, table
from ansible_collections.hwaccel.gpu.tests.unit.inputs.bad_inputs import BAD, FORBIDDEN
from ansible_collections.hwaccel.gpu.tests.unit.inputs.good_inputs import GOOD

TOP = pathlib.Path(__file__).resolve().parents[3]
#: Variables that playbooks pass to roles, and that users do not set.
NOT_SET = {f"{role}_fleet" for role in table.ROLES}


def texts(given: dict[str, t.Any]) -> list[str]:
    return [str(one.fault) for one in judge.judge(given)]


def test_the_table_is_long_enough() -> None:
    assert len(BAD) >= 90


@pytest.mark.parametrize(
    ("given", "parts"), BAD, ids=[f"{number}-{next(iter(given))}" for number, (given, _parts) in enumerate(BAD)]
)
def test_an_invalid_input_is_reported_once_with_location_and_next_step(
    given: dict[str, t.Any], parts: tuple[str, ...]
) -> None:
    found = texts(given)
    assert len(found) == 1, found
    assert all(part in found[0] for part in parts), found[0]
    assert "Next: " in found[0]
    assert any(f"({name}" in found[0] for name in given), found[0]
    assert not re.search(FORBIDDEN, found[0]), found[0]


@pytest.mark.parametrize("given", GOOD, ids=str)
def test_valid_inputs_are_accepted(given: dict[str, t.Any]) -> None:
    assert texts(given) == []


def test_all_problems_are_reported_at_once() -> None:
    """The first invalid value of each variable, all in one inventory."""
    given: dict[str, t.Any] = {}
    for one, _parts in BAD:
        if len(one) == 1:
            given = {**one, **given}
    found = judge.judge(given)
    assert {one.variable for one in found} == set(given)
    assert len(given) > 60


def test_unusual_values_of_every_variable_never_raise() -> None:
    odd: tuple[t.Any, ...] = (
        None,
        "",
        " ",
        0,
        -1,
        1.5,
        True,
        float("nan"),
        10**400,
        "x y",
        "\n\x00",
        [],
        {},
        [None],
        [[]],
        [{}],
        {"a": None},
        {1: 2},
        {"x": {"y": []}},
        "[",
        b"x",
    )
    for name in table.names(table.STAGES):
        for value in odd:
            for text in texts({name: value}):
                assert not re.search(FORBIDDEN, text), (name, value, text)


def test_no_public_variable_is_missing() -> None:
    """The table has the argument specs of all roles on clusters, and the variables of playbooks that these roles read."""
    for role, known in table.ROLES.items():
        spec = yaml.safe_load((TOP / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
            "argument_specs"
        ]
        assert set(spec["main"]["options"]) - NOT_SET == set(known)
    page = (TOP / "docs" / "variables.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(hwaccel_\w+)`", page, re.MULTILINE)
    # Variables of clusters come first on the page, before those of machines.
    assert [name for name in documented if name in table.SHARED] == list(table.SHARED)
    assert set(documented[: documented.index("hwaccel_cluster")]) == set(table.SHARED)


def test_required_variables_have_a_default() -> None:
    """An empty value is only invalid where it would replace the default of the role."""
    for role, known in table.ROLES.items():
        options = yaml.safe_load((TOP / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
            "argument_specs"
        ]["main"]["options"]
        for name, variable in known.items():
            assert not variable.needed or options[name]["default"] not in ("", [], {}, None), name


def test_choices_are_those_of_the_argument_specs() -> None:
    for role, known in table.ROLES.items():
        options = yaml.safe_load((TOP / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
            "argument_specs"
        ]["main"]["options"]
        for name, option in options.items():
            for choice in option.get("choices", ()):
                assert choice == "" or not known[name].check(choice, name), (name, choice)


def test_options_of_a_connection_are_those_of_the_modules() -> None:
    known = {alias for option in CLUSTER_SPEC.values() for alias in option.get("aliases", ())} | set(CLUSTER_SPEC)
    assert set(connection.OPTIONS) == known
    assert {
        alias: name for name, option in CLUSTER_SPEC.items() for alias in option.get("aliases", ())
    } == connection.ALIASES
    assert not connection.check({"proxy_headers": dict.fromkeys(PROXY_HEADERS_SPEC, "x")}, "hwaccel_connection")


def test_defaults_of_the_roles_are_valid() -> None:
    given: dict[str, t.Any] = {}
    for role in table.ROLES:
        defaults = yaml.safe_load((TOP / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8"))
        given |= {name: value for name, value in defaults.items() if "{{" not in str(value)}
    assert texts(given) == []


def test_faults_name_the_stages_that_need_the_variable() -> None:
    wrong = {"hwaccel_max_failed": "x", "driver_version": "latest", "hwaccel_namespace": "A", "driver_max_prune": "x"}
    found = {one.variable: one.stages for one in judge.judge(wrong)}
    assert found == {
        "hwaccel_max_failed": (),
        "hwaccel_namespace": table.STAGES,
        "driver_version": ("driver",),
        "driver_max_prune": (),
    }


def test_only_requested_stages_are_checked() -> None:
    assert texts({"driver_version": "latest"}) and not judge.judge({"driver_version": "latest"}, ["monitoring"])
    assert judge.taken("driver") == ["driver"] and judge.taken(["monitoring", "driver"]) == ["driver", "monitoring"]
    assert (
        judge.taken("driver, nonsense")
        == judge.taken("")
        == judge.taken(None)
        == judge.taken(7)
        == judge.taken("[")
        == list(table.STAGES)
    )


def test_a_value_shared_by_roles_is_reported_once() -> None:
    assert len(texts({"hwaccel_max_failed": "x", "driver_max_failed": "x", "monitoring_max_failed": "y"})) == 2
    assert len(texts({"hwaccel_pools": '[{"name": "a"}]', "driver_pools": [{"name": "a"}]})) == 1


POOLS = [{"name": "a", "selector": "pool=a"}, {"name": "b", "selector": "pool=b"}]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ["the selector 'pool=b' matches no node (hwaccel_pools[1].selector, pool b)"]),
        ({"may_be_empty": True}, []),
        ({"nodes": ["gpu-9"]}, []),
        ({"selector": "nvidia.com/gpu.product=NVIDIA-L4"}, []),
        ({"selector": "feature.node.kubernetes.io/pci-10de.present=true"}, []),
        ({"machines": []}, ["matches no node"]),
    ],
)
def test_a_selector_that_matches_no_node_is_reported(change: dict[str, t.Any], expected: list[str]) -> None:
    """This is allowed if the pool may be empty, names nodes that join later, or uses labels that this run creates."""
    fleet = {"pools": [{"name": "a", "nodes": 2}, {"name": "b", "nodes": 0}]}
    found = [str(one.fault) for one in on_cluster.judge({"hwaccel_pools": [POOLS[0], {**POOLS[1], **change}]}, fleet)]
    assert len(found) == len(expected) and all(part in text for part, text in zip(expected, found, strict=True))


def test_unknown_excluded_nodes_are_reported() -> None:
    fleet = {"unknown_nodes": [{"name": "gpu-11", "near": "gpu-1"}, {"name": "x", "near": ""}]}
    first, second = (str(one.fault) for one in on_cluster.judge({"hwaccel_pools": ""}, fleet))
    assert (
        first
        == "the cluster has no node gpu-11 (hwaccel_excluded_nodes): did you mean gpu-1? Next: correct the name, or remove it"
    )
    assert second.startswith("the cluster has no node x (hwaccel_excluded_nodes). Next: ")


def test_values_are_shown_like_in_yaml() -> None:
    assert [values.shown(one) for one in (None, True, 1, "a", {}, [], "x" * 100)] == [
        "null",
        "true",
        "1",
        "'a'",
        "a dictionary",
        "a list",
        f"'{'x' * 60}…'",
    ]
