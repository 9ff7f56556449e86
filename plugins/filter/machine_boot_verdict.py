# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the progress of a machine that boots."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import run

DOCUMENTATION = r"""
name: machine_boot_verdict
version_added: 0.2.0
short_description: Progress of a machine that boots
description:
  - Reads log lines of dnsmasq (DHCP and TFTP) and of nginx, and reports the progress of one machine, what it lacks, and what to do next.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: >-
      Results of the task that read log lines since the machine was powered on, each with C(stdout_lines), and C(item), the boot server.
      The last result of each boot server counts. Lines of other machines may be included. Lines after a first line V(earlier) may be from an earlier boot.
      They are reported, and do not count otherwise.
    type: list
    elements: dict
    required: true
  request:
    description: The request for the machine, from the role's C(machine_boot_asked).
    type: dict
    required: true
  awaited:
    description: The stage to reach, V(address), V(loader), V(kernel), V(ignition) or V(reported).
    type: str
    default: reported
  nodes:
    description: What is known about the nodes of the machine's cluster since it was started, C(known) and C(names).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Check the progress of the boot
  ansible.builtin.set_fact:
    verdict: "{{ logs.results | hwaccel.gpu.machine_boot_verdict(request=machine_boot_asked, awaited='ignition') }}"
"""

RETURN = r"""
_value:
  description: The verdict.
  type: dict
  contains:
    stage:
      description: V(nothing), V(asked), V(address), V(loader), V(kernel), V(ignition) or V(reported).
      type: str
    text:
      description: Its progress, or what it lacks.
      type: str
    next_step:
      description: What to do if it makes no further progress.
      type: str
    loaded:
      description: Whether it has loaded its kernel, or runs from its media.
      type: bool
    ended:
      description: Whether it has reported, or its node has joined.
      type: bool
    sending:
      description: Boot servers that sent it more than an address.
      type: list
      elements: str
    done:
      description: Whether it has reached O(awaited).
      type: bool
"""


def machine_boot_verdict(
    read: list[dict[str, t.Any]],
    request: dict[str, t.Any],
    awaited: str = "reported",
    nodes: dict[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    return t.cast(
        "dict[str, t.Any]", computed("machine_boot_verdict", lambda: run.judged(read, request, awaited, nodes))
    )


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_boot_verdict": machine_boot_verdict}
