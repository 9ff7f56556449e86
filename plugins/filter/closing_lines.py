# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the lines that end a run on a cluster."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.fleet_table import fleet_table
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import closing

DOCUMENTATION = r"""
name: closing_lines
version_added: 0.2.0
short_description: The lines that end a run on a cluster
description:
  - Writes the result in one line, the table of P(hwaccel.gpu.fleet_table#filter), what was changed, the drift that was corrected with the field and who had
    changed it, the fields that others added, and last each node that failed and what stopped the run, with the reason and the next step.
  - Each section has at most 20 lines. The summary has all of them.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: A summary from P(hwaccel.gpu.gate_summary#filter), with C(stopped), a list of reasons why the run stopped on this
      cluster, and C(problems), those that the preflight has found.
    type: dict
    required: true
  began:
    description: Start of the run in seconds since 1970. If it is set, the time that each pool took since then is shown.
    type: float
  check:
    description: Whether the run was in check mode, so that nothing was written.
    type: bool
    default: false
  playbook:
    description: What was run.
    type: str
    choices: [site, preflight, validate, status, teardown]
    default: site
"""

EXAMPLES = r"""
- name: Show the result
  hwaccel.gpu.show:
    lines: "{{ hwaccel_summary.production | hwaccel.gpu.closing_lines(check=ansible_check_mode) }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""


def closing_lines(
    summary: dict[str, t.Any], began: float | None = None, check: bool = False, playbook: str = "site"
) -> list[str]:
    """See DOCUMENTATION."""
    shown = fleet_table(summary, began) if summary.get("pools") else []
    first = closing.verdict(summary, check, playbook)
    proofs = closing.proofs(summary) if playbook == "status" else []
    return [first, *([""] if shown else []), *shown, *proofs, *closing.sections(summary)]


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"closing_lines": closing_lines}
