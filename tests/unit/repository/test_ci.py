# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
""".ci/run on machines where packages are missing, with stand-ins for apt-get and make: what it installs, and that it stops the processes that it started."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from ansible_collections.hwaccel.gpu.tests.node.rig.machines import COMMANDS

TOP = pathlib.Path(__file__).resolve().parents[3]
#: Commands that the script itself needs.
SHELL = ("sh", "dirname", "cat", "chmod", "cp", "grep", "mkdir", "mv", "rm", "sleep", "sort", "tail", "touch", "tr")
#: Installs all stand-ins from the folder `archive`.
APT = '#!/bin/sh\necho "$*" >>"$PLACE/apt"\n[ "$2" = update ] || mv "$PLACE"/archive/* "$PLACE/bin/"\n'
TESTS = '#!/bin/sh\necho "7 passed, 0 failed, 0 skipped" >.build/logs/total\n'


@dataclasses.dataclass
class Bare:
    """A checkout of .ci/run alone, and the folder that its PATH consists of."""

    place: pathlib.Path

    def command(self, name: str, text: str = "#!/bin/sh\n", folder: str = "bin") -> None:
        path = self.place / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start(self) -> subprocess.Popen[str]:
        environment = {"PATH": str(self.place / "bin"), "PLACE": str(self.place)}
        return subprocess.Popen(
            [self.place / ".ci" / "run"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self) -> tuple[int, list[str]]:
        started = self.start()
        output = started.communicate(timeout=60)[0].splitlines()
        return started.returncode, output

    @property
    def apt_calls(self) -> list[str]:
        return (self.place / "apt").read_text().splitlines() if (self.place / "apt").exists() else []


@pytest.fixture
def bare(tmp_path: pathlib.Path) -> Bare:
    checkout = Bare(tmp_path)
    (tmp_path / ".ci").mkdir()
    text = (TOP / ".ci" / "run").read_text()
    # The script neither reads nor writes anything outside of the test's folder.
    text = re.sub(r"^PATH=.*$", "", text, flags=re.MULTILINE).replace(
        "/usr/sbin/policy-rc.d", f"{tmp_path}/policy-rc.d"
    )
    text = text.replace("/usr/lib/podman/netavark", f"{tmp_path}/bin/netavark").replace(
        "/usr/include/stdio.h", f"{tmp_path}/bin/stdio.h"
    )
    checkout.command("run", text, ".ci")
    for name in (*COMMANDS, "netavark", "stdio.h", "gcc", "gpgv", "prometheus", "promtool", "zstd"):
        checkout.command(name)
    checkout.command("make", TESTS)
    checkout.command("id", "#!/bin/sh\necho 0\n")
    checkout.command("apt-get", APT)
    (tmp_path / "tests" / "tools").mkdir(parents=True)
    checkout.command("python", folder="tests/tools")
    (tmp_path / ".build" / "logs").mkdir(parents=True)
    (tmp_path / ".build" / "selinux" / "usr" / "bin").mkdir(parents=True)
    (tmp_path / ".build" / "selinux" / "usr" / "bin" / "sesearch").touch()
    for name in SHELL:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    return checkout


def test_on_a_complete_machine_nothing_is_installed(bare: Bare) -> None:
    assert bare.run() == (0, ["7 passed, 0 failed, 0 skipped"])
    assert bare.apt_calls == []


def test_only_missing_packages_are_installed(bare: Bare) -> None:
    (bare.place / "archive").mkdir()
    for name in ("gcc", "stdio.h", "podman"):
        (bare.place / "bin" / name).rename(bare.place / "archive" / name)
    status, output = bare.run()
    packages = "gcc libc6-dev nftables podman uidmap"
    assert bare.apt_calls == ["-qq update", f"-qq install -y --no-install-recommends {packages}"]
    assert (status, output) == (0, [f"installing: {packages}", "7 passed, 0 failed, 0 skipped"])
    assert not (bare.place / "policy-rc.d").exists(), "services may be started again"


def test_a_missing_program_that_cannot_be_installed_is_reported(bare: Bare) -> None:
    (bare.place / "bin" / "gcc").unlink()
    bare.command("id", "#!/bin/sh\necho 1000\n")
    status, output = bare.run()
    assert (status, output) == (
        0,
        ["this machine lacks, and tests that need it are skipped: gcc", "7 passed, 0 failed, 0 skipped"],
    )
    assert bare.apt_calls == []


def test_every_command_of_the_rig_has_a_package() -> None:
    text = (TOP / ".ci" / "run").read_text()
    named = {os.path.basename(line.split()[0]) for line in text.split("programs='\n")[1].split("\n'")[0].splitlines()}
    assert set(COMMANDS) <= named


def test_on_sigterm_the_tests_are_stopped_and_waited_for(bare: Bare) -> None:
    bare.command(
        "make",
        '#!/bin/sh\ntrap \'sleep 0.5; touch "$PLACE/ended"; exit 1\' TERM\ntouch "$PLACE/ready"\nwhile :; do sleep 0.1; done\n',
    )
    started = bare.start()
    deadline = time.monotonic() + 60
    while not (bare.place / "ready").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    started.send_signal(signal.SIGTERM)
    output, _none = started.communicate(timeout=60)
    assert (bare.place / "ended").exists()
    assert started.returncode
    assert output.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
