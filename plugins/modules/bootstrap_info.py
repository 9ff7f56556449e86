#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: bootstrap_info
version_added: 0.2.0
short_description: Report how far the bootstrap of a cluster is
description:
  - Reports whether the bootstrap of an OpenShift cluster is complete, so that its load balancer does not need the bootstrap machine any more. The evidence is
    the C(status) of the ConfigMap C(kube-system/bootstrap), or a completed installation in the ClusterVersion.
  - Reports whether the bootstrap machine can be switched off, which is later. Until etcd has removed its member, the machine has a vote there. The evidence is
    the condition C(EtcdBootstrapMemberRemoved) of the Etcd C(cluster). Older releases do not have it, and a complete bootstrap is enough.
  - A cluster that does not answer is not an error, because it cannot answer before its first machine has started.
author:
  - hwaccel.gpu contributors (@hwaccel)
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.attributes.info_module
  - hwaccel.gpu.attributes.cluster_group
"""

EXAMPLES = r"""
- name: Get the state of bootstrap
  hwaccel.gpu.bootstrap_info:
    kubeconfig: /srv/installations/dgxpod/auth/kubeconfig
  register: bootstrap

- name: Report whether the bootstrap machine can be switched off
  ansible.builtin.debug:
    msg: "{{ bootstrap.removable }}: {{ bootstrap.removable_why }}"
"""

RETURN = r"""
complete:
  description: Whether the bootstrap is complete, V(null) if the cluster does not answer.
  returned: success
  type: bool
why:
  description: The evidence for RV(complete).
  returned: success
  type: str
removable:
  description: Whether the bootstrap machine can be switched off, V(null) if the cluster does not answer, or its Etcd must not be read.
  returned: success
  type: bool
removable_why:
  description: The evidence for RV(removable).
  returned: success
  type: str
"""

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bootstrap


def bootstrap_info(_params: dict, context: Context) -> Outcome:
    return Outcome(values=bootstrap.state(context.client()))


def main() -> None:
    run_module({}, bootstrap_info, supports_check_mode=True)


if __name__ == "__main__":
    main()
