# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory with an existing GPU stack and simulated controllers: DaemonSet controller, kubelet, device plugin. And a run of all stages on it."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet_existing, validation
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.unit.clusters import kinds
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj, copied
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import WRITES
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations import validation_fleets
from ansible_collections.hwaccel.gpu.tests.unit.operations.foreign_stacks import (
    ALL_NO_SCHEDULE,
    OPERATOR_IMAGE,
    Agent,
    Stack,
)

#: The validation pod of the roles, with its tolerations.
POD = validation_fleets.POD | {
    "spec": {
        **validation_fleets.POD["spec"],
        "tolerations": [ALL_NO_SCHEDULE, {"key": "nvidia.com/gpu", "operator": "Exists"}],
    }
}
DRIVER_CRASH, PLUGIN_CRASH, VALIDATOR_STUCK, NO_TOOLKIT = (
    "driver crash",
    "plugin crash",
    "validator stuck",
    "no toolkit",
)
_LOGS = {
    "driver": "NVRM: Xid (PCI:0000:3b:00): 119, pid=1, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"
    "Could not load NVIDIA driver kernel modules: exiting\n",
    "validator": "running command bash with args [-c cp /usr/bin/nvidia-validator]\ncommand failed, retrying after 5 seconds\n",
}


class Foreign(validation_fleets.ValidationCluster):
    """Four nodes with GPUs and two without. `faults`: fault by node. Controllers run while time passes (`reconcile`)."""

    def __init__(self, existing: Stack) -> None:
        labels = {
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.memory": "81559",
            "nvidia.com/gpu.present": "true",
            **dict(existing.labels),
            names.DRIVER_VERSION_LABEL: "580.178.04",
        }
        taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        gpu_nodes = [s.node(f"gpu-{number}", labels=labels, allocatable=8, taints=[taint]) for number in range(4)]
        super().__init__(*gpu_nodes, s.node("cpu-0", gpus=0), s.node("cpu-1", gpus=0))
        if existing.policy:
            self.kinds.append(kinds.served("nvidia.com/v1", "ClusterPolicy", "clusterpolicies", namespaced=False))
            self.put({"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}})
        self.stack, self.faults = existing, dict[str, str]()
        self._created = 0
        self.reconcile()

    @property
    def changed_foreign(self) -> list[str]:
        """Writes other than patches of Nodes and those for our own Jobs: there must be none."""
        return [
            f"{request.kind} {request.name}"
            for request in self.requests
            if request.verb in WRITES
            and (request.verb, request.kind) != ("patch", "Node")
            and (request.kind, request.namespace) != ("Job", "n")
        ]

    def reconcile(self) -> None:
        """Update all objects like the controllers do."""
        for agent in self.stack.agents:
            nodes = {node["metadata"]["name"]: node for node in self.all_of("Node")}
            desired = [name for name, node in nodes.items() if _runs_on(agent, node)]
            for name in nodes:
                known = self._pod_of(agent, name)
                # A taint with the effect NoSchedule does not evict running pods.
                if known is None and name not in desired:
                    continue
                self.show(self._agent_pod(agent, name, known))
            template = agent.template()
            status = {
                "observedGeneration": 1,
                **dict.fromkeys(
                    ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled"), len(desired)
                ),
            }
            metadata = {
                "name": agent.name,
                "namespace": agent.namespace,
                "generation": 1,
                "managedFields": [{"manager": agent.manager}],
            }
            spec = {"template": template, "updateStrategy": {"type": agent.strategy}}
            self.show({"kind": "DaemonSet", "metadata": metadata, "spec": spec, "status": status})
        for number in range(4):
            name = f"gpu-{number}"
            node = copied(self.stored("Node", name))
            node["status"]["allocatable"][s.GPU] = (
                "0" if self._fault(name) in (DRIVER_CRASH, PLUGIN_CRASH, NO_TOOLKIT) else "8"
            )
            self.show(node)
            if self.stack.policy:
                self.show(self._bare("nvidia-cuda-validator", name, "cuda-validation", "Succeeded"))

    def repair(self, name: str) -> None:
        """Remove the fault, and delete the pod of the driver, as an administrator must with OnDelete."""
        self.faults.pop(name)
        for agent in self.stack.agents:
            if agent.part == "driver":
                self.remove("Pod", f"{agent.name}-{name}", agent.namespace)
        self.reconcile()

    def foreign_objects(self) -> Obj:
        """All foreign objects, without the status that their controllers report."""
        agents = {agent.name for agent in self.stack.agents if not agent.manager.startswith("hwaccel.gpu/")}
        pods = [
            pod["metadata"]["name"]
            for pod in self.all_of("Pod")
            if pod["metadata"]["ownerReferences"][0]["name"] in agents | {"cluster-policy"}
        ]
        return {"DaemonSet": {name: self.stored("DaemonSet", name)["spec"] for name in agents}, "Pod": sorted(pods)}

    def log_of(self, pod: str, container: str, previous: bool) -> str:
        part = next((agent.part for agent in self.stack.agents if pod.startswith(f"{agent.name}-")), "")
        return _LOGS.get(part) or super().log_of(pod, container, previous)

    def _pod_of(self, agent: Agent, name: str) -> Obj | None:
        return self.objects.get((kinds.POD.plural, agent.namespace, f"{agent.name}-{name}"))

    def _fault(self, name: str) -> str:
        driver_missing = self.stack.has_driver and not any(
            self._pod_of(agent, name) for agent in self.stack.agents if agent.part == "driver"
        )
        return DRIVER_CRASH if driver_missing else self.faults.get(name, "")

    def _agent_pod(self, agent: Agent, name: str, known: Obj | None) -> Obj:
        inits, main, sandbox = _statuses(agent, name, self._fault(name))
        initializing = bool(inits) and any(
            status["state"].get("terminated", {}).get("exitCode") != 0 for status in inits.values()
        )
        containers = dict.fromkeys((agent.container, *agent.beside), main)
        pod = s.pod(
            agent.name,
            name,
            inits,
            containers,
            agent.image,
            phase="Pending" if initializing or not sandbox else "Running",
            sandbox=sandbox,
        )
        template = agent.template()
        self._created += known is None
        held = (
            known["metadata"]
            if known
            else {
                "uid": f"uid-{self._created}",
                "creationTimestamp": f"2026-11-20T{self._created // 60:02d}:{self._created % 60:02d}:00Z",
            }
        )
        owner = {"kind": "DaemonSet", "name": agent.name, "controller": True}
        pod["metadata"] |= {
            "name": f"{agent.name}-{name}",
            "namespace": agent.namespace,
            "uid": held["uid"],
            "creationTimestamp": held["creationTimestamp"],
            "ownerReferences": [owner],
            "labels": template["metadata"]["labels"],
        }
        pod["spec"] = template["spec"] | {"nodeName": name}
        return pod

    def _bare(self, prefix: str, name: str, step: str, phase: str) -> Obj:
        """A pod that the operator's validator creates itself: it is newer than all others, and stays when it has completed."""
        pod = s.pod(prefix, name, {step: s.done()}, {prefix: s.done()}, OPERATOR_IMAGE, phase=phase, ready=False)
        pod["metadata"] |= {
            "name": f"{prefix}-{name}",
            "namespace": self.stack.agents[0].namespace,
            "uid": f"uid-{prefix}-{name}",
            "labels": {"app": prefix},
            "creationTimestamp": "2026-11-21T00:00:00Z",
            "ownerReferences": [{"kind": "ClusterPolicy", "name": "cluster-policy", "controller": True}],
        }
        return pod


def _runs_on(agent: Agent, node: Obj) -> bool:
    """Whether the DaemonSet controller creates a pod: by node selector, and taints with the effects NoSchedule and NoExecute."""
    labels, taints = node["metadata"]["labels"], (node.get("spec") or {}).get("taints") or []
    return all(labels.get(key) == value for key, value in agent.selector) and all(
        any(
            one.get("key", taint["key"]) == taint["key"]
            and one.get("effect", taint["effect"]) == taint["effect"]
            and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""))
            for one in agent.tolerations
        )
        for taint in taints
        if taint["effect"] in ("NoSchedule", "NoExecute")
    )


