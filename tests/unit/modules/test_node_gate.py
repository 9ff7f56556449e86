# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's documentation, argument spec, returned values and settings agree."""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.plugins.modules import node_gate as module
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.modules import documentation

DEFAULTS: dict[str, t.Any] = {name: spec.get("default") for name, spec in module.ARGUMENT_SPEC.items()}


def test_documented_options_match_the_spec() -> None:
    documentation.options_match(module)


def test_returned_and_documented_values_are_the_same() -> None:
    documented = yaml.safe_load(module.RETURN)
    cluster = NodeCluster([s.node("n", allocatable=7, gpus=8)], [s.driver("n", s.crash_loop("d", 9))])
    values = run(Settings("driver"), cluster, check_mode=True).values
    assert set(values) == set(documented)
    assert set(values["faults"][0]) == set(documented["faults"]["contains"])
    assert set(values["pools"][0]) == set(documented["pools"]["contains"])


def test_settings_of_parameters() -> None:
    params = DEFAULTS | {
        "gate": "devices",
        "pools": [{"name": "a", "selector": "x", "gpu": {"count": "8"}}],
        "nodes": ["n1", "n2"],
        "exclude": ["n1"],
        "wait_timeout": 5.0,
        "plugin_configs": {"default": {"sharing": {"timeSlicing": {"resources": [{"name": s.GPU, "replicas": "2"}]}}}},
    }
    settings = module.settings_of(params)
    assert (settings.gate, settings.exclude, settings.wait_timeout, settings.max_failed) == (
        "devices",
        frozenset({"n1"}),
        5.0,
        "0",
    )
    assert settings.nodes == frozenset({"n1", "n2"})
    assert module.settings_of(DEFAULTS | {"gate": "devices"}).nodes is None
    assert settings.pools[0].gpu is not None
    assert settings.plugin_configs["default"].sharing[0].replicas == 2


def test_invalid_pools_are_reported_before_anything_is_read() -> None:
    with pytest.raises(ManyFaults):
        module.settings_of(DEFAULTS | {"gate": "driver", "pools": [{"name": "a"}]})


def test_examples_are_tasks_with_known_options() -> None:
    known = set(module.ARGUMENT_SPEC) | {"kubeconfig"}
    tasks = yaml.safe_load(module.EXAMPLES)
    assert tasks
    for task in tasks:
        assert set(task["hwaccel.gpu.node_gate"]) <= known
