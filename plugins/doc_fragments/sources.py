# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests from templates and files on the controller."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  template:
    description:
      - Path of a Jinja template, or of a folder of them, or a list of such paths. The rendered text is YAML or JSON with one or more manifests.
      - Found and rendered on the controller, in C(templates/) of the role and the playbook first.
      - In a folder and its subfolders, all files are used whose names end in C(.yml), C(.yaml) or C(.json),
        optionally followed by C(.j2), sorted by path.
    type: raw
  src:
    description: Like O(template), but files are used unchanged, from C(files/) of the role and the playbook first. They may be encrypted with Ansible Vault.
    type: raw
  texts:
    description:
      - The rendered O(template) and O(src). Internal, set by the action plugin of the same name. Do not set it in a playbook.
    type: list
    elements: dict
    suboptions:
      origin:
        description: Source of the text, for messages.
        type: str
        required: true
      text:
        description: Text with manifests.
        type: str
        required: true
"""
