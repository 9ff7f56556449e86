# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that reads logs, records, statistics and consoles on other hosts, on files, with a journalctl and an HAProxy in the place of real ones."""

from __future__ import annotations

import ast
import io
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import types
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

SCRIPT = pathlib.Path(__file__).parents[4] / "roles" / "cluster_openshift" / "files" / "witness.py"
MACHINES = [["52:54:00:77:00:21", "10.77.0.1"], ["", "10.77.0.15"]]
JOURNAL = [
    "1795405200.5 boot dnsmasq-dhcp[812]: 27 DHCPDISCOVER(eth0) 52:54:00:77:00:21",
    "1795405300.5 boot dnsmasq-dhcp[812]: 27 DHCPACK(eth0) 10.77.0.1 52:54:00:77:00:21 worker-1",
    "1795405300.6 boot dnsmasq-tftp[812]: sent /srv/tftp/shimx64.efi to 10.77.0.15",
    "1795405300.7 boot dnsmasq-dhcp[812]: 27 DHCPDISCOVER(eth0) 52:54:00:77:00:99",
    "-- Boot 5c1d --",
]
WEB = [
    f'{address} - - [23/Nov/2026:03:41:10 +0000] "GET /{number} HTTP/1.1" 200 1'
    for number, address in enumerate(("10.77.0.1", "10.77.0.15", "10.77.0.10"))
]


