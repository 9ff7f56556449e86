# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the connection to a cluster that was installed."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed

DOCUMENTATION = r"""
name: cluster_connection
version_added: 0.2.0
short_description: Connection to a cluster that was installed
description:
  - Reads the kubeconfig of an administrator, and replaces the address of one server by the endpoint of the cluster.
  - The result holds credentials, so tasks that use it need C(no_log).
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  _input:
    description: Text of the kubeconfig.
    type: str
    required: true
  endpoint:
    description: Host and port of the cluster's endpoint.
    type: str
    required: true
  server_name:
    description: The name that the certificate of the server has to have, as long as it has not that of the endpoint. If empty, that of the endpoint.
    type: str
    default: ''
  authorities:
    description: Certificates in PEM that are trusted besides those of the kubeconfig, and stand before them.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Set the connection for the rest of the run
  ansible.builtin.set_fact:
    hwaccel_connection: "{{ kubeconfig.content | b64decode | hwaccel.gpu.cluster_connection(endpoint='api.example.com:6443') }}"
  no_log: true
"""

RETURN = r"""
_value:
  description: C(hwaccel_connection) of the cluster.
  type: dict
"""


def cluster_connection(
    kubeconfig: str, endpoint: str, server_name: str = "", authorities: str = ""
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import role as kubeadm

    return t.cast(
        "dict[str, t.Any]",
        computed("cluster_connection", kubeadm.connection, kubeconfig, endpoint, server_name, authorities),
    )


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_connection": cluster_connection}
