#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: manifest_set
version_added: 0.1.0
short_description: Apply a named set of objects to a cluster, correct drift, prune, and wait once
description:
  - Brings a named set of objects to the state asked for, by server-side apply, in waves and in parallel, and remembers what it made.
  - The record of the set is a ConfigMap (a Secret where the set holds a Secret) in O(record_namespace), an ApplySet parent as KEP-3659 describes it.
    It names each member with its uid, a hash of what was asked, and the fields that the set owns. With it, a run that has nothing to do reads
    one list per kind and namespace and writes nothing.
  - Fields of ours that somebody else changed are taken back and reported in RV(reclaimed). Fields that were never ours and have another value are
    a conflict, which is an error. Fields that others added are reported in RV(foreign_fields).
  - An object that exists and is not in the record is never taken over, unless O(adopt) is set, and never deleted.
  - Everything that can be known beforehand (bad YAML, duplicates, unknown kinds, foreign objects, conflicts, immutable fields, missing rights, what the
    API server refuses) is reported at once, before the first write.
  - A run that was killed is made good by the next one.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  name:
    description:
      - Name of the set. The field manager is C(hwaccel.gpu/) and this name. Two roles must never share one.
    type: str
    required: true
  state:
    description:
      - V(present) applies, mends and prunes.
      - V(absent) removes all members that the record names, backwards through the waves, and then the record. Adopted members are given up, not deleted.
        A Namespace or CustomResourceDefinition that holds anything of others is kept and reported. No definition is needed.
    type: str
    choices: [present, absent]
    default: present
  definition:
    description:
      - The objects. A mapping, text with YAML or JSON, or a list of these. Objects of a kind that ends in C(List) are taken apart.
      - Nodes cannot be members.
    type: raw
  namespace:
    description: Namespace for namespaced objects that name none. Without it, such an object is an error.
    type: str
  patches:
    description:
      - Changes laid over the objects, in order. A patch that matches no object is an error.
    type: list
    elements: dict
    default: []
    suboptions:
      target:
        description: C(kind), and optionally C(name) and C(namespace), of the objects to change. Each may be a shell pattern.
        type: dict
        required: true
      patch:
        description:
          - A mapping is a JSON merge patch, in which C(null) removes. A list is a JSON patch (RFC 6902), for which the Python library
            jsonpatch is needed.
        type: raw
        required: true
  prune:
    description: Delete members of the record that are no longer asked for. Namespaces and CustomResourceDefinitions are kept in any case.
    type: bool
    default: true
  max_prune:
    description:
      - How many members may be pruned in one run, as a number or as a share of the recorded members.
        A share allows at least one. All members of a set are never pruned.
      - DaemonSets that no node has a pod of, or should have, do not count. The nodes that they were for have gone from the cluster.
    type: str
    default: 20%
  adopt:
    description:
      - Take over objects that exist and are not ours. They are recorded as adopted, and pruning and O(state=absent) only give up our fields.
    type: bool
    default: false
  force_conflicts:
    description: Take fields that belong to others and have another value, instead of failing. They are still reported in RV(conflicts).
    type: bool
    default: false
  strict:
    description: Fail where others added fields to our members.
    type: bool
    default: false
  on_immutable:
    description:
      - What to do where a field cannot be changed on the living object, by kind (C(Job), or C(Job.batch) with its group, or C(*) for all others).
      - V(fail) names the field. V(recreate) deletes the object and makes it again. V(orphan) does the same and leaves its pods alive.
      - RoleBinding, ClusterRoleBinding and Job are recreated by default, all others fail.
    type: dict
    default: {}
  wait:
    description:
      - Wait until all members are ready and what was pruned is gone, pods included. With O(state=absent), until all are gone.
      - Pods on nodes that are not ready are not waited for. Where they belong to what is deleted, a warning names them, and they go when
        their node is back or its Node object is deleted.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most.
    type: int
    default: 300
  ready_when:
    description:
      - When objects of a kind are ready, as JMESPath on the object, for custom resources above all. Keys are C(Kind) or C(Kind.group).
        The object is ready when the expression yields something that is neither empty nor false.
      - Known without it are workloads, Jobs, claims, CustomResourceDefinitions, APIServices, Namespaces and Services. All others are ready once they exist.
    type: dict
    default: {}
  record_namespace:
    description:
      - Namespace of the set's record. It is made where it is missing, and removed with the last record in it. Members cannot be in it.
    type: str
    default: hwaccel-gpu-records
  option_variables:
    description:
      - Variables by which the users of a playbook or role set options of this task, by option, such as C(max_prune=driver_max_prune).
        Messages name these in place of the option.
    version_added: 0.2.0
    type: dict
    default: {}
  lock_timeout:
    description:
      - Seconds to wait for another run that is writing the same set, before failing with its name, and how long it may still hold the set.
        It is no part of O(wait_timeout).
      - A run holds a set from its first write to the end of its task. The hold of one that was killed is free at once where it ran on this host and is
        known to be gone, and else 90 seconds after its last renewal was seen. So give more than 90.
    type: int
    default: 120
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.sources
  - hwaccel.gpu.waiting
  - hwaccel.gpu.attributes
  - hwaccel.gpu.attributes.cluster_group
