# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What look.sh tells of a web server that is there already."""

from __future__ import annotations

import hashlib
import pathlib
import subprocess

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host

LOOK = pathlib.Path(__file__).resolve().parents[4] / "roles" / "dns_pxe" / "files" / "look.sh"
PACKAGED = "server { listen 80 default_server; }\n"


@pytest.mark.parametrize(("text", "told"), [(PACKAGED, []), (f"{PACKAGED}# ours\n", ["default"]), ("# nothing\n", [])])
def test_a_site_that_is_as_its_package_has_brought_it_serves_nobody_else(
    text: str, told: list[str], tmp_path: pathlib.Path
) -> None:
    available, enabled, programs = (tmp_path / name for name in ("sites-available", "sites-enabled", "bin"))
    for folder in (available, enabled, programs):
        folder.mkdir()
    (available / "default").write_text(text, encoding="ascii")
    (enabled / "default").symlink_to("../sites-available/default")
    checksum = hashlib.md5(PACKAGED.encode(), usedforsecurity=False).hexdigest()
    (programs / "dpkg-query").write_text(f"#!/bin/sh\necho ' {available}/default {checksum}'\n", encoding="ascii")
    (programs / "dpkg-query").chmod(0o755)
    script = LOOK.read_text(encoding="utf-8").replace("/etc/nginx", str(tmp_path))
    argv = ["sh", "-c", script, "look.sh", str(tmp_path / "config"), str(tmp_path / "state"), "nginx"]
    done = subprocess.run(
        argv, env={"PATH": f"{programs}:/usr/bin:/bin"}, capture_output=True, text=True, timeout=300, check=True
    )
    foreign = host.read(done.stdout).facts["foreign_nginx"].split()
    assert foreign == [f"{enabled}/{name}" for name in told]
