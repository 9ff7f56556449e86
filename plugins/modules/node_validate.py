#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_validate
version_added: 0.2.0
short_description: Run a computation on a GPU of every node, and record the proof
description:
  - Runs one pod on each GPU node, as M(hwaccel.gpu.workload_run) does, which requests one GPU through the scheduler as a user's pod would.
  - Its log must show that a CUDA kernel ran (the line C(Test PASSED) of NVIDIA's sample C(vectorAdd)), and its GPU must be the expected one.
    Product, memory, driver, ECC mode and MIG mode are compared, and uncorrectable ECC errors are a failure. They are read from the output of
    C(nvidia-smi --query-gpu=name,memory.total,driver_version,ecc.mode.current,mig.mode.current,ecc.errors.uncorrected.volatile.total
    --format=csv,noheader). The last field may be missing. Integrated GPUs need no such line.
  - A node that passes gets the annotation C(hwaccel.gpu/proof). The proof is valid as long as boot, driver, configuration of the device plugin, image of
    the pod, GPUs and the pool's declaration of them are the same. A node with a valid proof does not run a pod again unless O(always) is set.
  - A node whose GPUs are all allocated is V(unproven), and so is a cordoned node. Neither is a failure, and the last proof is reported.
  - A node that is not Ready, or does not offer the expected GPUs, fails without a pod. The module reports the first link of the chain (hardware seen, driver,
    toolkit, cuda, plugin, schedulable) that failed, as M(hwaccel.gpu.node_gate) judges it, with its cause and the next step. It finds the pods of the chain
    by the DaemonSets of all namespaces, regardless of who deployed them. This needs permission to list these, their pods and their logs.
  - A node that is quarantined and offers its GPUs fails as well.
  - This module does not quarantine nodes.
  - A proof that was written or removed is a change. A pod that was created and deleted is not.
  - A node with a taint C(NoSchedule) or C(NoExecute) that the pod does not tolerate fails, and runs no pod. Taints that Kubernetes sets itself
    (C(node.kubernetes.io/)) do not count.
  - With O(state=absent) the proofs are removed from all nodes.
  - In check mode it reports which nodes would run a pod. Each of these pods is validated by a server-side dry run.
    A node that lacks its GPUs is then unproven, not failed, because in check mode the components that provide them were not deployed.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  definition:
    description:
      - Manifest of the pod. The module adds the node to it, and one GPU of the node to its first container.
      - Needed with O(state=present).
    type: dict
  integrated_definition:
    description:
      - Manifest of the pod for nodes whose GPU is integrated (Jetson). They are recognized by architecture C(arm64) and the label C(hwaccel.gpu/integrated),
        NFD's label of the processor or the kernel's name. Programs that were built for other boards of this architecture do not run there.
      - If its log has the output of NVIDIA's sample C(deviceQuery), this is judged instead of that of nvidia-smi. It must end with C(Result = PASS), and name
        an integrated GPU with the product and memory that the pool declares.
      - Without it, O(definition) runs on these nodes too.
    type: dict
  state:
    description: Whether to validate nodes, or to remove their proofs.
    type: str
    default: present
    choices: [present, absent]
  pools:
    description:
      - Declared pools, as in the inventory variable C(hwaccel_pools). The expected properties of their nodes come from C(gpu), with C(ecc) and C(mig) also
        whether these modes are enabled.
      - Nodes of a pool whose driver provider is V(none) are skipped.
    type: list
    elements: dict
    default: []
  plugin_configs:
    description: Configurations of the device plugin by name, as in M(hwaccel.gpu.node_gate). They change the expected resources of a node.
    type: dict
    default: {}
  always:
    description: Whether to validate nodes with a valid proof as well.
    type: bool
    default: false
  parallel:
    description: Maximum number of pods at the same time.
    type: int
    default: 20
  schedule_timeout:
    description: Seconds after which a pod that finds no free GPU is deleted.
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
    support: partial
    details: Without O(always), a fleet with valid proofs is not changed.
seealso:
  - module: hwaccel.gpu.workload_run
  - module: hwaccel.gpu.node_gate
"""

EXAMPLES = r"""
- name: Run a computation on every GPU node without a valid proof
  hwaccel.gpu.node_validate:
    kubeconfig: /etc/kubernetes/admin.conf
    definition:
      apiVersion: v1
      kind: Pod
      metadata:
        name: gpu-validation
      spec:
        runtimeClassName: nvidia
        containers:
          - name: sample
            image: nvcr.io/nvidia/gpu-operator:v26.7.0
            command: [sh, -c]
            args:
              - >-
                nvidia-smi --query-gpu=name,memory.total,driver_version,ecc.mode.current,mig.mode.current,ecc.errors.uncorrected.volatile.total
                --format=csv,noheader && vectorAdd

- name: Remove all proofs
  hwaccel.gpu.node_validate:
    kubeconfig: /etc/kubernetes/admin.conf
    state: absent
"""

RETURN = r"""
gate:
  description: V(validation), so that the result can be combined with those of M(hwaccel.gpu.node_gate).
  returned: when all pods have ended
  type: str
  sample: validation
nodes:
  description: How many nodes passed, are unproven, or failed.
  returned: when all pods have ended
  type: dict
  sample: {"passed": 15, "unproven": 1, "failed": 0}
failed_nodes:
  description: Names of the nodes that failed.
  returned: when all pods have ended
  type: list
  elements: str
  sample: []
validated:
  description: Names of the nodes that ran a pod, or in check mode would.
  returned: when all pods have ended
  type: list
  elements: str
  sample: ["training-0", "training-1"]
faults:
  description: Nodes that failed or are unproven, at most O(sample), each with the link of the chain that failed and the next step.
  returned: when all pods have ended
  type: list
  elements: dict
  sample:
    - node: training-3
      pool: training
      state: unproven
      link: schedulable
      reason: busy, last proof of 2026-11-20T10:00:00Z
      pod: ""
      log_tail: ""
      next_step: validate again when a GPU is free
pools:
  description: One row for each pool, as in M(hwaccel.gpu.node_gate), with the GPUs that the pods reported (C(gpus)), and the time of the oldest valid
    or invalid proof (C(oldest_proof), ISO 8601, empty without one).
  returned: when all pods have ended
  type: list
  elements: dict
  sample:
    - pool: training
      nodes: 8
      expected: 64
      seen: 64
      passed: 7
      unproven: 1
      failed: 0
      oldest_proof: "2026-11-20T10:00:00Z"
      gpus: [NVIDIA H100 80GB HBM3]
      drivers: [580.178.04]
      kernels: [6.8.0-111-generic]
      simulated: 0
      settled: 1780000000.0
forgotten:
  description: Names of the nodes whose proof was removed.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: ["training-0"]
missing_rights:
  description: In check mode, permissions that the run would lack, by C(verb), C(resource), C(group) and C(namespace). Otherwise empty.
  returned: when all pods have ended
  type: list
  elements: dict
  sample: []
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import parse_plugin_config
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import TRIES_SPEC
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions

ARGUMENT_SPEC: dict[str, t.Any] = TRIES_SPEC | {
    "definition": {"type": "dict"},
    "integrated_definition": {"type": "dict"},
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "pools": {"type": "list", "elements": "dict", "default": []},
    "plugin_configs": {"type": "dict", "default": {}},
    "always": {"type": "bool", "default": False},
    "parallel": {"type": "int", "default": 20},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    if params["state"] == "absent":
        forgotten = validation.forget(context.client(), check_mode=context.check_mode)
        return Outcome(changed=bool(forgotten), values={"forgotten": forgotten})
    settings = validation.Settings(
        params["definition"],
        parse_pools(params["pools"]),
        frozenset(params["exclude"]),
        {name: parse_plugin_config(config) for name, config in params["plugin_configs"].items()},
        params["always"],
        params["max_failed"],
        params["sample"],
        RunOptions.of(params),
        params["integrated_definition"],
    )
    clock = Clock(deadline=context.deadline)
    return validation.run(settings, context.client(), clock, check_mode=context.check_mode, resume=context.resume)


def main() -> None:
    run_module(
        ARGUMENT_SPEC,
        operation,
        waits=True,
        required_if=[("state", "present", ("definition",))],
        supports_check_mode=True,
    )


if __name__ == "__main__":
    main()
