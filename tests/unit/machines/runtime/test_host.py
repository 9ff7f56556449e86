# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""look.sh and its reader: what the script prints here is understood, and what it printed on machines of other kinds as well."""

from __future__ import annotations

import base64
import pathlib
import platform
import stat
import subprocess
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import version_of

LOOK = pathlib.Path(__file__).resolve().parents[4] / "roles" / "node_runtime" / "files" / "look.sh"


def look(*arguments: pathlib.Path, programs: pathlib.Path | None = None) -> str:
    path = f"{programs}:/usr/bin:/bin" if programs else "/usr/bin:/bin"
    done = subprocess.run(
        ["sh", LOOK, *arguments], env={"PATH": path}, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stderr == ""
    return done.stdout


def program(folder: pathlib.Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_files_are_read_with_mode_and_owner_byte_for_byte(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a file"
    file.write_bytes(b"one\n\ttwo \xff\xe9 \xc3\xa9\n\n")
    file.chmod(0o640)
    seen = host.read(look(tmp_path / "none", file, tmp_path / "nor this")).files[str(file)]
    assert seen.text.encode("utf-8", "surrogateescape") == file.read_bytes()
    assert (seen.mode, seen.uid, seen.gid) == (
        f"{stat.S_IMODE(file.stat().st_mode):04o}",
        file.stat().st_uid,
        file.stat().st_gid,
    )
    assert seen.changed_at == pytest.approx(file.stat().st_ctime, abs=1e-5)


def test_a_link_is_read_as_the_file_that_it_leads_to(tmp_path: pathlib.Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("x", encoding="utf-8")
    file.chmod(0o600)
    link.symlink_to(file)
    seen = host.read(look(tmp_path / "none", link)).files[str(link)]
    assert (seen.text, seen.mode) == ("x", "0600")


def test_what_the_main_file_imports_is_read_in_its_order(tmp_path: pathlib.Path) -> None:
    main = tmp_path / "config.toml"
    main.write_text(
        'version = 2\nimports = [ # "no.toml"\n  "z.toml", "sub/*.toml",\n]\n[x]\nimports = ["not/*.toml"]\n',
        encoding="utf-8",
    )
    (tmp_path / "sub").mkdir()
    for name in ("z.toml", "sub/b.toml", "sub/a.toml"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    seen = host.read(look(main))
    assert seen.imports == [str(tmp_path / name) for name in ("z.toml", "sub/a.toml", "sub/b.toml")]
    assert [seen.text(path) for path in seen.imports] == ["z.toml", "sub/a.toml", "sub/b.toml"]


def test_a_list_of_imports_on_one_line_ends_there(tmp_path: pathlib.Path) -> None:
    main = tmp_path / "config.toml"
    main.write_text('imports = ["a.toml"]\n[plugins."b"]\nc = ["d.toml"]\n', encoding="utf-8")
    assert host.read(look(main)).imports == [str(tmp_path / "a.toml")]


def test_programs_are_asked_with_status_output_and_errors_apart(tmp_path: pathlib.Path) -> None:
    main = tmp_path / "config.toml"
    main.write_text("", encoding="utf-8")
    program(
        tmp_path / "bin",
        "containerd",
        '[ "$1" = --version ] && echo containerd x 1.6.20~ds1 && exit; echo "out $*"; echo bad >&2; exit 3',
    )
    seen = host.read(look(main, programs=tmp_path / "bin"))
    assert seen.version("containerd") == (1, 6, 20)
    assert seen.commands["containerd_dump"] == host.Command(3, f"out -c {main} config dump", "bad")
    assert seen.version("crio") == ()


def test_services_tell_since_when_they_run(tmp_path: pathlib.Path) -> None:
    told = "LoadState=loaded ActiveState=active UnitFileState=enabled ExecMainStartTimestampMonotonic=5000000"
    program(tmp_path / "bin", "systemctl", f"printf '%s\\n' {told}")
    seen = host.read(look(tmp_path / "none", programs=tmp_path / "bin"))
    unit = seen.unit("containerd")
    assert (unit.loaded, unit.active, unit.enabled) == (True, True, True)
    assert unit.started_at == pytest.approx(float(seen.fact("booted_at")) + 5)
    assert not seen.unit("unheard-of").loaded


def test_facts_of_this_machine() -> None:
    seen = host.read(look(pathlib.Path("/nowhere")))
    assert seen.fact("kernel") == platform.release()
    assert seen.fact("machine") == platform.machine()
    assert int(seen.fact("disk_kib")) > 0
    assert seen.fact("cgroup")


def test_other_lines_are_passed_over_and_a_missing_end_is_not() -> None:
    fact = f"fact kernel {base64.b64encode(b'6.1').decode()}\r"
    assert host.read(f"Warning: sudo says hello\n{fact}\nend\r\n").fact("kernel") == "6.1"
    with pytest.raises(ValueError, match="before it had seen everything"):
        host.read(fact)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("containerd github.com/containerd/containerd/v2 2.4.2 ", (2, 4, 2)),
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", (1, 6, 20)),
        ("Docker version 20.10.24+dfsg1, build 297e128", (20, 10, 24)),
        ("k3s version v1.34.1+k3s1 (24fc436e)", (1, 34, 1)),
        ("6.8.0-134-generic", (6, 8, 0)),
        ("NVIDIA Container Toolkit CLI version 1.20.1", (1, 20, 1)),
        ("version unknown", ()),
        ("", ()),
    ],
)
def test_versions_as_programs_tell_them(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


def test_a_machine_that_is_busy_between_two_looks_makes_no_service_older_than_it_is(tmp_path: pathlib.Path) -> None:
    """One that has read its files would be taken for one that has not, and be restarted."""
    clock = 'real=$(PATH=/usr/bin:/bin date "$@"); echo "$real"'
    program(tmp_path / "bin", "date", f"{clock}; [ -e {tmp_path}/later ] || {{ touch {tmp_path}/later; sleep 3; }}")
    seen = host.read(look(tmp_path / "none", programs=tmp_path / "bin"))
    before, now, after = _up(), time.time(), _up()
    assert now - after - 1.5 < float(seen.fact("booted_at")) < now - before + 1.5


def _up() -> float:
    return float(pathlib.Path("/proc/uptime").read_text(encoding="ascii").split()[0])
