# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of Ansible's programs that tests start."""

from __future__ import annotations

import os
import pathlib

from ansible_collections.hwaccel.gpu.tests.tools.environments import CONFIGURATION


def environment(folder: pathlib.Path, *prefixes: str) -> dict[str, str]:
    """Environment variables without those of Ansible, and without those with one of these prefixes. Ansible's home is in the folder.

    The configuration file reduces CPU time: by default a run polls its workers every millisecond, also while other processes use the cores.
    """
    home = folder / "ansible"
    home.mkdir(exist_ok=True)
    (home / "ansible.cfg").write_text(CONFIGURATION, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", *prefixes))}
    return kept | {"ANSIBLE_HOME": str(home), "ANSIBLE_CONFIG": str(home / "ansible.cfg")}