def _statuses(agent: Agent, name: str, fault: str) -> tuple[dict[str, Obj], Obj, bool]:
    """Statuses of init containers and containers, and whether there is a sandbox, like the kubelet reports them."""
    crash, done = s.crash_loop("x", 6), dict.fromkeys(agent.inits, s.done())
    if name.startswith("cpu"):
        return done, crash if agent.part in ("plugin", "exporter") else s.running(), True
    if (
        fault == NO_TOOLKIT
        and agent.runtime
        and not agent.name.startswith("nvidia-operator")
        and "toolkit-validation" not in agent.inits[:1]
    ):
        return dict.fromkeys(agent.inits, s.waiting()), s.waiting("ContainerCreating"), False
    held = {
        DRIVER_CRASH: {"driver": agent.inits[0] if agent.installer else agent.container, "nfd": ""},
        PLUGIN_CRASH: {"plugin": agent.container, "validator": "plugin-validation"},
        VALIDATOR_STUCK: {"validator": "cuda-validation"},
        NO_TOOLKIT: {"toolkit": agent.container, "validator": "toolkit-validation", "driver": "", "nfd": ""},
        "": {},
    }[fault]
    at = held.get(agent.part, "")
    if agent.part not in held and fault in (DRIVER_CRASH, NO_TOOLKIT):
        # A pod that needs a driver waits for it in its first init container, or crashes.
        at = agent.inits[0] if agent.inits else agent.container
    if at == agent.container:
        return done, crash, True
    if at not in agent.inits:
        return done, s.running(), True
    before = agent.inits.index(at)
    inits = {one: s.done() if number < before else s.waiting() for number, one in enumerate(agent.inits)}
    return inits | {at: crash if agent.installer else s.running(ready=False)}, s.waiting(), True


