#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: workload_run
version_added: 0.2.0
short_description: Run pods or jobs once, judge their logs, and delete them
description:
  - Runs each workload as a Job, waits until it has ended, reads its log, judges it by regular expressions and JMESPath, and deletes the Job and its pods.
  - A Pod becomes the template of a Job without retries, so that the cluster itself ends and deletes it if the run is killed. The Job has
    C(activeDeadlineSeconds) of all timeouts together plus one minute, and C(ttlSecondsAfterFinished) of five minutes, unless its
    manifest sets other values.
  - Each run gives its Jobs unique names, so that two runs of the same workload do not conflict.
  - In check mode each Job is validated by a server-side dry run, and nothing is created. The check fails if the run would lack a permission.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  workloads:
    description: The workloads to run.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name in results and messages, unique in the task.
        type: str
        required: true
      definition:
        description:
          - Manifest of a Pod (C(v1)) or a Job (C(batch/v1)).
          - A Pod without C(restartPolicy) gets V(Never).
        type: dict
        required: true
      container:
        description: The container whose log is judged. By default the first one.
        type: str
      patterns:
        description:
          - Regular expressions in the syntax of Python's module C(re), each of which must match somewhere in the log. V(^) and V($) match
            the start and end of each line.
          - Named groups are returned as RV(workloads[].captured).
        type: list
        elements: str
        default: []
      forbidden_patterns:
        description: Regular expressions that must not match anywhere in the log.
        type: list
        elements: str
        default: []
      queries:
        description:
          - JMESPath expressions that must yield something true. They are evaluated on a dictionary of C(log), C(lines), C(json) (each line of the log that
            is a JSON object or array, in order), C(node) and C(exit_code).
          - Needs the Python package C(jmespath).
        type: list
        elements: str
        default: []
  namespace:
    description: Namespace of workloads whose manifest names none.
    type: str
    default: default
  parallel:
    description: Maximum number of workloads that run at the same time.
    type: int
    default: 10
  schedule_timeout:
    description: Seconds after which a workload that is not scheduled ends as V(unschedulable).
    type: float
    default: 60
  start_timeout:
    description:
      - Seconds after scheduling, after which a workload that has not started ends as V(timeout).
      - This includes the time to pull its image.
    type: float
    default: 300
  timeout:
    description: Seconds from its start, after which a workload that is still running ends as V(timeout).
    type: float
    default: 600
  fail_on:
    description: States of workloads that make the task fail, after all have ended and are deleted.
    type: list
    elements: str
    choices: [failed, unschedulable, timeout]
    default: [failed, unschedulable, timeout]
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
    support: none
    details: Each run of the module runs the workloads.
seealso:
  - module: hwaccel.gpu.node_gate
  - module: hwaccel.gpu.manifest_set
"""

EXAMPLES = r"""
- name: Run a pod that adds two vectors on one GPU
  hwaccel.gpu.workload_run:
    kubeconfig: /etc/kubernetes/admin.conf
    workloads:
      - name: vector-add
        definition:
          apiVersion: v1
          kind: Pod
          spec:
            runtimeClassName: nvidia
            containers:
              - name: sample
                image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04
                resources:
                  limits:
                    nvidia.com/gpu: 1
        patterns:
          - Test PASSED

- name: Query a program that prints JSON, and accept that no node has room for it
  hwaccel.gpu.workload_run:
    kubeconfig: /etc/kubernetes/admin.conf
    namespace: benchmarks
    workloads:
      - name: bandwidth
        definition: "{{ lookup('ansible.builtin.file', 'bandwidth-job.yml') | from_yaml }}"
        queries:
          - json[-1].gigabytes_per_second > `300`
    fail_on: [failed, timeout]
"""

RETURN = r"""
workloads:
  description: One entry for each workload, in the order of O(workloads). Empty in check mode.
  returned: when all have ended
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      sample: vector-add
    state:
      description: How it ended, one of V(succeeded), V(failed), V(unschedulable), V(timeout).
      type: str
      sample: succeeded
    reason:
      description: Why it did not succeed, empty where it did.
      type: str
      sample: container sample ended with exit code 1
    node:
      description: The node that it ran on.
      type: str
      sample: training-3
    pod:
      description: Name of its pod, of several the newest.
      type: str
      sample: vector-add-5b1c8e0f2a-x7k2p
    exit_code:
      description: Exit code of the container whose log is judged.
      type: int
      sample: 0
    log:
      description: The last 2000 lines of its log. Passwords in URLs are masked.
      type: str
      sample: Test PASSED
    json:
      description: Each line of the log that is a JSON object or array, in order.
      type: list
      elements: raw
      sample: []
    captured:
      description: The matches of the patterns' named groups.
      type: dict
      sample: {}
states:
  description: How many workloads ended in which state.
  returned: when all have ended
  type: dict
  sample: {"succeeded": 1, "failed": 0, "unschedulable": 0, "timeout": 0}
missing_rights:
  description: In check mode, permissions that the run would lack, by C(verb), C(resource), C(group) and C(namespace). Otherwise empty.
  returned: when all have ended
  type: list
  elements: dict
  sample: [{"verb": "create", "resource": "jobs", "group": "batch", "namespace": "default"}]
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.judgement import Checks
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions, Workload, run

WORKLOAD_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "definition": {"type": "dict", "required": True},
    "container": {"type": "str"},
    "patterns": {"type": "list", "elements": "str", "default": []},
    "forbidden_patterns": {"type": "list", "elements": "str", "default": []},
    "queries": {"type": "list", "elements": "str", "default": []},
}
BAD_STATES = ["failed", "unschedulable", "timeout"]

ARGUMENT_SPEC: dict[str, t.Any] = {
    "workloads": {"type": "list", "elements": "dict", "required": True, "options": WORKLOAD_SPEC},
    "namespace": {"type": "str", "default": "default"},
    "parallel": {"type": "int", "default": 10},
    "schedule_timeout": {"type": "float", "default": 60},
    "start_timeout": {"type": "float", "default": 300},
    "timeout": {"type": "float", "default": 600},
    "fail_on": {"type": "list", "elements": "str", "choices": BAD_STATES, "default": BAD_STATES},
}


def workload_of(params: dict[str, t.Any]) -> Workload:
    checks = Checks(tuple(params["patterns"]), tuple(params["forbidden_patterns"]), tuple(params["queries"]))
    return Workload(params["name"], params["definition"], params.get("container") or "", checks)


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    workloads = [workload_of(entry) for entry in params["workloads"]]
    return run(
        context.client(),
        workloads,
        RunOptions.of(params),
        Clock(deadline=context.deadline),
        check_mode=context.check_mode,
        resume=context.resume,
    )


def main() -> None:
    run_module(ARGUMENT_SPEC, operation, waits=True, supports_check_mode=True)


if __name__ == "__main__":
    main()
