# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From SQLite to etcd: datastore.py on a machine, and what a run says of the server before, meanwhile and afterwards. The rig runs it with K3s."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import sqlite3
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.plan import plan
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_plan import SETTINGS, changed, member, without
from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_k3s" / "files" / "datastore.py"
UID = "0b1c"


class Machine:
    """A server with SQLite below a folder. said: calls of systemctl."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root, self.said = root, list[str]()
        self.script = loaded(PATH)
        self.script.ROOT, self.script.systemctl = str(root), lambda *words: self.said.append(" ".join(words))
        self.db, self.folder = root / "var/lib/rancher/k3s/server/db", root / places.FOLDER[1:]
        for one in (self.db, self.folder):
            one.mkdir(parents=True)
        self.file = self.db / "state.db"
        with contextlib.closing(sqlite3.connect(self.file)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("CREATE TABLE kine (name TEXT)")
            database.execute("INSERT INTO kine VALUES ('/registry/a')")
            database.commit()

    @property
    def once(self) -> pathlib.Path:
        return self.root / "run/systemd/system/k3s.service.d/90-hwaccel-gpu-datastore.conf"

    @property
    def note(self) -> pathlib.Path:
        return self.folder / "migration.json"

    def starts(self, *, completes: bool) -> None:
        """What K3s does at its start with cluster-init."""
        (self.db / "etcd/member/wal").mkdir(parents=True)
        if completes:
            self.file.rename(self.db / "state.db.migrated")


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path)


def test_data_are_copied_before_anything_is_changed(machine: Machine, capsys: t.Any) -> None:
    (machine.db / "state.db-wal").write_bytes(b"")
    assert machine.script.main("begin", UID) == 0 and capsys.readouterr().out == "stop k3s\n"
    copy = machine.folder / "datastore"
    assert (copy / "state.db").read_bytes() == machine.file.read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o700 and (copy / "state.db").stat().st_mode & 0o777 == 0o600
    assert machine.note.stat().st_mode & 0o777 == 0o600 and json.loads(machine.note.read_text()) == {"uid": UID}
    assert "Restart=no" in machine.once.read_text()
    assert machine.said == ["stop k3s", "daemon-reload"]


def test_it_ends_once_everything_was_moved_and_the_cluster_is_the_same(machine: Machine, capsys: t.Any) -> None:
    machine.script.main("begin", UID)
    assert machine.script.main("end", UID) == 1 and "has not moved all" in capsys.readouterr().out
    machine.starts(completes=True)
    assert machine.script.main("end", "other") == 1 and "and was 0b1c before" in capsys.readouterr().out
    assert machine.script.main("end", UID) == 0
    assert not machine.note.exists() and not machine.once.exists() and machine.said[-1] == "daemon-reload"
    assert (machine.folder / "datastore/state.db").exists()


def test_a_run_that_goes_on_drops_what_was_moved_in_part_and_keeps_the_copy(machine: Machine) -> None:
    machine.script.main("begin", UID)
    copied = (machine.folder / "datastore/state.db").stat().st_mtime_ns
    machine.starts(completes=False)
    assert machine.script.main("begin", "") == 0
    assert not (machine.db / "etcd").exists() and machine.file.exists()
    assert (machine.folder / "datastore/state.db").stat().st_mtime_ns == copied
    machine.starts(completes=True)
    before = list(machine.said)
    # Only its end is missing.
    assert machine.script.main("begin", "") == 0 and machine.said == before
    assert (machine.db / "etcd/member").exists() and machine.script.main("end", UID) == 0


def test_a_move_that_fails_goes_back(machine: Machine, capsys: t.Any) -> None:
    machine.script.main("begin", UID)
    machine.starts(completes=False)
    capsys.readouterr()
    assert machine.script.main("back") == 0 and "server/db/etcd" in capsys.readouterr().out
    assert machine.file.exists() and not (machine.db / "etcd").exists()
    assert not machine.note.exists() and not machine.once.exists()


def test_what_was_moved_stays_where_it_is(machine: Machine, capsys: t.Any) -> None:
    machine.script.main("begin", UID)
    machine.starts(completes=True)
    capsys.readouterr()
    assert machine.script.main("back") == 0 and capsys.readouterr().out == ""
    assert (machine.db / "etcd/member").exists() and machine.note.exists() and not machine.once.exists()


@pytest.mark.parametrize("why", ["no database", "etcd", "damaged", "full"])
def test_what_is_in_the_way(machine: Machine, capsys: t.Any, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    told = {"no database": "has no SQLite", "etcd": "etcd has data", "damaged": "damaged", "full": "MiB are free"}[why]
    if why == "no database":
        machine.file.unlink()
    elif why == "etcd":
        (machine.db / "etcd/member").mkdir(parents=True)
    elif why == "damaged":
        content = bytearray(machine.file.read_bytes())
        content[4096:4120] = b"\xff" * 24
        machine.file.write_bytes(content)
    else:
        monkeypatch.setattr(machine.script, "TIMES", 1 << 60)
    assert machine.script.main("begin", UID) == 1 and told in capsys.readouterr().out
    assert not machine.note.exists() and not (machine.folder / "datastore").exists()
    # It was stopped for the copy only.
    assert machine.said == (["stop k3s", "start --no-block k3s"] if why == "damaged" else [])


LONE = {**SETTINGS, "machines": [one for one in SETTINGS["machines"] if one["host"] in ("s1", "a1")]}


def sqlite(**variables: t.Any) -> t.Any:
    host = without(member(), places.ETCD)
    return changed(host, present="\n".join([host.fact("present"), places.SQLITE])), {**LONE, **variables}


@pytest.mark.parametrize("variables", [{"datastore": "etcd"}, {"machines": SETTINGS["machines"]}])
def test_etcd_in_place_of_sqlite_has_to_be_asked_for_by_name(variables: dict[str, t.Any]) -> None:
    host, settings = sqlite(**variables)
    faults = [one["text"] for one in plan(host, settings)["faults"]]
    assert len(faults) == 1 and "cluster_k3s_entry=migrate_datastore" in faults[0]
    found = plan(host, {**settings, "migrates": True})
    assert (found["faults"], found["datastore"], found["named"]) == ([], "SQLite", True)


def test_nothing_else_is_done_while_data_are_being_moved() -> None:
    host, settings = sqlite()
    host = dataclasses.replace(host, files={**host.files, places.MIGRATION: File(places.MIGRATION, "{}")})
    for present in (host, changed(host, present="\n".join([host.fact("present"), places.ETCD]))):
        faults = [one["text"] for one in plan(present, settings)["faults"]]
        assert len(faults) == 1 and "are being moved from SQLite to etcd" in faults[0]
        found = plan(present, {**settings, "migrates": True})
        assert (found["faults"], found["datastore"]) == ([], "moving")


def test_a_server_with_etcd_has_nothing_to_move_and_others_can_join_it() -> None:
    found = plan(member(), {**SETTINGS, "migrates": True})
    assert (found["faults"], found["datastore"]) == ([], "etcd")
    assert plan(member("agent"), {**SETTINGS, "role": "agent"})["datastore"] == ""


def test_only_the_start_that_moves_data_makes_a_member() -> None:
    assert yaml.safe_load(configuration.entry(LONE, "migrate", token=False)) == {"cluster-init": True}
    assert yaml.safe_load(configuration.entry({**LONE, "datastore": "etcd"}, "stay", token=True)) == {
        "token-file": places.TOKEN
    }
