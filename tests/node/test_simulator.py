# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator compared with reality: the steps of scenario.yml are executed on a real node and on a simulated one, and both pass the same states.

The test compares labels, taints, conditions, resources and pods, each by the order of its states, and the times at which both nodes reach the
expected state. A state of the simulated node may be too short to be observed, but each of its observed states has to be observed of the real node
as well, in the same order, and both have to end in the same state.

Steps that need no driver to start are a short scenario of their own, on the node and its simulated twin that other tests use.

Runtime: half a minute for the short one, ten minutes for the other: three for the delays before the driver's startup probe, three until a plugin's probe fails
after its gate has closed.
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
from ansible_collections.hwaccel.gpu.tests.node.conftest import FLEET, GPU, REAL, TWO, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import defaults
from ansible_collections.hwaccel.gpu.tests.node.rig.observer import Key, Observer, within

#: The real and the simulated node: those that join, and those that are there.
LATE, PRESENT = ("real-2", "late-0"), (REAL, "twin-0")
SCENARIO: list[dict[str, t.Any]] = yaml.safe_load(
    pathlib.Path(__file__).with_name("scenario.yml").read_text(encoding="utf-8")
)
#: An image that is available on both nodes and contains a shell.
_IMAGE = defaults("gpu_validation")["gpu_validation_image"]
_USER = "user-of-a-gpu"
SHORT = [step for step in SCENARIO if step.get("short")]
#: Seconds without a change after which a step is complete, and the same for a step without a driver, whose changes come at once.
QUIET, SHORTLY = 8, 4
#: Permitted differences, and their reasons.
DIFFERENT: dict[Key, str] = {
    (
        "label",
        "nvidia.com/gpu.deploy.dra-driver",
    ): "the stand-in for the driver manager does not support the DRA driver",
    (
        "capacity",
        "nvidia.com/gpu",
    ): "the kubelet removes the devices of a deleted plugin after five minutes, which have passed in the simulator's time",
    ("label", "nvidia.com/gpu.machine"): "the machine that runs the tests may have no table of DMI with its name",
    # The control plane sets these taints for the condition Ready, which is compared; for a short time without readiness it may set none.
    (
        "taint",
        "node.kubernetes.io/not-ready",
    ): "a rebooted node is not ready for seconds, a simulated one for a tenth of a second",
    ("taint", "node.kubernetes.io/unreachable"): "as above",
    ("pod", "nfd-master"): "controllers run where the scheduler places them",
    ("pod", "nfd-gc"): "as above",
}
_READY = ("Running, ready", "Succeeded")
_NEVER = ["never observed"]
#: States of a pod between two containers, between start and readiness, and between deletion and end. They last for moments, and a fast or a busy kubelet
#: may report the next state at once. They count only as the last state of a pod.
_BETWEEN = ("Pending", "Running", "terminating")
Sequences = dict[str, dict[Key, list[str]]]


def key_of(text: str) -> Key:
    """The key of a text in scenario.yml, such as "allocatable nvidia.com/gpu"."""
    return tuple(text.split(" ", 1))


@dataclasses.dataclass
class Played:
    """The results of a step. observed: states of each node. seconds: times at which each node reached the expected state."""

    observed: Sequences
    seconds: dict[str, float]


@dataclasses.dataclass
class Scenario:
    """The nodes, and the actions of a scenario on them. names: the real node's and the simulated one's. quiet: seconds that end a step."""

    cluster: Cluster
    clusters: site.Clusters
    observer: Observer
    names: tuple[str, str]
    quiet: float
    real: KubernetesNode | None = None

    def play(self, step: dict[str, t.Any]) -> Played:
        start = time.monotonic()
        for action, parameters in step["do"].items():
            ACTIONS[action](self, parameters)
        seconds: dict[str, float] = {}

        def done() -> bool:
            for name in self.names:
                if name not in seconds and self.reached(name, step):
                    seconds[name] = time.monotonic() - start
            return len(seconds) == len(self.names)

        try:
            self.cluster.wait(f"{step['step']}: both nodes have reached the expected state", done, 300)
            self.cluster.wait(f"{step['step']}: no further changes", lambda: self.observer.quiet() > self.quiet, 120)
        except AssertionError as late:
            raise AssertionError(
                "\n".join([str(late), *(f"{name}: {self.observer.sequences(name)}" for name in self.names)])
            ) from None
        played = Played({name: self.observer.sequences(name) for name in self.names}, seconds)
        self.observer.forget()
        return played

    def reached(self, name: str, step: dict[str, t.Any]) -> bool:
        now, sequences = self.observer.now(name), self.observer.sequences(name)
        pods = [state for (kind, *_name), state in now.items() if kind == "pod"]
        return (
            all(now.get(key_of(key), "") == value for key, value in step.get("until", {}).items())
            and all(value in sequences.get(key_of(key), ()) for key, value in step.get("passes", {}).items())
            and (not step.get("ready") or all(state in _READY for state in pods))
        )

    def join(self, _nothing: object) -> None:
        real, simulated = self.names
        late = {"name": simulated.partition("-")[0], "count": 1, "gpu": GPU, "labels": TWO}
        self.cluster.sandbox.set_fleet({**FLEET, "pools": [*FLEET["pools"], late]})
        self.real = self.cluster.join(real, gpus=2, labels=TWO)

    def site(self, _nothing: object) -> None:
        run = site.playbook("site", self.clusters)
        assert run.rc == 0, run.stdout[-6000:]

    def take(self, _nothing: object) -> None:
        for name in self.names:
            self.cluster.client.create(_user(name), POD)

    def release(self, _nothing: object) -> None:
        for name in self.names:
            self.cluster.client.delete(POD, f"user-{name}", "default")

    def label(self, labels: dict[str, str | None]) -> None:
        for name in self.names:
            self.cluster.client.patch(NODE, name, "", {"metadata": {"labels": labels}}, field_manager="people")

    def fail_gpu(self, fault: dict[str, int]) -> None:
        assert self.real
        self.cluster.sandbox.add_fault("gpu_ecc_error", node=self.names[1], xid=str(fault["xid"]))
        self.real.set_gpus(2, {"xid": {"1": fault["xid"]}})

    def repair_gpu(self, _nothing: object) -> None:
        assert self.real
        self.cluster.sandbox.clear_faults()
        self.real.set_gpus(2)

    def reboot(self, _nothing: object) -> None:
        assert self.real
        self.cluster.sandbox.reboot(self.names[1])
        self.real.machine.reboot()

    def restart(self, labels: dict[str, str]) -> None:
        """Deletes pods by their labels, such as those of controllers, on all nodes."""
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        for pod in self.cluster.client.list(POD, label_selector=selector).items:
            self.cluster.client.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"])

    def leave(self, _nothing: object) -> None:
        """The machine is powered off, and its Node is deleted."""
        assert self.real
        self.real.machine.sh("systemctl stop kubelet")
        self.cluster.client.delete(NODE, self.names[0])
        self.cluster.sandbox.set_fleet(FLEET)


