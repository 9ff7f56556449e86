# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on what a machine answers by SSH, and the script that asks it, with programs of ssh that answer for a machine."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import reach, request
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.reach import Expected
from ansible_collections.hwaccel.gpu.tests.unit.machines.boot.test_plan import GOOD

SCRIPT = pathlib.Path(__file__).parents[4] / "roles" / "machine_boot" / "files" / "reach.sh"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO3xKXJyYW5kb21rZXlvZmF0ZXN0bWFjaGluZTEy host"
OURS, OTHER = "SHA256:" + "a" * 43, "SHA256:" + "b" * 43
EXPECTED = Expected(OURS, "rocky 9", "/dev/disk/by-id/one", "operator")
GOOD_ANSWER = [f"key {OTHER}", f"key {OURS}", "os rocky 9.4", "disk sda", "device sda"]


def judged(*printed: str, expected: Expected = EXPECTED, over: bool = False, **progress: t.Any) -> reach.Reached:
    return reach.judged(printed, expected, progress, "", over)


@pytest.mark.parametrize(
    ("printed", "settled", "text", "next_step"),
    [
        ([], False, "it does not answer by SSH; it has downloaded its ignition file", "wait for its installation"),
        ([f"key {OTHER}"], False, f"another host key than {OURS}: {OTHER}", "it may still run its installer"),
        ([f"key {OURS}", "refused Permission denied"], False, "operator cannot log in: Permission denied", "user"),
        ([f"key {OURS}", "os debian 12"], True, "it runs debian 12 instead of rocky 9", "order of disks"),
        ([f"key {OURS}", "os rocky 90"], True, "it runs rocky 90 instead of rocky 9", "order of disks"),
        (
            [f"key {OURS}", "os rocky 9", "disk sdb", "device sda"],
            True,
            "it has started from the disk sdb instead of sda (/dev/disk/by-id/one)",
            "install it again by its name",
        ),
    ],
    ids=["silent", "other key", "refused", "other system", "similar version", "other disk"],
)
def test_each_way_in_which_a_machine_is_not_as_expected_has_its_verdict(
    printed: list[str], settled: bool, text: str, next_step: str
) -> None:
    found = judged(*printed, text="it has downloaded its ignition file")
    assert (found["done"], found["settled"]) == (False, settled)
    assert text in found["text"] and next_step in found["next_step"]
    assert judged(*printed, over=True)["settled"], "the timeout is over"


def test_a_machine_as_expected() -> None:
    found = judged(*GOOD_ANSWER)
    assert (found["done"], found["settled"]) == (True, True)
    assert found["text"] == "it answers by SSH, with the expected host key: rocky 9.4 on sda"
    assert reach.judged(GOOD_ANSWER, EXPECTED, {}, found["text"], False)["lines"] == []
    any_key = judged(f"key {OTHER}", "os fcos 41", expected=Expected(user="core"))
    assert any_key["done"] and f"with the host key {OTHER}, which was not verified: fcos 41" in any_key["text"]


def test_the_host_key_is_that_of_the_last_report_of_this_machine() -> None:
    machine = request.read(GOOD).machine

    def line(address: str, path: str) -> str:
        return f'{address} - - [23/Nov/2026:03:51:13 +0000] "GET {path} HTTP/1.1" 204 0 "-" "Wget"'

    lines = [
        line("10.77.0.21", f"/report/worker-1?host_key={OTHER}"),
        line("10.77.0.21", f"/report/worker-1?host_key={OURS}"),
        line("10.77.0.22", f"/report/worker-1?host_key={OTHER}"),
        line("10.77.0.21", "/report/worker-1"),
    ]
    assert reach.reported(machine, lines) == OURS
    assert reach.reported(machine, lines[2:]) == ""


