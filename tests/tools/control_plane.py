# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills the cache with the sandbox's control plane in the same way as for users: a sandbox is started once, and removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import environments


def main() -> int:
    os.environ["XDG_STATE_HOME"] = str(environments.BUILD / "state" / "control-plane")
    tasks = [
        {
            "name": f"Bring the sandbox to {state}",
            "ansible.builtin.include_role": {"name": "hwaccel.gpu.sandbox"},
            "vars": {"sandbox_state": state},
        }
        for state in ("started", "absent")
    ]
    variables = {
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "sandbox_name": "prepare",
        "sandbox_fleet": {"pools": []},
    }
    play = {
        "name": "Fill the cache",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": variables,
        "tasks": tasks,
    }
    path = environments.BUILD / "control-plane.yml"
    path.write_text(json.dumps([play]), encoding="utf-8")
    return subprocess.run(["ansible-playbook", "-i", "localhost,", str(path)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
