# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of variables are reported by a real run of preflight, and not by a later task that cannot use them."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import SERVER, settings
from ansible_collections.hwaccel.gpu.tests.unit.programs import environment

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
KERNEL: dict[str, t.Any] = settings()["artifacts"][0]
PREFLIGHT = {"ansible.builtin.include_role": {"name": "hwaccel.gpu.dns_pxe", "tasks_from": "preflight"}}


def without(entry: dict[str, t.Any], key: str) -> dict[str, t.Any]:
    return {name: value for name, value in entry.items() if name != key}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {
                "dns_pxe_artifacts": [without(KERNEL, "checksum"), without(KERNEL, "path")],
                "dns_pxe_ignitions": [{"path": "worker.ign"}],
            },
            [
                "checksum is missing (dns_pxe_artifacts[0])",
                "path is missing (dns_pxe_artifacts[1])",
                "source is missing (dns_pxe_ignitions[0])",
            ],
        ),
        (
            {"dns_pxe_artifacts": [without(KERNEL, "source"), {**KERNEL, "source": None}]},
            [
                "source is missing (dns_pxe_artifacts[0])",
                "source is missing (dns_pxe_artifacts[1])",
            ],
        ),
    ],
)
def test_missing_keys_of_an_entry_are_reported(
    changed: dict[str, t.Any], expected: list[str], tmp_path: pathlib.Path
) -> None:
    variables = {"dns_pxe_address": SERVER, "dns_pxe_dhcp": False, **changed}
    plays = [
        {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": variables, "tasks": [PREFLIGHT]}
    ]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    environ = environment(tmp_path) | {
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "play.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert [one for one in expected if one not in done.stdout] == [], done.stdout
