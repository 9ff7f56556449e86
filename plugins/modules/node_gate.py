#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_gate
version_added: 0.1.0
short_description: Wait until GPU nodes have passed a stage, and keep those that failed apart
description:
  - Judges every GPU node at one gate, waits as long as nodes may still pass, and says for each that failed which link of the chain
    (hardware seen, driver, toolkit, cuda, plugin, schedulable) holds it, why, with the tail of the container's log, and what to do next.
  - A gate is what the cluster shows of a node. Gate V(features) is passed when Node Feature Discovery has labelled the node as it is now
    (its kernel label is the kernel that the kubelet reports, and declared GPUs are seen). Gate V(driver) is passed when the validator pod of the node
    has done its steps for driver, toolkit and CUDA, and is ready. Gate V(devices) is passed when the node's allocatable GPU resources are those expected.
  - Gate V(exporters) lies beside the chain. It judges nodes that are to have a pod of the DCGM exporter, is passed when that pod is ready, and marks no node.
    An exporter that waits for a driver, on a node whose gate V(driver) is closed, is not waited for. The node is reported in RV(held) and has not failed.
  - Gate V(features) also looks at nfd-master and nfd-gc, where they are Deployments of this collection. While one is not up the gate waits, at most two
    minutes without any change, and then fails with the cause, though no node has failed. One whose node is not Ready is only warned of, because Kubernetes
    moves it by itself. This takes the right to list Deployments in all namespaces.
  - Failed nodes are quarantined with the taint C(hwaccel.gpu/quarantine:NoSchedule), a label of the same name and the annotation
    C(hwaccel.gpu/quarantine-reason). A later run lifts this when the node passes the same gate, or a later one. Taints and cordons of others are never touched.
  - Where a DaemonSet of the chain that does not tolerate this taint is meant for the node, such as the GPU Operator's, the effect is C(PreferNoSchedule). Under
    C(NoSchedule) that DaemonSet could make no pod there, and the node could not heal. A mark of the other effect is changed at the beginning of a run,
    before the gate waits. This takes the right to list DaemonSets in all namespaces. Without it the mark is C(PreferNoSchedule).
  - A breaker comes first. Where more nodes failed than O(max_failed) allows, the cause is probably not theirs. Then no node is quarantined, and the task fails.
  - What the module itself cannot find out, because the API server does not answer, makes a node C(unknown), never C(failed). Such a task fails, and
    marks no node.
  - A failure that was there before the run, such as a container in its back-off, gets one more try before it counts.
  - At gates V(devices) and V(exporters) a node that has failed by a pod passes or stays so. That its container runs for a moment between two back-offs
    changes nothing.
  - With O(state=absent) nothing is judged. The quarantine that this gate imposed is lifted from all nodes, for when what is judged is taken away.
    With O(gate=driver) the labels C(nvidia.com/gpu.deploy.*) go as well that NVIDIA's driver manager has left there without a value, and its mark of
    a driver of the host.
  - In check mode the module looks once. It waits for nothing, never fails because of a node, writes nothing, and returns what it would do. It asks
    whether the run may do that. Where the run would fail for lack of rights, the check does so, and names all of them (RV(missing_rights)).
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  gate:
    description: The gate to judge.
    type: str
    required: true
    choices: [features, driver, devices, exporters]
  state:
    description:
      - With V(present) the gate is judged.
      - With V(absent) every quarantine that O(gate) imposed is lifted, whether the nodes pass or not. Of the other options only those of the connection
        are heeded.
    type: str
    default: present
    choices: [present, absent]
  pools:
    description:
      - Declared pools, as in the inventory variable C(hwaccel_pools). Each has C(name), and C(selector) or C(nodes), and what is to be expected of its nodes.
      - Pools that overlap are faults, all reported at once.
      - A node that a pool names under C(nodes) and that the cluster does not have is waited for, and has failed where it does not join.
        It is not quarantined, as there is nothing to mark. Check mode warns of it.
      - GPU nodes outside of every declared pool belong to pool C(default).
    type: list
    elements: dict
    default: []
  driver_providers:
    description:
      - Who brings the driver of a pool, by the pool's name, where the pool does not say so itself. The role C(driver) decides it for all of its pools.
      - V(host) and V(existing) need no driver pod, of V(none) nothing is judged.
    version_added: 0.2.0
    type: dict
    default: {}
  plugin_configs:
    description:
      - Configurations of the device plugin by name, as its configuration files have them.
        Replicas, renamed resources and the MIG strategy change what is expected.
      - The node label C(nvidia.com/device-plugin.config), then C(plugin_config) of the pool, then C(default) says which one a node has.
    type: dict
    default: {}
  namespace:
    description: Namespace of the pods that the gate reads.
    type: str
    default: hwaccel-gpu
  driver_namespace:
    description:
      - Namespace of driver, toolkit and validator, where it is another than O(namespace).
      - Only gate V(exporters) heeds it. By these pods it tells which exporters wait for a driver that does not work.
    version_added: 0.2.0
    type: str
  pod_selector:
    description:
      - Label selector of the gate's own pods (the NFD workers, the validators, the device plugins, the exporters).
      - By default they are recognised by their containers, also those that another deployer made.
    type: str
  daemon_sets:
    description:
      - The DaemonSets that are to be in the cluster, as O(patches) leaves them. The roles give those that they have applied.
      - A node that one of them takes by its node selector and affinity has to have its pod, whatever became of the DaemonSet in the cluster. Where the pod
        is missing the node does not pass, and the cause is reported with the DaemonSet, its field and the field manager that wrote it, as far as known.
      - A component that somebody keeps from a node by its label C(nvidia.com/gpu.deploy.COMPONENT=false) is not missing. One that such a label pauses
        (C(paused-for-driver-upgrade), C(paused-for-mig-change)) is waited for.
      - An empty list means that another deployment brings them. By default every node with a GPU that DCGM knows has to have an exporter at gate
        V(exporters), and the other gates judge by the pods that they need.
    version_added: 0.2.0
    type: list
    elements: dict
  patches:
    description: Patches of O(daemon_sets), as M(hwaccel.gpu.manifest_set) has them. Those that match no DaemonSet are left out.
    version_added: 0.2.0
    type: list
    elements: dict
    default: []
  max_failed:
    description:
      - So many failed nodes are borne, as a number or as a percentage of the nodes judged.
      - A percentage is rounded up, but one below 100 never covers all nodes.
    type: str
    default: "0"
  quarantine:
    description: Whether failed nodes are kept from new pods, and passed ones given back.
    type: bool
    default: true
  exclude:
    description: Names of nodes to leave out, such as those that failed at an earlier gate.
    type: list
    elements: str
    default: []
  wait_timeout:
    description:
      - Seconds after which a node that still waits has failed.
      - The default grows with the fleet. It is 300, at gate V(driver) 1800, and 0.3 more for each node.
    type: float
  sample:
    description: At most so many nodes are reported in RV(faults) with reason and log. Only they cost further requests.
    type: int
    default: 20
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.waiting
  - hwaccel.gpu.attributes
  - hwaccel.gpu.attributes.cluster_group
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: hwaccel.gpu.manifest_set
  - module: hwaccel.gpu.node_info