@dataclasses.dataclass
class Site:
    """The result of a run of all stages. `failed`: (gate, row of the fault) by node."""

    failed: dict[str, tuple[str, Obj]]
    changed: bool
    released: list[str]
    proven: int
    took: float


def site(cluster: Foreign, clock: t.Any) -> Site:
    """All gates and the validation, like the roles run them for the components that preflight detects."""
    cluster.on_idle, cluster.time = lambda: (clock.advance(20), cluster.reconcile()), clock
    found, began = fleet_existing.components(t.cast(t.Any, cluster)), clock.now
    provider = cluster.stack.provider or ("existing" if found["cluster_policy"] or found["driver"] else "host")
    spaces = {
        "features": _space(found, "nfd"),
        "driver": _space(found, "driver", "device_plugin") if provider == "existing" else s.NAMESPACE,
        "devices": _space(found, "device_plugin"),
    }
    result = Site({}, False, [], 0, 0.0)
    for gate, space in spaces.items():
        settings = Settings(
            gate,
            namespace=space,
            max_failed="1",
            exclude=frozenset(result.failed),
            driver_providers={"default": provider} if gate == "driver" else {},
        )
        outcome = run(settings, t.cast(t.Any, cluster))
        assert outcome.failure is None and not outcome.warnings, (outcome.failure, outcome.warnings)
        result.failed |= {row["node"]: (gate, row) for row in outcome.values["faults"]}
        result.changed |= outcome.changed
        result.released += outcome.values["released"]
    options = validation.Settings(POD, exclude=frozenset(result.failed), options=RunOptions(namespace="n"))
    proofs = validation.run(options, t.cast(t.Any, cluster), cluster.clock())
    assert proofs.failure is None, proofs.failure
    return dataclasses.replace(
        result,
        changed=result.changed or proofs.changed,
        proven=proofs.values["nodes"]["passed"],
        took=clock.now - began,
    )


def _space(found: dict[str, list[dict[str, str]]], *components: str) -> str:
    return next((row["namespace"] for one in components for row in found[one] if row["namespace"]), s.NAMESPACE)


def only_ours(writes: t.Sequence[tuple[str, Obj]]) -> bool:
    """Whether patches of Nodes change only our own labels and annotations. Taints are patched as a whole list, with unchanged foreign ones."""
    ours = re.compile(r"hwaccel\.gpu/")
    for _name, patch in writes:
        metadata = patch["metadata"]
        keys = [*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})]
        foreign = [one for one in patch.get("spec", {}).get("taints", []) if one["key"] != names.QUARANTINE]
        if (
            set(patch) - {"metadata", "spec"}
            or set(patch.get("spec", {})) - {"taints"}
            or not all(map(ours.match, keys))
        ):
            return False
        if "taints" in patch.get("spec", {}) and foreign != [
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        ]:
            return False
    return True
