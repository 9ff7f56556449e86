#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_csr_approve
version_added: 0.2.0
short_description: Approve the certificate requests of expected nodes, and no others
description:
  - Approves CertificateSigningRequests of kubelets that join a cluster or renew their serving certificate, if each part of the request is what
    a kubelet of an expected node files. A request that differs in anything is not approved, and is reported with a reason code and what to do next.
  - The inventory is the identity of a machine. A Node has the name in O(expected_nodes) or its first label. A serving certificate has these names, the other
    names in C(dns_names), and the addresses in C(ip_addresses).
  - Client requests (signer C(kubernetes.io/kube-apiserver-client-kubelet)) are approved if the bootstrap identity of O(profile) filed them, and there is no
    Node of that name yet. Renewals of client certificates are approved by kube-controller-manager.
  - Serving requests (signer C(kubernetes.io/kubelet-serving)) are approved if the node itself filed them, and they have only names and addresses of the
    inventory. A request with other ones is approved if the node already serves with a valid certificate of the cluster for exactly these names. For that, the
    module connects to the kubelet at the Node's C(InternalIP).
  - If several requests of a node are pending, the newest is approved. Requests of two nodes with the same key are not approved, and neither is a second name
    of one machine. Requests older than O(max_age) are not approved.
  - If more requests are pending than O(max_pending) allows, none is approved, and the task fails.
  - Requests of other signers are not read. Nodes with a Machine object, as on clouds, are left to the cluster's own approver.
  - Nothing is denied, unless O(deny_refused) is set. A request that is not approved stays pending until Kubernetes deletes it, after a day.
  - With O(wait=true), the module approves requests as they are filed, until all expected nodes are Ready with serving certificates.
  - In check mode nothing is approved. RV(approved) has the requests that would be. The permissions of the run are needed, and missing ones are reported.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  expected_nodes:
    description:
      - Machines that may become nodes. Two machines must not have the same name or address.
      - C(name) is the name in the machine's reverse record (PTR). The Node has this name, or its first label.
      - C(ip_addresses) is a list of the machine's addresses. Its serving certificate may have all of them.
      - C(dns_names) is a list of further names that its serving certificate may have.
      - With an empty list, only renewals of serving certificates are approved.
    type: list
    elements: dict
    required: true
  profile:
    description:
      - How machines join the cluster, which decides who files client requests.
      - With V(openshift), it is the ServiceAccount C(node-bootstrapper) of the machine-config-server, as in OpenShift installations on platform C(none).
      - With V(kubeadm), it is a bootstrap token in the default group of C(kubeadm token create).
      - With V(k3s), there are no client requests, because the K3s server signs these certificates itself.
      - With V(custom), it is O(bootstrap_user) with O(bootstrap_groups).
    type: str
    choices: [openshift, kubeadm, k3s, custom]
    required: true
  bootstrap_user:
    description: Username of the bootstrap identity with O(profile=custom), such as C(system:bootstrap:abcdef).
    type: str
  bootstrap_groups:
    description: All groups of O(bootstrap_user), except for C(system:authenticated), which each identity has.
    type: list
    elements: str
    default: []
  signers:
    description: The kinds of requests to approve. Requests of the other one are not read.
    type: list
    elements: str
    choices: [client, serving]
    default: [client, serving]
  allow_rejoin:
    description:
      - Names of Nodes that exist and whose machines may nevertheless get a new client certificate, because they were installed again.
      - Whoever has the bootstrap credentials can get a certificate of such a node, so remove the names afterwards.
    type: list
    elements: str
    default: []
  max_age:
    description: Seconds after which a pending request is too old. A kubelet files another one after 15 minutes.
    type: float
    default: 7200
  max_pending:
    description:
      - The number of requests that may be pending in both signers together, of those filed within the last hour.
      - By default the number of expected nodes or of Nodes, whichever is greater, and 100 more.
    type: int
  strict_addresses:
    description: Whether the names and addresses of a serving request must also be in the status of its Node. The kubelet itself writes that status.
    type: bool
    default: false
  deny_refused:
    description:
      - Whether requests that can never be approved are denied. Requests that wait for something, such as their Node, are not denied.
      - A denial is permanent, and the kubelet waits before it files another request. If the inventory is wrong, its machines are locked out meanwhile.
    type: bool
    default: false
  serving_ca:
    description:
      - Certificates of the CA that signs serving certificates, in PEM form. They verify the certificate that a kubelet serves with.
      - By default they are read from the ConfigMap C(openshift-config-managed/csr-controller-ca), or C(kube-system/kube-root-ca.crt) with other profiles
        than V(openshift).
    type: str
  wait:
    description: Whether to wait until all expected nodes have joined.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait. Then the task fails, and reports for each missing node what it waits for.
    type: float
    default: 1800
  require_serving:
    description:
      - Whether a node counts as joined only if it serves with a certificate of the cluster. Otherwise it has to be Ready.
      - The module connects to the kubelets for that. Of a kubelet that it cannot reach, a certificate counts that was issued since its Node was created.
        Set it to V(false) if kubelets do not request serving certificates.
    type: bool
    default: true
  cluster_uid:
    description: The uid of the namespace C(kube-system) of the intended cluster. Any other cluster is refused. This needs the permission to get that namespace.
    type: str
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
requirements:
  - cryptography >= 42.0
notes:
  - "Permissions that it needs: list and get C(certificatesigningrequests) and C(nodes), update C(certificatesigningrequests/approval), approve C(signers) with
    the names of the two signers; with O(wait=true) also watch C(certificatesigningrequests) and C(nodes); with O(profile=openshift) list C(machines) in
    C(openshift-machine-api). To verify serving certificates, it gets the ConfigMap of O(serving_ca). The folder C(examples/csr-approver) has a ClusterRole."
  - While an OpenShift installation runs, its own programs approve every request. This module makes the cluster secure only after they have ended.
