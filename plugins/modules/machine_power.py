#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_power
version_added: 0.2.0
short_description: Power and boot device of a machine
description:
  - Observes power and boot device of one machine by Redfish, IPMI or libvirt, decides what is to be done, does it step by step, and confirms each step.
  - Nothing is done to a machine that is as requested. The power of one that runs a node of its cluster, or may run one, is kept unless it is named.
  - The host of the task is the one that speaks to the BMC, or the hypervisor, where C(become) is needed. It runs modules of C(community.general) for Redfish,
    C(ipmitool) for IPMI, and modules of C(community.libvirt).
  - It is for the role C(machine_boot), which has the request ready.
requirements:
  - community.general 10.6 or newer for Redfish
  - ipmitool on the host of the task for IPMI
  - community.libvirt for virtual machines
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  request:
    description: What is requested of the machine, as the role's C(machine_boot_asked) has it.
    type: dict
    required: true
  state:
    description:
      - V(present) is power and boot device as requested. V(settled) takes back what was set for one boot, once the machine has booted.
      - V(absent) is a virtual machine removed; one that has a BMC is left as it is. V(observed) only reads.
    type: str
    choices: [present, settled, absent, observed]
    default: present
  nodes:
    description: What the machine's cluster has said of its nodes, C(known), C(names), and C(why) where they are not known.
    type: dict
    default: {}
  bmc:
    description: How the BMC is spoken to.
    type: dict
    suboptions:
      password:
        description: Of the user in the request.
        type: str
        default: ''
      ca:
        description: Certificates of authorities in a file of the host of the task. Empty are those that it trusts anyway.
        type: str
        default: ''
      timeout:
        description: Seconds for each answer.
        type: int
        default: 30
      retries:
        description: How often what may be over in a moment is tried again.
        type: int
        default: 2
      cipher:
        description: Cipher suite of IPMI. Empty lets C(ipmitool) choose.
        type: str
        default: ''
      sessions:
        description: Whether a BMC of Redfish is asked for a session first.
        type: bool
        default: true
  reachable:
    description: Whether the hypervisor lets Ansible in, as far as is known.
    type: bool
    default: true
  timeout:
    description: Seconds until the power is as requested.
    type: int
    default: 120
  booted:
    description: Whether the logs have said that the machine has loaded its kernel.
    type: bool
    default: false
  reported:
    description: Whether the logs or its cluster have said that the machine has reported in.
    type: bool
    default: false
  remove_disks:
    description: Whether the disk goes with a virtual machine that is removed.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  platform:
    support: full
  idempotent:
    support: full
extends_documentation_fragment:
  - hwaccel.gpu.attributes
seealso:
  - module: community.general.redfish_command
  - module: community.libvirt.virt
"""

EXAMPLES = r"""
- name: Switch the machine on
  hwaccel.gpu.machine_power:
    request: "{{ machine_boot_asked }}"
    nodes: "{{ machine_boot_nodes }}"
    bmc:
      password: "{{ machine_boot_bmc_password }}"
  delegate_to: "{{ machine_boot_from }}"
"""

RETURN = r"""
messages:
  description: What was decided, in sentences.
  returned: unless only observed
  type: list
  elements: str
faults:
  description: Why nothing is done, each with C(text).
  returned: unless only observed
  type: list
  elements: dict
steps:
  description: What was done, or in check mode would be done, each with C(text) and C(kind).
  returned: unless only observed
  type: list
  elements: dict
back:
  description: What is still to be taken back of what was set for one boot, as RV(steps).
  returned: when the machine was observed
  type: list
  elements: dict
power:
  description: V(on), V(off), or what the BMC says while it changes. Empty where it could not be asked.
  returned: when the machine was observed
  type: str
started:
  description: Whether the steps start the machine in a way that its boot server sees.
  returned: when O(state=present)
  type: bool
joined:
  description: Whether the machine runs a node, V(yes), V(no) or V(unknown).
  returned: when O(state=present)
  type: str
observed:
  description: What the machine's BMC or hypervisor has answered.
  returned: when O(state=observed)
  type: dict
sessions:
  description: Whether the BMC has sessions, as far as is known.
  returned: success
  type: bool
state:
  description: That of the task.
  returned: success
  type: str
"""
