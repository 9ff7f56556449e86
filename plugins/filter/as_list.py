# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a list that may come as text."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.values import list_of_text

DOCUMENTATION = r"""
name: as_list
version_added: 0.2.0
short_description: A list that may come as text
description:
  - Reads a list from text. AWX has no survey question that answers with a list of objects, and its text questions answer with text.
  - Text that is a list in JSON or YAML is that list. Any other text is names, between commas, blanks or line ends.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Text, or something else, which stays as it is. Empty text counts as no entries.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Leave nodes out that a survey has asked for
  hwaccel.gpu.node_gate:
    gate: driver
    exclude: "{{ hwaccel_excluded_nodes | hwaccel.gpu.as_list }}"
"""

RETURN = r"""
_value:
  description: The list, or what was given where it was no text.
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
            f'a list that was given as text cannot be read: {error}. Next: correct it, for example ["one", "two"]'
        ) from None


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"as_list": as_list}
