# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: errors in the public variables of a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
name: input_faults
version_added: 0.2.0
short_description: Errors in the public variables of a cluster
description:
  - Validates the values of the variables C(hwaccel_*) and of the roles on clusters that are set for the host, before a cluster is queried or a role runs.
  - All errors are reported at once. Variables that are not set are valid, and so are empty ones that count as unset.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  _terms:
    description: Roles whose variables are validated in addition to the common ones. By default those of the requested stages.
    type: list
    elements: str
  fleet:
    description: Result of M(hwaccel.gpu.node_info) for the cluster. If it is set, only errors that need the cluster are reported.
    type: dict
"""

EXAMPLES = r"""
- name: Refuse invalid variables
  ansible.builtin.fail:
    msg: "{{ query('hwaccel.gpu.input_faults', 'driver') | map(attribute='text') | list }}"
  when: query('hwaccel.gpu.input_faults', 'driver') | length > 0
"""

RETURN = r"""
_raw:
  description: The errors, each with C(what), C(where), C(why), C(next_step), all of them as C(text), its C(variable), and the C(stages) that cannot be planned.
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _input_faults


class LookupModule(LookupBase):
    """The lookup."""

    def run(
        self, terms: t.Sequence[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any
    ) -> list[dict[str, t.Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        try:
            return _input_faults.judged(terms, variables or {}, self._templar.template, self.get_option("fleet"))
        except ValueError as error:
            raise AnsibleError(str(error)) from error
