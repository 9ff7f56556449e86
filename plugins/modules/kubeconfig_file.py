#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeconfig_file
version_added: 0.2.0
short_description: Write or remove the kubeconfig of a cluster that was installed
description:
  - Writes a file on the controller that only its owner can read. It is changed only if it differs.
  - A file that has something else than a kubeconfig of this server, such as one of several clusters, is never replaced.
  - With O(state=absent), the file is removed if its single server and its users are those of O(kubeconfig). Otherwise it is kept.
  - The result has nothing of the kubeconfig, and there is no diff.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  path:
    description: The file. A relative path is relative to the current folder.
    type: str
    required: true
  kubeconfig:
    description: The kubeconfig. If it is empty, it is not known yet, and nothing is written; it is only verified that the file can be.
    type: dict
    default: {}
  server:
    description: Host and port of the endpoint of the cluster.
    type: str
    required: true
  state:
    description: Whether the file is written or removed.
    type: str
    choices: [present, absent]
    default: present
extends_documentation_fragment:
  - hwaccel.gpu.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  platform:
    support: full
  idempotent:
    support: full
seealso:
  - module: hwaccel.gpu.cluster_compare
"""

EXAMPLES = r"""
- name: Write the kubeconfig
  hwaccel.gpu.kubeconfig_file:
    path: ~/.kube/production
    kubeconfig: "{{ hwaccel_connection.kubeconfig }}"
    server: api.example.com:6443
"""

RETURN = r"""
writes:
  description: Whether the file differs, or its kubeconfig is not known yet. With O(state=absent), whether it is removed.
  returned: success
  type: bool
path:
  description: The file, without links.
  returned: success
  type: str
kept:
  description: Why the file is kept, empty if there is none.
  returned: success, with O(state=absent)
  type: str
"""
