# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BMC of IPMI: OpenIPMI's simulator on a machine of the rig, over a chassis that is two files. It keeps no "valid" beside a boot device."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

USERNAME = "operator"
#: One that listens, and one at which nobody does.
PORT, DEAF = 9623, 9624
_FOLDER = "/var/lib/chassis"
_LAN = """name "chassis"
set_working_mc 0x20
startlan 1
  addr 127.0.0.1 {port}
  priv_limit admin
  allowed_auths_admin none md2 md5 straight
  guid a123456789abcdefa123456789abcdef
endlan
chassis_control "{folder}/control 0x20"
user 2 true "{username}" "{password}" admin 10 none md2 md5 straight
"""
_EMULATED = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n"
#: The simulator calls it with: address get NAME..., or address set NAME VALUE...
_CONTROL = """#!/bin/sh
cd {folder} || exit
shift
action=$1
shift
while [ $# -gt 0 ]; do
    if [ "$action" = set ]; then
        echo "$2" >"$1"
        echo "$1 $2" >>asked
        # Its operating system ends when it is asked to.
        [ "$1" != shutdown ] || echo 0 >power
        shift
    else
        echo "$1:$(cat "$1" 2>/dev/null || echo 0)"
    fi
    shift
done
"""


class Chassis:
    """A machine behind a BMC, which is off and starts from its disk."""

    def __init__(self, machine: Machine, password: str) -> None:
        self._machine, self._password = machine, password
        machine.sh("apt-get -qq update && apt-get -qq install --yes --no-install-recommends ipmitool openipmi", seconds=300)
        machine.sh(f"mkdir -p {_FOLDER}/state")
        machine.write(f"{_FOLDER}/lan", _LAN.format(port=PORT, folder=_FOLDER, username=USERNAME, password=password))
        machine.write(f"{_FOLDER}/emulated", _EMULATED)
        machine.write(f"{_FOLDER}/control", _CONTROL.format(folder=_FOLDER))
        machine.sh(f"chmod 755 {_FOLDER}/control; cd {_FOLDER}; echo 0 >power; echo default >boot")
        # It ends with its standard input.
        started = f"sleep infinity | ipmi_sim -n -c {_FOLDER}/lan -f {_FOLDER}/emulated -s {_FOLDER}/state"
        machine.sh(f"systemd-run --unit=chassis sh -c '{started}'")
        machine.wait("the simulator listens", lambda: f":{PORT:04X} " in machine.sh("cat /proc/net/udp"))

    def variables(self) -> dict[str, t.Any]:
        return {
            "machine_boot_provider": "ipmi", "hwaccel_bmc_address": f"127.0.0.1:{PORT}", "hwaccel_bmc_username": USERNAME,
            "hwaccel_bmc_password": self._password, "machine_boot_ipmi_cipher": 3,
        }  # fmt: skip

    def asked(self) -> list[str]:
        """What it was told, in order."""
        return self._machine.sh(f"touch {_FOLDER}/asked; cat {_FOLDER}/asked").split("\n")[:-1]