"""

EXAMPLES = r"""
- name: Wait until the driver works on every GPU node, and go on if at most every tenth failed
  hwaccel.gpu.node_gate:
    kubeconfig: /etc/kubernetes/admin.conf
    gate: driver
    max_failed: 10%
  register: driver_gate

- name: Wait until the GPUs of the others can be scheduled
  hwaccel.gpu.node_gate:
    kubeconfig: /etc/kubernetes/admin.conf
    gate: devices
    pools:
      - name: training
        selector: pool=training
        gpu:
          product: NVIDIA-H100-80GB-HBM3
          count: 8
    max_failed: 10%
    exclude: "{{ driver_gate.failed_nodes }}"

- name: Give back all nodes that the driver gate keeps apart
  hwaccel.gpu.node_gate:
    kubeconfig: /etc/kubernetes/admin.conf
    gate: driver
    state: absent
"""

RETURN = r"""
gate:
  description: The gate that was judged, or whose quarantine was lifted.
  returned: when the gate has ended
  type: str
  sample: driver
nodes:
  description: How many nodes are in which state.
  returned: when the gate has ended
  type: dict
  sample: {"passed": 15, "waiting": 0, "failed": 1, "unknown": 0}
failed_nodes:
  description: Names of the nodes that failed, for O(exclude) of later gates.
  returned: when the gate has ended
  type: list
  elements: str
  sample: ["training-3"]
