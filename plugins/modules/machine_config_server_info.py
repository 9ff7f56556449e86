#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: machine_config_server_info
version_added: 0.2.0
short_description: Report what machines that are added to an OpenShift cluster are installed with
description:
  - Makes the ignition files of machines that are added to a cluster that is installed. They are pointers, which name port 22623 of the cluster, where a machine
    gets its configuration, and the certificate authority of that port.
  - The authority is read from the cluster at each run, from the ConfigMap C(openshift-machine-config-operator/machine-config-server-ca), or
    C(kube-system/root-ca) of releases that do not have it. It may be rotated, so that the files of the installation have an earlier one years later.
  - A pointer holds no key, no password and no token.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  domain:
    description: Name and base domain of the cluster together, such as V(dgxpod.example.com).
    type: str
    required: true
  pools:
    description: Names of MachineConfigPools.
    type: list
    elements: str
    default: [master, worker]
  path:
    description:
      - Folder of the installation on the host of the task, if it is still there.
      - Of its C(worker.ign) the version of the specification is taken, and whether its authority was rotated since.
    type: path
requirements:
  - cryptography >= 42.0
notes:
  - "Permissions that it needs: get ConfigMaps in C(openshift-machine-config-operator) and C(kube-system)."
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.attributes.info_module
  - hwaccel.gpu.attributes.cluster_group
"""

EXAMPLES = r"""
- name: Make the ignition files of machines that are added
  hwaccel.gpu.machine_config_server_info:
    kubeconfig: /srv/installations/dgxpod/auth/kubeconfig
    domain: dgxpod.example.com
  register: added

- name: Write that of workers for a boot server
  ansible.builtin.copy:
    content: "{{ added.pointers.worker }}"
    dest: /srv/boot/worker.ign
    mode: '0600'
"""

RETURN = r"""
pointers:
  description: Ignition files in JSON, by the name of the pool. They are the same as long as the authority is the same.
  returned: success
  type: dict
  sample:
    worker: '{"ignition":{"config":{"merge":[{"source":"https://api-int.dgxpod.example.com:22623/config/worker"}]},...}}'
config_map:
  description: Namespace and name of the ConfigMap that has the authority.
  returned: success
  type: str
  sample: openshift-machine-config-operator/machine-config-server-ca
ignition_version:
  description: Version of the specification of the pointers. Without the folder of the installation it is V(3.2.0), that of release 4.20, which later releases
    read, too.
  returned: success
  type: str
  sample: 3.2.0
rotated:
  description: Whether C(worker.ign) in O(path) has another authority. V(false) without the file.
  returned: success
  type: bool
"""

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import machine_config_server

SPEC = {
    "domain": {"type": "str", "required": True},
    "pools": {"type": "list", "elements": "str", "default": ["master", "worker"]},
    "path": {"type": "path"},
}


def machine_config_server_info(params: dict, context: Context) -> Outcome:
    values = machine_config_server.found(context.client(), params["domain"], params["pools"], params.get("path") or "")
    return Outcome(values=values)


def main() -> None:
    run_module(SPEC, machine_config_server_info, supports_check_mode=True)


if __name__ == "__main__":
    main()
