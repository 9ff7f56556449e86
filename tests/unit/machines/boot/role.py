# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role machine_boot as ansible-playbook runs it on machines with BMCs of IPMI, which a program in the place of ipmitool plays.

One run has them all, as a start of ansible-playbook costs as much as several machines in it: what the role does with one is of no other.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.tests.unit.programs import environment

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
#: Each BMC is a folder, by its address: the machine's power and boot device are contents of files, and what it was told is in another.
IPMITOOL = """#!/bin/sh
for word; do [ "$last" = -H ] && bmc=$word; last=$word; done
cd "$(dirname "$0")/$bmc"
case "$*" in
*"power status") echo "Chassis Power is $(cat power)" ;;
*"bootparam get 5") cat device ;;
*) echo "${*##*chassis }" >>told; case "$*" in *"power on" | *"power cycle") echo on >power ;; *"power soft" | *"power off") echo off >power ;; esac ;;
esac
"""
#: The only host key of machines that answer by SSH, those with this address.
ANSWERS, HOST_KEY = "10.77.0.21", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDgnMJmF5xgyyG3ekpSBaWmWGbUiNcZcYIBFcQeVvhwW"
SCAN = f"""#!/bin/sh
for address; do :; done
[ "$address" != {ANSWERS} ] || echo "$address {HOST_KEY}"
"""
#: Connections of Ansible need the real one.
SSH = """#!/bin/sh
case "$*" in
*"-l operator "*) echo os rocky 9.4; echo disk sda; echo device sda ;;
*) PATH=${PATH#*:} exec ssh "$@" ;;
esac
"""
NETWORK = """   - Boot Flag Valid
   - Options apply to all future boots
   - Boot Device Selector : Force PXE
"""
LOCAL = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
MACHINE = {
    "hwaccel_mac": "52:54:00:77:00:21",
    "hwaccel_address": "10.77.0.21",
    "hwaccel_firmware": "uefi",
    "hwaccel_bmc_username": "operator",
    "hwaccel_bmc_password": "p",
    "hwaccel_power_provider": "ipmi",
    "hwaccel_lone_cluster": "ocp",
    "machine_boot_interval": 1,
    "machine_boot_timeout": 1,
}


#: Of all hosts of a play by one task: copy starts two modules, and this would be for each machine.
RESULTS = """{% set found = {} %}{% for host in ansible_play_hosts_all %}{% set _ = found.update({host: {
'outcome': hostvars[host].machine_boot_outcome | default({}), 'asked': hostvars[host].machine_boot_request}}) %}{% endfor %}{{ found | to_json }}"""


@dataclasses.dataclass(frozen=True)
class Machine:
    """A host of the run. power: before. network: whether its BMC has it start from that for ever. entry: of the role.

    turn: machines of later turns come when those of earlier ones are done. written: lines that are added to files just before its turn.
    One machine that the role meets several times is as many hosts with the same MAC: no fact of one is known to the next, as in a later run.
    """

    variables: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    power: str = "off"
    network: bool = False
    entry: str = "main"
    turn: int = 0
    written: tuple[tuple[pathlib.Path, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class Boot:
    """What became of a machine. outcome: as the role has told it. asked: what was asked of it. told: commands that its BMC was given."""

    outcome: dict[str, t.Any]
    asked: dict[str, t.Any]
    told: list[str]
    output: str


def boots(
    folder: pathlib.Path, machines: c.Mapping[str, Machine], hosts: c.Mapping[str, dict[str, t.Any]]
) -> dict[str, Boot]:
    """hosts: others beside the machines."""
    programs = folder / "programs"
    programs.mkdir()
    for name, text in (("ipmitool", IPMITOOL), ("ssh-keyscan", SCAN), ("ssh", SSH)):
        (programs / name).write_text(text, encoding="ascii")
        (programs / name).chmod(0o755)
    found: dict[str, dict[str, t.Any]] = {}
    for number, (name, machine) in enumerate(machines.items(), 1):
        address = f"192.0.2.{number}"
        _make_bmc(programs / address, machine)
        found[name] = {**MACHINE, "hwaccel_bmc_address": address, **machine.variables}
    inventory = {"all": {"hosts": {"localhost": LOCAL, "ocp": LOCAL, **hosts, **found}}}
    (folder / "play.yml").write_text(yaml.safe_dump(list(_plays(folder, machines))), encoding="utf-8")
    (folder / "inventory.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    environ = environment(folder) | {
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    # Each module would begin with several processes that make and remove its folder.
    environ["ANSIBLE_PIPELINING"] = "1"
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "play.yml"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    results: dict[str, dict[str, t.Any]] = {}
    for path in folder.glob("*-*.json"):
        results |= json.loads(path.read_text(encoding="utf-8"))
    assert results.keys() == machines.keys(), done.stdout
    told = {
        name: (programs / str(found[name]["hwaccel_bmc_address"]) / "told").read_text(encoding="ascii").splitlines()
        for name in machines
    }
    return {name: Boot(**results[name], told=told[name], output=done.stdout) for name in machines}


def _make_bmc(folder: pathlib.Path, machine: Machine) -> None:
    folder.mkdir()
    (folder / "power").write_text(machine.power, encoding="ascii")
    (folder / "device").write_text(NETWORK if machine.network else "   - Boot Flag Invalid\n", encoding="ascii")
    (folder / "told").write_text("", encoding="ascii")


def _plays(folder: pathlib.Path, machines: c.Mapping[str, Machine]) -> t.Iterator[dict[str, t.Any]]:
    """One for each turn and entry point."""

    def when(name: str) -> tuple[int, str]:
        return machines[name].turn, machines[name].entry

    append = {"argv": ["tee", "-a", "{{ item.into }}"], "stdin": "{{ item.line }}"}
    for (turn, entry), names in itertools.groupby(sorted(machines, key=when), key=when):
        hosts = list(names)
        written = [{"into": str(path), "line": line} for name in hosts for path, line in machines[name].written]
        kept = {"content": RESULTS, "dest": f"{folder}/{entry}-{turn}.json"}
        yield {
            # By a filter of ours: they are loaded here, and not by each task.
            "hosts": f"{{{{ {hosts} | hwaccel.gpu.as_list }}}}",
            "gather_facts": False,
            "tasks": [
                {"ansible.builtin.command": append, "loop": written, "delegate_to": "localhost", "run_once": True},
                {"ansible.builtin.include_role": {"name": "hwaccel.gpu.machine_boot", "tasks_from": entry}},
                {"ansible.builtin.copy": kept, "delegate_to": "localhost", "run_once": True},
            ],
        }
