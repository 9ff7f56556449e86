#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_gate
version_added: 0.1.0
short_description: Wait until GPU nodes have passed a stage, and quarantine those that failed
description:
  - Judges every GPU node at one gate and waits as long as nodes may still pass. For each node that failed it reports which link of the chain
    (hardware seen, driver, toolkit, cuda, plugin, schedulable) failed, why, the tail of the container's log, and what to do next.
  - A gate judges the state that the cluster reports of a node. Gate V(features) is passed when the labels of Node Feature Discovery are current
    (its kernel label is the kernel that the kubelet reports, and declared GPUs are detected). Gate V(driver) is passed when the validator pod of the node
    has completed its steps for driver, toolkit and CUDA, and is ready. Gate V(devices) is passed when the node has the expected allocatable GPU resources.
  - Gate V(exporters) is not part of the chain. It judges nodes that should have a pod of the DCGM exporter, is passed when that pod is ready, and quarantines
    no node. If an exporter waits for a driver on a node that has not passed gate V(driver), the node is reported in RV(held) and has not failed.
  - Gate V(features) also checks nfd-master and nfd-gc, if they are Deployments of this collection. While one of them is not ready, the gate waits for at most
    two minutes without progress, and then fails with the cause, though no node has failed. If its node is not Ready, the gate only warns, because Kubernetes
    reschedules the pod. This needs permission to list Deployments in all namespaces.
  - Failed nodes are quarantined with the taint C(hwaccel.gpu/quarantine:NoSchedule), a label of the same name and the annotation
    C(hwaccel.gpu/quarantine-reason). A later run lifts the quarantine when the node passes the same gate or a later one. Taints and cordons of others are
    never changed.
  - If a DaemonSet of the chain that selects the node does not tolerate this taint, such as the GPU Operator's, the effect is C(PreferNoSchedule). With
    C(NoSchedule) that DaemonSet could create no pod there, and the node could not recover. A taint with the other effect is changed at the start of a run,
    before the gate waits. This needs permission to list DaemonSets in all namespaces. Without it the effect is C(PreferNoSchedule).
  - If more nodes failed than O(max_failed) allows, the nodes are probably not the cause. Then no node is quarantined, and the task fails.
  - If the API server does not answer, so that the module cannot judge a node, the node is C(unknown), never C(failed). Such a task fails, and
    quarantines no node.
  - A failure that existed before the run, such as a container in back-off, gets one more attempt before it counts.
  - At gates V(devices) and V(exporters), a node that failed because of a pod stays failed until it passes. A container that runs briefly
    between two back-offs does not change that.
  - With O(state=absent) nothing is judged. The quarantine that this gate imposed is lifted from all nodes, for use when the components that it judges
    are removed. With O(gate=driver), the labels C(nvidia.com/gpu.deploy.*) that NVIDIA's driver manager left without a value are removed as well, and its
    label for a driver of the host.
  - In check mode the module reads the state once. It does not wait, never fails because of a node, writes nothing, and returns what it would do. It checks
    whether the run has the permissions for that. If the run would fail without them, the check fails and names all of them (RV(missing_rights)).
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
      - With V(absent) every quarantine that O(gate) imposed is lifted, whether the nodes pass or not. All other options except those of the connection
        are ignored.
    type: str
    default: present
    choices: [present, absent]
  pools:
    description:
      - Declared pools, as in the inventory variable C(hwaccel_pools). Each has C(name), C(selector) or C(nodes), and the expected properties of its nodes.
      - Pools that overlap are errors, all reported at once.
      - A node that a pool names under C(nodes) and that the cluster does not have is waited for, and fails if it does not join.
        It is not quarantined, because it has no Node object. Check mode warns about it.
      - GPU nodes outside of every declared pool belong to pool C(default).
    type: list
    elements: dict
    default: []
  driver_providers:
    description:
      - Provider of the driver of each pool, by the pool's name, for pools that do not declare it. The role C(driver) determines it for all of its pools.
      - V(host) and V(existing) need no driver pod. Pools with V(none) are not judged.
    version_added: 0.2.0
    type: dict
    default: {}
  plugin_configs:
    description:
      - Configurations of the device plugin by name, in the format of its configuration files.
        Replicas, renamed resources and the MIG strategy change the expected resources.
      - The configuration of a node is named by its label C(nvidia.com/device-plugin.config), else by C(plugin_config) of its pool, else it is C(default).
    type: dict
    default: {}
  namespace:
    description: Namespace of the pods that the gate reads.
    type: str
    default: hwaccel-gpu
  driver_namespace:
    description:
      - Namespace of driver, toolkit and validator, if it differs from O(namespace).
      - Only used by gate V(exporters), to determine which exporters wait for a driver that does not work.
    version_added: 0.2.0
    type: str
  pod_selector:
    description:
      - Label selector of the gate's own pods (the NFD workers, the validators, the device plugins, the exporters).
      - By default they are recognized by their containers, including those that another deployment created.
    type: str
  daemon_sets:
    description:
      - The desired DaemonSets, before O(patches). The roles pass those that they have applied.
      - Each node that matches the node selector and affinity of one of them must have its pod, regardless of the DaemonSet's state in the cluster. If the
        pod is missing, the node does not pass. The cause is reported with the DaemonSet, its field and the field manager that wrote it, as far as known.
      - A component that is disabled on a node by the label C(nvidia.com/gpu.deploy.COMPONENT=false) is not missing. One that such a label pauses
        (C(paused-for-driver-upgrade), C(paused-for-mig-change)) is waited for.
      - An empty list means that another deployment provides them. If the option is not set, every node with a GPU that DCGM supports must have an exporter
        at gate V(exporters), and the other gates judge by the pods that they need.
    version_added: 0.2.0
    type: list
    elements: dict
  patches:
    description: Patches of O(daemon_sets), as in M(hwaccel.gpu.manifest_set). Those that match no DaemonSet are ignored.
    version_added: 0.2.0
    type: list
    elements: dict
    default: []
  max_failed:
    description:
      - Maximum number of failed nodes, as a number or as a percentage of the nodes judged.
      - A percentage is rounded up, but a percentage below 100 never allows all nodes to fail.
    type: str
    default: "0"
  quarantine:
    description: Whether to quarantine failed nodes, and to release nodes that passed.
    type: bool
    default: true
  nodes:
    description: Names of the only nodes to judge, such as those that were just restarted. By default all are. Nodes without a GPU are not judged.
    version_added: 0.2.0
    type: list
    elements: str
  exclude:
    description: Names of nodes to exclude, such as those that failed at an earlier gate.
    type: list
    elements: str
    default: []
  wait_timeout:
    description:
      - Seconds after which a node that is still waiting has failed.
      - The default grows with the fleet. It is 300, or 1800 at gate V(driver), plus 0.3 for each node.
    type: float
  sample:
    description: Maximum number of nodes reported in RV(faults) with reason and log. Each of them needs additional requests.
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
- name: Wait until the driver works on every GPU node, and continue if at most 10% failed
  hwaccel.gpu.node_gate:
    kubeconfig: /etc/kubernetes/admin.conf
    gate: driver
    max_failed: 10%
  register: driver_gate