seealso:
  - name: Certificate Signing Requests
    description: Signers, conditions and permissions.
    link: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/
  - name: TLS bootstrapping
    description: How a kubelet gets its first certificates.
    link: https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/
"""

EXAMPLES = r"""
- name: Approve the requests of two workers until both have joined
  hwaccel.gpu.node_csr_approve:
    kubeconfig: /etc/hwaccel/approver.kubeconfig
    profile: openshift
    expected_nodes:
      - name: worker-0.dgxpod.example.com
        ip_addresses: [10.33.3.20]
      - name: worker-1.dgxpod.example.com
        ip_addresses: [10.33.3.21, 10.44.0.21]
    wait: true

- name: Approve serving certificates of a kubeadm cluster
  hwaccel.gpu.node_csr_approve:
    kubeconfig: /etc/kubernetes/admin.conf
    profile: kubeadm
    signers: [serving]
    expected_nodes: "{{ nodes }}"

- name: Check which requests would be approved
  hwaccel.gpu.node_csr_approve:
    kubeconfig: /etc/hwaccel/approver.kubeconfig
    profile: openshift
    expected_nodes: "{{ nodes }}"
  check_mode: true
  register: requests
"""

RETURN = r"""
approved:
  description: Requests that this run has approved, or in check mode would.
  returned: when it is done, or has failed
  type: list
  elements: dict
  contains:
    name:
      description: Name of the CertificateSigningRequest.
      type: str
    node:
      description: Name of the node.
      type: str
    signer:
      description: V(client) or V(serving).
      type: str
    renewal:
      description: Whether it was approved because the node serves with a certificate for the same names.
      type: bool
  sample: [{"name": "csr-x7k2p", "node": "worker-0.dgxpod.example.com", "signer": "client", "renewal": false}]
ignored:
  description: The first 200 requests that are not approved, oldest first.
  returned: when it is done, or has failed
  type: list
  elements: dict
  contains:
    name:
      description: Name of the CertificateSigningRequest.
      type: str
    node:
      description: Name of the node that it names, or that filed it. Empty if there is none.
      type: str
    signer:
      description: V(client) or V(serving).
      type: str
    reason_code:
      description:
        - One of V(BAD_EXPIRATION), V(BAD_EXTENSION), V(BAD_KEY), V(BAD_PEM), V(BAD_REQUESTOR), V(BAD_SIGNATURE), V(BAD_SUBJECT), V(BAD_USAGE), V(DENIED),
          V(FAILED), V(FLOOD), V(KEY_REUSED), V(MACHINE_EXISTS), V(NODE_EXISTS), V(NODE_MISSING), V(NODE_UNREACHABLE), V(NOT_IN_INVENTORY), V(NO_SAN),
          V(SAN_NOT_ALLOWED), V(SUPERSEDED), V(TOO_OLD), V(TWO_NAMES), V(UNKNOWN_SIGNER).
      type: str
    detail:
      description: What was observed.
      type: str
    text:
      description: The whole message, with what to do next.
      type: str
  sample:
    - name: csr-9wq4z
      node: worker-3.dgxpod.example.com
      signer: serving
      reason_code: SAN_NOT_ALLOWED
      detail: "it requests 10.0.0.77; the inventory has 10.33.3.23, worker-3, worker-3.dgxpod.example.com"
      text: "worker-3.dgxpod.example.com: serving request csr-9wq4z is not approved (SAN_NOT_ALLOWED): it requests 10.0.0.77; ..."
ignored_count:
  description: The number of all requests that are not approved.
  returned: when it is done, or has failed
  type: int
  sample: 1
denied:
  description: Requests that this run has denied, or in check mode would, in the form of RV(ignored).
  returned: when it is done, or has failed
  type: list
  elements: dict
  sample: []
missing_nodes:
  description: Names of expected nodes that have no Node.
  returned: when it is done, or has failed
  type: list
  elements: str
  sample: ["worker-4.dgxpod.example.com"]
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.kubelets import serving_certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.settings import Settings

ARGUMENT_SPEC: dict[str, t.Any] = {
    "expected_nodes": {"type": "list", "elements": "dict", "required": True},
    "profile": {"type": "str", "choices": ["openshift", "kubeadm", "k3s", "custom"], "required": True},
    "bootstrap_user": {"type": "str"},
    "bootstrap_groups": {"type": "list", "elements": "str", "default": []},
    "signers": {
        "type": "list",
        "elements": "str",
        "choices": ["client", "serving"],
        "default": ["client", "serving"],
    },
    "allow_rejoin": {"type": "list", "elements": "str", "default": []},
    "max_age": {"type": "float", "default": 7200},
    "max_pending": {"type": "int"},
    "strict_addresses": {"type": "bool", "default": False},
    "deny_refused": {"type": "bool", "default": False},
    "serving_ca": {"type": "str"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "float", "default": 1800},
    "require_serving": {"type": "bool", "default": True},
    "cluster_uid": {"type": "str"},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    given = {name: params[name] for name in ARGUMENT_SPEC if params.get(name) is not None}
    return run.approve(
        Settings(**given),
        context.client(),
        Clock(deadline=context.deadline),
        serving_certificate,
        check_mode=context.check_mode,
        resume=context.resume,
    )


def main() -> None:
    run_module(ARGUMENT_SPEC, operation, waits=True, supports_check_mode=True)


if __name__ == "__main__":
    main()
