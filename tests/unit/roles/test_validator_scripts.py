# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unchanged scripts of the validator, run by a shell in a folder that simulates the node."""

from __future__ import annotations

import os
import pathlib
import subprocess

from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

GATES = ("driver-ready", "host-driver-ready", "toolkit-ready", "cuda-ready")


def scripts(folder: pathlib.Path) -> pathlib.Path:
    """The scripts in a separate folder, with paths of the node below `folder`. The gates are open."""
    (config,) = (
        one
        for one in stack.everything("driver")
        if one["kind"] == "ConfigMap" and one["metadata"]["name"] == "nvidia-validator-scripts"
    )
    where, validations = folder / "scripts", folder / "validations"
    for created in (where, validations):
        created.mkdir()
    replacements = {
        "/opt/hwaccel": where,
        "/run/nvidia/validations": validations,
        "/validated": folder / "validated",
        "/sys/module": folder / "module",
    }
    for name, text in config["data"].items():
        for path, replacement in replacements.items():
            text = text.replace(path, str(replacement))
        (where / name).write_text(text)
    for gate in (*GATES, ".cuda-proof"):
        (validations / gate).touch()
    return where


def test_a_terminated_validator_closes_its_gates_itself(tmp_path: pathlib.Path) -> None:
    """It does so without a hook, whose exec a restart of the container runtime can interrupt."""
    where = scripts(tmp_path)
    with subprocess.Popen(["sh", where / "watch.sh"], stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline() == "all validations are successful\n"
        watch.terminate()
        assert watch.wait(30) == 0
    assert sorted(path.name for path in (tmp_path / "validations").iterdir()) == [".cuda-proof"]


#: Programs of the image and the driver on a node with one GPU. nvidia-validator fails once for each file in $FAILS.
_PROGRAMS = {
    "nvidia-validator": 'rm "$FAILS/$(ls "$FAILS" | head -n 1)" 2>/dev/null && exit 1\nmkdir -p "$OUTPUT_DIR"\n'
    'echo IS_HOST_DRIVER=false >"$OUTPUT_DIR/$COMPONENT-ready"\n',
    "nvidia-smi": "case $1 in --query-gpu=uuid) echo GPU-0 ;; --query-gpu=driver_version) echo 595.91.07 ;; esac\n",
    "vectorAdd": "",
}


def test_after_two_failures_of_a_step_the_watch_opens_all_gates(tmp_path: pathlib.Path) -> None:
    """The kubelet repeats only that step, and its second failure has closed the gate that the previous step had opened."""
    where, validations, programs, fails = (
        scripts(tmp_path),
        tmp_path / "validations",
        tmp_path / "bin",
        tmp_path / "fails",
    )
    for folder in (programs, fails):
        folder.mkdir()
    for name, text in _PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}")
        (programs / name).chmod(0o755)
    for name in ("1", "2"):
        (fails / name).touch()
    (validations / ".driver-ctr-ready").touch()
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOSTNAME": "validator", "FAILS": str(fails)}
    attempts = [
        subprocess.run(["sh", where / "toolkit.sh"], env=environment, check=False, capture_output=True).returncode
        for _number in range(3)
    ]
    assert attempts == [1, 1, 0]
    subprocess.run(["sh", where / "cuda.sh"], env=environment, check=True, capture_output=True)
    assert not (validations / "driver-ready").exists()
    with subprocess.Popen(["sh", where / "watch.sh"], env=environment, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        proven = any(line == "all validations are successful\n" for line in watch.stdout)
        existing = {name for name in GATES if (validations / name).exists()}
        watch.terminate()
    assert (proven, existing) == (True, {"driver-ready", "toolkit-ready", "cuda-ready"})


def test_the_gate_stays_open_on_a_kernel_that_cannot_unload_modules(tmp_path: pathlib.Path) -> None:
    """Without CONFIG_MODULE_UNLOAD a module has no file refcnt (Linux 6.18, kernel/module/main.c: modinfo_attrs)."""
    where, validations, programs = scripts(tmp_path), tmp_path / "validations", tmp_path / "bin"
    programs.mkdir()
    (programs / "nvidia-smi").write_text(f"#!/bin/sh\n{_PROGRAMS['nvidia-smi']}")
    (programs / "nvidia-smi").chmod(0o755)
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    (validations / "cuda-ready").write_text(f"BOOT_ID={boot}GPUS=1\n", encoding="ascii")
    (tmp_path / "module" / "nvidia").mkdir(parents=True)
    (tmp_path / "module" / "nvidia" / "version").write_text("595.91.07\n", encoding="ascii")

    def probe() -> tuple[int, str]:
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOSTNAME": "validator"}
        done = subprocess.run(
            ["sh", where / "probe.sh"], env=environment, check=False, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout

    assert probe() == (0, "")
    (tmp_path / "module" / "nvidia" / "version").unlink()
    assert probe() == (1, "the nvidia kernel module is not loaded\n")
