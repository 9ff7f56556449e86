# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for the install tool: its table of behaviours, its commands, and the faults that tests ask of it."""

from __future__ import annotations

import ast
import collections.abc as c
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tarfile
import time

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import faults, gathering, launcher, log, release

_SECTIONS = {"0", "1", "2.1", "4.1", "4.2", "4.3", "5", "6", "stand-in"}
_LEAST = 60
#: Tests of the table and of the stand-in's own ways.
_OF_THE_TABLE = {"test_each_behaviour_has_one_test", "test_it_imports_nothing_of_what_it_tests"}
_SHA256 = "[0-9a-f]{64}"


def test_each_behaviour_has_one_test() -> None:
    table = yaml.safe_load((support.HERE / "behaviours.yml").read_text(encoding="utf-8"))
    rows = table["behaviours"]
    assert len(rows) >= _LEAST
    assert set(table["sections"]) == _SECTIONS
    for row in rows:
        assert row.keys() - {"place", "assumed"} == {"behaviour", "section", "test"}, row
        assert row["section"] in _SECTIONS, row
        assert re.fullmatch(r"(pkg|cmd|data)/[\w./*{},-]+( [\w.]+)?", row.get("place", "pkg/any")), row
    sources = [path.read_text(encoding="utf-8") for path in support.HERE.glob("test_stand_in*.py")]
    found = [name for text in sources for name in re.findall(r"^def (test_\w+)\(", text, re.M)]
    assert sorted(row["test"] for row in rows) == sorted(set(found) - _OF_THE_TABLE)


def test_it_imports_nothing_of_what_it_tests() -> None:
    own = "ansible_collections.hwaccel.gpu.tests.openshift.stand_in"
    for path in (support.HERE / "stand_in").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ansible"):
                assert str(node.module).startswith(own), path


def test_version() -> None:
    lines = support.run(None, "version").out.splitlines()
    assert re.fullmatch(rf"{support.NAME} 4\.20\.\d+", lines[0])
    assert re.fullmatch("built from commit [0-9a-f]+", lines[1])
    assert re.fullmatch(rf"release image quay.io/openshift-release-dev/ocp-release@sha256:{_SHA256}", lines[2])
    assert lines[3:] == ["release architecture amd64"]


def test_version_of_a_build_without_a_release() -> None:
    done = support.run(None, "version", release="development")
    assert done.out.splitlines()[-1] == "release architecture unknown"
    assert "@sha256:" not in done.out
    assert "Release Image Architecture is unknown" in done.err


def test_the_program_is_named_as_it_was_called(tmp_path: pathlib.Path) -> None:
    program = launcher.write(tmp_path, release="5.0")
    done = subprocess.run([program, "version"], env={}, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{program} 5.0.0\n")
    other = {"STAND_IN_RELEASE": "4.20"}
    done = subprocess.run([program, "version"], env=other, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{program} 4.20.")


def test_stream() -> None:
    found = json.loads(support.run(None, "coreos", "print-stream-json").out)
    for architecture in ("x86_64", "aarch64"):
        formats = found["architectures"][architecture]["artifacts"]["metal"]["formats"]["pxe"]
        assert formats.keys() == {"kernel", "initramfs", "rootfs"}
        for entry in formats.values():
            assert entry["location"].startswith("https://")
            assert entry["sha256"] == hashlib.sha256(release.content(entry["location"])).hexdigest()


def test_one_stream_has_no_flag() -> None:
    done = support.run(None, "coreos", "print-stream-json", "--stream", "rhel-9")
    assert done.status == 1
    assert done.out == ""
    assert done.lines("fatal") == ["Error executing openshift-install: unknown flag: --stream"]


def test_several_streams_have_a_flag() -> None:
    for name in ("rhel-9", "rhel-10"):
        done = support.run(None, "coreos", "print-stream-json", f"--stream={name}", release="development")
        assert json.loads(done.out)["stream"] == name
    assert json.loads(support.run(None, "coreos", "print-stream-json", release="5.0").out)["stream"] == "rhel-9"


def test_several_streams_need_the_flag_without_a_version() -> None:
    done = support.run(None, "coreos", "print-stream-json", release="development")
    assert (done.status, done.out) == (1, "")
    assert "--stream" in done.lines("error")[0]


def test_file_names_of_releases_differ() -> None:
    found = set()
    for version in ("4.20", "5.0"):
        stream = json.loads(support.run(None, "coreos", "print-stream-json", release=version).out)
        kernel = stream["architectures"]["x86_64"]["artifacts"]["metal"]["formats"]["pxe"]["kernel"]["location"]
        found.add(re.sub(r"[0-9.]+-[0-9](?=-live)", "BUILD", kernel.rpartition("/")[2]))
    assert found == {"rhcos-BUILD-live-kernel-x86_64", "rhcos-BUILD-live-kernel.x86_64"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("create", "cluster-api"), 'unknown command "create cluster-api"'),
        (("version", "--no-such-flag"), "unknown flag: --no-such-flag"),
        (("version", "--master=10.33.3.11"), "unknown flag: --master"),
        (("version", "--stream=rhel-9"), "unknown flag: --stream"),
        (("version", "--dir"), "flag needs an argument: --dir"),
        (("version", "--log-level=loud"), 'not a valid logrus Level: "loud"'),
    ],
)
def test_arguments_that_it_does_not_know(arguments: tuple[str, ...], reason: str) -> None:
    done = support.run(None, *arguments, release="5.0")
    assert done.status == 1
    assert reason in done.lines("fatal")[0]


