# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what is wrong in the public variables of a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
name: input_faults
version_added: 0.2.0
short_description: What is wrong in the public variables of a cluster
description:
  - Judges the values of the variables C(hwaccel_*) and of the roles on clusters that are set for the host, before a cluster or a role is asked.
  - Everything is reported at once. Variables that are not set, or empty where that counts as unset, are right.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  _terms:
    description: Roles whose variables are judged beside those of all. None, those of the stages that are taken.
    type: list
    elements: str
  fleet:
    description: What M(hwaccel.gpu.node_info) returned of the cluster. Where it is given, what only the cluster shows is judged, and nothing else.
    type: dict
"""

EXAMPLES = r"""
- name: Refuse what cannot be used
  ansible.builtin.fail:
    msg: "{{ query('hwaccel.gpu.input_faults', 'driver') | map(attribute='text') | list }}"
  when: query('hwaccel.gpu.input_faults', 'driver') | length > 0
"""

RETURN = r"""
_raw:
  description: Faults, each with C(what), C(where), C(why), C(next_step), all of them as C(text), its C(variable), and the C(stages) that cannot be planned.
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import judge, on_cluster, table


class LookupModule(LookupBase):
    """The lookup."""

    def run(
        self, terms: t.Sequence[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any
    ) -> list[dict[str, t.Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        stages = [str(term) for term in terms] or judge.taken(
            self._given(["hwaccel_stages"], variables or {}).get("hwaccel_stages")
        )
        if unknown := [stage for stage in stages if stage not in table.ROLES]:
            raise AnsibleError(f"there is no role {', '.join(unknown)}. Next: name some of {', '.join(table.ROLES)}")
        given = self._given(table.names(stages), variables or {})
        fleet = self.get_option("fleet")
        return [one.as_dict() for one in (on_cluster.judge(given, fleet) if fleet else judge.judge(given, stages))]

    def _given(self, names: list[str], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        """Values as modules would get them: plain, with their templates evaluated."""
        return {name: _variables.plain(self._templar.template(variables[name])) for name in names if name in variables}
