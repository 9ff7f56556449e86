#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_power
version_added: 0.2.0
short_description: Manage power and boot device of a machine
description:
  - Reads power and boot device of one machine by Redfish, IPMI or libvirt, plans the steps to the requested state, takes them, and verifies each one.
  - A machine that is already in the requested state is not changed. A machine that runs a node of its cluster, or may run one, keeps its power state
    unless it is named.
  - The task runs on the host that reaches the BMC, or on the hypervisor, which needs C(become). It runs modules of C(community.general) for Redfish,
    C(ipmitool) for IPMI, and modules of C(community.libvirt).
  - It is meant for the role C(machine_boot), which builds the request.
requirements:
  - community.general 10.6 or newer for Redfish
  - ipmitool on the host of the task for IPMI
  - community.libvirt for virtual machines
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  request:
    description: The requested state of the machine, from the role's C(machine_boot_request).
    type: dict
    required: true
  state:
    description:
      - V(present) sets power and boot device as requested. V(settled) reverts settings made for one boot, once the machine has booted. V(resumed) waits
        until a virtual machine that was started from the network once is off, and starts it from its disk.
      - V(absent) removes a virtual machine, and does not change a machine that has a BMC. V(observed) only reads.
    type: str
    choices: [present, settled, resumed, absent, observed]
    default: present
  nodes:
    description: What is known about the nodes of the machine's cluster, C(known), C(names), and C(why) if they are not known.
    type: dict
    default: {}
  bmc:
    description: Connection to the BMC.
    type: dict
    suboptions:
      password:
        description: Password of the user in the request.
        type: str
        default: ''
      ca:
        description: File with CA certificates on the host of the task. If empty, the certificates that this host trusts are used.
        type: str
        default: ''
      timeout:
        description: Seconds to wait for each response.
        type: int
        default: 30
      retries:
        description: Number of retries after a temporary error.
        type: int
        default: 2
      cipher:
        description: Cipher suite of IPMI. If empty, C(ipmitool) chooses one.
        type: str
        default: ''
      sessions:
        description: Whether to try a Redfish session first.
        type: bool
        default: true
  reachable:
    description: Whether Ansible can connect to the hypervisor, as far as is known.
    type: bool
    default: true
  timeout:
    description: Seconds to wait until the power is as requested.
    type: int
    default: 120
  booted:
    description: Whether the logs show that the machine has loaded its kernel.
    type: bool
    default: false
  reported:
    description: Whether the logs or the cluster show that the machine has reported in.
    type: bool
    default: false
  remove_disks:
    description: Whether the disks of a removed virtual machine are deleted as well.
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
- name: Power on the machine
  hwaccel.gpu.machine_power:
    request: "{{ machine_boot_request }}"
    nodes: "{{ machine_boot_nodes }}"
    bmc:
      password: "{{ machine_boot_bmc_password }}"
  delegate_to: "{{ machine_boot_from }}"
"""

RETURN = r"""
messages:
  description: What was decided, as sentences.
  returned: unless only observed
  type: list
  elements: str
faults:
  description: Problems because of which nothing is done, each with C(text).
  returned: unless only observed
  type: list
  elements: dict
steps:
  description: What was done, or would be done in check mode, each with C(text) and C(kind).
  returned: unless only observed
  type: list
  elements: dict
back:
  description: Settings made for one boot that have yet to be reverted, in the format of RV(steps).
  returned: when the machine was observed
  type: list
  elements: dict
power:
  description: V(on), V(off), or the BMC's own word during a transition. Empty if it could not be read.
  returned: when the machine was observed
  type: str
started:
  description: Whether the steps start the machine in a way that its boot server can observe.
  returned: when O(state=present)
  type: bool
joined:
  description: Whether the machine runs a node of its cluster, V(yes), V(no) or V(unknown).
  returned: when O(state=present)
  type: str
observed:
  description: The answers of the machine's BMC or hypervisor.
  returned: when O(state=observed)
  type: dict
sessions:
  description: Whether the BMC supports sessions, as far as is known.
  returned: success
  type: bool
state:
  description: The value of O(state).
  returned: success
  type: str
"""
