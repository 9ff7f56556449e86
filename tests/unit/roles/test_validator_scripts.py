# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The validator's scripts as they are, run by a shell in a folder that stands for the node."""

from __future__ import annotations

import pathlib
import subprocess

from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

GATES = ("driver-ready", "host-driver-ready", "toolkit-ready", "cuda-ready")


def scripts(folder: pathlib.Path) -> pathlib.Path:
    """The scripts in a folder of their own, with paths of the node below `folder`; its gates are open."""
    (config,) = (one for one in stack.everything("driver") if one["kind"] == "ConfigMap" and one["metadata"]["name"] == "nvidia-validator-scripts")
    where, validations = folder / "scripts", folder / "validations"
    for made in (where, validations):
        made.mkdir()
    for name, text in config["data"].items():
        (where / name).write_text(text.replace("/opt/hwaccel/", f"{where}/").replace("/run/nvidia/validations", str(validations)))
    for gate in (*GATES, ".cuda-proof"):
        (validations / gate).touch()
    return where


def test_a_validator_that_is_asked_to_end_closes_its_gates_itself(tmp_path: pathlib.Path) -> None:
    """Without a hook, whose exec the restart of a container runtime can break."""
    where = scripts(tmp_path)
    with subprocess.Popen(["sh", where / "watch.sh"], stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline() == "all validations are successful\n"
        watch.terminate()
        assert watch.wait(30) == 0
    assert sorted(path.name for path in (tmp_path / "validations").iterdir()) == [".cuda-proof"]