@contextlib.contextmanager
def greeting(address: str, text: bytes) -> c.Iterator[None]:
    """A server at port 22 that greets whoever connects."""
    with socket.create_server((address, gathering.PORT)) as server, concurrent.futures.ThreadPoolExecutor() as pool:

        def greet() -> None:
            with server.accept()[0] as connection:
                connection.sendall(text)

        greeted = pool.submit(greet)
        yield
        greeted.result(timeout=30)


@pytest.mark.parametrize("given", [(), ("--bootstrap=127.33.3.10",), ("--master=10.33.3.11",)])
def test_gathering_logs_needs_addresses(tmp_path: pathlib.Path, given: tuple[str, ...]) -> None:
    done = support.run(support.configure(tmp_path / "folder"), "gather", "bootstrap", *given)
    assert (done.status, "at least one control plane host address must be provided" in done.err) == (1, True)


def test_logs_are_gathered_from_a_bootstrap_machine_that_answers(tmp_path: pathlib.Path) -> None:
    key = tmp_path / "key"
    key.touch()
    folder = support.configure(tmp_path / "folder")
    command = ("gather", "bootstrap", f"--key={key}")
    whole = (*command, "--bootstrap=127.33.3.10", "--master=10.33.3.11", "--master=10.33.3.12")
    away = support.run(folder, *whole)
    assert (away.status, "failed to create SSH client: dial tcp 127.33.3.10:22: connection refused" in away.err) == (
        1,
        True,
    )
    with greeting("127.33.3.10", b"220 no SSH\r\n"):
        assert "ssh: handshake failed" in support.run(folder, *whole).err
    with greeting("127.33.3.10", b"SSH-2.0-test\r\n"):
        done = support.run(folder, *whole)
    (bundle,) = folder.glob("log-bundle-*.tar.gz")
    assert (done.status, f'Bootstrap gather logs captured here "{bundle}"' in done.err) == (0, True)
    with tarfile.open(bundle) as found:
        assert found.getnames() == [f"log-bundle/{name}" for name in ("127.33.3.10", "10.33.3.11", "10.33.3.12")]
    key.unlink()
    assert f"open {key}: no such file" in support.run(folder, *whole).err


def test_log_levels(tmp_path: pathlib.Path) -> None:
    done = support.run(support.configure(tmp_path / "one"), "create", "install-config", "--log-level", "error")
    assert done.err == ""
    logged = (tmp_path / "one" / log.LOG).read_text(encoding="utf-8")
    assert 'level=info msg="Install-Config created in' in logged
    done = support.run(support.configure(tmp_path / "two"), "create", "install-config", "--log-level=debug")
    assert done.status == 0


