# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPMI BMCs on machines of the rig: OpenIPMI's simulator of a chassis that consists of two files, which does not store whether a boot device is valid; and
OpenStack's virtualbmc of a virtual machine.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.hypervisor import BRIDGE, Hypervisor
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import ensure_virtualbmc
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

USERNAME = "operator"
#: The port of the BMC, and a port at which no program listens.
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
#: The simulator calls this script with "address get NAME..." or "address set NAME VALUE...".
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
_VIRTUALBMC = "/virtualbmc"
# In the format of its command line, which would require more packages. active: its server starts it.
_CONFIG = """[VirtualBMC]
username = {username}
password = {password}
address = 127.0.0.1
port = {port}
domain_name = {name}
libvirt_uri = qemu:///system
active = True
"""
_DOMAIN = f"""<domain type='qemu'><name>{{name}}</name><memory unit='MiB'>64</memory>
<os><type arch='x86_64' machine='pc'>hvm</type><boot dev='hd'/></os>
<devices><interface type='bridge'><source bridge='{BRIDGE}'/><model type='virtio'/></interface></devices></domain>"""


class Chassis:
    """A machine with a BMC, which is off and boots from its disk."""

    def __init__(self, machine: Machine, password: str) -> None:
        self._machine, self._password = machine, password
        machine.sh(
            "apt-get -qq update && apt-get -qq install --yes --no-install-recommends ipmitool openipmi", seconds=300
        )
        machine.sh(f"mkdir -p {_FOLDER}/state")
        machine.write(f"{_FOLDER}/lan", _LAN.format(port=PORT, folder=_FOLDER, username=USERNAME, password=password))
        machine.write(f"{_FOLDER}/emulated", _EMULATED)
        machine.write(f"{_FOLDER}/control", _CONTROL.format(folder=_FOLDER))
        machine.sh(f"chmod 755 {_FOLDER}/control; cd {_FOLDER}; echo 0 >power; echo default >boot")
        # The simulator ends with its standard input.
        command = f"sleep infinity | ipmi_sim -n -c {_FOLDER}/lan -f {_FOLDER}/emulated -s {_FOLDER}/state"
        machine.sh(f"systemd-run --unit=chassis sh -c '{command}'")
        machine.wait("the simulator listens", lambda: f":{PORT:04X} " in machine.sh("cat /proc/net/udp"))

    def variables(self) -> dict[str, t.Any]:
        return {**_connection(self._password), "machine_boot_ipmi_cipher": 3}

    def asked(self) -> list[str]:
        """Requested settings, in their order."""
        return self._machine.sh(f"touch {_FOLDER}/asked; cat {_FOLDER}/asked").split("\n")[:-1]


class VirtualBmc:
    """A virtualbmc for a virtual machine, which is off and has a missing disk as its boot device."""

    def __init__(self, rig: BootRig, name: str, password: str) -> None:
        self.hypervisor, self._name, self._password = (
            Hypervisor.of(rig, "hyper", {str(ensure_virtualbmc(say)): _VIRTUALBMC}),
            name,
            password,
        )
        machine = self.hypervisor.machine
        machine.sh(
            "apt-get -qq install --no-install-recommends ipmitool python3-pyghmi python3-pbr python3-zmq >/dev/null 2>&1",
            seconds=300,
        )
        machine.write("/srv/domain.xml", _DOMAIN.format(name=name))
        self.hypervisor.virsh("define", "/srv/domain.xml")
        machine.write(
            f"{_FOLDER}/.vbmc/{name}/config", _CONFIG.format(username=USERNAME, password=password, port=PORT, name=name)
        )
        machine.sh(
            f"systemd-run --unit=vbmcd --setenv=HOME={_FOLDER} --setenv=PYTHONPATH={_VIRTUALBMC} python3 -m virtualbmc.cmd.vbmcd --foreground"
        )
        machine.wait("virtualbmc listens", lambda: f":{PORT:04X} " in machine.sh("cat /proc/net/udp /proc/net/udp6"))

    def variables(self) -> dict[str, t.Any]:
        return _connection(self._password)

    def state(self) -> tuple[str, list[str]]:
        """Power and boot devices of the virtual machine."""
        return self.hypervisor.state(self._name), re.findall(
            "<boot dev='(.*?)'/>", self.hypervisor.virsh("dumpxml", self._name)
        )


def _connection(password: str) -> dict[str, t.Any]:
    return {
        "machine_boot_provider": "ipmi",
        "hwaccel_bmc_address": f"127.0.0.1:{PORT}",
        "hwaccel_bmc_username": USERNAME,
        "hwaccel_bmc_password": password,
    }
