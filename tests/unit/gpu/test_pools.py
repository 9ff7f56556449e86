# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared pools and label selectors."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import (
    Assigner,
    PoolInterconnect,
    assumed,
    parse_pools,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (b, c),d", {"a": "c", "d": ""}, True),
        ("a in (b)", {}, False),
        ("a notin (b,c)", {"a": "d"}, True),
        ("a notin (b)", {}, True),
        ("!a", {}, True),
        ("! a", {"a": "x"}, False),
        ("example.org/x.y=1", {"example.org/x.y": "1"}, True),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
    ],
)
def test_selectors(selector: str, labels: dict[str, str], matches: bool) -> None:
    assert selectors.matches(selectors.parse(selector), labels) is matches


@pytest.mark.parametrize("selector", ["a=b,", "a in b", "a = b c", "-a", "a>3", "a in (b c)", "=x"])
def test_texts_that_are_no_selectors(selector: str) -> None:
    with pytest.raises(selectors.SelectorError):
        selectors.parse(selector)


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_told_not_to_be(text: str) -> None:
    try:
        parsed = selectors.parse(text)
    except selectors.SelectorError as error:
        assert str(error)
    else:
        assert isinstance(selectors.matches(parsed, {"a": "b"}), bool)


def pool_names(pools: list[dict[str, t.Any]], *nodes: s.Obj) -> list[str]:
    assigner = Assigner(parse_pools(pools))
    return [assigner.pool_of(reduce_node(node), node["metadata"]["labels"]).name for node in nodes]


def test_nodes_find_their_pools() -> None:
    pools = [{"name": "training", "selector": "pool=training"}, {"name": "edge", "nodes": ["edge-0"]}]
    nodes = [s.node("a", labels={"pool": "training"}), s.node("edge-0"), s.node("other"), s.node("plain", gpus=0)]
    assert pool_names(pools, *nodes) == ["training", "edge", "default", "cpu"]


def test_default_pool_can_be_declared() -> None:
    assigner = Assigner(parse_pools([{"name": "default", "gpu": {"count": 2}}]))
    pool = assigner.pool_of(reduce_node(s.node("a")), {})
    assert (pool.declared, pool.gpu and pool.gpu.count) == (True, 2)


def test_all_faults_of_a_declaration_at_once() -> None:
    with pytest.raises(ManyFaults) as raised:
        parse_pools(
            [
                {"name": "a"},
                {"selector": "x=y"},
                {"name": "b", "selector": "x y"},
                {"name": "c", "selector": "x=y", "gpu": {"count": "many"}},
                {"name": "d", "selector": "x=y", "driver": {"provider": "us", "source": "sky"}},
                {"name": "e", "nodes": "n"},
                {"name": "f", "selector": "x", "color": 1},
                7,
            ]
        )
    text = str(raised.value)
    for part in (
        "selects nothing",
        "no name",
        "cannot be read",
        "'many'",
        "'us'",
        "'sky'",
        "'n' is not a list",
        "unknown: color",
        "7 is not a pool",
    ):
        assert part in text


def test_twice_declared_and_no_list() -> None:
    with pytest.raises(ManyFaults, match="declared twice"):
        parse_pools([{"name": "a", "selector": "x"}, {"name": "a", "selector": "y"}])
    with pytest.raises(ManyFaults, match="not a list"):
        parse_pools("training")
    assert parse_pools(None) == ()


def test_overlaps_and_unknown_nodes_are_told_when_all_is_read() -> None:
    assigner = Assigner(parse_pools([{"name": "a", "selector": "x"}, {"name": "b", "nodes": ["n1", "n9"]}]))
    for name in ("n1", "n2"):
        assigner.pool_of(reduce_node(s.node(name)), {"x": "1"})
    what = [fault.what for fault in assigner.faults()]
    assert what == ["pools a and b overlap", "the cluster has no node n9"]
    assert [fault.what for fault in assigner.faults(complete=False)] == ["pools a and b overlap"]


def test_strings_of_a_survey() -> None:
    (pool,) = parse_pools(
        [
            {
                "name": "a",
                "selector": "x",
                "gpu": {"count": "8", "memory_mib": "", "product": "", "ecc": "True", "mig": ""},
            }
        ]
    )
    assert pool.gpu is not None
    assert (pool.gpu.count, pool.gpu.memory_mib, pool.gpu.ecc, pool.gpu.mig) == (8, 0, True, None)


def test_modes_are_true_or_false() -> None:
    (pool,) = parse_pools([{"name": "a", "selector": "x", "gpu": {"ecc": True, "mig": False}}])
    assert pool.gpu is not None and (pool.gpu.ecc, pool.gpu.mig) == (True, False)
    with pytest.raises(ManyFaults) as raised:
        parse_pools([{"name": "a", "selector": "x", "gpu": {"ecc": "on", "mig": 1}}])
    assert "'on' is neither true nor false" in str(raised.value) and "1 is neither true nor false" in str(raised.value)


def test_gpus_are_assumed_where_a_pool_declares_them() -> None:
    (pool,) = parse_pools([{"name": "a", "selector": "x", "gpu": {"count": 8}}])
    assert assumed(reduce_node(s.node(nfd=False)), pool)
    assert not assumed(reduce_node(s.node()), pool)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["name", "selector", "nodes", "gpu", "driver", "count", "ecc", "provider", "plugin_config", "x"]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_odd_declarations_are_read_or_told(declared: t.Any) -> None:
    try:
        pools = parse_pools(declared)
    except ManyFaults as error:
        assert error.faults
    else:
        assert all(pool.name for pool in pools)


def test_an_interconnect_is_read_with_all_that_is_wrong_in_it() -> None:
    declared = {
        "min_bandwidth": "40.5",
        "resources": {"rdma/a": "1"},
        "environment": {"NCCL_IB_GID_INDEX": 3},
        "annotations": {"net/x": "ib0"},
    }
    (pool,) = parse_pools([{"name": "a", "selector": "x", "interconnect": declared}])
    assert pool.interconnect == PoolInterconnect(
        "IB", 40.5, {"rdma/a": 1}, {"NCCL_IB_GID_INDEX": "3"}, {"net/x": "ib0"}
    )
    assert parse_pools([{"name": "a", "selector": "x", "interconnect": {}}])[0].interconnect is None
    wrong = {"min_bandwidth": "fast", "resources": {"rdma/a": "one"}, "environment": ["X"], "speed": 1}
    with pytest.raises(ManyFaults) as caught:
        parse_pools(
            [
                {"name": "a", "selector": "x", "interconnect": wrong},
                {"name": "b", "selector": "y", "interconnect": "IB"},
            ]
        )
    for told in (
        "'fast' is not a bandwidth",
        "'one' is not a whole number",
        "a list is not a dictionary",
        "unknown: speed",
        "'IB' is not a dictionary",
    ):
        assert told in str(caught.value)
