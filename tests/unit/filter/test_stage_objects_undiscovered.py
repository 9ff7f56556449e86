# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans before feature discovery: objects that may follow are listed as unknown, those that cannot are not, and all others are final."""

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


def undiscovered(pool: str = "cpu", runtime: str = "containerd", count: int = 2) -> dict[str, t.Any]:
    """Nodes of which node_info only has what their kubelets report."""
    return stack.node_class(pool, gpu_present=False, nfd_kernel="", runtime=runtime, count=count)


def labeled(pool: str = "cpu", runtime: str = "containerd", *, gpu: bool = False) -> dict[str, t.Any]:
    """Nodes that NFD has labeled."""
    return stack.node_class(pool, gpu_present=gpu, nfd_kernel=KERNEL, runtime=runtime)


def bare(pool: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    """A pool that does not declare its GPUs."""
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


def test_drivers_and_switches_of_undiscovered_nodes_are_unknown() -> None:
    plan = run("driver", stack.fleet(undiscovered(count=3)))
    assert plan["unknown"] == [
        f"pool default: driver DaemonSets and labels nvidia.com/gpu.deploy.* for 3 nodes, {LATER}"
    ]
    assert plan["messages"][-1] == f"unknown: {plan['unknown'][0]}"


def test_a_declared_pool_does_not_hide_undeclared_ones() -> None:
    declared = stack.node_class(gpu_present=False, gpu_assumed=True, nfd_kernel="")
    plan = run(
        "driver",
        stack.fleet(declared, undiscovered("inference"), undiscovered(count=1)),
        pools=[TRAINING, bare(INFERENCE)],
    )
    assert [one.partition(":")[0] for one in plan["unknown"]] == ["pool default", "pool inference"]


@pytest.mark.parametrize(
    ("fleet", "settings"),
    [
        ([stack.node_class(nfd_kernel=KERNEL), labeled()], {}),
        ([stack.node_class(), undiscovered()], {"pools": [TRAINING, {"name": "cpu", "selector": "!pool"}]}),
        ([stack.node_class(), undiscovered()], {"provider": "host"}),
        (
            [stack.node_class(), undiscovered("inference")],
            {"pools": [TRAINING, bare(INFERENCE, driver={"provider": "none"})]},
        ),
    ],
    ids=["NFD has seen them", "declared to have none", "the hosts bring drivers", "a pool without a driver"],
)
def test_nothing_is_unknown_if_no_driver_can_be_deployed(
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
        ([], [undiscovered()], ["which nodes have GPUs, until feature_discovery has run: no pool declares any"]),
        ([TRAINING], [undiscovered()], []),
        ([], [stack.node_class()], []),
    ],
)
def test_feature_discovery_reports_that_no_pool_declares_gpus(
    pools: list[dict[str, t.Any]], classes: list[dict[str, t.Any]], unknown: list[str]
) -> None:
    assert run("feature_discovery", stack.fleet(*classes), pools=pools)["unknown"] == unknown


@pytest.mark.parametrize("runtime", ["containerd", "cri-o"])
@pytest.mark.parametrize("gpu", [True, False])
def test_the_toolkit_is_for_the_runtime_of_the_nodes_with_or_without_gpus(runtime: str, gpu: bool) -> None:
    before = run("driver", stack.fleet(undiscovered("inference", runtime)), pools=[bare(INFERENCE)])
    after = run("driver", stack.fleet(labeled("inference", runtime, gpu=gpu)), pools=[bare(INFERENCE)])
    assert daemon_sets(before, TOOLKIT) == daemon_sets(after, TOOLKIT)
    assert toolkits(before) == {TOOLKIT: {"cri-o": "crio"}.get(runtime, runtime)}
    assert not [one for one in before["unknown"] if "toolkit" in one]


def test_nodes_with_docker_get_no_toolkit_before_gpus_are_discovered_either() -> None:
    before = run("driver", stack.fleet(undiscovered("inference", "docker")), pools=[bare(INFERENCE)])
    assert toolkits(before) == {}
    assert not [one for one in before["unknown"] + before["assumed"] if "toolkit" in one]


def test_with_several_runtimes_the_toolkits_are_unknown_until_gpus_are_discovered() -> None:
    pools = [bare(TRAINING), bare(INFERENCE)]
    before = run("driver", stack.fleet(undiscovered("training"), undiscovered("inference", "cri-o")), pools=pools)
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
    ("undiscovered_classes", "unknown"),
    [
        ([undiscovered("cpu", "cri-o")], True),
        ([undiscovered("inference")], False),
        ([undiscovered("inference", "docker")], False),
    ],
)
def test_a_second_toolkit_for_another_runtime_is_unknown(
    undiscovered_classes: list[dict[str, t.Any]], unknown: bool
) -> None:
    plan = run("driver", stack.fleet(stack.node_class(), *undiscovered_classes), pools=[TRAINING, bare(INFERENCE)])
    assert toolkits(plan) == {TOOLKIT: "containerd"}
    assert any(one.startswith("container toolkits") for one in plan["unknown"]) is unknown


def test_with_two_toolkits_each_may_have_more_pools() -> None:
    both = [stack.node_class(), stack.node_class("inference", runtime="cri-o")]
    assert not run("driver", stack.fleet(*both, undiscovered("training")), pools=[TRAINING, INFERENCE])["unknown"][1:]
    plan = run("driver", stack.fleet(*both, undiscovered()), pools=[TRAINING, INFERENCE])
    assert any(
        one.startswith("container toolkits, until feature_discovery has labeled the nodes of default")
        for one in plan["unknown"]
    )


def test_the_runtime_of_the_toolkit_is_assumed_if_no_node_reports_one() -> None:
    assumed = "container toolkit: for containerd, because no node with a supported runtime is known"
    assert run("driver", None, pools=[TRAINING], provider="host")["assumed"] == [assumed]
    assert run("driver", stack.fleet(), pools=[TRAINING])["assumed"] == [assumed]


@pytest.mark.parametrize("provider", ["none", "existing", "host"])
def test_a_pool_with_a_declared_driver_provider_is_a_gpu_pool_before_discovery(provider: str) -> None:
    pools = [bare(INFERENCE, driver={"provider": provider})]
    before = run("driver", stack.fleet(undiscovered("inference")), pools=pools)
    after = run("driver", stack.fleet(labeled("inference", gpu=True)), pools=pools)
    assert (before["provider"], before["objects"]) == (after["provider"], after["objects"])
    assert before["pools"] == after["pools"] == {"inference": provider}
