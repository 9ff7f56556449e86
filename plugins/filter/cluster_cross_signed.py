# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a certificate of a new certificate authority that the old one has signed."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed

DOCUMENTATION = r"""
name: cluster_cross_signed
version_added: 0.2.0
short_description: A certificate of a new certificate authority that the old one has signed
description:
  - Whoever trusts only the old authority of a cluster trusts what the new one has issued, if a server sends this certificate with its own.
  - It is valid as long as both authorities are. Its serial number is random.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Certificate of the new authority, in PEM.
    type: str
    required: true
  old:
    description: Certificate of the old authority, in PEM.
    type: str
    required: true
  key:
    description: Private key of the old authority, in PEM. It is a secret, so a task that has it needs C(no_log).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Connect the new authority with the old one
  ansible.builtin.set_fact:
    cross: "{{ new | hwaccel.gpu.cluster_cross_signed(old=old, key=key) }}"
  no_log: true
"""

RETURN = r"""
_value:
  description: The certificate, in PEM.
  type: str
"""


def cluster_cross_signed(new: str, old: str, key: str) -> str:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority

    return str(computed("cluster_cross_signed", authority.cross_signed, new, old, key))


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"cluster_cross_signed": cluster_cross_signed}
