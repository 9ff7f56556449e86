# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what a boot server needs to name, address and boot machines."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import installed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._machines import computed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import findings, place, plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.host import Host

DOCUMENTATION = r"""
name: dns_pxe_plan
version_added: 0.1.0
short_description: What a boot server needs to name, address and boot machines
description:
  - Computes every file of dnsmasq, of nginx and of boot loaders from machines, clusters and networks, and everything that stands against them.
  - It writes nothing. What it returns says whether running services have read what is on disk.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: Lines that C(look.sh) of the role C(dns_pxe) has printed on a boot server.
    type: list
    elements: str
    required: true
  settings:
    description: The role's variables by their names without C(dns_pxe_).
    type: dict
    required: true
  found:
    description: >-
      Results of tasks that have looked elsewhere. C(images), of M(ansible.builtin.stat) on the server; C(local), of the same on the controller;
      C(remote), of M(ansible.builtin.uri); C(probe), of C(probe.py).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Compute what is to be
  ansible.builtin.set_fact:
    plan: "{{ seen.stdout_lines | hwaccel.gpu.dns_pxe_plan(settings=settings, found=found) }}"
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    faults:
      description: What stands against it, each with C(text).
      type: list
      elements: dict
    told:
      description: What was decided, in sentences.
      type: list
      elements: str
    foreseen:
      description: What a run would do, a line each. Empty where everything is as it is to be.
      type: list
      elements: str
    changes:
      description: Paths of files that are otherwise than they are to be.
      type: list
      elements: str
    diff:
      description: How they differ, in lines.
      type: list
      elements: str
    lines:
      description: These files as C(write.sh) reads them.
      type: str
    early:
      description: Those that come before packages.
      type: str
    record:
      description: The file by which teardown puts everything back, where it is not there.
      type: str
    staged:
      description: Files that the services' checkers read.
      type: str
    checks:
      description: Commands that judge these, each with C(name) and C(argv).
      type: list
      elements: dict
    absent:
      description: Paths that are not to be.
      type: list
      elements: str
    packages:
      description: Packages that are missing.
      type: list
      elements: str
    loaders:
      description: Programs that machines boot and that are to be copied, each with C(source) and C(path).
      type: list
      elements: dict
    artifacts:
      description: Files that are to be fetched, each with C(path), C(source), C(checksum), C(signature), C(keyring) and C(remote).
      type: list
      elements: dict
    ignitions:
      description: Ignition files that are to be copied, each with C(path) and C(source).
      type: list
      elements: dict
    services:
      description: Services with what makes them run with what is on disk, each with C(unit), C(state), empty where nothing is due, C(why) and C(enabled).
      type: list
      elements: dict
    released:
      description: Services that the role needs no more, with how they were, each with C(unit), C(active), C(enabled) and C(drop_in).
      type: list
      elements: dict
    web_user:
      description: Who nginx runs as.
      type: str
    firewall:
      description: Openings of firewalls that run, each with C(firewall), C(open), C(port), C(protocol), C(source) and C(rule).
      type: list
      elements: dict
    selinux:
      description: Whether files need labels.
      type: bool
    expected:
      description: What machines must find, for the self test.
      type: dict
"""


def dns_pxe_plan(lines: list[str], settings: dict[str, t.Any], found: dict[str, t.Any]) -> dict[str, t.Any]:
    """See DOCUMENTATION."""

    there = installed("ansible.posix", "community.general")

    def compute(host: Host) -> dict[str, t.Any]:
        return plan.plan(place.Seen(host), {**settings, "collections": there}, findings.read(found))

    return computed("dns_pxe_plan", compute, lines)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"dns_pxe_plan": dns_pxe_plan}
