#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
version_added: 0.2.0
short_description: Let pods leave a node, and give the node back after
description:
  - Cordons a node and evicts its pods, as C(kubectl drain --ignore-daemonsets) does, and waits until they are gone. Later it lifts that cordon.
  - Pods of DaemonSets, static pods and pods that have ended stay. So does a pod that tolerates the cordon and has come back after it.
  - Pods without a controller, and pods with emptyDir volumes, prevent the drain, unless O(force) and O(delete_emptydir_data) say otherwise. All of them
    are reported at once, and so are evictions that the server would refuse for good. The node is then not cordoned, and no pod has been evicted.
  - Evictions respect PodDisruptionBudgets. A pod that a budget holds is tried again in each round, at least every five seconds, beside all
    others, until O(timeout). Then the task fails and names each pod that is left, and what holds it. B(The node stays cordoned), as with kubectl,
    so that pods that have left do not come back only to leave again. The next run goes on from there.
  - The annotation C(hwaccel.gpu/cordoned) on the Node says that this module has cordoned it. O(state=released) lifts such a cordon and no other.
    A node that somebody else has cordoned, before or instead, stays cordoned. A cordon that somebody adds to one of this module cannot be told from
    it, as C(kubectl cordon) then writes nothing.
  - In check mode each eviction, and the cordon, is shown to the server in a dry run. It fails where the run would fail at once. A pod that a
    budget holds at that moment is reported in RV(held).
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  name:
    description: Name of the node.
    type: str
    required: true
  state:
    description:
      - With V(drained), the node is cordoned and its pods are gone.
      - With V(released), the node takes pods again, unless others have cordoned it. A node that this module has cordoned has to be Ready first, for which
        it is waited.
    type: str
    choices: [drained, released]
    default: drained
  timeout:
    description: Seconds to wait until pods are gone, or until the node is Ready.
    type: float
    default: 600
  force:
    description: Whether pods without a controller are evicted as well. Nobody makes them anew.
    type: bool
    default: false
  delete_emptydir_data:
    description: Whether pods with emptyDir volumes are evicted as well. What is in these is lost.
    type: bool
    default: false
  ignore_not_found:
    description: Whether a node that the cluster does not know is no failure, such as a machine that has not joined yet. Nothing is done then.
    type: bool
    default: false
  cluster_uid:
    description: The uid of the namespace C(kube-system) of the cluster that is meant. Any other cluster is refused. This takes the right to get that namespace.
    type: str
  option_variables:
    description:
      - Variables by which the users of a playbook or role set options of this task, by option, such as C(force=node_runtime_drain_force).
        Messages name these in place of the option.
    type: dict
    default: {}
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
notes:
  - "Rights that it needs, and no other: get and patch C(nodes), list C(pods) in all namespaces, and create C(pods/eviction)
    in the namespaces of the pods that leave."
seealso:
  - name: Safely Drain a Node
    description: What an eviction is, and what budgets do to it.
    link: https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
"""

EXAMPLES = r"""
- name: Let pods leave the node
  hwaccel.gpu.node_drain:
    kubeconfig: /etc/kubernetes/admin.conf
    name: gpu-1
    timeout: 1800

- name: Restart what ends pods
  ansible.builtin.systemd:
    name: docker
    state: restarted
  delegate_to: gpu-1

- name: Give the node back
  hwaccel.gpu.node_drain:
    kubeconfig: /etc/kubernetes/admin.conf
    name: gpu-1
    state: released
"""

RETURN = r"""
found:
  description: Whether the cluster has the node.
  returned: when it is done, or has failed
  type: bool
  sample: true
ready:
  description: Whether the node is Ready.
  returned: when it is done, or has failed
  type: bool
  sample: true
cordoned_by:
  description: Who has cordoned the node, V(node_drain) or V(others). Empty where it is not cordoned.
  returned: when it is done, or has failed
  type: str
  sample: node_drain
evicted:
  description: Pods that this run has evicted, or in check mode would, each as C(namespace/name).
  returned: when it is done, or has failed
  type: list
  elements: str
  sample: ["team-a/serve-7d9c5-x2x7p"]
staying:
  description: Pods that are left on the node, each with C(pod) and C(why). Pods that have ended are not among them.
  returned: when it is done, or has failed
  type: list
  elements: dict
  sample: [{"pod": "hwaccel-gpu/nvidia-device-plugin-8kq2z", "why": "it belongs to DaemonSet nvidia-device-plugin"}]
held:
  description: Pods that could not be evicted up to now, each with C(pod) and C(why).
  returned: when it is done, or has failed
  type: list
  elements: dict
  sample: [{"pod": "team-a/train-0", "why": "The disruption budget train needs 2 healthy pods and has 2 currently"}]
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import drain

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["drained", "released"], "default": "drained"},
    "timeout": {"type": "float", "default": 600},
    "force": {"type": "bool", "default": False},
    "delete_emptydir_data": {"type": "bool", "default": False},
    "ignore_not_found": {"type": "bool", "default": False},
    "cluster_uid": {"type": "str"},
    "option_variables": {"type": "dict", "default": {}},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    given: dict[str, t.Any] = {name: params.get(name) for name in ARGUMENT_SPEC if name != "state"}
    operate = drain.drain if params["state"] == "drained" else drain.release
    return operate(
        drain.Settings(**given),
        context.client(),
        Clock(deadline=context.deadline),
        check_mode=context.check_mode,
        resume=context.resume,
    )


def main() -> None:
    run_module(ARGUMENT_SPEC, operation, waits=True, supports_check_mode=True)


if __name__ == "__main__":
    main()