- name: Wait until the GPUs of the other nodes can be allocated
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

- name: Release all nodes that the driver gate has quarantined
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
  description: O(max_failed) as a number of nodes.
  returned: when the gate has ended
  type: int
  sample: 2
waited:
  description: Whether any node was waiting when it was first read.
  returned: when the gate has ended
  type: bool
  sample: false
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
      description: Its state, V(failed), V(unknown), or in check mode V(waiting).
      type: str
      sample: failed
    link:
      description: The link of the chain that failed, one of V(hardware seen), V(driver), V(toolkit), V(cuda), V(plugin), V(schedulable).
        At gate V(exporters) it is V(exporter).
      type: str
      sample: driver
    reason:
      description: Why.
      type: str
      sample: container nvidia-driver-ctr of pod driver-x7k2p crashed 3 times, last with exit code 1
    pod:
      description: The pod that shows the cause.
      type: str
      sample: driver-x7k2p
    container:
      description: The container of RV(faults[].pod) that shows the cause.
      type: str
      sample: nvidia-driver-ctr
    log_tail:
      description: The last lines of its log, and of its previous run if it was restarted.
      type: str
      sample: "modprobe: ERROR: could not insert 'nvidia': No such device"
    next_step:
      description: What to do next.
      type: str
      sample: read its log
