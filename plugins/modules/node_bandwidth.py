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
  - Of each pool that declares an C(interconnect), the nodes on which no other pod holds a GPU are tried two by two. On each of the two a pod takes all GPUs,
    and both do all-reduces together, with NCCL. The bus bandwidth must be what the pool declares, and NCCL must have used the network that it declares.
  - The last one of an odd number of nodes is tried with the first one of its pool, when that is free again.
  - Where a pair fails and nothing tells which of its two nodes it is, each of them is tried once more with a node that has passed. What stays open is
    V(suspect), for both.
  - The pods run as Jobs, as those of M(hwaccel.gpu.workload_run). A killed run leaves Jobs that the cluster ends and removes by itself. Where one of the two
    fails, the other is ended at once.
  - The first pod has to print C(listening at <address>) when it can be reached. Then the second one is started, with that address in E(PEER_ADDRESS).
    Both get E(POD_ADDRESS), their own one, E(DEVICES), how many GPUs they have to see, E(RANKS), how many there are in both pods, E(FIRST_RANK), how many of
    them are in the pod before, E(PATIENCE_SECONDS), how long the other one may be on its way, and E(NCCL_DEBUG).
  - The log of the first pod must have a line of JSON with C(bus_bandwidth) in GB/s, and the logs name the network as NCCL does, C(via NET/IB/0).
  - Both pods get memory for C(/dev/shm). Where the pool declares C(resources), they run as root with the capability C(IPC_LOCK), which RDMA needs.
  - Nodes with GPU pods of others are V(busy), and so are two of which one's pod had to make room for one of higher priority. Nodes are V(skipped) that are
    not Ready, quarantined, cordoned, without GPUs or alone in their pool, or whose GPUs are shared, partitioned or integrated. Neither is a failure.
  - Who else holds GPUs is read from the pods of all namespaces, which takes the right to list them.
  - Users find no GPU on two nodes while they are tried, and while the image is pulled.
  - In check mode it reports which nodes would run pods. Each of these is shown to the server in a dry run.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  definition:
    description: Manifest of the pod. The module adds the node to it, and to its first container GPUs, what the pool's C(interconnect) says, and its part.
    type: dict
    required: true
  pools:
    description: Declared pools, as in the inventory variable C(hwaccel_pools). Those without C(interconnect) are left out.
    type: list
    elements: dict
    default: []
  max_failed:
    description: So many failed nodes are borne, as a number or as a percentage of the nodes. Two suspect ones count as one.
    type: str
    default: "0"
  parallel:
    description: At most so many pairs at the same time.
    type: int
    default: 5
  start_timeout:
    description: Seconds that a pod may take to start, its image pulled. The second one of a pair is started when the first one runs.
    type: float
    default: 1800
  timeout:
    description: Seconds that the first pod may run until it listens, and both from when they run.
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
- name: See that the nodes reach each other over InfiniBand
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
  description: How many nodes passed, are busy, were skipped, are one of two suspect ones, or failed.
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
  description: Each pair that was tried, in order, with its bandwidth in GB/s and the networks that NCCL has used.
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
