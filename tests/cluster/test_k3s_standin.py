# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for K3s without machines: its table of behaviours, and what ends it before it touches anything.

Each line of tests/cluster/k3s/behaviours.yml has a place in K3s' code and one test. With real binaries (k3s_binaries.py of the rig) the
tests of this file and of those beside it run these. This has not been done yet. Go tests of the table are run by tests/node/components/test_go.py, because
they download a module.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import REAL, SOURCES, ensure_binary
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import VERSION
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

_BEHAVIOURS = SOURCES / "behaviours.yml"
_LEAST = 40
#: The test of the table itself.
_OF_THE_TABLE = {"test_each_behaviour_has_one_test"}


@pytest.fixture(scope="module")
def k3s() -> str:
    if REAL:
        return str(REAL[VERSION])
    try:
        return str(ensure_binary(say)[0])
    except Unavailable as missing:
        pytest.skip(str(missing))


def run(k3s: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("K3S_")}
    return subprocess.run(
        [k3s, *arguments], env=kept | environment, capture_output=True, text=True, timeout=60, check=False
    )


def fatal(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done
    return re.findall(r'level=fatal msg="(.*)"', done.stderr)[-1]


def test_each_behaviour_has_one_test() -> None:
    rows = yaml.safe_load(_BEHAVIOURS.read_text(encoding="utf-8"))["behaviours"]
    assert len(rows) >= _LEAST
    for row in rows:
        assert row.keys() == {"behaviour", "file", "function", "test"}, row
        assert re.fullmatch(r"(pkg|cmd|manifests)/[\w./-]+", row["file"]), row
    here = pathlib.Path(__file__).parent
    sources = [*here.glob("test_k3s_standin*.py"), *SOURCES.glob("*_test.go")]
    found = [name for path in sources for name in re.findall(r"^(?:def|func) ([Tt]est\w+)\(", path.read_text(), re.M)]
    assert sorted(row["test"] for row in rows) == sorted(set(found) - _OF_THE_TABLE)


def test_version(k3s: str) -> None:
    first, second = run(k3s, "--version").stdout.splitlines()
    assert re.fullmatch(rf"k3s version {re.escape(VERSION)} \(\w+\)", first)
    assert second.startswith("go version go1.")


def test_unknown_flag(k3s: str) -> None:
    done = run(k3s, "server", "--no-such-flag", K3S_CONFIG_FILE="/nonexistent")
    assert fatal(done) == "Error: flag provided but not defined: -no-such-flag"
    assert "Incorrect Usage: flag provided but not defined: -no-such-flag" in done.stdout


def test_unknown_command(k3s: str) -> None:
    done = run(k3s, "no-such-command")
    assert done.returncode == 3
    assert done.stdout == "No help topic for 'no-such-command'\n"


def test_a_server_skips_unknown_keys(k3s: str, tmp_path: pathlib.Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("no-such-key: 1\ncluster-reset-restore-path: /x\nnode-ip: 10.0.0.1\n", encoding="utf-8")
    done = run(k3s, "server", "--data-dir", str(tmp_path), K3S_CONFIG_FILE=str(config))
    assert "Unknown flag --no-such-key found in config.yaml, skipping" in done.stderr
    assert fatal(done).endswith("invalid flag use; --cluster-reset required with --cluster-reset-restore-path")


def test_an_agent_ends_at_unknown_keys(k3s: str, tmp_path: pathlib.Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("tls-san: [a]\n", encoding="utf-8")
    done = run(k3s, "agent", "--data-dir", str(tmp_path), K3S_CONFIG_FILE=str(config))
    assert fatal(done) == "Error: flag provided but not defined: -tls-san"


def test_an_agent_needs_a_token(k3s: str, tmp_path: pathlib.Path) -> None:
    done = run(
        k3s, "agent", "--data-dir", str(tmp_path), "--server=https://10.0.0.1:6443", K3S_CONFIG_FILE="/nonexistent"
    )
    assert fatal(done) == "Error: --token is required"


def test_an_agent_needs_a_server(k3s: str, tmp_path: pathlib.Path) -> None:
    done = run(k3s, "agent", "--data-dir", str(tmp_path), "--token=x", K3S_CONFIG_FILE="/nonexistent")
    assert fatal(done) == "Error: --server is required"


def test_a_token_file_must_exist(k3s: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "token"
    done = run(k3s, "agent", "--data-dir", str(tmp_path), f"--token-file={path}", K3S_CONFIG_FILE="/nonexistent")
    assert fatal(done) == f"Error: open {path}: no such file or directory"


def test_generated_tokens(k3s: str) -> None:
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}\n", run(k3s, "token", "generate").stdout)