within_limit:
  description: Whether no more nodes failed than O(max_failed) allows.
  returned: when the gate has ended
  type: bool
  sample: true
max_failed_nodes:
  description: What O(max_failed) is as a number of nodes.
  returned: when the gate has ended
  type: int
  sample: 2
faults:
  description:
    - Nodes that have not passed, failed ones first, at most O(sample).
  returned: when the gate has ended
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      type: str
      sample: training-3
    pool:
      description: Its pool.
      type: str
      sample: training
    state:
      description: What is known of it, V(failed), V(unknown), or in check mode V(waiting).
      type: str
      sample: failed
    link:
      description: The link of the chain that holds it, one of V(hardware seen), V(driver), V(toolkit), V(cuda), V(plugin), V(schedulable).
        At gate V(exporters) it is V(exporter).
      type: str
      sample: driver
    reason:
      description: Why.
      type: str
      sample: container nvidia-driver-ctr of pod driver-x7k2p crashed 3 times, last with exit code 1
    pod:
      description: The pod that tells why.
      type: str
      sample: driver-x7k2p
    container:
      description: The container of RV(faults[].pod) that tells why.
      type: str
      sample: nvidia-driver-ctr
    log_tail:
      description: The last lines of its log, and of its run before, where it was restarted.
      type: str
      sample: "modprobe: ERROR: could not insert 'nvidia': No such device"
    next_step:
      description: What to do now.
      type: str
      sample: read its log
held:
  description:
    - Nodes that were not judged, at most O(sample). Somebody has switched off what would be judged, by a label C(nvidia.com/gpu.deploy.COMPONENT=false).
      At gate V(exporters) also those whose exporter waits for a driver that gate V(driver) has not passed there.
    - Each with C(node), C(pool), C(link), C(reason) and C(next_step) as in RV(faults), in the latter case of gate V(driver).
  returned: when the gate has ended
  type: list
  elements: dict
  sample: []
pools:
  description: One row for each pool with nodes in this gate.
  returned: when the gate has ended
  type: list
  elements: dict
  contains:
    pool:
      description: Name of the pool.
      type: str
      sample: training
    nodes:
      description: Number of nodes judged.
      type: int
      sample: 8
    expected:
      description: Number of GPU devices expected on them.
      type: int
      sample: 64
    seen:
      description: Number of GPU devices that can be scheduled.
      type: int
      sample: 56
    resources:
      description: The same by name of the resource.
      type: dict
      sample: {"nvidia.com/gpu": {"expected": 64, "seen": 56}}
    passed:
      description: Number of nodes that passed.
      type: int
      sample: 7
    waiting:
      description: Number of nodes that wait, in check mode.
      type: int
      sample: 0
    failed:
      description: Number of nodes that failed.
      type: int
      sample: 1
    unknown:
      description: Number of nodes of which nothing is known.
      type: int
      sample: 0
    settled:
      description: When the last of them no longer waited, in seconds since 1970; the gate's begin where none did.
      type: float
      sample: 1780000000.0
    simulated:
      description: Number of nodes behind which no machine stands.
      type: int
      sample: 0
    kernels:
      description: Kernels of the nodes.
      type: list
      elements: str
      sample: ["6.8.0-111-generic"]
    drivers:
      description: Versions of the driver, as far as GPU Feature Discovery, the host or the driver's image tell them.
      type: list
      elements: str
      sample: ["580.178.04"]
quarantined:
  description:
    - Nodes that this run quarantined, or in check mode would. Those that were so before are not named again, unless the effect of their taint changed.
  returned: when the gate has ended
  type: list
  elements: str
  sample: ["training-3"]
