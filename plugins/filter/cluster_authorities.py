# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: new certificate authorities of a K3s cluster that whoever trusts the old ones trusts, too."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed

DOCUMENTATION = r"""
name: cluster_authorities
version_added: 0.2.0
short_description: New certificate authorities of a K3s cluster that whoever trusts the old ones trusts, too
description:
  - Makes what C(k3s certificate rotate-ca) takes. Each authority gets a new root, which the old root has signed, too, and tokens of service accounts a new key.
  - Keys are random, so each call returns others.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: >-
      Texts of the files that a server has, by their names below C(server/tls): C(client-ca.crt), C(client-ca.key) and so on, and C(service.key). The keys are
      secrets, so a task that has them needs C(no_log).
    type: dict
    required: true
  now:
    description: In seconds since 1970.
    type: float
    required: true
"""

EXAMPLES = r"""
- name: Write new authorities
  ansible.builtin.copy:
    content: "{{ item.value }}"
    dest: "/var/lib/hwaccel-gpu/new/tls/{{ item.key }}"
    mode: "0600"
  loop: "{{ present | hwaccel.gpu.cluster_authorities(now=now(utc=true).timestamp()) | dict2items }}"
  no_log: true
"""

RETURN = r"""
_value:
  description: Texts of the new files by the same names.
  type: dict
"""


def cluster_authorities(present: dict[str, str], now: float) -> dict[str, str]:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authorities

    return t.cast("dict[str, str]", computed("cluster_authorities", authorities.successors, present, now))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_authorities": cluster_authorities}
