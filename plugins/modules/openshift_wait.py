#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: openshift_wait
version_added: 0.2.0
short_description: Wait for an OpenShift installation, and report why it does not go on
description:
  - Waits until an installation has come as far as O(until), and approves the certificate requests of its nodes meanwhile, by the rules of
    M(hwaccel.gpu.node_csr_approve).
  - How far the installation is follows from what is observed each time, from its folder (O(installation)), its boot servers (O(machines)) and its API.
    RV(state) is one of ten states. An installed cluster that does not answer is V(unreachable), whatever else was lost, and the module fails without waiting.
  - It waits by watches. While nothing happens, it sends at most 12 requests in a minute. A line is shown when something changes.
  - Each phase has its own limit. When it has passed, the module fails, and reports the most likely cause with what to do next, and what was observed last.
  - A cluster that was installed before is not waited for, even if some of its operators are degraded, which is a warning. Only nodes that are added to it are
    (O(added_nodes)).
  - In check mode everything is read once, and nothing is approved. RV(approved) has the requests that would be.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  name:
    description: Name and base domain of the cluster, such as V(dgxpod.example.com), for messages.
    type: str
    required: true
  until:
    description:
      - The last phase that is waited for.
      - With V(api), until the API answers.
      - With V(bootstrap), until the bootstrap machine can be switched off, as M(hwaccel.gpu.bootstrap_info) reports it.
      - With V(nodes), until all nodes of O(expected_nodes) are Ready and serve with a certificate of the cluster.
      - With V(install), until the ClusterVersion is available and nothing has progressed for 30 seconds.
    type: str
    choices: [api, bootstrap, nodes, install]
    default: install
  expected_nodes:
    description:
      - Machines that may become nodes, with C(name), C(ip_addresses) and C(dns_names), as in M(hwaccel.gpu.node_csr_approve).
      - Without any, no request is approved and no node is waited for.
    type: list
    elements: dict
    default: []
  added_nodes:
    description:
      - Names of nodes of O(expected_nodes) whose machines are added to a cluster that was installed before, or are replaced.
      - Of such a cluster only these are waited for, and those whose requests were approved meanwhile. One that has a Node already is not, unless
        O(allow_rejoin) has it.
    type: list
    elements: str
    default: []
  allow_rejoin:
    description: Names of Nodes that exist and whose machines may nevertheless get a new client certificate, because they were installed again.
    type: list
    elements: str
    default: []
  serving_ca:
    description:
      - Certificates of the CA that signs serving certificates, in PEM form.
      - By default they are read from ConfigMap C(openshift-config-managed/csr-controller-ca) as soon as it exists.
    type: str
  installation:
    description: The folder of the installation, and the record beside it.
    type: dict
    default: {}
    suboptions:
      path:
        description: Its path, for messages.
        type: str
        default: ""
      files:
        description: Whether C(openshift-install) has written files into it.
        type: bool
        default: true
      infrastructure:
        description:
          - C(infraID) of C(metadata.json). A cluster with another one is refused.
          - By default it is that of the record of M(hwaccel.gpu.openshift_install) beside the folder, if there is one.
        type: str
        default: ""
      not_after:
        description: When the first certificate of the bootstrap file expires, as M(hwaccel.gpu.openshift_install) returns it.
        type: str
        default: ""
      installed:
        description: Whether the cluster was installed before. The record beside the folder counts in any case.
        type: bool
        default: false
  machines:
    description:
      - What is known of each machine from the logs and the memory of its boot servers, and from the machine itself.
      - If there are any, masters and workers have to be those of O(expected_nodes).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name in the machine's reverse record (PTR).
        type: str
        required: true
      role:
        description: What it is in the installation.
        type: str
        choices: [bootstrap, master, worker]
        required: true
      stage:
        description: How far its boot is, by the logs of its boot servers. At V(config), it has got its configuration from port 22623.
        type: str
        choices: [nothing, requested, address, loader, kernel, ignition, reported, config]
        default: nothing
      what:
        description: What it has downloaded last, or its address.
        type: str
        default: ""
      refused:
        description: What it was not given, with the reason, such as V(/images/rootfs.img was refused with status 404).
        type: str
        default: ""
      fetches:
        description: How often it has downloaded its ignition file for this installation.
        type: int
        default: 0
      restarts:
        description: How often it has started from the network since it has downloaded its ignition file.
        type: int
        default: 0
      quiet:
        description: Seconds since its last request to a boot server.
        type: float
      said:
        description: The last error on its console or in its journal.
        type: str
        default: ""
      joined:
        description: Whether the boot servers remember it as a node.
        type: bool
        default: false
      written:
        description: Whether it was installed with files of this installation.
        type: bool
        default: false
  surroundings:
    description: What the installation depends on, as far as it was observed.
    type: dict
    default: {}
    suboptions:
      api_members:
        description: Names of the machines to which the load balancers send port 6443.
        type: list
        elements: str
      config_members:
        description: Names of the machines to which the load balancers send port 22623.
        type: list
        elements: str
      config_refused:
        description: Why port 22623 of C(api-int) cannot be reached from the machines' network, empty if it can.
        type: str
        default: ""
      wildcard:
        description: What is wrong with the record C(*.apps) in DNS, empty if nothing is.
        type: str
        default: ""
  leg:
    description:
      - Seconds after which the module ends without a failure although it has not waited to the end, so that O(machines) and O(surroundings) can be observed
        again. RV(waited) is passed to the next call. Limits count on.
      - When a limit has passed, it ends in the same way. The next call fails then, with the cause by what was observed last.
      - V(0) means that it waits to the end.
    type: float
    default: 0
  waited:
    description: RV(waited) of the call before.
    type: dict
    default: {}
  api_timeout:
    description: Seconds to wait for the API.
    type: float
    default: 1200
  bootstrap_timeout:
    description: Seconds to wait for the end of bootstrap, since the API has answered.
    type: float
    default: 3600
  nodes_timeout:
    description: Seconds to wait for the expected nodes, since the end of bootstrap.
    type: float
    default: 3600
  install_timeout:
    description: Seconds to wait for the ClusterVersion and all operators, since the expected nodes are complete.
    type: float
    default: 3600
  retry_timeout:
    description: Seconds for which a request is retried. By default it is not, because the module waits and asks again itself.
    type: float
    default: 0
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
  - "Permissions that it needs: list and watch ConfigMap C(bootstrap) in C(kube-system), C(nodes), C(clusterversions), C(clusteroperators) and C(etcds), and
    list C(infrastructures); with O(expected_nodes) also those of M(hwaccel.gpu.node_csr_approve). C(auth/kubeconfig) of an installation has them, and the
    folder C(examples/csr-approver) has roles with nothing else."
  - Until bootstrap is complete, the bootstrap machine itself approves every request, unless C(approve-csr.service) is masked in its ignition file.
