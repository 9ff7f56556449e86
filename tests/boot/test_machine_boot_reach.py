# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine answers by SSH is read from a real sshd: its host keys, whether somebody can log in, and its system."""

from __future__ import annotations

import pathlib
import subprocess

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import reach
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.reach import Expected
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig

SCRIPT = pathlib.Path(next(iter(collection.__path__))) / "roles" / "machine_boot" / "files" / "reach.sh"
OTHER = f"SHA256:{'b' * 43}"


def test_each_answer_of_a_real_machine_has_its_verdict(rig: BootRig) -> None:
    machine = rig.machine("installed")
    key = reach.fingerprint(machine.read("/etc/ssh/ssh_host_ed25519_key.pub"))

    def text(host_key: str = key, system: str = "debian 12", user: str = "root") -> tuple[bool, str]:
        identity, device = str(rig.folder / "key"), "/dev/vda"
        argv = ["sh", str(SCRIPT), "0", machine.address, user, identity, host_key, device]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
        expected = Expected(host_key, system, device, user)
        found = reach.judged(done.stdout.splitlines(), expected, {}, "", False)
        return found["done"], found["text"]

    assert text() == (True, "it answers by SSH, with the expected host key: debian 12")
    assert text(system="rocky 9") == (False, "it runs debian 12 instead of rocky 9")
    assert (
        text(OTHER)[1].startswith(f"it answers by SSH with another host key than {OTHER}: ") and key in text(OTHER)[1]
    )
    done, refused = text(user="nobody")
    assert (done, refused.startswith("it answers by SSH, but nobody cannot log in: ")) == (False, True), refused
    machine.sh("systemctl stop ssh")
    assert text() == (False, "it does not answer by SSH")
    rig.remove(machine)
