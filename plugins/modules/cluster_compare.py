#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_compare
version_added: 0.2.0
short_description: Compare a connection with the cluster that an installer has found
description:
  - Determines whether the connection options select the cluster of O(made). The certificate authorities are compared, and if they differ, the UID of the
    namespace C(kube-system), because a proxy before the API server may have an authority of its own.
  - It reads only, does not use credentials of the environment, and sends no request if the certificate authority is the same.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  made:
    description: Connection options of the cluster's own administrator. Empty if there is no cluster yet.
    type: dict
    required: true
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.attributes.info_module
  - hwaccel.gpu.attributes.cluster_group
seealso:
  - module: hwaccel.gpu.cluster_confirm
"""

EXAMPLES = r"""
- name: Compare the given connection with the cluster of the machines
  hwaccel.gpu.cluster_compare:
    made: "{{ cluster_connection }}"
  module_defaults:
    group/hwaccel.gpu.cluster: "{{ hwaccel_connection }}"
"""

RETURN = r"""
state:
  description:
    - V(same) or V(other).
    - V(absent) if the connection names a kubeconfig that does not exist.
    - V(unknown) if it has no certificate authority, and the UID cannot be read.
  returned: success
  type: str
text:
  description: The problem of another cluster, or why it is unknown. Empty if it is the same.
  returned: success
  type: str
"""

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import credentials, kubeconfig
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.retry import lasting
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import comparison, fleet


def cluster_compare(params: dict, _context: Context) -> Outcome:
    try:
        given = _selected(params)
    except kubeconfig.MissingKubeconfig as missing:
        return Outcome(values={"state": "absent", "text": str(missing)})
    return Outcome(values=comparison.compared(given, _selected(params["made"]) if params["made"] else None))


def _selected(options: dict) -> comparison.Selected:
    """Without the environment, whose credentials may be those of another cluster."""
    found = credentials.resolve(options, {})
    policy = None if options.get("retry_timeout") is None else lasting(options["retry_timeout"])

    def uid() -> str:
        return fleet.cluster_uid(Client(Transport(found, policy), read_only=True))

    return comparison.Selected(found.host, found.ca, uid)


def main() -> None:
    run_module({"made": {"type": "dict", "required": True}}, cluster_compare, supports_check_mode=True)


if __name__ == "__main__":
    main()
