# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans made before feature discovery has seen the nodes: what may still come is marked, what cannot come is not, and the rest is what comes."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import (
    INFERENCE,
    TRAINING,
    daemon_sets,
    run,
)
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

KERNEL = "6.8.0-134-generic"
LATER = "until feature_discovery reports whether they have GPUs"
TOOLKIT = "nvidia-container-toolkit"


def unseen(pool: str = "cpu", runtime: str = "containerd", count: int = 2) -> dict[str, t.Any]:
    """Nodes of which node_info knows what their kubelets say, and nothing else."""
    return stack.node_class(pool, gpu_present=False, nfd_kernel="", runtime=runtime, count=count)


def labeled(pool: str = "cpu", runtime: str = "containerd", *, gpu: bool = False) -> dict[str, t.Any]:
    """Nodes that NFD has seen."""
    return stack.node_class(pool, gpu_present=gpu, nfd_kernel=KERNEL, runtime=runtime)


def bare(pool: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    """A pool that does not say what GPUs it has."""
    return {key: value for key, value in pool.items() if key != "gpu"} | more


def toolkits(plan: dict[str, t.Any]) -> dict[str, str]:
    """Container runtime by name of the DaemonSet."""
    containers = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0] for one in daemon_sets(plan, TOOLKIT)
    }
    return {
        name: next(entry["value"] for entry in main["env"] if entry["name"] == "RUNTIME")
        for name, main in containers.items()
    }


def test_drivers_and_switches_of_nodes_that_nothing_tells_of_are_unknown() -> None:
    plan = run("driver", stack.fleet(unseen(count=3)))
    assert plan["unknown"] == [
        f"pool default: driver DaemonSets and labels nvidia.com/gpu.deploy.* for 3 nodes, {LATER}"
    ]
    assert plan["messages"][-1] == f"unknown: {plan['unknown'][0]}"


def test_what_is_declared_does_not_hide_what_is_not() -> None:
    declared = stack.node_class(gpu_present=False, gpu_assumed=True, nfd_kernel="")
    plan = run("driver", stack.fleet(declared, unseen("inference"), unseen(count=1)), pools=[TRAINING, bare(INFERENCE)])
    assert [one.partition(":")[0] for one in plan["unknown"]] == ["pool default", "pool inference"]


@pytest.mark.parametrize(
    ("fleet", "settings"),
    [
        ([stack.node_class(nfd_kernel=KERNEL), labeled()], {}),
        ([stack.node_class(), unseen()], {"pools": [TRAINING, {"name": "cpu", "selector": "!pool"}]}),
        ([stack.node_class(), unseen()], {"provider": "host"}),
        (
            [stack.node_class(), unseen("inference")],
            {"pools": [TRAINING, bare(INFERENCE, driver={"provider": "none"})]},
        ),
    ],
    ids=["NFD has seen them", "declared to have none", "the hosts bring drivers", "a pool without a driver"],
)
def test_nothing_is_unknown_where_no_driver_of_ours_can_come(
    fleet: list[dict[str, t.Any]], settings: dict[str, t.Any]
) -> None:
    assert run("driver", stack.fleet(*fleet), **settings)["unknown"] == []


def test_a_fleet_without_nodes_or_gpus_has_unknown_drivers() -> None:
    assert run("driver", stack.fleet())["unknown"] == [
        "driver DaemonSets: nodes with GPUs are only known after feature_discovery"
    ]
    assert run("driver", stack.fleet(labeled()))["unknown"] == [
        "driver DaemonSets: nodes with GPUs are only known after feature_discovery"
    ]


def test_the_driver_of_a_declared_pool_without_nodes_is_unknown() -> None:
    plan = run("driver", stack.fleet(stack.node_class()), pools=[TRAINING, INFERENCE])
    assert plan["unknown"] == ["pool inference: its driver DaemonSet, until one of its nodes with a GPU is known"]


@pytest.mark.parametrize(
    ("pools", "classes", "unknown"),
    [
        ([], [unseen()], ["which nodes have GPUs, until feature_discovery has run: no pool declares any"]),
        ([TRAINING], [unseen()], []),
        ([], [stack.node_class()], []),
    ],
)
def test_feature_discovery_tells_that_nobody_declares_gpus(
    pools: list[dict[str, t.Any]], classes: list[dict[str, t.Any]], unknown: list[str]
) -> None:
    assert run("feature_discovery", stack.fleet(*classes), pools=pools)["unknown"] == unknown


