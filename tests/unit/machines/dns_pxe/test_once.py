# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that turns boot entries to disks, on files of the role, with interruptions at any point."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import types
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import entries, model, wishes
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import settings
from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

SCRIPT = pathlib.Path(__file__).parents[4] / "roles" / "dns_pxe" / "files" / "once.py"
MASTER, WORKER, BOOTSTRAP = (f"52:54:00:77:00:{last}" for last in (11, 21, 10))
FETCHED = {MASTER: "10.77.0.11 /ignition/master.ign\n", WORKER: "10.77.0.21 /ignition/worker.ign\n"}


@pytest.fixture(scope="module")
def once() -> types.ModuleType:
    return loaded(SCRIPT)


class Server:
    """A boot server's folder and log, as the role leaves them."""

    def __init__(self, folder: pathlib.Path, once: types.ModuleType) -> None:
        self.state, self.log, self._once = folder / "state", folder / "fetched", once
        (self.state / "again").mkdir(parents=True)
        self.wish("1")
        site, _faults = model.read(settings())
        assert site
        for path, text in entries.files(site, 8080, linuxefi=False).items():
            (self.state / "files" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.state / "files" / path).write_text(text, encoding="utf-8")

    def wish(self, at: str, **changed: t.Any) -> None:
        site, _faults = model.read(settings(**changed))
        assert site
        text = wishes.text(wishes.following((), (), site.machines, site.wanted(), at))
        (self.state / "wishes.json").write_text(text, encoding="utf-8")

    def fetch(self, *macs: str, text: str = "") -> None:
        with open(self.log, "a", encoding="ascii") as log:
            log.write("".join(FETCHED[mac] for mac in macs) + text)

    def follow(self) -> None:
        self._once.follow(str(self.state), str(self.log))

    def entry(self, mac: str, folder: str = "pxelinux.cfg", end: str = "") -> pathlib.Path:
        return self.state / "files" / folder / f"01-{mac.replace(':', '-')}{end}"

    def words(self, mac: str) -> str:
        """The word of all three entries."""
        found = {
            self._once.WORD.search(self.entry(mac, folder, end).read_text(encoding="utf-8")).group().split()[-1][-7:]
            for folder, end in self._once.FOLDERS
        }
        [word] = {one.rpartition("=")[2] for one in found}
        return word

    def written(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.state / "written.json").read_text(encoding="utf-8"))["written"]
        return found


@pytest.fixture
def server(tmp_path: pathlib.Path, once: types.ModuleType) -> Server:
    return Server(tmp_path, once)


def test_entries_turn_once_their_machine_has_fetched_its_own_file_completely(server: Server) -> None:
    server.follow()
    assert server.words(MASTER) == server.words(WORKER) == "install"
    server.fetch(text="10.77.0.21 /ignition/master.ign\n10.77.0.11 /ignition/mast")
    server.follow()
    assert server.words(MASTER) == "install", "another machine, and a line that is not complete"
    server.fetch(text="er.ign\n")
    server.follow()
    assert (server.words(MASTER), server.words(WORKER)) == ("disk", "install")
    assert server.written() == {MASTER: "1"}


def test_an_entry_that_only_boots_the_disk_is_never_turned(server: Server) -> None:
    path = server.entry(MASTER)
    path.write_text("DEFAULT local\nLABEL local\n  LOCALBOOT 0\n", encoding="ascii")
    server.fetch(MASTER)
    server.follow()
    assert path.read_text(encoding="ascii") == "DEFAULT local\nLABEL local\n  LOCALBOOT 0\n"


def test_a_rotated_and_a_shortened_log_is_read_from_its_beginning(server: Server) -> None:
    server.fetch(WORKER)
    server.follow()
    os.rename(server.log, f"{server.log}.1")
    server.follow()
    assert server.words(WORKER) == "disk", "what was read counts without the log"
    server.fetch(MASTER)
    server.follow()
    assert server.words(MASTER) == "disk"
    server.wish("2")
    server.log.write_text("", encoding="ascii")
    server.follow()
    assert server.words(MASTER) == "install"
    server.fetch(MASTER)
    server.follow()
    assert server.words(MASTER) == "disk"


def test_a_new_wish_and_a_request_count_only_what_is_fetched_since(server: Server) -> None:
    server.fetch(MASTER, WORKER)
    server.follow()
    server.wish("2")
    server.follow()
    assert (server.words(MASTER), server.words(WORKER), server.written()) == ("install", "install", {})
    server.fetch(MASTER, WORKER)
    server.follow()
    (server.state / "again" / WORKER).touch()
    server.follow()
    assert (server.words(MASTER), server.words(WORKER)) == ("disk", "install")
    assert list((server.state / "again").iterdir()) == []
    server.follow()
    assert server.words(WORKER) == "install"


def test_a_request_for_a_machine_that_is_not_to_be_installed_turns_nothing(server: Server) -> None:
    server.wish("1", joined={"ocp": ["worker-0"]})
    (server.state / "again" / WORKER).touch()
    server.fetch(WORKER)
    server.follow()
    assert server.words(WORKER) == "install", "as the role has left it"
    assert list((server.state / "again").iterdir()) == []


@pytest.mark.parametrize("kills", range(1, 6))
@pytest.mark.parametrize("request_it", [False, True], ids=["fetched", "requested"])
def test_after_an_interruption_at_any_write_the_next_start_completes_it(
    kills: int, request_it: bool, server: Server, once: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request_it:
        server.fetch(MASTER)
        server.follow()
        (server.state / "again" / MASTER).touch()
    else:
        server.fetch(MASTER)
    done, real = 0, os.replace

    def killed(*paths: str) -> None:
        nonlocal done
        done += 1
        if done == kills:
            raise KeyboardInterrupt
        real(*paths)

    monkeypatch.setattr(once.os, "replace", killed)
    try:
        server.follow()
    except KeyboardInterrupt:
        assert kills <= 4
    monkeypatch.setattr(once.os, "replace", real)
    server.follow()
    assert server.words(MASTER) == ("install" if request_it else "disk")


def test_what_the_role_writes_meanwhile_is_turned_again(server: Server) -> None:
    """A run has observed the server before the fetch, and writes the entry with other arguments after it."""
    before = server.entry(MASTER).read_text(encoding="utf-8")
    server.fetch(MASTER)
    server.follow()
    known = once_signature(server)
    server.entry(MASTER).unlink()
    server.entry(MASTER).write_text(before, encoding="utf-8")
    assert once_signature(server) != known
    server.follow()
    assert server.words(MASTER) == "disk"


def once_signature(server: Server) -> list[t.Any]:
    found: list[t.Any] = server._once.signature(str(server.state), str(server.log))
    return found


def test_it_runs_with_the_python_of_old_systems() -> None:
    """RHEL 8 has 3.6."""
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_without_any_wish_there_is_nothing_to_do(server: Server) -> None:
    for text in (None, ""):
        (server.state / "wishes.json").unlink(missing_ok=True)
        if text is not None:
            (server.state / "wishes.json").write_text(text, encoding="ascii")
        server.fetch(MASTER)
        server.follow()
        assert server.words(BOOTSTRAP) == "install" and server.written() == {}
