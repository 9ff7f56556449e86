#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
version_added: 0.2.0
short_description: Drain a node, and uncordon it afterwards
description:
  - Cordons a node and evicts its pods, as C(kubectl drain --ignore-daemonsets) does, and waits until they are gone. O(state=released) uncordons it.
  - Pods of DaemonSets, static pods and pods that have ended stay. So does a pod that tolerates the cordon and was created after it.
  - Pods without a controller, and pods with emptyDir volumes, prevent the drain, unless O(force) and O(delete_emptydir_data) allow it. All of them
    are reported at once, together with evictions that the server would refuse permanently. In that case no node is cordoned and no pod is evicted.
  - Evictions respect PodDisruptionBudgets. An eviction that a budget prevents is retried in each round, at least every five seconds, beside all
    others, until O(timeout). Then the task fails and names each remaining pod, and what prevents its eviction. B(The node stays cordoned), as with kubectl,
    so that evicted pods do not return only to be evicted again. The next run continues from there.
  - The annotation C(hwaccel.gpu/cordoned) on the Node records that this module cordoned it. O(state=released) only lifts such a cordon.
    A node that others cordoned stays cordoned. If C(kubectl cordon) is run on a node that this module has already cordoned, it writes nothing, so the module
    cannot detect it.
  - In check mode the cordon and each eviction are validated by a server-side dry run. The check fails if the run would fail at once. A pod whose eviction
    a budget prevents at that moment is reported in RV(held).
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  name:
    description: Name of the node.
    type: str
    required: true
  state:
    description:
      - With V(drained), the node is cordoned and its pods have left.
      - With V(released), the node accepts pods again, unless others have cordoned it. If this module has cordoned the node, it first waits until
        the node is Ready.
    type: str
    choices: [drained, released]
    default: drained
  timeout:
    description: Seconds to wait until pods are gone, or until the node is Ready.
    type: float
    default: 600
  force:
    description: Whether pods without a controller are evicted as well. They are not recreated.
    type: bool
    default: false
  delete_emptydir_data:
    description: Whether pods with emptyDir volumes are evicted as well. The data in these is lost.
    type: bool
    default: false
  ignore_not_found:
    description: Whether to skip a node that the cluster does not have, such as a machine that has not joined yet, instead of failing.
    type: bool
    default: false
  cluster_uid:
    description: The uid of the namespace C(kube-system) of the intended cluster. Any other cluster is refused. This needs the permission to get that namespace.
    type: str
  option_variables:
    description:
      - Variables by which users of a playbook or role set options of this task, such as C(force=node_runtime_drain_force).
        Messages name the variable instead of the option.
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
  - "Permissions that it needs: get and patch C(nodes), list C(pods) in all namespaces, and create C(pods/eviction)
    in the namespaces of the pods that leave."
seealso:
  - name: Safely Drain a Node
    description: How evictions work, and how budgets limit them.
    link: https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
"""

EXAMPLES = r"""
- name: Drain the node
  hwaccel.gpu.node_drain:
    kubeconfig: /etc/kubernetes/admin.conf
    name: gpu-1
    timeout: 1800

- name: Restart a service that ends pods
  ansible.builtin.systemd:
    name: docker
    state: restarted
  delegate_to: gpu-1

- name: Uncordon the node
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
  description: Who has cordoned the node, V(node_drain) or V(others). Empty if it is not cordoned.
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
  description: Pods that remain on the node, each with C(pod) and C(why). Pods that have ended are not listed.
  returned: when it is done, or has failed
  type: list
  elements: dict
  sample: [{"pod": "hwaccel-gpu/nvidia-device-plugin-8kq2z", "why": "it belongs to DaemonSet nvidia-device-plugin"}]
held:
  description: Pods that could not be evicted yet, each with C(pod) and C(why).
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
