# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: the value of a variable that consists of many templates."""

from __future__ import annotations

DOCUMENTATION = r"""
name: evaluated
version_added: 0.2.0
short_description: The value of a variable that consists of many templates
description:
  - Evaluates a variable as Ansible does, and takes less time where templates in it only name a variable, or give it a default. Ansible compiles each of these
    anew in each task of each machine.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  _terms:
    description: The name of the variable.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Keep the request for a machine
  ansible.builtin.set_fact:
    machine_boot_request: "{{ lookup('hwaccel.gpu.evaluated', '__machine_boot_request') }}"
"""

RETURN = r"""
_raw:
  description: The value.
  type: list
  elements: raw
"""

import collections.abc as c
import typing as t

from ansible.plugins.lookup import LookupBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._evaluation import Evaluation
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._variables import plain


class LookupModule(LookupBase):
    """The lookup."""

    def run(self, terms: c.Sequence[str], variables: dict[str, t.Any] | None = None, **_options: t.Any) -> list[t.Any]:
        known = variables or {}
        evaluate = Evaluation(known, self._templar.template)
        return [plain(evaluate(known[name])) for name in terms]
