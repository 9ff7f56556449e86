#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_confirm
version_added: 0.2.0
short_description: Refuse to delete from a cluster that was not selected explicitly
description:
  - Determines which cluster the connection options select, and where that selection comes from. It is the first task of every play that deletes something.
  - If the options name a server, or a kubeconfig whose context is unambiguous, no confirmation is needed.
  - If the selection comes from the environment, the default kubeconfig, the service account of a pod, or the current context of a kubeconfig with
    several contexts, O(confirm) must name the cluster. Options that name at least a context need no confirmation if O(cluster_uid) is that of the cluster.
  - In check mode, which writes nothing, a missing O(confirm) is a warning. A wrong O(confirm) or O(cluster_uid) is refused in check mode as well.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  name:
    description: Name of the cluster in the inventory.
    type: str
    required: true
  cluster_uid:
    description: The uid of the namespace C(kube-system) of the intended cluster. Any other cluster is refused, and so is one whose uid cannot be read.
    type: str
  confirm:
    description: The uid of the namespace C(kube-system) of the cluster, or O(name) if the uid cannot be read. Anything else is refused.
    type: str
  command:
    description: The command to suggest if a confirmation is missing. C(-e hwaccel_confirm=) is appended to it.
    type: str
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.attributes.info_module
  - hwaccel.gpu.attributes.cluster_group
seealso:
  - module: hwaccel.gpu.node_info
"""

EXAMPLES = r"""
- name: Refuse a cluster that was not selected explicitly
  hwaccel.gpu.cluster_confirm:
    name: "{{ inventory_hostname }}"
    cluster_uid: "{{ hwaccel_cluster_uid | default(omit, true) }}"
    confirm: "{{ hwaccel_confirm | default(omit, true) }}"
"""

RETURN = r"""
cluster_uid:
  description: Uid of the namespace C(kube-system), empty if it cannot be read.
  returned: success
  type: str
platform:
  description: What kind of Kubernetes this is, C(distribution) and C(version).
  returned: success
  type: dict
nodes:
  description: Number of nodes, V(null) if the run may not list them.
  returned: success
  type: int
server:
  description: Address of the API server.
  returned: success
  type: str
decided_by:
  description: The setting of the machine that selected the cluster, empty if the options selected it.
  returned: success
  type: str
text:
  description: All of the above in one sentence.
  returned: success
  type: str
"""

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import confirmation

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "cluster_uid": {"type": "str"},
    "confirm": {"type": "str"},
    "command": {"type": "str"},
}


def cluster_confirm(params: dict, context: Context) -> Outcome:
    client = context.client()
    settings = confirmation.Settings(
        **{name: params.get(name) or "" for name in ARGUMENT_SPEC},
        decided_by=credentials.decided_by(params),
        own=any(params.get(name) for name in ("kubeconfig", "context", "host")),
        where=client.where,
        source=client.source,
    )
    return Outcome(values=confirmation.confirmed(client, settings, check_mode=context.check_mode, warn=context.warn))


def main() -> None:
    run_module(ARGUMENT_SPEC, cluster_confirm, supports_check_mode=True)


if __name__ == "__main__":
    main()
