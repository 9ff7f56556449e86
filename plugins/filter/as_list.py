# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a list from a string."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.values import list_of_text

DOCUMENTATION = r"""
name: as_list
version_added: 0.2.0
short_description: Convert a string to a list
description:
  - Reads a list from a string. AWX has no survey question whose answer is a list of objects, and the answers of its text questions are strings.
  - A string that is a list in JSON or YAML is parsed. Any other string contains names, separated by commas, blanks or line ends.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: A string. Any other value is returned unchanged. An empty string is an empty list.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Exclude nodes from a survey answer
  hwaccel.gpu.node_gate:
    gate: driver
    exclude: "{{ hwaccel_excluded_nodes | hwaccel.gpu.as_list }}"
"""

RETURN = r"""
_value:
  description: The list, or the input if it is not a string.
  type: list
  elements: raw
"""


def as_list(value: t.Any) -> t.Any:
    """See DOCUMENTATION."""
    if not isinstance(value, str):
        return value
    try:
        return list_of_text(value)
    except ValueError as error:
        raise AnsibleFilterError(
            f'a list in a string cannot be read: {error}. Next: correct it, for example ["one", "two"]'
        ) from None


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"as_list": as_list}
