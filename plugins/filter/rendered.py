# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: objects as one YAML string."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import patches as patching
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import plain_yaml
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.manifests import load

DOCUMENTATION = r"""
name: rendered
version_added: 0.1.0
short_description: Objects as YAML documents, with patches applied
description:
  - Writes objects as YAML documents with sorted keys, in the given order, so that the same objects give the same text.
  - Patches are applied exactly as by M(hwaccel.gpu.manifest_set).
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Objects.
    type: list
    elements: dict
    required: true
  patches:
    description: As O(hwaccel.gpu.manifest_set#module:patches).
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Keep objects for review
  ansible.builtin.copy:
    content: "{{ objects | hwaccel.gpu.rendered }}"
    dest: driver.yaml
    mode: "0644"
"""

RETURN = r"""
_value:
  description: YAML documents.
  type: str
"""


def _builtin(value: t.Any) -> t.Any:
    """Converts Ansible's own types of strings and mappings to those of Python."""
    if isinstance(value, dict):
        return {_builtin(key): _builtin(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_builtin(item) for item in value]
    # str() of a tagged string in core 2.16 is still tagged, and YAML dumpers do not support that.
    return str.__str__(value) if isinstance(value, str) else value


def rendered(objects: list[dict[str, t.Any]], patches: list[dict[str, t.Any]] | None = None) -> str:
    """See DOCUMENTATION."""
    manifests, faults = load(_builtin(objects))
    parsed, more = patching.read(_builtin(patches or []))
    if not faults and not more:
        manifests, more = patching.apply_all(manifests, parsed)
    if faults or more:
        raise AnsibleFilterError("; ".join(str(fault) for fault in [*faults, *more]))
    return plain_yaml.text([manifest.body for manifest in manifests], start=True)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"rendered": rendered}