seealso:
  - module: hwaccel.gpu.bootstrap_info
  - module: hwaccel.gpu.node_csr_approve
  - module: hwaccel.gpu.openshift_install
"""

EXAMPLES = r"""
- name: Wait until the bootstrap machine can be switched off
  hwaccel.gpu.openshift_wait:
    kubeconfig: /srv/installations/dgxpod/auth/kubeconfig
    name: dgxpod.example.com
    until: bootstrap

- name: Wait until it is installed, and approve the requests of its machines
  hwaccel.gpu.openshift_wait:
    kubeconfig: /srv/installations/dgxpod/auth/kubeconfig
    name: dgxpod.example.com
    installation:
      path: /srv/installations/dgxpod
      infrastructure: "{{ installation.infrastructure }}"
      not_after: "{{ installation.not_after }}"
    expected_nodes:
      - name: master-0.dgxpod.example.com
        ip_addresses: [10.33.3.10]
      - name: worker-0.dgxpod.example.com
        ip_addresses: [10.33.3.20]

- name: Report how far it is
  hwaccel.gpu.openshift_wait:
    kubeconfig: /srv/installations/dgxpod/auth/kubeconfig
    name: dgxpod.example.com
  check_mode: true
  register: install
"""

RETURN = r"""
state:
  description:
    - How far the installation is, one of V(nothing), V(prepared), V(booting), V(bootstrapping), V(bootstrapped), V(installing), V(installed), V(degraded),
      V(unreachable) and V(foreign).
  returned: when it is done, or has failed
  type: str
  sample: installing
why:
  description: The evidence for RV(state).
  returned: when it is done, or has failed
  type: str
next_step:
  description: What to do, empty if nothing has to be done.
  returned: when it is done, or has failed
  type: str
phase:
  description: The phase that was waited for last.
  returned: when it is done, or has failed
  type: str
  sample: nodes
since:
  description: Since when RV(phase) was waited for.
  returned: when it is done, or has failed
  type: str
  sample: "2026-12-01T06:00:00Z"
answers:
  description:
    - Whether the API answers now. Otherwise RV(bootstrapped) and RV(removable) are not what it says, and may be unknown.
  returned: when it is done, or has failed
  type: bool
infrastructure:
  description: C(status.infrastructureName) of Infrastructure C(cluster), empty if it is not known.
  returned: when it is done, or has failed
  type: str
  sample: dgxpod-x7k2p