def test_fingerprints_are_those_of_ssh_keygen(tmp_path: pathlib.Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    told = subprocess.run(["ssh-keygen", "-lf", str(tmp_path / "key")], check=True, capture_output=True, text=True)
    own = told.stdout.split()[1]
    public = (tmp_path / "key.pub").read_text(encoding="ascii")
    assert reach.fingerprint(public) == reach.fingerprint(f"worker-1 {public}") == own
    assert reach.fingerprint(own) == own
    assert reach.fingerprint("") == reach.fingerprint("AAAA!") == ""


class Ssh:
    """Programs that answer for a machine with these public keys."""

    def __init__(self, folder: pathlib.Path, *keys: str, login: str = "exec sh -s") -> None:
        self.folder = folder
        (folder / "asked").touch()
        scan = "\n".join(f"echo 10.77.0.21 {key}" for key in keys)
        programs = {
            "ssh-keyscan": scan,
            "ssh": f'printf "%s\\n" "$*" >>{folder}/asked\nfor one; do case $one in UserKnownHostsFile=*) '
            f'cat "${{one#*=}}" >{folder}/known;; esac; done\n{login}',
            # Time passes only where the script sleeps.
            "sleep": f"echo slept $1 >>{folder}/asked",
            "date": f"echo $((5 * $(grep -c ^slept {folder}/asked)))",
            "findmnt": "echo /dev/mapper/root",
            "lsblk": "printf 'root lvm\nsda2 part\nsda disk\n'",
        }
        for name, body in programs.items():
            (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="ascii")
            (folder / name).chmod(0o755)

    def run(self, fingerprint: str = "", identity: str = "", device: str = "") -> list[str]:
        argv = ["sh", str(SCRIPT), "1", "10.77.0.21", "operator", identity, fingerprint, device]
        path = f"{self.folder}:/usr/bin:/bin"
        done = subprocess.run(argv, env={"PATH": path}, capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    def asked(self) -> str:
        return (self.folder / "asked").read_text(encoding="ascii")


def keys(folder: pathlib.Path) -> list[str]:
    for kind in ("ed25519", "ecdsa"):
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(folder / kind)], check=True)
    return [" ".join((folder / f"{kind}.pub").read_text(encoding="ascii").split()[:2]) for kind in ("ed25519", "ecdsa")]


def test_a_machine_that_does_not_answer_is_asked_again_later(tmp_path: pathlib.Path) -> None:
    ssh = Ssh(tmp_path)
    assert (ssh.run(), set(ssh.asked().splitlines())) == ([], {"slept 5"})


def test_nobody_logs_in_to_a_machine_with_another_host_key(tmp_path: pathlib.Path) -> None:
    ssh = Ssh(tmp_path, *(own := keys(tmp_path)))
    assert ssh.run(OTHER) == [f"key {reach.fingerprint(one)}" for one in own]
    assert set(ssh.asked().splitlines()) == {"slept 5"}


def test_only_the_expected_key_is_trusted_and_the_system_and_its_disk_are_told(tmp_path: pathlib.Path) -> None:
    ssh = Ssh(tmp_path, *(own := keys(tmp_path)), login="DEVICE= exec sh -s")
    printed = ssh.run(reach.fingerprint(own[0]), "/keys/operator")
    assert [line.split()[0] for line in printed] == ["key", "key", "os", "disk"]
    assert printed[-1] == "disk sda"
    assert (tmp_path / "known").read_text(encoding="ascii") == f"10.77.0.21 {own[0]}\n"
    assert "StrictHostKeyChecking=yes" in ssh.asked() and "-l operator" in ssh.asked()
    assert "IdentitiesOnly=yes -i /keys/operator" in ssh.asked()


def test_why_a_login_is_refused_is_told(tmp_path: pathlib.Path) -> None:
    ssh = Ssh(tmp_path, keys(tmp_path)[0], login="echo 'Permission denied (publickey).' >&2; exit 255")
    assert ssh.run()[-1] == "refused Permission denied (publickey)."
    assert "slept 5" in ssh.asked()


def test_a_disk_is_an_argument_however_it_is_written(tmp_path: pathlib.Path) -> None:
    """The shell of the machine reads it."""
    remote = 'for word; do case $word in DEVICE=*) remote="$word sh -s";; esac; done; eval "$remote"'
    ssh = Ssh(tmp_path, keys(tmp_path)[0], login=remote)
    assert ssh.run(device="/dev/it's; echo os evil")[-1] == "device it's; echo os evil"
