# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's connection to a machine of the rig: ssh as root, with a key that is created for the rig."""

from __future__ import annotations

import pathlib
import subprocess

from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

_SHARED = "-o ControlMaster=auto -o ControlPersist=60s"


def allow_ssh(machine: Machine, folder: pathlib.Path) -> dict[str, str]:
    """Environment variables with which Ansible can connect to the address of the machine. Machines with the same folder share its key."""
    if not (folder / "key").exists():
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True, capture_output=True
        )
    machine.write("/etc/ssh/authorized_keys", (folder / "key.pub").read_text(encoding="ascii"), "0600")
    machine.write(
        "/etc/ssh/sshd_config.d/rig.conf",
        "AuthorizedKeysFile /etc/ssh/authorized_keys\nPermitRootLogin prohibit-password\n",
    )
    machine.sh("systemctl restart ssh")
    return {
        "ANSIBLE_SSH_ARGS": f"-F none -i {folder}/key -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no {_SHARED}",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": f"{folder}/ssh",
        "ANSIBLE_PIPELINING": "1",
    }
