# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: decisions of the role machine_boot."""

from __future__ import annotations

import time
import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import version

DOCUMENTATION = r"""
name: machine_boot
version_added: 0.2.0
short_description: Decisions of the role machine_boot
description:
  - Answers a question of the role C(machine_boot) - which problems the requests have, what is due, whether the logs are read again, what was observed, and
    what is reported.
  - It neither queries nor changes a machine, a BMC or a cluster. For V(round) and V(enough) it reads the clock.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input, question
options:
  _input:
    description:
      - For V(faults), the request for each machine, from the role's entry point C(preflight).
      - For V(nodes), the result of M(hwaccel.gpu.node_info) with O(ignore:query=nodes[].name) or O(ignore:rows=true).
      - For V(lines) and V(due), a result of M(hwaccel.gpu.machine_power).
      - For V(round), the verdict of the round before.
      - For V(enough), the result of one read of a boot server's logs.
      - For V(verdict) and V(unreachable), results of reads, each with C(item), the boot server. V(verdict) uses C(stdout_lines), log lines of dnsmasq (DHCP
        and TFTP) and nginx since the machine was powered on. The last result of each boot server counts. Lines of other machines may be included.
        Lines after a first line V(earlier) may be from an earlier boot. They are reported, and do not count otherwise.
      - For V(expected), results of reads as for V(verdict). For V(reached), the result of an attempt to connect to the machine by SSH.
      - For V(outcome), C(plan), C(power), C(verdict) and C(reached) of the machine, and C(error), the message of the failed task if one has failed.
    type: raw
    required: true
  question:
    description: What is decided.
    type: str
    required: true
    choices: [faults, nodes, lines, due, round, enough, verdict, expected, reached, unreachable, outcome]
  request:
    description: The request for the machine. V(faults), V(nodes) and V(lines) need none.
    type: dict
  given:
    description: Other variables of the question, by their names (see C(role.py) of the role's package in C(plugin_utils/machines)).
    type: dict
"""

EXAMPLES = r"""
- name: Collect problems
  ansible.builtin.set_fact:
    faults: "{{ ansible_play_hosts | map('extract', hostvars, 'machine_boot_request') | list | hwaccel.gpu.machine_boot('faults') }}"
"""

RETURN = r"""
_value:
  description: >-
    The answer. For V(faults), the problems, each with C(text). For V(lines), lines to show. For V(unreachable), a message, empty if all boot servers were
    reached. For V(expected), C(host_key), C(system), C(device) and C(user). For V(nodes), C(known), C(names) and C(why). For V(outcome), C(failed) and C(text).
    For V(due), V(round), V(enough), V(verdict) and V(reached), what C(Due), C(Round), C(Enough), C(Verdict) and C(Reached) of the role's package document.
  type: raw
"""


def machine_boot(
    data: t.Any, question: str, request: dict[str, t.Any] | None = None, given: dict[str, t.Any] | None = None
) -> t.Any:
    """See DOCUMENTATION."""
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request as requests
    from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import role, virtual

    if question not in role.QUESTIONS:
        raise AnsibleFilterError(
            f"hwaccel.gpu.machine_boot does not know {question!r}: use one of {', '.join(role.QUESTIONS)}"
        )
    versions = (
        {name: version(name) for name in (requests.COLLECTION, virtual.COLLECTION)} if question == "faults" else {}
    )

    def answer(data: t.Any, request: dict[str, t.Any], given: dict[str, t.Any]) -> t.Any:
        return role.QUESTIONS[question](data, role.Given(request, given, versions, time.time()))

    return computed("machine_boot", answer, data, request or {}, given or {})


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"machine_boot": machine_boot}
