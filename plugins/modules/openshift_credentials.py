#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: openshift_credentials
version_added: 0.2.0
short_description: Report the router's CA of an OpenShift cluster, and remove kubeadmin
description:
  - Returns the certificates that sign those of the cluster's routes, as C(openshift-install wait-for install-complete) adds them to C(auth/kubeconfig).
  - With O(remove_kubeadmin=true), deletes the Secret C(kube-system/kubeadmin), which cannot be undone. The password in it is never read.
  - It is only deleted if another administrator is known. That is a user who has logged in by an identity provider of the OAuth C(cluster), who is bound to
    the ClusterRole C(cluster-admin), by name or by a Group, and who may do everything, according to the API server, while the ClusterOperator
    C(authentication) works. Or it is the user of O(other_connection), if that is neither kubeadmin nor one that Kubernetes itself has (C(system:)), such as
    the administrator of C(auth/kubeconfig) and service accounts, and if it does not impersonate anybody.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  name:
    description: Name and base domain of the cluster, such as V(dgxpod.example.com), for messages.
    type: str
    required: true
  infrastructure:
    description:
      - C(infraID) of the installation, as M(hwaccel.gpu.openshift_install) returns it. A cluster with another one is refused.
      - Empty if it is not known, as with the agent-based installer. Then the cluster is known by the certificate authority of its kubeconfig alone.
    type: str
    default: ""
  remove_kubeadmin:
    description: Whether the user kubeadmin is removed.
    type: bool
    default: false
  other_connection:
    description: Connection options of somebody else, for example C(hwaccel_connection) of the inventory.
    type: dict
    default: {}
extends_documentation_fragment:
  - hwaccel.gpu.cluster
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
  - "Permissions that it needs: get C(infrastructures), ConfigMaps in C(openshift-config-managed) and Secrets in C(kube-system); with O(remove_kubeadmin)
    also delete these Secrets, get C(oauths), C(clusteroperators), C(users) and C(groups), list C(clusterrolebindings), and create C(subjectaccessreviews).
    C(auth/kubeconfig) of an installation has them."
seealso:
  - module: hwaccel.gpu.openshift_wait
"""

EXAMPLES = r"""
- name: Remove kubeadmin once somebody else is an administrator
  hwaccel.gpu.openshift_credentials:
    kubeconfig: /srv/installations/dgxpod/auth/kubeconfig
    name: dgxpod.example.com
    infrastructure: dgxpod-x7k2p
    remove_kubeadmin: true
"""

RETURN = r"""
router_ca:
  description: Certificates in PEM, empty as long as the cluster has not written them.
  returned: success
  type: str
kubeadmin:
  description: Whether the Secret C(kube-system/kubeadmin) is there.
  returned: success
  type: bool
administrator:
  description: The administrator who remains, empty if nothing was removed.
  returned: success
  type: str
  sample: alice
why:
  description: The evidence for RV(administrator).
  returned: success
  type: str
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import credentials, kubeconfig
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import openshift_credentials

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "infrastructure": {"type": "str", "default": ""},
    "remove_kubeadmin": {"type": "bool", "default": False},
    "other_connection": {"type": "dict", "default": {}},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    settings = openshift_credentials.Settings(
        params["name"], params.get("infrastructure") or "", params["remove_kubeadmin"]
    )
    own = _other(params["other_connection"]) if settings.remove_kubeadmin and params["other_connection"] else None
    return openshift_credentials.run(context.client(), settings, own, check_mode=context.check_mode)


def _other(options: dict[str, t.Any]) -> Client | None:
    """Without the environment, and None if it impersonates somebody, who need not be able to log in, or names a kubeconfig that is only going to be there."""
    try:
        found = credentials.resolve(options, {})
    except kubeconfig.MissingKubeconfig:
        return None
    return None if found.impersonate_user else Client(Transport(found, None), read_only=True)


def main() -> None:
    run_module(ARGUMENT_SPEC, operation, supports_check_mode=True)


if __name__ == "__main__":
    main()
