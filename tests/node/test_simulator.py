# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator held against reality: the same things happen to a real node and to a simulated one, and both are seen to go through the same states.

Compared are labels, taints, conditions, resources and pods, each by the order of its states. Not compared are times: the programs that take them are
stand-ins on one side and are simulated at a fiftieth of NVIDIA's times on the other. So the simulated node may pass a state too quickly to be seen; but
whatever is seen of it is seen of the real one too, in the same order, and both end alike.

Runtime: three minutes, one of them the delay before the driver's startup probe.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

import pytest

from ansible_collections.hwaccel.gpu.tests.node.conftest import FLEET, GPU, TWO, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import defaults
from ansible_collections.hwaccel.gpu.tests.node.rig.observer import Key, Observer, within

REAL, SIMULATED = "real-2", "late-0"
NAMES = (REAL, SIMULATED)
RESOURCE = "nvidia.com/gpu"
ALLOCATABLE: Key = ("allocatable", RESOURCE)
#: One that both sides have and that has a shell.
_IMAGE = defaults("gpu_validation")["gpu_validation_image"]
_USER = "user-of-a-gpu"
PLUGIN_SWITCH = "nvidia.com/gpu.deploy.device-plugin"
#: What is different, and why it may be.
DIFFERENT: dict[Key, str] = {
    ("label", "nvidia.com/gpu.deploy.dra-driver"): "the stand-in for the driver manager knows no DRA driver",
    ("capacity", RESOURCE): "kubelet forgets the devices of a plugin that is gone after five minutes, which the simulator's clock has long told",
}

Sequences = dict[str, dict[Key, list[str]]]
_NEVER = ["never there"]

pytestmark = pytest.mark.slow


@dataclasses.dataclass
class Story:
    """What happens to both nodes, and what is seen of each meanwhile, by step."""

    cluster: Cluster
    seen: Observer
    steps: dict[str, Sequences] = dataclasses.field(default_factory=dict)

    def step(self, name: str, until: c.Callable[[str], bool], seconds: float = 240) -> None:
        """Looks until both nodes are as they are to be, and goes on until nothing has changed for a while: what follows belongs to the step."""
        self.cluster.wait(f"{name}: {NAMES} as they are to be", lambda: all(until(one) for one in NAMES), seconds)
        self.cluster.wait(f"{name}: nothing changes any more", lambda: self.seen.quiet() > 8, 120)
        self.steps[name] = {one: self.seen.sequences(one) for one in NAMES}
        self.seen.forget()

    def offers_both(self, one: str) -> bool:
        """Whether its GPUs can be given out, and all that proves it is ready."""
        now = self.seen.now(one)
        return now.get(ALLOCATABLE) == "2" and all(state == "Running, ready" for (kind, *_name), state in now.items() if kind == "pod")


@pytest.fixture(scope="module")
def story(cluster: Cluster, enabled: Enabled) -> c.Iterator[Story]:
    with Observer(cluster.sandbox.kubeconfig, NAMES) as seen:
        told = Story(cluster, seen)
        cluster.sandbox.set_fleet({**FLEET, "pools": [*FLEET["pools"], {"name": "late", "count": 1, "gpu": GPU, "labels": TWO}]})
        real = cluster.join(REAL, gpus=2, labels=TWO)
        told.step("join", told.offers_both)
        _resources(told)
        _reboot(told, real)
        yield told


def _resources(told: Story) -> None:
    cluster = told.cluster
    for name in NAMES:
        cluster.client.create(_user(name), POD)
    told.step("a GPU is taken", lambda one: told.seen.now(one).get(("pod", _USER)) == "Running, ready")
    for value, count in (("false", "0"), (None, "2")):
        for name in NAMES:
            cluster.client.patch(NODE, name, "", {"metadata": {"labels": {PLUGIN_SWITCH: value}}}, field_manager="people")
        told.step("the plugin is gone" if value else "the plugin is back", lambda one, count=count: told.seen.now(one).get(ALLOCATABLE) == count)
    for name in NAMES:
        cluster.client.delete(POD, f"user-{name}", "default")
    told.step("the GPU is free", lambda one: ("pod", _USER) not in told.seen.now(one))


def _reboot(told: Story, real: KubernetesNode) -> None:
    told.cluster.sandbox.reboot(SIMULATED)
    real.machine.reboot()
    told.step("reboot", lambda one: "0" in told.seen.sequences(one).get(ALLOCATABLE, _NEVER) and told.offers_both(one))


def _user(node: str) -> dict[str, object]:
    container = {"name": "main", "image": _IMAGE, "command": ["sh", "-c", "sleep 1000000"], "resources": {"limits": {RESOURCE: 1}}}
    place = {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": [{"operator": "Exists"}]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **place}
    metadata = {"name": f"user-{node}", "namespace": "default", "labels": {"app": _USER}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("step", ["join", "a GPU is taken", "the plugin is gone", "the plugin is back", "the GPU is free", "reboot"])
def test_both_are_seen_to_go_through_the_same_states(story: Story, step: str) -> None:
    real, simulated = (story.steps[step][name] for name in NAMES)
    unlike = []
    for key in sorted((real.keys() | simulated.keys()) - DIFFERENT.keys()):
        ours, theirs = real.get(key, _NEVER), simulated.get(key, _NEVER)
        if ours[-1] != theirs[-1] or not within(theirs, ours):
            unlike.append(f"{' '.join(key)}: real {ours}, simulated {theirs}")
    assert unlike == [], "\n".join(unlike)
