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
  - Brings a named set of objects to the desired state by server-side apply, in waves and in parallel, and records what it created.
  - The record of the set is a ConfigMap (a Secret where the set holds a Secret) in O(record_namespace). It is an ApplySet parent as in KEP-3659.
    It lists each member with its uid, a hash of its desired state, and the fields that the set owns. With the record, a run that has nothing to do reads
    one list per kind and namespace and writes nothing.
  - Fields of the set that another field manager changed are corrected and reported in RV(reclaimed). Fields that the set never owned and that have another
    value are a conflict, which is an error. Fields that others added are reported in RV(foreign_fields).
  - An existing object that is not in the record is never taken over, unless O(adopt) is set, and never deleted.
  - All problems that can be detected in advance (invalid YAML, duplicates, unknown kinds, existing objects of others, conflicts, immutable fields, missing
    permissions, whatever the API server refuses) are reported at once, before the first write.
  - If a run is killed, the next run completes its work.
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
      - V(present) applies the objects, corrects drift and prunes.
      - V(absent) deletes all members in the record, in reverse order of the waves, and then the record. Adopted members are released, not deleted.
        A Namespace or CustomResourceDefinition that contains objects of others is kept and reported. No definition is needed.
    type: str
    choices: [present, absent]
    default: present
  definition:
    description:
      - The objects. A mapping, text with YAML or JSON, or a list of these. An object of a kind that ends in C(List) is replaced by its items.
      - Nodes cannot be members.
    type: raw
  namespace:
    description: Namespace for namespaced objects that name none. Without it, such an object is an error.
    type: str
  patches:
    description:
      - Changes to the objects, applied in order. A patch that matches no object is an error.
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
    description: Delete members of the record that are no longer part of the definition. Namespaces and CustomResourceDefinitions are always kept.
    type: bool
    default: true
  max_prune:
    description:
      - How many members may be pruned in one run, as a number or as a share of the recorded members.
        A share allows at least one. All members of a set are never pruned.
      - DaemonSets that have no pods and match no node do not count, because the nodes that they were for have left the cluster.
    type: str
    default: 20%
  adopt:
    description:
      - Take over existing objects that are not in the record. They are recorded as adopted. Pruning and O(state=absent) only release their fields.
    type: bool
    default: false
  force_conflicts:
    description: Take over fields that others own with another value, instead of failing. They are still reported in RV(conflicts).
    type: bool
    default: false
  strict:
    description: Fail if others added fields to members of the set.
    type: bool
    default: false
  on_immutable:
    description:
      - What to do if a field of the live object is immutable, by kind (C(Job), or C(Job.batch) with its group, or C(*) for all others).
      - V(fail) names the field. V(recreate) deletes and recreates the object. V(orphan) does the same and keeps its pods.
      - RoleBinding, ClusterRoleBinding and Job are recreated by default, all others fail.
    type: dict
    default: {}
  wait:
    description:
      - Wait until all members are ready and all pruned objects are gone, including their pods. With O(state=absent), until all are gone.
      - Pods on nodes that are not ready are not waited for. If they belong to a deleted object, a warning names them. They are removed when
        their node is ready again or its Node object is deleted.
    type: bool
    default: true
  wait_timeout:
    description: Maximum number of seconds to wait.
    type: int
    default: 300
  ready_when:
    description:
      - Conditions under which objects of a kind are ready, as JMESPath on the object, mainly for custom resources. Keys are C(Kind) or C(Kind.group).
        The object is ready when the expression yields something that is neither empty nor false.
      - Not needed for workloads, Jobs, claims, CustomResourceDefinitions, APIServices, Namespaces and Services. Objects of all other kinds are ready once
        they exist.
    type: dict
    default: {}
  record_namespace:
    description:
      - Namespace of the set's record. It is created if it does not exist, and deleted with the last record in it. Members cannot be in it.
    type: str
    default: hwaccel-gpu-records
  option_variables:
    description:
      - Variables by which users of a playbook or role set options of this task, such as C(max_prune=driver_max_prune).
        Messages name the variable instead of the option.
    version_added: 0.2.0
    type: dict
    default: {}
  lock_timeout:
    description:
      - Seconds to wait for another run that is writing the same set. When they are over, the task fails, names that run, and says how long it may still
        hold the set. They do not count towards O(wait_timeout).
      - A run holds a set from its first write to the end of its task. The hold of a killed run expires at once if it was on this host and has ended.
        Otherwise it expires 90 seconds after its last renewal was observed, so set more than 90.
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
      - Nothing is written. The server validates by dry runs. Objects that need a namespace or kind of the same set that does not exist yet
        are marked as planned and not validated.
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

- name: Adapt a set to a site
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
        - V(created), V(configured), V(reclaimed) (drift corrected), V(recreated), V(adopted), V(unchanged), V(deleted), V(released) (adopted before), or
          V(kept) (a Namespace or CustomResourceDefinition, or pruning is off). In check mode, what the run would do.
      type: str
    ready:
      description: Whether it is ready. V(null) if the task did not wait.
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
  description: Fields of the set that others changed and that were corrected. An empty path stands for the whole object. An empty manager stands for
    a removed field, because the API server does not record who removed it.
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
  description: Fields that others added to members. They are not changed.
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
  description: Fields that others own with a value that differs from the desired one.
  returned: always
  type: list
  elements: dict
missing_rights:
  description: Permissions that the run lacks, by verb and resource.
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
  description: Number of requests to the API server. After a long wait, those of its last slice.
  returned: always
  type: int
faults:
  description: The problems, each with what, where, why and what to do next.
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
