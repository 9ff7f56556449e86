# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""encryption.py on a server: the keys of Secrets, with a root of its own."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import stat
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_kubeadm" / "files" / "encryption.py"
ARGUMENT = f"    - --encryption-provider-config={places.ENCRYPTION}\n"


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    (manifests := tmp_path / "etc/kubernetes/manifests").mkdir(parents=True)
    (manifests / "kube-apiserver.yaml").write_text(f"spec:\n{ARGUMENT}", encoding="ascii")
    return tmp_path


@pytest.fixture
def script(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Any:
    module = loaded(PATH)
    module.ROOT = str(root)
    moments = iter(range(1, 100))
    monkeypatch.setattr(module.time, "strftime", lambda *_given: f"key-{next(moments)}")
    return module


def kept(root: pathlib.Path) -> pathlib.Path:
    return root / places.ENCRYPTION[1:]


def providers(root: pathlib.Path) -> list[str]:
    """Names in the order in which the API server tries them; it reads nothing else of the file."""
    text = kept(root).read_text(encoding="ascii")
    assert stat.S_IMODE(kept(root).stat().st_mode) == 0o600
    found = yaml.safe_load(text)
    assert (found["apiVersion"], found["kind"]) == ("apiserver.config.k8s.io/v1", "EncryptionConfiguration")
    ((listed,),) = ([one["providers"]] for one in found["resources"])
    assert found["resources"][0]["resources"] == ["secrets"]
    names = []
    for one in listed:
        keys = one["secretbox"]["keys"] if "secretbox" in one else [{"name": next(iter(one))}]
        assert all(len(base64.b64decode(key["secret"])) == 32 for key in keys if "secret" in key)
        names += [key["name"] for key in keys]
    return names


def looked(script: t.Any, capsys: pytest.CaptureFixture[str]) -> dict[str, t.Any]:
    capsys.readouterr()
    script.main("look")
    return dict(json.loads(capsys.readouterr().out))


def test_a_key_is_made_once(script: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert looked(script, capsys)["order"] == []
    script.main("make", "first")
    assert providers(root) == ["key-1", "identity"] and capsys.readouterr().out == f"write {places.ENCRYPTION}\n"
    text = kept(root).read_text(encoding="ascii")
    for place in ("first", "later"):
        script.main("make", place)
    assert kept(root).read_text(encoding="ascii") == text and capsys.readouterr().out == ""
    found = looked(script, capsys)
    assert (found["order"], found["replaces"], found["replaced"], found["other"]) == (
        ["key-1", "identity"],
        "",
        "",
        False,
    )
    assert found["used"] == places.ENCRYPTION and found["serves"] and not found["rotating"]
    assert list(found["digests"]) == ["key-1"]


def test_a_key_is_replaced_step_by_step(script: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.main("make", "first")
    marks = []
    for step, names in (
        ("add", ["key-1", "key-2", "identity"]),
        ("promote", ["key-2", "key-1", "identity"]),
        ("drop", ["key-2", "identity"]),
    ):
        for _again in range(2):
            script.main(step, "key-1")
            assert providers(root) == names
        found = looked(script, capsys)
        assert found["order"] == names and not found["other"]
        marks.append((found["replaces"], found["replaced"]))
    assert marks == [("key-1", ""), ("key-1", ""), ("", "key-1")]
    script.main("add", "key-2")
    assert providers(root) == ["key-2", "key-3", "identity"]


def test_secrets_in_clear_are_encrypted_by_the_same_steps(
    script: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.main("make", "later")
    assert providers(root) == ["identity", "key-1"] and looked(script, capsys)["replaces"] == "identity"
    script.main("add", "identity")
    assert providers(root) == ["identity", "key-1"]
    for _again in range(2):
        script.main("promote", "identity")
        assert providers(root) == ["key-1", "identity"] and looked(script, capsys)["replaces"] == "identity"
    script.main("drop", "identity")
    assert providers(root) == ["key-1", "identity"] and looked(script, capsys)["replaced"] == "identity"


def test_keys_are_neither_printed_nor_left_in_another_file(
    script: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "etc/kubernetes/pki"
    folder.mkdir()
    (folder / "secrets-encryption.yaml.hwaccel").write_text("of a run that was killed", encoding="ascii")
    for arguments in (("make", "first"), ("add", "key-1"), ("look",)):
        script.main(*arguments)
    shown = capsys.readouterr().out
    secrets = [line.split()[-1] for line in kept(root).read_text(encoding="ascii").splitlines() if "secret:" in line]
    assert len(secrets) == 2 and not [one for one in secrets if one in shown]
    assert [one.name for one in folder.iterdir()] == ["secrets-encryption.yaml"]


def test_what_an_api_server_has_loaded_is_known_by_its_manifest(
    script: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.main("make", "first")
    manifest = root / "etc/kubernetes/manifests/kube-apiserver.yaml"
    while os.stat(manifest).st_ctime_ns <= os.stat(kept(root)).st_ctime_ns:
        assert manifest.stat().st_ctime_ns < kept(root).stat().st_ctime_ns or looked(script, capsys)["loaded"]
        manifest.write_text(f"spec:\n{ARGUMENT}", encoding="ascii")
    assert looked(script, capsys)["loaded"]
    while os.stat(kept(root)).st_ctime_ns <= os.stat(manifest).st_ctime_ns:
        kept(root).chmod(0o600)
    assert not looked(script, capsys)["loaded"]
    manifest.unlink()
    found = looked(script, capsys)
    assert (found["used"], found["serves"]) == ("", False)


def test_a_file_of_others_is_known(script: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.main("make", "first")
    kept(root).write_text(kept(root).read_text(encoding="ascii").replace("secretbox", "aescbc"), encoding="ascii")
    assert looked(script, capsys)["other"]
