# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules in processes of the run's module server: real processes, without Ansible."""

from __future__ import annotations

import collections.abc as c
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import threading
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _module_process

MODULE = """
import json, os, pathlib, signal, subprocess, sys, time

LOADED_BY = os.getpid()

def main():
    options = json.loads(sys.stdin.read())
    if options.get("say"):
        pathlib.Path(options["say"]).write_text(str(os.getpid()))
    if "child" in options:
        child = subprocess.Popen(["sleep", "60"])
        pathlib.Path(options["child"]).write_text(str(child.pid))
    if options.get("wait"):
        time.sleep(60)
    if "signal" in options:
        os.kill(os.getpid(), options["signal"])
    print(json.dumps({
        "process": os.getpid(), "parent": os.getppid(), "loaded_by": LOADED_BY, "folder": os.getcwd(), "arguments": sys.argv[1:],
        "given": {name: value for name, value in os.environ.items() if name.startswith("GIVEN")}, "zone": time.tzname[0],
        "open": sorted(os.listdir("/proc/self/fd"), key=int)[:-1], "text": "x" * options.get("size", 0),
    }))
    print("told", file=sys.stderr)
    sys.exit(options.get("status", 0))
"""
BROKEN = "raise ImportError('no such library')\n"


@pytest.fixture(autouse=True)
def _modules(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = tmp_path / "collections/ansible_collections/hwaccel/gpu/plugins/modules"
    modules.mkdir(parents=True)
    (modules / "probe.py").write_text(MODULE)
    (modules / "broken.py").write_text(BROKEN)
    monkeypatch.setattr(_module_process, "_FOLDER", tmp_path / "collections")


@pytest.fixture(name="folder")
def _folder(tmp_path: pathlib.Path) -> pathlib.Path:
    # A path that is longer than that of a Unix socket can be.
    folder = tmp_path / ("long-" * 25)
    folder.mkdir()
    return folder


def run(
    folder: pathlib.Path,
    module: str = "probe",
    owner: int = 0,
    environment: dict[str, str] | None = None,
    **options: t.Any,
) -> _module_process.Done:
    with _module_process.connect(folder, owner or os.getpid()) as connection:
        return _module_process.run(connection, module, json.dumps(options).encode(), environment or {})


def said(path: pathlib.Path) -> int:
    """A number of a process that a module writes."""
    give_up = time.monotonic() + 60
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < give_up
        time.sleep(0.01)
    return int(path.read_text())


def ended(process: int) -> bool:
    """Waits for the end of a process that is not a child."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 60)[0])
    finally:
        os.close(watched)


@pytest.fixture(name="owner")
def _owner() -> c.Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_modules_of_a_run_have_their_own_processes_and_are_imported_once(folder: pathlib.Path) -> None:
    first, second = (
        json.loads(run(folder, environment={"GIVEN_1": "a", "TZ": "UTC"}).stdout),
        json.loads(run(folder, environment={"GIVEN_2": "b", "TZ": "EST5"}).stdout),
    )
    assert first["process"] != second["process"]
    assert first["parent"] == second["parent"] == first["loaded_by"] == second["loaded_by"]
    assert (first["given"], second["given"]) == ({"GIVEN_1": "a"}, {"GIVEN_2": "b"})
    assert (first["zone"], second["zone"]) == ("UTC", "EST")
    assert first["folder"] == os.getcwd() and first["arguments"] == []
    assert first["open"] == second["open"] == ["0", "1", "2"]


def test_status_and_output_are_those_of_the_module(folder: pathlib.Path) -> None:
    done = run(folder, status=3, size=2_000_000)
    assert done.rc == 3 and done.stderr == "told\n" and len(json.loads(done.stdout)["text"]) == 2_000_000
    assert run(folder, signal=signal.SIGKILL).rc == -signal.SIGKILL
    broken = run(folder, "broken")
    assert broken.rc == 1 and broken.stdout == "" and broken.stderr.endswith("ImportError: no such library\n")
    assert run(folder).rc == 0


def test_modules_run_at_the_same_time(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    waiting = threading.Thread(target=run, args=(folder,), kwargs={"wait": True, "say": str(tmp_path / "pid")})
    waiting.start()
    process = said(tmp_path / "pid")
    assert run(folder).rc == 0 and waiting.is_alive()
    os.kill(process, signal.SIGTERM)
    waiting.join(60)
    assert not waiting.is_alive()


def test_a_module_whose_client_ends_is_ended_with_all_that_it_has_started(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    kept = json.loads(run(folder).stdout)
    client = os.fork()
    if client == 0:
        run(folder, wait=True, say=str(tmp_path / "pid"), child=str(tmp_path / "child"))
        os._exit(0)
    module, child = said(tmp_path / "pid"), said(tmp_path / "child")
    os.kill(client, signal.SIGKILL)
    os.waitpid(client, 0)
    assert ended(module) and ended(child)
    assert json.loads(run(folder).stdout)["parent"] == kept["parent"]


def test_clients_that_end_at_any_time_do_not_end_the_server(folder: pathlib.Path) -> None:
    server = json.loads(run(folder).stdout)["parent"]
    for number in range(60):
        client = os.fork()
        if client == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 * (number + 1))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            run(folder)
            os._exit(0)
        os.waitpid(client, 0)
    assert json.loads(run(folder).stdout)["parent"] == server


def test_the_server_and_its_modules_end_with_the_owner(
    folder: pathlib.Path, tmp_path: pathlib.Path, owner: subprocess.Popen[bytes]
) -> None:
    lost: list[OSError] = []

    def lose() -> None:
        try:
            run(folder, owner=owner.pid, wait=True, say=str(tmp_path / "pid"))
        except OSError as error:
            lost.append(error)

    server = json.loads(run(folder, owner=owner.pid).stdout)["parent"]
    waiting = threading.Thread(target=lose)
    waiting.start()
    module = said(tmp_path / "pid")
    owner.kill()
    assert ended(server) and ended(module)
    waiting.join(60)
    assert "has ended while probe was running" in str(lost)


def test_a_server_that_has_ended_is_reported_and_replaced(folder: pathlib.Path) -> None:
    server = json.loads(run(folder).stdout)["parent"]
    with _module_process.connect(folder, os.getpid()) as connection:
        os.kill(server, signal.SIGKILL)
        assert ended(server)
        with pytest.raises(ConnectionError):
            _module_process.run(connection, "probe", b"{}", {})
    assert json.loads(run(folder).stdout)["parent"] != server


def test_runs_that_start_at_the_same_time_start_one_server(folder: pathlib.Path) -> None:
    parents: list[int] = []
    threads = [
        threading.Thread(target=lambda: parents.append(json.loads(run(folder).stdout)["parent"]))
        for _number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(parents) == 8 and len(set(parents)) == 1


def test_an_owner_that_has_ended_is_an_error(folder: pathlib.Path) -> None:
    process = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with pytest.raises(OSError):
        _module_process.connect(folder, int(process.stdout))
