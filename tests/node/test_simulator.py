# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator held against reality: scenario.yml happens to a real node and to a simulated one, and both are seen to go through the same states.

Compared are labels, taints, conditions, resources and pods, each by the order of its states, and how long after the other a node is as it is to be.
The simulated node may pass a state too quickly to be seen; but whatever is seen of it is seen of the real one too, in the same order, and both end alike.

Runtime: ten minutes, three of them the delays before the driver's startup probe, three until a plugin's probe has given a gate up.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import itertools
import pathlib
import time
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.node.conftest import FLEET, GPU, TWO, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import defaults
from ansible_collections.hwaccel.gpu.tests.node.rig.observer import Key, Observer, within

REAL, SIMULATED = "real-2", "late-0"
NAMES = (REAL, SIMULATED)
SCENARIO: list[dict[str, t.Any]] = yaml.safe_load(
    pathlib.Path(__file__).with_name("scenario.yml").read_text(encoding="utf-8")
)
#: One that both sides have and that has a shell.
_IMAGE = defaults("gpu_validation")["gpu_validation_image"]
_USER = "user-of-a-gpu"
#: Seconds without a change after which a step is over: what follows belongs to it.
QUIET = 8
#: What is different, and why it may be.
DIFFERENT: dict[Key, str] = {
    ("label", "nvidia.com/gpu.deploy.dra-driver"): "the stand-in for the driver manager knows no DRA driver",
    (
        "capacity",
        "nvidia.com/gpu",
    ): "kubelet forgets the devices of a plugin that is gone after five minutes, which the simulator's clock has long told",
    # The control plane's, of the condition Ready, which is compared: whether they come at all depends on for how long a machine is not ready.
    (
        "taint",
        "node.kubernetes.io/not-ready",
    ): "a rebooted node is not ready for seconds, a simulated one for a tenth of one",
    ("taint", "node.kubernetes.io/unreachable"): "as above",
}
_READY = ("Running, ready", "Succeeded")
_NEVER = ["never there"]
#: Of a pod on its way: between two containers, between start and readiness, between its deletion and its end. How long they last is a matter of moments, and
#: a kubelet that is quick, or busy, writes the next one at once. They count where a pod stays in them.
_BETWEEN = ("Pending", "Running", "leaving")
Sequences = dict[str, dict[Key, list[str]]]

pytestmark = pytest.mark.slow


def key_of(text: str) -> Key:
    """As scenario.yml writes it: "allocatable nvidia.com/gpu"."""
    return tuple(text.split(" ", 1))


@dataclasses.dataclass
class Played:
    """A step: what was seen of each node meanwhile, and after how many seconds each was as it is to be."""

    seen: Sequences
    seconds: dict[str, float]


