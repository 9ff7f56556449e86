# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders, files and locks of a sandbox; its certificates and commands."""

from __future__ import annotations

import pathlib
import shutil
import ssl
import threading

import pytest
import yaml
from cryptography import x509

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import commands, supervisor
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import (
    Busy,
    Layout,
    cache_folder,
    layout,
    locked,
    read_json,
    write_if_changed,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pki import SUBJECTS, ensure_pki


def test_folders_follow_xdg() -> None:
    assert layout("one", None, {"XDG_STATE_HOME": "/s"}).root == pathlib.Path("/s/hwaccel-gpu/sandbox/one")
    assert layout("one", "/another", {"XDG_STATE_HOME": "/s"}).root == pathlib.Path("/another")
    assert layout("one", None, {}).root == pathlib.Path.home() / ".local/state/hwaccel-gpu/sandbox/one"
    assert cache_folder({"XDG_CACHE_HOME": "/c"}) == pathlib.Path("/c/hwaccel-gpu")


@pytest.mark.parametrize("name", ["", "../other", "A", "-a", "a" * 41, "a b"])
def test_a_name_is_no_path(name: str) -> None:
    with pytest.raises(HwaccelError, match="is not a valid name of a sandbox"):
        layout(name)


def test_files_are_private_from_the_first_byte_and_not_written_twice(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    assert write_if_changed(path, "x")
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.stat().st_mtime_ns
    assert not write_if_changed(path, "x")
    assert path.stat().st_mtime_ns == before
    assert write_if_changed(path, "y")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_damaged_record_is_reported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "record").write_text("{", encoding="utf-8")
    with pytest.raises(HwaccelError, match="damaged"):
        read_json(tmp_path / "record")
    assert read_json(tmp_path / "none") == {}


def test_a_lock_excludes_others_and_leaves_no_file(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "sandbox"
    folder.mkdir()
    with locked(folder), pytest.raises(Busy), locked(folder, patience=0.2):
        pass
    assert list(folder.iterdir()) == []


def test_a_lock_is_not_acquired_on_a_deleted_folder(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "sandbox"
    folder.mkdir()
    acquired: list[int] = []

    def second() -> None:
        with locked(folder, patience=240):
            acquired.append(folder.stat().st_ino)

    with locked(folder):
        thread = threading.Thread(target=second)
        thread.start()
        shutil.rmtree(folder)
    thread.join()
    assert acquired == [folder.stat().st_ino]


def test_certificates_are_created_once_and_chain_to_their_authority(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "pki"
    (tmp_path / ".pki.making").mkdir()
    (tmp_path / ".pki.making" / "left by a killed run").touch()
    assert ensure_pki(folder)
    assert not ensure_pki(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pki"]
    for subject in SUBJECTS:
        certificate = x509.load_pem_x509_certificate((folder / f"{subject.file}.crt").read_bytes())
        authority = x509.load_pem_x509_certificate((folder / f"{subject.authority}.crt").read_bytes())
        certificate.verify_directly_issued_by(authority)
        uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert (x509.ExtendedKeyUsageOID.SERVER_AUTH in uses) == bool(subject.names)
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.glob("*.key"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert ssl.create_default_context(cafile=str(folder / "ca.crt"))


def test_clients_of_the_api_server_have_no_access_to_etcd(tmp_path: pathlib.Path) -> None:
    authorities = {subject.file: subject.authority for subject in SUBJECTS}
    assert {file for file, authority in authorities.items() if authority == "etcd-ca"} == {"etcd", "etcd-client"}
    assert {authorities[client] for client in (*commands.CLIENTS, "admin", "kubelet-client")} == {"ca"}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> commands.CommandSettings:
    where = Layout("x", tmp_path_factory.mktemp("sandbox") / "x")
    where.make_folders()
    ensure_pki(where.pki)
    return commands.CommandSettings(
        where, {name: 20000 + index for index, name in enumerate(commands.PORTS)}, "python3", 20
    )


def test_every_address_is_loopback(plan: commands.CommandSettings) -> None:
    texts = [" ".join(commands.command(plan, name).argv) for name in commands.COMPONENTS]
    text = "\n".join([*texts, *commands.files(plan).values()])
    assert "0.0.0.0" not in text
    assert "--bind-address=127.0.0.1" in text
    assert {
        line.partition("://")[2].partition(":")[0] for line in text.split() if line.startswith(("http://", "https://"))
    } <= {
        "127.0.0.1",
        "kubernetes.default.svc",
    }


def test_configuration_is_yaml_and_kubeconfigs_name_their_owner(plan: commands.CommandSettings) -> None:
    for path, text in commands.files(plan).items():
        documents = list(yaml.safe_load_all(text))
        assert documents
        if path.name.endswith("kubeconfig"):
            assert documents[0]["current-context"] == "sandbox"
            assert documents[0]["clusters"][0]["cluster"]["server"] == plan.server


def test_processes_do_not_inherit_the_callers_environment(
    plan: commands.CommandSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org")
    for name in commands.COMPONENTS:
        assert set(commands.command(plan, name).environment) <= {
            "HOME",
            "PATH",
            "LANG",
            "GOGC",
            "PYTHONPATH",
            "PYTHONDONTWRITEBYTECODE",
            "PYTHONUNBUFFERED",
        }


def test_kwok_may_write_leases_only() -> None:
    writes = {
        (resource, verb) for rule in commands.KWOK_RULES for resource in rule["resources"] for verb in rule["verbs"]
    } - {(resource, verb) for resource in ("nodes", "pods", "leases") for verb in ("get", "list", "watch")}
    assert writes == {("leases", "create"), ("leases", "update")}


@pytest.mark.parametrize(("nodes", "seconds"), [(0, 40), (50, 40), (51, 160), (1000, 2560), (5000, 10240)])
def test_leases_of_large_fleets_are_long(nodes: int, seconds: int) -> None:
    assert commands.lease_seconds(nodes) == seconds
    assert nodes * 4 / seconds <= 5


def test_a_new_version_or_fleet_size_restarts_only_affected_processes(plan: commands.CommandSettings) -> None:
    larger = commands.CommandSettings(plan.layout, plan.ports, plan.python, 1000, {"etcd": "new"})
    changed = {
        name
        for name in commands.COMPONENTS
        if commands.command(plan, name).digest != commands.command(larger, name).digest
    }
    assert changed == {"etcd", "kwok"}


def test_the_digest_of_a_package_depends_on_its_sources_only(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.py").write_text("1", encoding="utf-8")
    first = supervisor.folder_digest(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").touch()
    assert supervisor.folder_digest(tmp_path) == first
    (tmp_path / "a.py").write_text("2", encoding="utf-8")
    assert supervisor.folder_digest(tmp_path) != first
