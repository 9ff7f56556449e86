# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""unpack.py puts the programs of an archive in their place, knows which of them are its own, and replaces none of others."""

from __future__ import annotations

import io
import json
import pathlib
import tarfile
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_kubeadm" / "files" / "unpack.py"


class Unpacking:
    """A machine's folders. unpack(programs) returns the script's result, and has the text of each program by name."""

    def __init__(self, root: pathlib.Path) -> None:
        self.script: t.Any = loaded(PATH)
        self.root, self.folder, self.notes = root, root / "bin", root / "notes"
        self.folder.mkdir()
        self.notes.mkdir()

    def unpack(self, programs: dict[str, str], name: str = "cni.tgz", checksum: str = "sha256:1") -> t.Any:
        archive = self.root / name
        with tarfile.open(archive, "w:gz") as file:
            # As releases of containernetworking/plugins have them.
            for path, mode, text in (
                ("./LICENSE", 0o644, "licence"),
                *((f"./{name}", 0o755, text) for name, text in programs.items()),
                ("./../escaped", 0o755, "nothing of it"),
            ):
                member = tarfile.TarInfo(path)
                member.mode, member.size = mode, len(text)
                file.addfile(member, io.BytesIO(text.encode()))
        return self.script.main(str(archive), str(self.folder), str(self.notes / name), checksum)

    def there(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in self.folder.iterdir()}

    def note(self, name: str = "cni.tgz") -> t.Any:
        return json.loads((self.notes / name).read_text(encoding="utf-8"))


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Unpacking:
    return Unpacking(tmp_path)


def test_programs_at_the_top_are_unpacked_and_noted(machine: Unpacking, capsys: pytest.CaptureFixture[str]) -> None:
    assert machine.unpack({"bridge": "one", "loopback": "two"}) == 0
    assert machine.there() == {"bridge": "one", "loopback": "two"}
    assert machine.note() == {"made": ["bridge", "loopback"], "checksum": "sha256:1"}
    assert (machine.folder / "bridge").stat().st_mode & 0o777 == 0o755
    assert not (machine.root / "escaped").exists()
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert machine.unpack({"bridge": "one", "loopback": "two"}) == 0
    assert capsys.readouterr().out == ""


def test_a_later_release_replaces_an_earlier_one(machine: Unpacking) -> None:
    machine.unpack({"bridge": "one", "loopback": "two"}, "cni-1.tgz")
    assert machine.unpack({"bridge": "new", "host-local": "three"}, "cni-2.tgz", "sha256:2") == 0
    assert machine.there() == {"bridge": "new", "loopback": "two", "host-local": "three"}
    assert machine.note("cni-2.tgz") == {"made": ["bridge", "host-local"], "checksum": "sha256:2"}


def test_programs_of_others_stay(machine: Unpacking) -> None:
    (machine.folder / "bridge").write_text("of a package", encoding="utf-8")
    told = machine.unpack({"bridge": "one", "loopback": "two"})
    assert "bridge in" in told and "Next: remove the package" in told
    assert machine.there() == {"bridge": "of a package"} and not list(machine.notes.iterdir())


def test_an_equal_program_of_others_is_not_ours(machine: Unpacking) -> None:
    (machine.folder / "bridge").write_text("one", encoding="utf-8")
    assert machine.unpack({"bridge": "one", "loopback": "two"}) == 0
    assert machine.note()["made"] == ["loopback"]


def test_a_run_that_was_killed_is_continued_and_known(machine: Unpacking, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(Exception):
        pass

    def killed(_archive: object, _member: object, _path: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(machine.script, "place", killed)
        with pytest.raises(Killed):
            machine.unpack({"bridge": "one", "loopback": "two"})
    assert machine.note() == {"made": ["bridge", "loopback"]}
    (machine.folder / "bridge").write_text("one", encoding="utf-8")
    assert machine.unpack({"bridge": "one", "loopback": "two"}) == 0
    assert machine.note() == {"made": ["bridge", "loopback"], "checksum": "sha256:1"}


def test_an_archive_without_programs_is_refused(machine: Unpacking) -> None:
    assert "has no programs" in machine.unpack({}) and machine.there() == {}
