# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role machine_boot as ansible-playbook runs it on machines with BMCs of IPMI, which a program in the place of ipmitool plays."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import yaml

import ansible_collections.hwaccel.gpu as collection

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
#: The machine's power and boot device are contents of files, and what it was told is in another.
IPMITOOL = """#!/bin/sh
cd "$(dirname "$0")"
case "$*" in
*"power status") echo "Chassis Power is $(cat power)" ;;
*"bootparam get 5") cat device ;;
*) echo "${*##*chassis }" >>told; case "$*" in *"power on" | *"power cycle") echo on >power ;; *"power off") echo off >power ;; esac ;;
esac
"""
NETWORK = """   - Boot Flag Valid
   - Options apply to all future boots
   - Boot Device Selector : Force PXE
"""
LOCAL = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
MACHINE = {
    "hwaccel_mac": "52:54:00:77:00:21", "hwaccel_address": "10.77.0.21", "hwaccel_firmware": "uefi", "hwaccel_bmc_address": "192.0.2.21",
    "hwaccel_bmc_username": "operator", "hwaccel_bmc_password": "p", "hwaccel_power_provider": "ipmi", "hwaccel_lone_cluster": "ocp",
    "machine_boot_interval": 1, "machine_boot_timeout": 1,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Boot:
    """One machine, worker-1. outcome: as the role has told it. asked: what was asked of it. told: commands that its BMC was given."""

    outcome: dict[str, t.Any]
    asked: dict[str, t.Any]
    told: list[str]
    output: str


def boot(
    folder: pathlib.Path, *, power: str = "off", network: bool = False, entry: str = "main", hosts: dict[str, t.Any] | None = None, **variables: t.Any
) -> Boot:
    """power: before. network: whether its BMC has it start from that for ever. hosts: others beside the machine. variables: of the machine."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "ipmitool").write_text(IPMITOOL, encoding="ascii")
    (programs / "ipmitool").chmod(0o755)
    (programs / "power").write_text(power, encoding="ascii")
    (programs / "device").write_text(NETWORK if network else "   - Boot Flag Invalid\n", encoding="ascii")
    (programs / "told").write_text("", encoding="ascii")
    result = folder / "result.json"
    keep = {"content": "{{ {'outcome': machine_boot_outcome | default({}), 'asked': machine_boot_asked} }}", "dest": str(result)}
    tasks = [
        {"ansible.builtin.include_role": {"name": "hwaccel.gpu.machine_boot", "tasks_from": entry}},
        {"ansible.builtin.copy": keep, "delegate_to": "localhost"},
    ]
    play = [{"hosts": "worker-1", "gather_facts": False, "tasks": tasks}]
    inventory = {"all": {"hosts": {"localhost": LOCAL, "ocp": LOCAL, "worker-1": {**MACHINE, **variables}, **(hosts or {})}}}
    (folder / "play.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
    (folder / "inventory.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_HOME": str(folder / "home"), "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "PATH": f"{programs}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "play.yml"]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    assert result.exists(), done.stdout
    told = (programs / "told").read_text(encoding="ascii").splitlines()
    return Boot(**json.loads(result.read_text(encoding="utf-8")), told=told, output=done.stdout)
