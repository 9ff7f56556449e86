# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the results of a run on several clusters, as a table."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import table

DOCUMENTATION = r"""
name: clusters_table
version_added: 0.2.0
short_description: Results of a run on several clusters as lines of a table
description:
  - Writes one line for each cluster with its nodes, expected and observed GPUs, the result, and the start of the reason if it did not succeed.
  - Failed nodes are counted even if a later stage has stopped the run.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description:
      - Summaries by the cluster's name, each from P(hwaccel.gpu.gate_summary#filter),
        and with C(stopped), a list of reasons why the run stopped on this cluster, empty if it did not.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show all clusters
  hwaccel.gpu.show:
    lines: "{{ hwaccel_summary | hwaccel.gpu.clusters_table }}"
"""

RETURN = r"""
_value:
  description: Lines of the table.
  type: list
  elements: str
"""

_HEADER = ("cluster", "nodes", "GPUs expected", "GPUs seen", "end", "why")
#: Maximum length of a reason in the table. The failure itself has the whole reason.
_LONGEST = 160


def clusters_table(summaries: dict[str, dict[str, t.Any]]) -> list[str]:
    """See DOCUMENTATION."""
    return table(_HEADER, [_row(name, summaries[name]) for name in sorted(summaries)])


def _row(name: str, summary: dict[str, t.Any]) -> tuple[str, ...]:
    pools, failed = summary.get("pools") or (), summary.get("failed_nodes") or ()
    numbers = tuple(str(sum(pool[key] for pool in pools)) if pools else "-" for key in ("nodes", "expected", "seen"))
    return (name, *numbers, *_end(summary.get("stopped") or (), failed, summary.get("faults") or ()))


def _end(stopped: t.Sequence[str], failed: t.Sequence[str], faults: t.Sequence[str]) -> tuple[str, str]:
    if stopped:
        return f"stopped, {len(failed)} failed" if failed else "stopped", _brief(stopped[0])
    if failed:
        return f"{len(failed)} failed", _brief(faults[0] if faults else "")
    return "well", ""


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"clusters_table": clusters_table}
