# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what a load balancer needs."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._computing import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import installed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import plan, seen

DOCUMENTATION = r"""
name: load_balancer_plan
version_added: 0.1.0
short_description: What a load balancer needs
description:
  - Computes the configuration of HAProxy and keepalived from clusters, machines and services, and everything that has to change on a machine.
  - It writes nothing. What it returns says whether running services have read what is on disk.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: What C(look.py) of the role C(load_balancer) has printed on a machine.
    type: str
    required: true
  settings:
    description: The role's settings.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Compute what is to be
  ansible.builtin.set_fact:
    plan: "{{ seen.stdout | hwaccel.gpu.load_balancer_plan(settings=settings) }}"
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    told:
      description: What was decided, in sentences.
      type: list
      elements: str
    faults:
      description: What stands against it, each with C(text).
      type: list
      elements: dict
    packages:
      description: Packages that are missing.
      type: list
      elements: str
    apt:
      description: Whether these are taken by apt.
      type: bool
    folders:
      description: Folders of the role.
      type: list
      elements: str
    files:
      description: Files that are otherwise than they are to be, each with C(path), C(mode) and C(sensitive), in the order of writing.
      type: list
      elements: dict
    contents:
      description: Text by path.
      type: dict
    absent:
      description: Paths that are not to be.
      type: list
      elements: str
    reload_units:
      description: Whether systemd has to read its units anew.
      type: bool
    check:
      description: The whole configuration of HAProxy, for its own check.
      type: str
    actions:
      description: Services that do not run with what is on disk, each with C(unit), C(state) and C(why).
      type: list
      elements: dict
    drains:
      description: Members that serve and are to be taken out, each with C(backend) and C(server).
      type: list
      elements: dict
    socket:
      description: Where HAProxy is told to drain them.
      type: str
    record:
      description: Text of the record by which teardown puts everything back, empty where it is as it is to be.
      type: str
    record_after:
      description: Text of the record once firewalls are as wanted, empty where that is the same.
      type: str
    firewall:
      description: Openings of firewalls that run, each with C(firewall), C(open), C(port), C(protocol), C(source) and C(rule).
      type: list
      elements: dict
    selinux:
      description: Whether the boolean C(haproxy_connect_any) is to be switched on.
      type: bool
"""


def load_balancer_plan(printed: str, settings: dict[str, t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""
    there = installed("ansible.posix", "community.general")
    return t.cast(
        "dict[str, t.Any]",
        computed("load_balancer_plan", lambda: plan.plan(seen.read(printed), {**settings, "collections": there})),
    )


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"load_balancer_plan": load_balancer_plan}
