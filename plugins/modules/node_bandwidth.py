#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_bandwidth
version_added: 0.2.0
short_description: Measure the bandwidth between the GPUs of two nodes, pair by pair
description:
  - For each pool that declares an C(interconnect), the nodes on which no other pod holds a GPU are tested in pairs. On both nodes a pod takes all GPUs,
    and the two pods run all-reduces together with NCCL. The bus bandwidth must reach the declared one, and NCCL must have used the declared network.
  - If the number of nodes is odd, the last node is tested with the first node of its pool, as soon as that is free again.
  - If a pair fails and the cause cannot be attributed to one of its two nodes, each of them is tested once more with a node that has passed. If that does
    not decide it either, both are V(suspect).
  - The pods run as Jobs, like those of M(hwaccel.gpu.workload_run). If a run is killed, the cluster ends and deletes its Jobs. If one of the two pods
    fails, the other is ended at once.
  - The first pod must print C(listening at <address>) when it accepts connections. Then the second one is started, with that address in E(PEER_ADDRESS).
    Both get E(POD_ADDRESS), their own address, E(DEVICES), the number of GPUs that they must see, E(RANKS), the number of GPUs in both pods, E(FIRST_RANK),
    the number of GPUs in the pod before, E(PATIENCE_SECONDS), how long to wait for the other pod, and E(NCCL_DEBUG).
  - The log of the first pod must have a line of JSON with C(bus_bandwidth) in GB/s, and the logs must name the network as NCCL does, such as C(via NET/IB/0).
  - Both pods get memory for C(/dev/shm). If the pool declares C(resources), they run as root with the capability C(IPC_LOCK), which RDMA needs.
  - Nodes with GPU pods of others are V(busy), and so are both nodes of a pair of which one pod was preempted. Nodes that are not Ready, quarantined,
    cordoned, without GPUs or alone in their pool, or whose GPUs are shared, partitioned or integrated, are V(skipped). Neither is a failure.
  - To find other pods that hold GPUs, the module lists the pods of all namespaces, which needs that permission.
  - While two nodes are tested, which includes pulling the image, their GPUs are not available to users.
  - In check mode it reports which nodes would run pods. Each of these pods is validated by a server-side dry run.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  definition:
    description: Manifest of the pod. The module adds the node, and to its first container GPUs, resources of the pool's C(interconnect) and variables.
    type: dict
    required: true
  pools:
    description: Declared pools, as in the inventory variable C(hwaccel_pools). Those without C(interconnect) are skipped.
    type: list
    elements: dict
    default: []
  max_failed:
    description: Maximum number of failed nodes, as a number or as a percentage of the nodes. Two suspect nodes count as one.
    type: str
    default: "0"
  parallel:
    description: Maximum number of pairs tested at the same time.
    type: int
    default: 5
  start_timeout:
    description: Seconds within which a pod must start, including the time to pull its image. The second pod of a pair is started when the first one runs.
    type: float
    default: 1800
  timeout:
    description: Seconds within which the first pod must listen, and within which both must end once they run.
    type: float
    default: 300
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.waiting
  - hwaccel.gpu.tries
  - hwaccel.gpu.attributes
  - hwaccel.gpu.attributes.cluster_group
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Each run of the module runs the pods.
seealso:
  - module: hwaccel.gpu.node_allocation
  - module: hwaccel.gpu.node_validate
"""

EXAMPLES = r"""
- name: Verify that the nodes reach each other over InfiniBand
  hwaccel.gpu.node_bandwidth:
    kubeconfig: /etc/kubernetes/admin.conf
    pools:
      - name: training
        selector: node.example.com/pool=training
        interconnect: {transport: IB, min_bandwidth: 40, resources: {rdma/hca_shared_devices_a: 1}}
    definition:
      apiVersion: v1
      kind: Pod
      metadata:
        name: gpu-validation-bandwidth
      spec:
        runtimeClassName: nvidia
        terminationGracePeriodSeconds: 1
        containers:
          - name: cuda
            image: nvcr.io/nvidia/pytorch:26.08-py3
            command: [python3, -c]
            args: ["{{ lookup('ansible.builtin.file', 'bandwidth.py') }}"]
"""

RETURN = r"""
nodes:
  description: How many nodes passed, are busy, were skipped, are part of a suspect pair, or failed.
  returned: when all pods have ended
  type: dict
  sample: {"passed": 13, "busy": 1, "skipped": 1, "suspect": 0, "failed": 1}
failed_nodes:
  description: Names of the nodes that failed. Suspect ones are not among them.
  returned: when all pods have ended
  type: list
  elements: str
  sample: ["training-3"]
pairs:
  description: Each pair that was tested, in order, with its bandwidth in GB/s and the networks that NCCL used.
  returned: when all pods have ended
  type: list
  elements: dict
  sample:
    - nodes: ["training-0", "training-1"]
      state: passed
      bandwidth: 46.3
      networks: ["IB"]
      reason: ""
tried:
  description: Names of the nodes that ran pods, or in check mode would.
  returned: when all pods have ended
  type: list
  elements: str
  sample: ["training-0", "training-1"]
faults:
  description: Nodes that failed, are suspect, busy or were skipped, at most O(sample), each with the reason and the next step.
  returned: when all pods have ended
  type: list
  elements: dict
  sample:
    - node: training-3
      pool: training
      state: failed
      reason: "with training-0: 1.1 GB/s bus bandwidth, 40 GB/s are expected; NCCL has used NET/Socket, NET/IB is expected"
      log_tail: ""
      next_step: see the links of both nodes (ibstat, rdma link), and the plugin that offers their devices to pods
missing_rights:
  description: In check mode, rights that the run would lack, by C(verb), C(resource), C(group) and C(namespace). Otherwise empty.
  returned: when all pods have ended
  type: list
  elements: dict
  sample: []
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import TRIES_SPEC
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bandwidth
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions

ARGUMENT_SPEC: dict[str, t.Any] = TRIES_SPEC | {
    "definition": {"type": "dict", "required": True},
    "pools": {"type": "list", "elements": "dict", "default": []},
    "parallel": {"type": "int", "default": 5},
    "start_timeout": {"type": "float", "default": 1800},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    settings = bandwidth.Settings(
        params["definition"],
        parse_pools(params["pools"]),
        frozenset(params["exclude"]),
        params["max_failed"],
        params["sample"],
        RunOptions.of(params),
    )
    return bandwidth.run(
        settings,
        context.client(),
        Clock(deadline=context.deadline),
        check_mode=context.check_mode,
        resume=context.resume,
    )


def main() -> None:
    run_module(ARGUMENT_SPEC, operation, waits=True, supports_check_mode=True)


if __name__ == "__main__":
    main()
