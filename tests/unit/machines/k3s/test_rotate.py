# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rotate.py on a machine, with a root of its own."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines import scripts

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_k3s" / "files" / "rotate.py"
ENTRY = "etc/rancher/k3s/config.yaml.d/55-hwaccel-gpu-cluster.yaml"


@pytest.fixture
def rotate(tmp_path: pathlib.Path) -> t.Any:
    module = scripts.loaded(PATH)
    module.ROOT, module.PAUSE = str(tmp_path), 0
    for path, text in {
        "var/lib/rancher/k3s/server/token": "K10::server:before\n",
        "var/lib/rancher/k3s/server/cred/encryption-config.json": "{}",
        "etc/rancher/k3s/token": "K10::server:given\n",
        ENTRY: "token-file: /etc/rancher/k3s/token\n",
        "var/lib/hwaccel-gpu/cluster_k3s/record.json": "{}",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (1000, 1000))
    module.started = lambda: 2000.0
    return module


def printed(rotate: t.Any, capsys: pytest.CaptureFixture[str], what: str) -> dict[str, t.Any]:
    assert rotate.main(what) == 0
    return t.cast("dict[str, t.Any]", json.loads(capsys.readouterr().out))


def test_tokens_of_a_server(rotate: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {"own": "K10::server:before", "given": "K10::server:given", "loaded": True}
    assert printed(rotate, capsys, "tokens") == expected
    os.utime(tmp_path / "etc/rancher/k3s/token", (3000, 3000))
    assert printed(rotate, capsys, "tokens") == {**expected, "loaded": False}
    # It is told to read its own.
    (tmp_path / ENTRY).write_text("token-file: /var/lib/rancher/k3s/server/token\n", encoding="utf-8")
    assert printed(rotate, capsys, "tokens")["given"] == ""


def says(rotate: t.Any, *states: dict[str, t.Any] | Exception) -> list[tuple[str, ...]]:
    """What K3s answers to one request for its status after the other, the last one again and again. Returns the other requests."""
    rest, others = list(states), []

    def asked(*arguments: str) -> str:
        if arguments[0] != "status":
            others.append(arguments)
            return ""
        state = rest.pop(0) if len(rest) > 1 else rest[0]
        if isinstance(state, Exception):
            raise state
        return json.dumps({"enable": True, "hashmatch": True, "stage": "reencrypt_finished", **state})

    rotate.asked = asked
    return others


OLD = {"activekey": "AES-CBC aescbckey"}
NEW = {"activekey": "AES-CBC aescbckey-2026-11-29T10:00:00Z"}
AT_IT = {**NEW, "inactivekeys": ["AES-CBC aescbckey"], "stage": "reencrypt_active"}


def test_keys_of_a_server(rotate: t.Any, capsys: pytest.CaptureFixture[str]) -> None:
    says(rotate, AT_IT)
    found = printed(rotate, capsys, "keys")
    assert (found["loaded"], found["digest"], found["why"]) == (True, hashlib.sha256(b"{}").hexdigest(), "")
    assert (found["status"]["key"], found["status"]["inactive"]) == ("aescbckey-2026-11-29T10:00:00Z", ["aescbckey"])
    says(rotate, OSError("not ready"))
    assert printed(rotate, capsys, "keys")["why"] == "not ready"


@pytest.mark.parametrize(
    ("states", "rotated"),
    [
        ([OLD, NEW], 1),
        # A run before has begun it.
        ([AT_IT, AT_IT, NEW], 0),
        ([OSError("refused"), NEW], 0),
        # The server was restarted while it was at it, and has forgotten it.
        ([{**AT_IT, "stage": "start"}, NEW], 1),
    ],
)
def test_a_key_is_replaced_once(rotate: t.Any, states: list[t.Any], rotated: int) -> None:
    others = says(rotate, *states)
    assert rotate.main("replace", "aescbckey", "600") == 0
    assert others == [("rotate-keys",)] * rotated


def test_a_key_that_is_not_replaced_in_time(rotate: t.Any, capsys: pytest.CaptureFixture[str]) -> None:
    says(rotate, AT_IT)
    assert rotate.main("replace", "aescbckey", "0.05") == 1
    assert "Secrets are still being encrypted again" in capsys.readouterr().err


def test_which_key_is_replaced_is_recorded_once(rotate: t.Any, capsys: pytest.CaptureFixture[str]) -> None:
    says(rotate, OLD)
    for told in ("write /var/lib/hwaccel-gpu/cluster_k3s/replaced-key\n", ""):
        assert rotate.main("record", "aescbckey") == 0
        assert capsys.readouterr().out == told
    assert printed(rotate, capsys, "keys")["replaced"] == "aescbckey"