held:
  description:
    - Nodes that were not judged, at most O(sample), because a label C(nvidia.com/gpu.deploy.COMPONENT=false) disables the component.
      At gate V(exporters) also those whose exporter waits for a driver that has not passed gate V(driver) there.
    - Each with C(node), C(pool), C(link), C(reason) and C(next_step) as in RV(faults), in the latter case of gate V(driver).
  returned: when the gate has ended
  type: list
  elements: dict
  sample: []
pools:
  description: One row for each pool with nodes at this gate.
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
      description: Number of GPU devices that are allocatable.
      type: int
      sample: 56
    resources:
      description: The same numbers by name of the resource.
      type: dict
      sample: {"nvidia.com/gpu": {"expected": 64, "seen": 56}}
    passed:
      description: Number of nodes that passed.
      type: int
      sample: 7
    waiting:
      description: Number of nodes that are waiting, in check mode.
      type: int
      sample: 0
    failed:
      description: Number of nodes that failed.
      type: int
      sample: 1
    unknown:
      description: Number of nodes whose state is unknown.
      type: int
      sample: 0
    settled:
      description: When the last of them stopped waiting, in seconds since 1970, or the start of the gate if none waited.
      type: float
      sample: 1780000000.0
    simulated:
      description: Number of simulated nodes, which have no machine.
      type: int
      sample: 0
    kernels:
      description: Kernels of the nodes.
      type: list
      elements: str
      sample: ["6.8.0-111-generic"]
    drivers:
      description: Versions of the driver, as far as known from GPU Feature Discovery, the host or the driver's image.
      type: list
      elements: str
      sample: ["580.178.04"]
quarantined:
  description:
    - Nodes that this run quarantined, or in check mode would. Nodes that were quarantined before are only listed if the effect of their taint changed.
  returned: when the gate has ended
  type: list
  elements: str
  sample: ["training-3"]
released:
  description: Nodes that this run released, or would release in check mode.
  returned: when the gate has ended
  type: list
  elements: str
  sample: []
switched:
  description:
    - Nodes to which this run added missing labels C(nvidia.com/gpu.deploy.COMPONENT=true), or would add them in check mode.
    - With these labels, NVIDIA's driver manager evicts the pods that use a driver before it loads another one. Only at gate V(driver).
    - In check mode, nodes that are waiting are included if a driver of this collection exists or nothing indicates that another one will be installed. If
      only the declaration of their pool says that they have GPUs, this is an assumption. Nodes that do not yet report a GPU are not included.
  returned: when the gate has ended
  type: list
  elements: str
  sample: ["training-0"]
missing_rights:
  description:
    - In check mode, permissions that the run would lack, by C(verb), C(resource), C(group) and C(namespace). Otherwise empty.
    - Only permissions that this gate would use are checked, according to its options and the observed state. Permission to patch nodes is needed only if a
      node is to be quarantined, released or labeled, or is waiting and may fail. Without O(quarantine) that is only at gate V(driver).
    - Logs of pods and events are read to report why a node failed, and DaemonSets of all namespaces to choose the effect of a taint. A run continues without
      these permissions, so their lack is a warning.
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
    "nodes": {"type": "list", "elements": "str"},
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
        nodes=None if params["nodes"] is None else frozenset(params["nodes"]),
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
