# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: hosts and batches of a play that runs a phase of site."""

from __future__ import annotations

DOCUMENTATION = r"""
name: phase_hosts
version_added: 0.2.0
short_description: Hosts and batches of a play that runs a phase of site
description:
  - Reads the machines of a phase from the inventory, as P(hwaccel.gpu.machine_inventory#filter) does. A cluster without C(hwaccel_installer) has no
    phases, and neither has a run of one stage (C(hwaccel_only_stage), tags), or one with C(hwaccel_takes_machines=false).
  - The phase C(node_runtime) leaves out machines on which its preflight has found nothing to do, unless they or their cluster were changed since.
  - One lookup instead of an expression with filters, because Ansible compiles the expressions of plays without hosts as well.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  _terms:
    description: The phase, or V(hypervisors) for those of machines that are started. By default the variable C(hwaccel_phase).
    type: list
    elements: str
  batches:
    description:
      - Whether sizes of batches are returned instead of hosts.
      - With a limit, the smallest size is that of all batches, because larger ones would mix machines of a cluster. A preflight has one batch.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run a phase
  hosts: "{{ query('hwaccel.gpu.phase_hosts', 'load_balancer') }}"
  serial: "{{ query('hwaccel.gpu.phase_hosts', 'load_balancer', batches=true) }}"
"""

RETURN = r"""
_raw:
  description: The hosts, or a pattern without hosts, or the sizes of batches.
  type: list
  elements: raw
"""

import collections.abc as c
import importlib
import typing as t

from ansible.plugins.lookup import LookupBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _phases, _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import machines as package
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import phases

#: An empty list of hosts is an error.
_NOBODY = "all:!all"
#: What filters of a phase with many machines import when they are called. Each task of each machine has a process of its own, so the one that they are forked
#: from has it before.
_PACKAGES = {"machine_boot": ("boot.role", "boot.virtual")}


class LookupModule(LookupBase):
    """The lookup."""

    def run(self, terms: t.Sequence[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any) -> list[t.Any]:
        self.set_options(var_options=variables, direct=kwargs)
        known = variables or {}
        phase = terms[0] if terms else known.get("hwaccel_phase", "")
        found = self._planned(known, phase) if _whole(known) else {}
        if not found.get("hosts"):
            return [1] if self.get_option("batches") else [_NOBODY]
        for name in _PACKAGES.get(phase, ()):
            importlib.import_module(f"{package.__name__}.{name}")
        if not self.get_option("batches"):
            return list(found["hosts"])
        if known.get("hwaccel_phase_part") == "preflight":
            return [len(found["hosts"])]
        return [found["least"]] if known.get("ansible_limit") else list(found["batches"])

    def _planned(self, known: c.Mapping[str, t.Any], phase: str) -> dict[str, t.Any]:
        only = _variables.plain(self._templar.template(known.get("hwaccel_only_clusters") or ""))
        # A check of the syntax has no variables of hosts.
        hostvars = known.get("hostvars") or {}
        # The others would read all machines of theirs, in each of the plays.
        names = ["machine_boot" if phase == "hypervisors" else phase]
        found = phases.planned(known["groups"], hostvars, only, names)
        if phase == "hypervisors":
            return {"hosts": phases.hypervisors(known["groups"], hostvars, found)}
        if known.get("hwaccel_phase_part") == "preflight" or not found.get(phase, {}).get("hosts"):
            return found.get(phase, {})
        return _phases.due(phase, found[phase], known["groups"].get("gpu_clusters", ()), hostvars)


def _whole(known: c.Mapping[str, t.Any]) -> bool:
    """Whether a run takes in machines."""
    tags = known.get("ansible_run_tags") or ["all"]
    return "hwaccel_only_stage" not in known and "all" in tags and bool(known.get("hwaccel_takes_machines", True))