def test_its_first_line_says_what_it_is(tmp_path: pathlib.Path) -> None:
    folder = support.configure(tmp_path / "folder")
    done = support.run(folder, "create", "install-config")
    assert done.err.splitlines()[0] == f"level=info msg={log.STAND_IN}"
    assert log.STAND_IN in (folder / log.LOG).read_text(encoding="utf-8").splitlines()[0]


def test_calls_are_recorded(tmp_path: pathlib.Path) -> None:
    calls = str(tmp_path / "calls")
    support.run(None, "version", calls=calls)
    support.run(None, "no-such-command", calls=calls)
    found = [json.loads(line) for line in pathlib.Path(calls).read_text(encoding="utf-8").splitlines()]
    assert [one["arguments"][1:] for one in found] == [["version"], ["no-such-command"]]
    assert found[0].keys() == {"arguments", "folder", "process", "time"}


@pytest.mark.parametrize(
    "settings",
    [{"clok": "1"}, {"fault": "hnag"}, {"fault": "exit=x"}, {"cluster": "fine"}, {"pki": "P256"}, {"release": "3.11"}],
)
def test_a_fault_that_is_misspelled_is_an_error(tmp_path: pathlib.Path, settings: dict[str, str]) -> None:
    with pytest.raises((ValueError, KeyError)):
        support.run(tmp_path, "wait-for", "install-complete", **settings)


@pytest.mark.parametrize(("signalled", "status"), [(signal.SIGTERM, 8), (signal.SIGINT, 8)])
def test_it_hangs_until_a_signal(tmp_path: pathlib.Path, keys: str, signalled: signal.Signals, status: int) -> None:
    folder = support.configure(tmp_path / "folder")
    process = support.start(folder, *support.IGNITION, fault="hang@2", keys=keys)
    try:
        end = time.monotonic() + 60
        while not (folder / "auth" / "kubeadmin-password").exists() and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert process.poll() is None
        process.send_signal(signalled)
        _out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == status, err
    assert not (folder / "master.ign").exists()


def test_it_is_killed_after_some_files(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path / "folder")
    process = support.start(folder, *support.IGNITION, fault="kill@4", keys=keys)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert {"auth/kubeconfig", "worker.ign"} <= support.names(folder)
    assert not support.names(folder) & {"bootstrap.ign", "metadata.json", support.INSTALL_CONFIG}


def test_it_is_killed_in_the_middle_of_a_file(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path / "folder")
    process = support.start(folder, *support.IGNITION, fault="torn@4", keys=keys)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    with pytest.raises(json.JSONDecodeError):
        support.ignition(folder / "bootstrap.ign")


def test_it_ends_with_a_status(tmp_path: pathlib.Path) -> None:
    folder = support.configure(tmp_path / "folder")
    assert support.run(folder, *support.IGNITION, fault="exit=4").status == 4
    assert support.names(folder) == {support.INSTALL_CONFIG, log.LOG}


def test_it_is_slow(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    waited: list[float] = []
    monkeypatch.setattr(faults.time, "sleep", waited.append)
    assert (
        support.run(support.configure(tmp_path / "one"), *support.IGNITION, fault="slow=0.5@3", keys=keys).status == 0
    )
    assert waited == [0.5] * 4


def spki(certificate: x509.Certificate) -> bytes:
    """Its public key."""
    kind, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(kind, form)


def test_no_two_runs_have_the_same_certificates(tmp_path: pathlib.Path, keys: str) -> None:
    roots = []
    for name in ("one", "two"):
        folder = support.configure(tmp_path / name)
        assert support.run(folder, *support.IGNITION, keys=keys).status == 0
        found = support.certificates(support.ignition(folder / "bootstrap.ign"))
        publics = [spki(one[0]) for file, one in found.items() if not file.endswith("bundle")]
        assert len(set(publics)) == len(publics), "a key twice in one run"
        roots.append(found)
    for name in ("root-ca", "kubelet-signer"):
        one, two = (found[name][0] for found in roots)
        assert spki(one) != spki(two)
    serials = [one[0].serial_number for found in roots for file, one in found.items() if not file.endswith("bundle")]
    assert len(set(serials)) == len(serials)
    assert os.listdir(keys)