#: Actions of scenario.yml.
ACTIONS: dict[str, c.Callable[[Scenario, t.Any], None]] = {
    "join": Scenario.join,
    "site": Scenario.site,
    "take": Scenario.take,
    "release": Scenario.release,
    "label": Scenario.label,
    "fail_gpu": Scenario.fail_gpu,
    "repair_gpu": Scenario.repair_gpu,
    "reboot": Scenario.reboot,
    "restart": Scenario.restart,
    "leave": Scenario.leave,
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


def _lasting(states: list[str]) -> list[str]:
    states = [state for state in states[:-1] if state not in _BETWEEN] + states[-1:]
    return [state for state, _same in itertools.groupby(states)]


def differences(observed: Sequences, names: tuple[str, str]) -> list[str]:
    real, simulated = (observed[name] for name in names)
    found = []
    for key in sorted((real.keys() | simulated.keys()) - DIFFERENT.keys()):
        ours, theirs = (_lasting(states.get(key, _NEVER)) for states in (real, simulated))
        if ours[-1] != theirs[-1] or not within(theirs, ours):
            found.append(f"{' '.join(key)}: real {ours}, simulated {theirs}")
    return found


def late(step: dict[str, t.Any], seconds: dict[str, float], names: tuple[str, str]) -> str:
    """How far apart the nodes reached the expected state, "" if that is permitted."""
    real, simulated = (seconds[name] for name in names)
    line = f"{step['step']:>26}: real {real:5.1f} s, simulated {simulated:5.1f} s"
    print(f"{line}, {step['apart']} s apart at most")
    return line if abs(real - simulated) > step["apart"] else ""


@pytest.mark.slow
def test_a_node_and_its_twin_pass_the_same_states_in_the_short_scenario(cluster: Cluster, enabled: Enabled) -> None:
    assert [step["step"] for step in SHORT][-1:] == ["the GPU is free"], "both nodes are left as they were"
    with Observer(cluster.sandbox.kubeconfig, PRESENT) as observer:
        scenario = Scenario(cluster, enabled.clusters, observer, PRESENT, SHORTLY)
        played = {step["step"]: scenario.play(step) for step in SHORT}
    found = {step: differences(one.observed, PRESENT) for step, one in played.items()}
    assert {step: lines for step, lines in found.items() if lines} == {}
    assert [line for step in SHORT if (line := late(step, played[step["step"]].seconds, PRESENT))] == []


@pytest.fixture(scope="module")
def played(cluster: Cluster, enabled: Enabled) -> c.Iterator[dict[str, Played]]:
    with Observer(cluster.sandbox.kubeconfig, LATE) as observer:
        scenario = Scenario(cluster, enabled.clusters, observer, LATE, QUIET)
        yield {step["step"]: scenario.play(step) for step in SCENARIO}


@pytest.mark.slow
@pytest.mark.parametrize("step", [step["step"] for step in SCENARIO])
def test_both_nodes_pass_the_same_states(played: dict[str, Played], step: str) -> None:
    found = differences(played[step].observed, LATE)
    assert found == [], "\n".join(found)


@pytest.mark.slow
def test_both_nodes_reach_the_expected_states_within_the_same_time(played: dict[str, Played]) -> None:
    found = [line for step in SCENARIO if (line := late(step, played[step["step"]].seconds, LATE))]
    assert found == [], "\n".join(found)
