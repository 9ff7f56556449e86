#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_allocation
version_added: 0.2.0
short_description: Verify that one pod can allocate all GPUs of each node, and that another pod must wait
description:
  - On each GPU node on which no other pod holds a GPU, one pod requests all GPUs. It must see as many as are expected, each with a unique UUID,
    and must run a computation on each.
  - With O(exclusivity), that pod keeps its GPUs, and a second pod requests one GPU of the same node. The second pod must be Pending with the scheduler's
    C(Insufficient <resource>), and must run once the first pod has ended. This proves that no GPU is allocated twice, and that all are released.
  - The pods run as Jobs, like those of M(hwaccel.gpu.workload_run). If a run is killed, the cluster ends and deletes its Jobs.
  - The log of the pod decides. It must have the lines of C(nvidia-smi -L), then for each GPU the line C(device <UUID>) and the output of NVIDIA's sample
    C(vectorAdd), and finally C(all devices were queried). The pod must then keep running for the number of seconds in its environment variable
    E(HOLD_SECONDS), which this module sets.
  - Nodes with GPU pods of others are V(busy), and so is a node whose pod was preempted. Nodes that are not Ready, quarantined, cordoned or without GPUs,
    or whose GPUs are shared by several pods, are V(skipped). Neither is a failure.
  - To find other pods that hold GPUs, the module lists the pods of all namespaces, which needs that permission.
  - While a node is tested, which takes seconds, its GPUs are not available to users.
  - In check mode it reports which nodes would run pods. Each of these pods is validated by a server-side dry run.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  definition:
    description: Manifest of the pod. The module adds the node to it, and to its first container GPUs and E(HOLD_SECONDS).
    type: dict
    required: true
  integrated_definition:
    description:
      - Manifest of the pod for nodes whose GPU is integrated (Jetson), as in M(hwaccel.gpu.node_validate). Its log must have the output of
        NVIDIA's sample C(deviceQuery) instead of that of nvidia-smi.
      - Without it, these nodes are skipped.
    type: dict
  exclusivity:
    description: Whether to verify that a second pod has to wait.
    type: bool
    default: false
  pools:
    description:
      - Declared pools, as in the inventory variable C(hwaccel_pools). The expected number of GPUs comes from their C(gpu), or else from the nodes' labels.
      - Nodes of a pool whose driver provider is V(none) are skipped.
    type: list
    elements: dict
    default: []
  parallel:
    description: Maximum number of nodes tested at the same time.
    type: int
    default: 5
  schedule_timeout:
    description: Seconds after which a pod that cannot be scheduled is deleted. For a pod that has to wait, they start again when the other pod has ended.
    type: float
    default: 30
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
  - module: hwaccel.gpu.node_validate
  - module: hwaccel.gpu.workload_run
"""

EXAMPLES = r"""
- name: Verify that no GPU is allocated twice
  hwaccel.gpu.node_allocation:
    kubeconfig: /etc/kubernetes/admin.conf
    exclusivity: true
    definition:
      apiVersion: v1
      kind: Pod
      metadata:
        name: gpu-validation-all
      spec:
        runtimeClassName: nvidia
        terminationGracePeriodSeconds: 1
        containers:
          - name: cuda
            image: nvcr.io/nvidia/gpu-operator:v26.7.0
            command: [sh, -c]
            args:
              - |
                nvidia-smi -L
                for device in $(nvidia-smi -L | grep -o 'UUID: [^)]*' | awk '{print $2}'); do
                  echo "device $device"
                  CUDA_VISIBLE_DEVICES=$device vectorAdd
                done
                echo "all devices were queried"
                sleep "${HOLD_SECONDS:-0}"
"""

RETURN = r"""
nodes:
  description: How many nodes passed, are busy, were skipped, or failed.
  returned: when all pods have ended
  type: dict
  sample: {"passed": 14, "busy": 1, "skipped": 1, "failed": 0}
failed_nodes:
  description: Names of the nodes that failed.
  returned: when all pods have ended
  type: list
  elements: str
  sample: []
tried:
  description: Names of the nodes that ran pods, or in check mode would.
  returned: when all pods have ended
  type: list
  elements: str
  sample: ["training-0", "training-1"]
faults:
  description: Nodes that failed, are busy or were skipped, at most O(sample), each with the reason and the next step.
  returned: when all pods have ended
  type: list
  elements: dict
  sample:
    - node: training-3
      pool: training
      state: busy
      reason: "pods hold GPUs there: team-a/train-0"
      log_tail: ""
      next_step: try again when they have ended
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
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import allocation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions

ARGUMENT_SPEC: dict[str, t.Any] = TRIES_SPEC | {
    "definition": {"type": "dict", "required": True},
    "integrated_definition": {"type": "dict"},
    "exclusivity": {"type": "bool", "default": False},
    "pools": {"type": "list", "elements": "dict", "default": []},
    "parallel": {"type": "int", "default": 5},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    settings = allocation.Settings(
        params["definition"],
        parse_pools(params["pools"]),
        frozenset(params["exclude"]),
        exclusivity=params["exclusivity"],
        max_failed=params["max_failed"],
        sample=params["sample"],
        options=RunOptions.of(params),
        integrated_definition=params["integrated_definition"],
    )
    return allocation.run(
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