class Place:
    """A host with logs. asked: arguments of journalctl."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.web, self.marks = folder, folder / "access.log", folder / "marks"
        self.marks.mkdir()
        (folder / "bin").mkdir()
        self.journal(0, JOURNAL)
        self.web.write_text("".join(f"{line}\n" for line in WEB), encoding="utf-8")

    def journal(self, code: int, lines: t.Sequence[str]) -> None:
        program = self.folder / "bin" / "journalctl"
        text = "\n".join(lines)
        program.write_text(
            f"#!/bin/sh\necho \"$@\" >{self.folder}/asked\ncat <<'END'\n{text}\nEND\nexit {code}\n", encoding="utf-8"
        )
        program.chmod(0o755)

    @property
    def asked(self) -> str:
        return (self.folder / "asked").read_text(encoding="utf-8")

    def wants(self, **more: t.Any) -> dict[str, t.Any]:
        return {"machines": MACHINES, "marks": str(self.marks), "dhcp": "dnsmasq", "web": str(self.web), **more}

    def mark(self, name: str, since: int, dhcp: int, web: int, logs: str = "dnsmasq") -> None:
        (self.marks / name).write_text(f"{since}:{dhcp}:{web}\n{logs}\n{self.web}\n", encoding="utf-8")

    def run(self, wanted: t.Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        text = SCRIPT.read_text(encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-c", text],
            input=json.dumps(wanted),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def logs(self, **more: t.Any) -> dict[str, t.Any]:
        done = self.run(self.wants(**more))
        assert done.returncode == 0, done.stderr
        return t.cast("dict[str, t.Any]", json.loads(done.stdout)["logs"])


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    return Place(tmp_path)


def test_without_marks_lines_of_the_last_day_are_each_with_its_machine(place: Place) -> None:
    assert place.logs() == {
        "10.77.0.1": {"earlier": True, "lines": [WEB[0]]},
        "10.77.0.15": {"earlier": True, "lines": [WEB[1]]},
    }
    assert "--output=short-unix --unit=dnsmasq --since=@" in place.asked


def test_only_what_came_after_the_mark_of_a_machine_counts(place: Place) -> None:
    place.mark("52:54:00:77:00:21", 1795405250, 0, len(WEB[0]) + 1)
    place.mark("10.77.0.15", 1795405000, 0, 0)
    assert place.logs() == {
        "10.77.0.1": {"earlier": False, "lines": [JOURNAL[1]]},
        "10.77.0.15": {"earlier": False, "lines": [JOURNAL[2], WEB[1]]},
    }
    assert "--since=@1795405000" in place.asked


def test_a_mark_of_other_logs_does_not_count(place: Place) -> None:
    place.mark("52:54:00:77:00:21", 1795405250, 0, 10**6, logs="/var/log/other")
    assert place.logs()["10.77.0.1"] == {"earlier": True, "lines": [WEB[0]]}


def test_a_log_that_was_rotated_since_the_mark_is_read_from_its_beginning(place: Place) -> None:
    for name in ("52:54:00:77:00:21", "10.77.0.15"):
        place.mark(name, 1795405250, 0, 10**6)
    assert place.logs()["10.77.0.1"]["lines"] == [JOURNAL[1], WEB[0]]


def test_a_file_in_place_of_the_journal(place: Place) -> None:
    file = place.folder / "dhcp.log"
    file.write_text("Nov 23 03:41:10 dnsmasq-dhcp[812]: DHCPDISCOVER(eth0) 52:54:00:77:00:21\n", encoding="utf-8")
    assert len(place.logs(dhcp=str(file))["10.77.0.1"]["lines"]) == 2
    assert place.logs(dhcp=str(place.folder / "none"), web="/nowhere")["10.77.0.1"]["lines"] == []


def test_of_many_lines_the_first_and_the_last_are_kept(place: Place) -> None:
    place.web.write_text("".join(f"{WEB[0]} {number}\n" for number in range(700)), encoding="utf-8")
    lines = place.logs()["10.77.0.1"]["lines"]
    assert len(lines) == 500
    assert [lines[place].rpartition(" ")[2] for place in (0, 99, 100, 499)] == ["0", "99", "300", "699"]


def test_a_journal_that_cannot_be_read_is_an_error_in_one_line(place: Place) -> None:
    place.journal(1, ["No journal files were opened due to insufficient permissions."])
    done = place.run(place.wants())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "journalctl: No journal files were opened due to insufficient permissions.\n"


def test_records_and_consoles(place: Place) -> None:
    console = place.folder / "console.log"
    console.write_bytes(b"x" * (1 << 17) + b"\xff end\n")
    (place.folder / "joined.json").write_text("{}", encoding="utf-8")
    names = [str(place.folder / name) for name in ("joined.json", "none.json")]
    done = place.run({"files": names, "tails": [str(console), names[1]]})
    found = json.loads(done.stdout)
    assert found["files"] == {names[0]: "{}", names[1]: ""}
    assert found["tails"][names[1]] == "" and found["tails"][str(console)].endswith("\ufffd end\n")
    assert len(found["tails"][str(console)]) <= 1 << 16


def test_the_first_haproxy_that_answers(place: Place) -> None:
    path = str(place.folder / "admin.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()

        def answer() -> None:
            connection, _peer = listening.accept()
            with connection:
                assert connection.recv(100) == b"show stat\n"
                connection.sendall(b"# pxname,svname,\n")

        thread = threading.Thread(target=answer)
        thread.start()
        done = place.run({"sockets": [str(place.folder / "none"), path]})
        thread.join(timeout=10)
    assert json.loads(done.stdout)["statistics"] == "# pxname,svname,\n"
    silent = place.run({"sockets": [str(place.folder / "none")]})
    assert silent.returncode == 1
    assert silent.stderr == f"no HAProxy answers ({place.folder}/none: No such file or directory)\n"


def test_nothing_is_written(place: Place) -> None:
    def state() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in place.folder.rglob("*") if path.name != "asked"}

    place.run(place.wants())
    before = state()
    place.run(place.wants(files=[str(place.folder / "none")], tails=[str(place.folder / "none")]))
    assert state() == before


def test_it_runs_with_the_oldest_supported_python(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 6))
    assert not re.search(r"capture_output|text=|removeprefix|removesuffix|:=|from __future__ import annotations", text)
    module: types.ModuleType = loaded(SCRIPT)
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))
    monkeypatch.setattr(sys, "stdout", printed)
    module.main()
    assert set(json.loads(printed.getvalue())) == {"now"}