@dataclasses.dataclass
class Story:
    """The nodes, and what can happen to them."""

    cluster: Cluster
    clusters: site.Clusters
    seen: Observer
    real: KubernetesNode | None = None

    def play(self, step: dict[str, t.Any]) -> Played:
        began = time.monotonic()
        for action, parameters in step["do"].items():
            ACTIONS[action](self, parameters)
        seconds: dict[str, float] = {}

        def done() -> bool:
            for name in NAMES:
                if name not in seconds and self.shows(name, step):
                    seconds[name] = time.monotonic() - began
            return len(seconds) == len(NAMES)

        try:
            self.cluster.wait(f"{step['step']}: both are as they are to be", done, 300)
            self.cluster.wait(f"{step['step']}: nothing changes any more", lambda: self.seen.quiet() > QUIET, 120)
        except AssertionError as late:
            raise AssertionError(
                "\n".join([str(late), *(f"{name}: {self.seen.sequences(name)}" for name in NAMES)])
            ) from None
        played = Played({name: self.seen.sequences(name) for name in NAMES}, seconds)
        self.seen.forget()
        return played

    def shows(self, name: str, step: dict[str, t.Any]) -> bool:
        now, sequences = self.seen.now(name), self.seen.sequences(name)
        pods = [state for (kind, *_name), state in now.items() if kind == "pod"]
        return (
            all(now.get(key_of(key), "") == value for key, value in step.get("until", {}).items())
            and all(value in sequences.get(key_of(key), ()) for key, value in step.get("passes", {}).items())
            and (not step.get("ready") or all(state in _READY for state in pods))
        )

    def join(self, _nothing: object) -> None:
        late = {"name": SIMULATED.partition("-")[0], "count": 1, "gpu": GPU, "labels": TWO}
        self.cluster.sandbox.set_fleet({**FLEET, "pools": [*FLEET["pools"], late]})
        self.real = self.cluster.join(REAL, gpus=2, labels=TWO)

    def site(self, _nothing: object) -> None:
        run = site.playbook("site", self.clusters)
        assert run.rc == 0, run.stdout[-6000:]

    def take(self, _nothing: object) -> None:
        for name in NAMES:
            self.cluster.client.create(_user(name), POD)

    def release(self, _nothing: object) -> None:
        for name in NAMES:
            self.cluster.client.delete(POD, f"user-{name}", "default")

    def label(self, labels: dict[str, str | None]) -> None:
        for name in NAMES:
            self.cluster.client.patch(NODE, name, "", {"metadata": {"labels": labels}}, field_manager="people")

    def sicken(self, fault: dict[str, int]) -> None:
        assert self.real
        self.cluster.sandbox.add_fault("gpu_ecc_error", node=SIMULATED, xid=str(fault["xid"]))
        self.real.set_gpus(2, {"xid": {"1": fault["xid"]}})

    def heal(self, _nothing: object) -> None:
        assert self.real
        self.cluster.sandbox.clear_faults()
        self.real.set_gpus(2)

    def reboot(self, _nothing: object) -> None:
        assert self.real
        self.cluster.sandbox.reboot(SIMULATED)
        self.real.machine.reboot()

    def restart(self, labels: dict[str, str]) -> None:
        """Of controllers, which are on whatever node."""
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        for pod in self.cluster.client.list(POD, label_selector=selector).items:
            self.cluster.client.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"])

    def leave(self, _nothing: object) -> None:
        """A machine that is switched off, and whose Node somebody deletes."""
        assert self.real
        self.real.machine.sh("systemctl stop kubelet")
        self.cluster.client.delete(NODE, REAL)
        self.cluster.sandbox.set_fleet(FLEET)


#: What scenario.yml can say.
ACTIONS: dict[str, c.Callable[[Story, t.Any], None]] = {
    "join": Story.join,
    "site": Story.site,
    "take": Story.take,
    "release": Story.release,
    "label": Story.label,
    "sicken": Story.sicken,
    "heal": Story.heal,
    "reboot": Story.reboot,
    "restart": Story.restart,
    "leave": Story.leave,
}


def _user(node: str) -> dict[str, object]:
    container = {
        "name": "main",
        "image": _IMAGE,
        "command": ["sh", "-c", "sleep 1000000"],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    place = {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": [{"operator": "Exists"}]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **place}
    metadata = {"name": f"user-{node}", "namespace": "default", "labels": {"app": _USER}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _told(states: list[str]) -> list[str]:
    lasting = [state for state in states[:-1] if state not in _BETWEEN] + states[-1:]
    return [state for state, _same in itertools.groupby(lasting)]


@pytest.fixture(scope="module")
def played(cluster: Cluster, enabled: Enabled) -> c.Iterator[dict[str, Played]]:
    with Observer(cluster.sandbox.kubeconfig, NAMES) as seen:
        story = Story(cluster, enabled.clusters, seen)
        yield {step["step"]: story.play(step) for step in SCENARIO}


@pytest.mark.parametrize("step", [step["step"] for step in SCENARIO])
def test_both_are_seen_to_go_through_the_same_states(played: dict[str, Played], step: str) -> None:
    real, simulated = (played[step].seen[name] for name in NAMES)
    unlike = []
    for key in sorted((real.keys() | simulated.keys()) - DIFFERENT.keys()):
        ours, theirs = (_told(seen.get(key, _NEVER)) for seen in (real, simulated))
        if ours[-1] != theirs[-1] or not within(theirs, ours):
            unlike.append(f"{' '.join(key)}: real {ours}, simulated {theirs}")
    assert unlike == [], "\n".join(unlike)


def test_both_get_there_within_the_same_time(played: dict[str, Played]) -> None:
    late = []
    for step in SCENARIO:
        real, simulated = (played[step["step"]].seconds[name] for name in NAMES)
        print(f"{step['step']:>26}: real {real:5.1f} s, simulated {simulated:5.1f} s, {step['apart']} s apart at most")
        if abs(real - simulated) > step["apart"]:
            late.append(f"{step['step']}: real after {real:.1f} s, simulated after {simulated:.1f} s")
    assert late == [], "\n".join(late)