complete:
  description: Whether the installation has come as far as O(until).
  returned: when it is done, or has failed
  type: bool
bootstrapped:
  description: Whether its bootstrap is complete.
  returned: when it is done, or has failed
  type: bool
removable:
  description: Whether the bootstrap machine can be switched off.
  returned: when it is done, or has failed
  type: bool
machines:
  description: Machines of O(machines), and how far each is.
  returned: when it is done, or has failed
  type: list
  elements: dict
  contains:
    name:
      description: Name of the machine.
      type: str
    role:
      description: What it is in the installation.
      type: str
    step:
      description:
        - One of V(no DHCP request), V(DHCP), V(kernel), V(ignition), V(22623), V(certificate request), V(Node, not Ready),
          V(Ready, without serving certificate) and V(complete).
      type: str
lagging:
  description: Operators that are degraded, not available or progressing, those first that others wait for.
  returned: when it is done, or has failed
  type: list
  elements: dict
  contains:
    name:
      description: Name of the ClusterOperator.
      type: str
    reason:
      description: Reason and message of its condition.
      type: str
observed:
  description: What was observed last, as lines.
  returned: when it is done, or has failed
  type: list
  elements: str
cause:
  description: The most likely cause of a failure, with C(what), C(where), C(why), C(next_step), and all of them as C(text). Empty without a failure.
  returned: when it is done, or has failed
  type: dict
waited:
  description: What the next call continues from. Empty if it is done.
  returned: when it is done, or has failed
  type: dict
approved:
  description: Requests that this run has approved, or in check mode would, as M(hwaccel.gpu.node_csr_approve) returns them.
  returned: when it is done, or has failed
  type: list
  elements: dict
ignored:
  description: The first 200 requests that are not approved, as M(hwaccel.gpu.node_csr_approve) returns them.
  returned: when it is done, or has failed
  type: list
  elements: dict
ignored_count:
  description: The number of all requests that are not approved.
  returned: when it is done, or has failed
  type: int
unexpected_nodes:
  description: Names of Nodes that none of O(expected_nodes) is, for example because their machine has left the inventory. They are never removed.
  returned: when it is done, or has failed
  type: list
  elements: str
missing_nodes:
  description: Names of expected nodes that have no Node.
  returned: when it is done, or has failed
  type: list
  elements: str
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.kubelets import serving_certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import BOOT_STAGES, NOTHING, ROLES
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.settings import (
    INSTALL,
    PHASES,
    Settings,
)

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "until": {"type": "str", "choices": list(PHASES), "default": INSTALL},
    "expected_nodes": {"type": "list", "elements": "dict", "default": []},
    "added_nodes": {"type": "list", "elements": "str", "default": []},
    "allow_rejoin": {"type": "list", "elements": "str", "default": []},
    "serving_ca": {"type": "str"},
    "installation": {
        "type": "dict",
        "default": {},
        "options": {
            "path": {"type": "str", "default": ""},
            "files": {"type": "bool", "default": True},
            "infrastructure": {"type": "str", "default": ""},
            "not_after": {"type": "str", "default": ""},
            "installed": {"type": "bool", "default": False},
        },
    },
    "machines": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "role": {"type": "str", "choices": list(ROLES), "required": True},
            "stage": {"type": "str", "choices": list(BOOT_STAGES), "default": NOTHING},
            "what": {"type": "str", "default": ""},
            "refused": {"type": "str", "default": ""},
            "fetches": {"type": "int", "default": 0},
            "restarts": {"type": "int", "default": 0},
            "quiet": {"type": "float"},
            "said": {"type": "str", "default": ""},
            "joined": {"type": "bool", "default": False},
            "written": {"type": "bool", "default": False},
        },
    },
    "surroundings": {
        "type": "dict",
        "default": {},
        "options": {
            "api_members": {"type": "list", "elements": "str"},
            "config_members": {"type": "list", "elements": "str"},
            "config_refused": {"type": "str", "default": ""},
            "wildcard": {"type": "str", "default": ""},
        },
    },
    "leg": {"type": "float", "default": 0},
    "waited": {"type": "dict", "default": {}},
    "api_timeout": {"type": "float", "default": 1200},
    "bootstrap_timeout": {"type": "float", "default": 3600},
    "nodes_timeout": {"type": "float", "default": 3600},
    "install_timeout": {"type": "float", "default": 3600},
    "retry_timeout": {"type": "float", "default": 0},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    given = {name: params[name] for name in Settings.__dataclass_fields__ if params.get(name) is not None}
    return run.wait(
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
