# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rotate_ca.py on a machine, with a root of its own."""

from __future__ import annotations

import json
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authorities, places
from ansible_collections.hwaccel.gpu.tests.unit.machines import scripts
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_authorities import first, second

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_k3s" / "files" / "rotate_ca.py"
TLS = f"{places.DATA}/server/tls"
HASH = authorities.hash_of(second()["server-ca.crt"])
TOKEN = f"K10{'0' * 64}::server:secret\n"


class Machine:
    """The script, and files below its root."""

    def __init__(self, root: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.script = scripts.loaded(PATH)
        self.script.ROOT, self.root, self._capsys = str(root), root, capsys

    def path(self, path: str) -> pathlib.Path:
        return self.root / path.lstrip("/")

    def has(self, path: str, text: str) -> None:
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(text, encoding="utf-8")

    def does(self, *arguments: str, rc: int = 0) -> str:
        assert self.script.main(*arguments) == rc
        return self._capsys.readouterr().out

    def looks(self) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", json.loads(self.does("look")))


@pytest.fixture
def server(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> Machine:
    machine = Machine(tmp_path, capsys)
    for name, text in first().items():
        machine.has(f"{TLS}/{name}", text)
    machine.has(places.AUTHORITY, first()["server-ca.crt"])
    machine.has(places.TOKEN, TOKEN)
    machine.has(places.ENTRY, f"# Ansible\nserver: https://lb:6443\ntoken-file: {places.TOKEN}\n")
    return machine


def test_it_names_files_as_the_role_does(server: Machine) -> None:
    script = server.script
    assert script.KINDS == authorities.KINDS
    assert (script.ROTATION, script.ENTRY, script.TLS) == (places.ROTATION, places.ENTRY, TLS)


def test_what_a_server_has(server: Machine) -> None:
    text = first()["server-ca.crt"]
    nothing = {"begun": "", "new": "", "saved": False, "prepared": False, "replaced": ""}
    assert server.looks() == {"server": text, "agent": text, "lacking": [], **nothing}
    assert "secret" not in json.dumps(server.looks()) and "PRIVATE" not in json.dumps(server.looks())


def test_what_an_agent_has(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = Machine(tmp_path, capsys)
    agent.has(places.AUTHORITY, first()["server-ca.crt"])
    agent.has(places.TOKEN, TOKEN)
    agent.has(places.ENTRY, f"token-file: '{places.TOKEN}'\n")
    look = agent.looks()
    assert (look["server"], look["agent"], look["lacking"]) == ("", first()["server-ca.crt"], [])
    agent.does("begin", "old")
    assert agent.does("prepare", HASH) == f"write {places.TOKEN}\nwrite {places.ROTATION}/prepared\n"
    assert agent.looks()["prepared"] and not agent.path(TLS).exists()


def test_what_a_server_lacks(server: Machine) -> None:
    # A chain has the key of its root as well.
    server.has(f"{TLS}/client-ca.crt", second()["client-ca.crt"])
    server.path(f"{TLS}/etcd/peer-ca.key").unlink()
    server.path(f"{TLS}/service.key").unlink()
    assert server.looks()["lacking"] == ["client-ca.key", "etcd/peer-ca.key", "service.key"]
    server.has(f"{TLS}/client-ca.key", second()["client-ca.key"])
    assert "client-ca.key" not in server.looks()["lacking"]


def test_what_is_made_counts_once_it_is_complete(server: Machine) -> None:
    assert server.does("begin", "old") == f"write {places.ROTATION}/begun\n"
    assert server.path(places.ROTATION).stat().st_mode & 0o777 == 0o700
    server.has(f"{places.ROTATION}/made/tls/server-ca.crt", second()["server-ca.crt"])
    assert server.looks()["new"] == ""
    # A run that was killed then makes them again.
    assert server.does("begin", "old") == "" and not server.path(f"{places.ROTATION}/made").exists()
    server.has(f"{places.ROTATION}/made/tls/server-ca.crt", second()["server-ca.crt"])
    server.does("keep")
    found = server.looks()
    assert (found["begun"], found["new"], found["saved"]) == ("old", second()["server-ca.crt"], False)


def test_k3s_saves_them_with_nothing_secret_in_its_arguments(server: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(argv: list[str], **_more: t.Any) -> None:
        asked.append(argv)
        if len(asked) == 1:
            raise subprocess.CalledProcessError(1, argv, b"level=info\nError: see server log for details\n")
        if len(asked) == 2:
            raise subprocess.TimeoutExpired(argv, 150)

    monkeypatch.setattr(server.script.subprocess, "run", run)
    server.does("begin", "old")
    assert server.does("save", rc=1) == "Error: see server log for details\n"
    assert "timed out" in server.does("save", rc=1) and not server.looks()["saved"]
    assert server.does("save").startswith("save the new certificate authorities\n") and server.looks()["saved"]
    assert {tuple(argv) for argv in asked} == {
        ("/usr/local/bin/k3s", "certificate", "rotate-ca", f"--path={places.ROTATION}/new")
    }


def test_a_server_is_prepared_once(server: Machine) -> None:
    server.does("begin", "old")
    written = [places.TOKEN, f"{TLS}/dynamic-cert-regenerate", f"{places.ROTATION}/prepared"]
    assert server.does("prepare", HASH).splitlines() == [f"write {path}" for path in written]
    assert server.path(places.TOKEN).read_text() == f"K10{HASH}::server:secret\n"
    assert server.path(places.TOKEN).stat().st_mode & 0o777 == 0o600
    assert server.does("prepare", HASH) == "" and server.looks()["prepared"]


@pytest.mark.parametrize("text", ["secret\n", "K10::server:secret\n", ""])
def test_a_token_without_a_hash_stays(server: Machine, text: str) -> None:
    server.does("begin", "old")
    server.has(places.TOKEN, text)
    assert places.TOKEN not in server.does("prepare", HASH) and server.path(places.TOKEN).read_text() == text


def test_a_server_that_reads_the_token_of_k3s_itself(server: Machine) -> None:
    server.does("begin", "old")
    server.has(places.ENTRY, "cluster-init: true\n")
    assert "token" not in server.does("prepare", HASH)
    server.has(places.ENTRY, f"token-file: {places.OWN_TOKEN}\n")
    server.has(places.OWN_TOKEN, TOKEN)
    assert server.does("prepare", HASH) == f"write {places.OWN_TOKEN}\n"


def test_only_which_one_was_replaced_is_left(server: Machine) -> None:
    server.does("begin", "old")
    server.has(f"{places.ROTATION}/new/tls/server-ca.key", "key")
    assert server.does("end") == f"write {places.FOLDER}/replaced-authority\nremove {places.ROTATION}\n"
    assert not server.path(places.ROTATION).exists() and server.looks()["replaced"] == "old"
    assert server.does("end") == "" and server.looks()["replaced"] == "old"