attributes:
  check_mode:
    support: full
    details:
      - Nothing is written. The server is asked by dry runs; what only comes into being with the set itself (objects of a new namespace or kind)
        is marked as planned and not validated.
  diff_mode:
    support: full
  idempotent:
    support: full
"""

EXAMPLES = r"""
- name: Apply a set of objects and wait until they are ready
  hwaccel.gpu.manifest_set:
    kubeconfig: ~/.kube/config
    name: device-plugin
    template: device-plugin/
    wait_timeout: 600

- name: Lay a site's own wishes over it
  hwaccel.gpu.manifest_set:
    name: device-plugin
    template: device-plugin/
    patches:
      - target:
          kind: DaemonSet
          name: device-plugin-*
        patch:
          spec:
            template:
              spec:
                priorityClassName: system-node-critical
      - target:
          kind: ConfigMap
          name: device-plugin-config
        patch:
          - op: replace
            path: /data/default
            value: "version: v1"

- name: Wait for a custom resource
  hwaccel.gpu.manifest_set:
    name: policy
    definition: "{{ policy }}"
    ready_when:
      ClusterPolicy: status.state == 'ready'

- name: Remove the set
  hwaccel.gpu.manifest_set:
    name: device-plugin
    state: absent
"""

RETURN = r"""
objects:
  description: The members, and what was done with each.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: DaemonSet
      name: driver-h100
      namespace: hwaccel-gpu
      action: configured
      ready: true
      reason: ""
  contains:
    kind:
      description: Its kind.
      type: str
    name:
      description: Its name.
      type: str
    namespace:
      description: Its namespace, empty for cluster-scoped objects.
      type: str
    action:
      description:
        - V(created), V(configured), V(reclaimed) (drift corrected), V(recreated), V(adopted), V(unchanged), V(deleted), V(released) (adopted, and given up),
          or V(kept) (a Namespace or CustomResourceDefinition, or pruning is off). In check mode, what the run would do.
      type: str
    ready:
      description: Whether it is ready. V(null) where nobody waited.
      type: bool
    reason:
      description: Why it is not ready, why this was done, or why the plan could not be validated.
      type: str
not_ready:
  description: The members that are not ready, as in RV(objects).
  returned: always
  type: list
  elements: dict
reclaimed:
  description: Fields that were ours, that somebody changed, and that are ours again. An empty path stands for the whole object, an empty manager for a
    field that was removed (the API server does not record by whom).
  returned: always
  type: list
  elements: dict
  sample:
    - kind: Deployment
      name: nfd-master
      namespace: hwaccel-gpu-system
      path: spec.replicas
      manager: kubectl
foreign_fields:
  description: Fields that others added to members. They are left alone.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: DaemonSet
      name: driver-h100
      namespace: hwaccel-gpu
      path: spec.template.spec.containers[name="sidecar"]
      manager: kubectl-edit
conflicts:
  description: Fields that others own with another value.
  returned: always
  type: list
  elements: dict
missing_rights:
  description: Rights that the run lacks, by verb and resource.
  returned: always
  type: list
  elements: dict
api_warnings:
  description: Warnings that the API server sent, and those of the module.
  returned: always
  type: list
  elements: str
record:
  description: Where the record of the set is, and how many members it has. Empty once the set is gone.
  returned: always
  type: dict
requests:
  description: How many requests were sent to the API server, by the last slice of a long wait.
  returned: always
  type: int
faults:
  description: What is wrong, each with what, where, why and what to do next.
  returned: on failure
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.ensure import ensure
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import SOURCES_SPEC

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "definition": {"type": "raw"},
    **SOURCES_SPEC,
    "namespace": {"type": "str"},
    "patches": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"target": {"type": "dict", "required": True}, "patch": {"type": "raw", "required": True}},
    },
    "prune": {"type": "bool", "default": True},
    "max_prune": {"type": "str", "default": "20%"},
    "adopt": {"type": "bool", "default": False},
    "force_conflicts": {"type": "bool", "default": False},
    "strict": {"type": "bool", "default": False},
    "on_immutable": {"type": "dict", "default": {}},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 300},
    "ready_when": {"type": "dict", "default": {}},
    "record_namespace": {"type": "str", "default": "hwaccel-gpu-records"},
    "option_variables": {"type": "dict", "default": {}},
    "lock_timeout": {"type": "int", "default": 120},
}


def operate(params: dict[str, t.Any], context: Context) -> Outcome:
    """One slice of a call."""
    client: t.Any = context.client()
    report = ensure(
        client,
        params,
        Clock(context.deadline),
        context.resume,
        check_mode=context.check_mode,
        diff=context.diff,
        task=context.task,
    )
    rows = [row.as_dict() for row in report.rows.values()]
    values = {
        "objects": rows,
        "not_ready": [row for row in rows if row["ready"] is False],
        "reclaimed": report.reclaimed,
        "foreign_fields": report.foreign_fields,
        "conflicts": report.conflicts,
        "missing_rights": report.missing_rights,
        "api_warnings": report.warnings,
        "record": report.record,
        "requests": client.requests,
    }
    return Outcome(
        report.changed, values, report.warnings, report.diff, report.failure, report.pending, report.progress
    )


def main() -> None:
    run_module(ARGUMENT_SPEC, operate, waits=True, supports_check_mode=True)


if __name__ == "__main__":
    main()