@pytest.mark.parametrize("runtime", ["containerd", "cri-o"])
@pytest.mark.parametrize("gpu", [True, False])
def test_the_toolkit_is_for_the_runtime_of_the_nodes_whether_they_turn_out_to_have_gpus_or_not(
    runtime: str, gpu: bool
) -> None:
    before = run("driver", stack.fleet(unseen("inference", runtime)), pools=[bare(INFERENCE)])
    after = run("driver", stack.fleet(labeled("inference", runtime, gpu=gpu)), pools=[bare(INFERENCE)])
    assert daemon_sets(before, TOOLKIT) == daemon_sets(after, TOOLKIT)
    assert toolkits(before) == {TOOLKIT: {"cri-o": "crio"}.get(runtime, runtime)}
    assert not [one for one in before["unknown"] if "toolkit" in one]


def test_of_several_runtimes_nobody_knows_which_until_gpus_are_seen() -> None:
    pools = [bare(TRAINING), bare(INFERENCE)]
    before = run("driver", stack.fleet(unseen("training"), unseen("inference", "cri-o")), pools=pools)
    assert toolkits(before) == {}
    assert [one for one in before["unknown"] if "toolkit" in one] == [
        "container toolkits, until feature_discovery has labeled the nodes of inference, training: nodes with containerd and with cri-o may have GPUs, "
        "and a pool can only have one container runtime",
    ]
    after = run("driver", stack.fleet(labeled("training", gpu=True), labeled("inference", "cri-o")), pools=pools)
    assert (toolkits(after), after["unknown"]) == ({TOOLKIT: "containerd"}, [])
    none = run("driver", stack.fleet(labeled("training"), labeled("inference", "cri-o")), pools=pools)
    assert (toolkits(none), [one for one in none["unknown"] if "toolkit" in one]) == ({}, [])


@pytest.mark.parametrize(
    ("coming", "marked"),
    [
        ([unseen("cpu", "cri-o")], True),
        ([unseen("inference")], False),
        ([unseen("inference", "docker")], False),
    ],
)
def test_a_toolkit_may_be_joined_by_one_for_another_runtime(coming: list[dict[str, t.Any]], marked: bool) -> None:
    plan = run("driver", stack.fleet(stack.node_class(), *coming), pools=[TRAINING, bare(INFERENCE)])
    assert toolkits(plan) == {TOOLKIT: "containerd"}
    assert any(one.startswith("container toolkits") for one in plan["unknown"]) is marked


def test_of_two_toolkits_each_may_get_more_pools() -> None:
    both = [stack.node_class(), stack.node_class("inference", runtime="cri-o")]
    assert not run("driver", stack.fleet(*both, unseen("training")), pools=[TRAINING, INFERENCE])["unknown"][1:]
    plan = run("driver", stack.fleet(*both, unseen()), pools=[TRAINING, INFERENCE])
    assert any(
        one.startswith("container toolkits, until feature_discovery has labeled the nodes of default")
        for one in plan["unknown"]
    )


def test_the_toolkits_runtime_is_an_assumption_where_no_node_tells_one() -> None:
    assumed = "container toolkit: for containerd, because no node with a supported runtime is known"
    assert run("driver", None, pools=[TRAINING], provider="host")["assumed"] == [assumed]
    assert run("driver", stack.fleet(), pools=[TRAINING])["assumed"] == [assumed]


@pytest.mark.parametrize("provider", ["none", "existing", "host"])
def test_a_pool_that_says_who_brings_its_driver_is_a_gpu_pool_before_a_gpu_is_seen(provider: str) -> None:
    pools = [bare(INFERENCE, driver={"provider": provider})]
    before = run("driver", stack.fleet(unseen("inference")), pools=pools)
    after = run("driver", stack.fleet(labeled("inference", gpu=True)), pools=pools)
    assert (before["provider"], before["objects"]) == (after["provider"], after["objects"])
    assert before["pools"] == after["pools"] == {"inference": provider}