released:
  description: Nodes that this run gave back, or in check mode would.
  returned: when the gate has ended
  type: list
  elements: str
  sample: []
switched:
  description:
    - Nodes to which this run gave the labels C(nvidia.com/gpu.deploy.COMPONENT=true) that they lacked, or in check mode would.
    - By them NVIDIA's driver manager makes the pods that use a driver leave the node, before it loads another one. Only at gate V(driver).
    - In check mode nodes that wait are among them, as far as a driver of this collection is there or nothing says that another will come. Where only the
      declaration of their pool says that they have GPUs, this is an assumption. GPU nodes that nothing shows yet are not among them.
  returned: when the gate has ended
  type: list
  elements: str
  sample: ["training-0"]
missing_rights:
  description:
    - In check mode, rights that the run would lack, by C(verb), C(resource), C(group) and C(namespace). Otherwise empty.
    - Only those are asked for that this gate would use, by what it has seen and by its options. Nodes are patched only where one is to be marked, freed or
      labelled, or one waits and may fail. Without O(quarantine) that is at gate V(driver) alone.
    - Logs of pods and events are read to tell why a node failed, and DaemonSets of all namespaces to choose the effect of a taint. A run goes on without
      these rights, so their lack is a warning.
  returned: when the gate has ended
  type: list
  elements: dict
  sample: [{"verb": "patch", "resource": "nodes", "group": "", "namespace": ""}]
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import parse_plugin_config
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine, switches
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings, declared

ARGUMENT_SPEC: dict[str, t.Any] = {
    "gate": {"type": "str", "required": True, "choices": ["features", "driver", "devices", "exporters"]},
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "pools": {"type": "list", "elements": "dict", "default": []},
    "driver_providers": {"type": "dict", "default": {}},
    "plugin_configs": {"type": "dict", "default": {}},
    "namespace": {"type": "str", "default": "hwaccel-gpu"},
    "driver_namespace": {"type": "str"},
    "pod_selector": {"type": "str"},
    "daemon_sets": {"type": "list", "elements": "dict"},
    "patches": {"type": "list", "elements": "dict", "default": []},
    "max_failed": {"type": "str", "default": "0"},
    "quarantine": {"type": "bool", "default": True},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "wait_timeout": {"type": "float"},
    "sample": {"type": "int", "default": 20},
}


def settings_of(params: dict[str, t.Any]) -> Settings:
    return Settings(
        gate=params["gate"],
        pools=parse_pools(params["pools"]),
        driver_providers={name: str(provider) for name, provider in params["driver_providers"].items()},
        namespace=params["namespace"],
        driver_namespace=params.get("driver_namespace") or "",
        pod_selector=params.get("pod_selector") or "",
        daemon_sets=None
        if params.get("daemon_sets") is None
        else declared(params["daemon_sets"], params.get("patches")),
        max_failed=params["max_failed"],
        quarantine=params["quarantine"],
        exclude=frozenset(params["exclude"]),
        wait_timeout=params.get("wait_timeout"),
        sample=params["sample"],
        plugin_configs={name: parse_plugin_config(config) for name, config in params["plugin_configs"].items()},
    )


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    if params["state"] == "absent":
        client, check_mode = context.client(), context.check_mode
        released = quarantine.lift(client, params["gate"], check_mode=check_mode)
        taken = switches.take_back(client, check_mode=check_mode) if params["gate"] == "driver" else []
        values = {"gate": params["gate"], "quarantined": [], "released": released, "switched": [], "missing_rights": []}
        outcome = Outcome(bool(released or taken), values)
        return rights.of_marking(client).added_to(outcome) if check_mode and outcome.changed else outcome
    return run(
        settings_of(params),
        context.client(),
        check_mode=context.check_mode,
        deadline=context.deadline,
        resume=context.resume,
    )


def main() -> None:
    run_module(ARGUMENT_SPEC, operation, waits=True, supports_check_mode=True)


if __name__ == "__main__":
    main()
