# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""look.py and its reader: the reader understands the output of the script on this machine, and of programs on other machines."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import pathlib
import platform
import socket
import stat
import subprocess
import sys
import threading
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import request as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import CommandRequest, Host, Request, version_of
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import request as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import request as runtime

LOOK = pathlib.Path(__file__).resolve().parents[3] / "roles" / "machine" / "files" / "look.py"


def printed(request: Request, programs: pathlib.Path | None = None) -> str:
    path = f"{programs}:/usr/bin:/bin" if programs else "/usr/bin:/bin"
    argv = [sys.executable, "-W", "error", str(LOOK), request.as_text()]
    done = subprocess.run(argv, env={"PATH": path}, capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr == ""
    return done.stdout


def look(programs: pathlib.Path | None = None, **request: t.Any) -> Host:
    return host.read(printed(Request(**request), programs))


def program(folder: pathlib.Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_the_script_runs_on_the_oldest_python_of_a_machine() -> None:
    """JetPack 4 has 3.6."""
    tree = ast.parse(LOOK.read_text(encoding="utf-8"), feature_version=(3, 6))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported <= sys.stdlib_module_names | {"importlib.util"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    newer = {"capture_output", "text", "strict", "removeprefix", "removesuffix", "is_relative_to", "usedforsecurity"}
    used = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    assert not newer & (used | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)})


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: dns_pxe.request({"loaders": {}}),
        lambda: load_balancer.request({}),
        lambda: runtime.request({"containerd_config": "/etc/containerd/config.toml"}),
    ],
    ids=["dns_pxe", "load_balancer", "node_runtime"],
)
def test_requests_of_every_role_are_answered_completely(request_of: t.Callable[[], Request]) -> None:
    request = request_of()
    assert "{{" not in request.as_text() and "{%" not in request.as_text(), "Ansible would evaluate it as a template"
    observed = host.read(printed(request))
    assert observed.facts.keys() == {*request.facts, "os_release", "kernel", "selinux"}
    assert observed.fact("kernel") == platform.release()
    assert observed.os_release["ID"]
    assert abs(observed.now - time.time()) < 60


def test_files_are_read_with_mode_and_owner_byte_for_byte(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a file"
    file.write_bytes(b"one\n\ttwo \xff\xe9 \xc3\xa9 {{ x }}\r\n\n")
    file.chmod(0o640)
    observed = look(files=(str(file), str(tmp_path / "nor this")))
    assert list(observed.files) == [str(file)]
    observed_file = observed.files[str(file)]
    assert observed_file.text.encode("utf-8", "surrogateescape") == file.read_bytes()
    status = file.stat()
    assert (observed_file.mode, observed_file.uid, observed_file.gid) == (
        f"{stat.S_IMODE(status.st_mode):04o}",
        status.st_uid,
        status.st_gid,
    )
    assert observed_file.changed_at == pytest.approx(status.st_ctime, abs=1e-5)
    assert observed.folders == (str(tmp_path),)


def test_a_symbolic_link_is_read_as_its_target(tmp_path: pathlib.Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("x", encoding="utf-8")
    file.chmod(0o600)
    link.symlink_to(file)
    observed = look(patterns=(f"{tmp_path}/l*",)).files[str(link)]
    assert (observed.text, observed.mode) == ("x", "0600")


def test_imports_of_the_main_file_are_read_in_their_order(tmp_path: pathlib.Path) -> None:
    main = tmp_path / "config.toml"
    main.write_text(
        'version = 2\nimports = [ # "no.toml"\n  "z.toml", "sub/*.toml",\n]\n[x]\nimports = ["not/*.toml"]\n',
        encoding="utf-8",
    )
    (tmp_path / "sub").mkdir()
    for name in ("z.toml", "sub/b.toml", "sub/a.toml"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    observed = look(imports=(str(main),))
    assert observed.imports == tuple(str(tmp_path / name) for name in ("z.toml", "sub/a.toml", "sub/b.toml"))
    assert [observed.text(path) for path in observed.imports] == ["z.toml", "sub/a.toml", "sub/b.toml"]


def test_a_list_of_imports_can_be_on_one_line(tmp_path: pathlib.Path) -> None:
    main = tmp_path / "config.toml"
    main.write_text('imports = ["a.toml"]\n[plugins."b"]\nc = ["d.toml"]\n', encoding="utf-8")
    assert look(imports=(str(main),)).imports == (str(tmp_path / "a.toml"),)


def test_exit_status_output_and_errors_of_commands_are_separate(tmp_path: pathlib.Path) -> None:
    main = tmp_path / "config.toml"
    main.write_text("", encoding="utf-8")
    version = '[ "$1" = --version ] && echo containerd x 1.6.20~ds1 && exit'
    program(tmp_path / "bin", "containerd", f'{version}; echo "out $*"; echo bad >&2; exit 3')
    program(tmp_path / "bin", "systemctl", "echo inactive")
    requests = (
        CommandRequest("containerd", ("containerd", "--version")),
        CommandRequest("dump", ("containerd", "dump"), file=str(main)),
        CommandRequest("default", ("containerd", "default"), no_file=str(main)),
        CommandRequest("crio", ("crio-not-installed", "--version")),
        CommandRequest("live", ("containerd", "info"), active="docker"),
    )
    observed = look(tmp_path / "bin", commands=requests)
    assert observed.version("containerd") == (1, 6, 20)
    assert observed.commands.keys() == {"containerd", "dump"}
    assert observed.commands["dump"] == host.Command(3, "out dump\n", "bad\n")
    assert observed.version("crio") == ()


def test_units_have_the_times_of_their_start_and_last_reload(tmp_path: pathlib.Path) -> None:
    runs = "LoadState=loaded ActiveState=reloading UnitFileState=enabled ExecMainStartTimestampMonotonic=5000000"
    stopped = "LoadState=loaded ActiveState=failed UnitFileState=disabled ExecMainStartTimestampMonotonic=4000000"
    lines = f"printf '%s\\n' {runs} StateChangeTimestampMonotonic=7000000 LimitNOFILE=524288; echo; printf '%s\\n' {stopped}"
    program(tmp_path / "bin", "systemctl", f"{lines}; echo; echo LoadState=not-found")
    observed = look(tmp_path / "bin", units=("haproxy", "keepalived", "other"))
    unit = observed.unit("haproxy")
    assert (unit.loaded, unit.active, unit.enabled, unit.limit) == (True, True, True, 524288)
    assert unit.started_at == pytest.approx(observed.booted_at + 5)
    assert unit.changed_at == pytest.approx(observed.booted_at + 7)
    assert observed.unit("keepalived") == host.Unit(loaded=True)
    assert observed.unit("other") == observed.unit("unheard-of") == host.Unit()


def test_facts_are_read_by_their_names(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.write_text("one two\nthree\none\n", encoding="ascii")
    program(tmp_path / "bin", "hwaccel-program", "echo out; echo error >&2")
    requested = {
        "lines": ("lines", str(file), "^one"),
        "count": ("count", str(file), "one"),
        "count_of_none": ("count", f"{file}x", "one"),
        "exists": ("exists", str(file), f"{file}x"),
        "writable": ("writable", str(tmp_path), "/nowhere"),
        "paths": ("paths", f"{tmp_path}/f*"),
        "program": ("program", "not-installed", "hwaccel-program"),
        "no_program": ("program", "not-installed"),
        "programs": ("programs", "not-installed", "hwaccel-program"),
        "output": ("output", "hwaccel-program"),
        "libraries": ("libraries", "json", "not_installed"),
        "free": ("free", str(tmp_path / "not" / "yet")),
        "changed_at": ("changed_at", "hwaccel-program"),
        "never_changed": ("changed_at", f"{file}x"),
        "modified_at": ("modified_at", str(file)),
        "never_modified": ("modified_at", f"{file}x"),
        "pci": ("pci", "0xffff", "."),
        "modules": ("modules", "not-installed"),
    }
    facts = {name: text for name, text in look(tmp_path / "bin", facts=requested).facts.items() if name in requested}
    assert int(facts.pop("free")) > 0
    changed = (tmp_path / "bin" / "hwaccel-program").stat().st_ctime
    assert float(facts.pop("changed_at")) == pytest.approx(changed, abs=1e-5)
    assert float(facts.pop("modified_at")) == pytest.approx(file.stat().st_mtime, abs=1e-5)
    assert facts == {
        "lines": "one two\none",
        "count": "2",
        "count_of_none": "",
        "exists": str(file),
        "writable": str(tmp_path),
        "paths": str(file),
        "program": f"{tmp_path}/bin/hwaccel-program",
        "no_program": "",
        "programs": "hwaccel-program",
        "output": "out",
        "libraries": "json",
        "never_changed": "",
        "never_modified": "",
        "pci": "",
        "modules": "",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dpkg-query", "printf 'ii  one 1.2-3\\nrc  two 4\\n'"),
        # It is held.
        ("dpkg-query", "printf 'hi  one 1.2-3\\nun  two \\n'"),
        ("rpm", "printf 'one 1.2-3\\npackage two is not installed\\n'"),
    ],
)
def test_installed_packages_and_versions_are_read(name: str, text: str, tmp_path: pathlib.Path) -> None:
    program(tmp_path / "bin", name, text)
    requested = {"installed": ("installed", "one", "two"), "version": ("version", "one")}
    argv = [sys.executable, str(LOOK), Request(facts=requested).as_text()]
    script = LOOK.read_text(encoding="utf-8").replace(
        ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ""
    )
    argv[1:2] = ["-c", script]
    done = subprocess.run(
        argv, env={"PATH": str(tmp_path / "bin")}, capture_output=True, text=True, timeout=60, check=True
    )
    observed = host.read(done.stdout)
    assert (observed.fact("installed"), observed.fact("version")) == ("one", "1.2-3")


PACKAGED = "server { listen 80 default_server; }\n"


@pytest.mark.parametrize(
    ("text", "modified"), [(PACKAGED, []), (f"{PACKAGED}# ours\n", ["default"]), ("# nothing\n", [])]
)
def test_an_unmodified_site_of_a_package_is_not_an_existing_configuration(
    text: str, modified: list[str], tmp_path: pathlib.Path
) -> None:
    available, enabled = (tmp_path / name for name in ("sites-available", "sites-enabled"))
    for folder in (available, enabled):
        folder.mkdir()
    (available / "default").write_text(text, encoding="ascii")
    (enabled / "default").symlink_to("../sites-available/default")
    checksum = hashlib.md5(PACKAGED.encode(), usedforsecurity=False).hexdigest()
    program(tmp_path / "bin", "dpkg-query", f"echo ' {available}/default {checksum}'")
    observed = look(tmp_path / "bin", facts={"foreign": ("own", "nginx-common", "[.]dpkg-", f"{enabled}/*")})
    assert observed.fact("foreign").split() == [f"{enabled}/{name}" for name in modified]


def test_checksums_of_folders_without_excluded_paths(tmp_path: pathlib.Path) -> None:
    for name in ("a/one", "a/images/two", "a/b/three", "four"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="ascii")
    paths = (f"{tmp_path}/a", f"{tmp_path}/four", f"{tmp_path}/five")
    observed = look(checksums=paths, excluded=(f"{tmp_path}/a/images",))
    assert observed.checksums == {f"{tmp_path}/{name}": host.digest(name) for name in ("a/one", "a/b/three", "four")}


LISTENING = """
udp UNCONN 0 0 127.0.0.53%lo:53 0.0.0.0:* users:(("systemd-resolve",pid=41,fd=13))
udp UNCONN 0 0 0.0.0.0%virbr0:67 0.0.0.0:*
tcp LISTEN 0 128 [::]:8080 [::]:* users:(("java",pid=42,fd=6),("java",pid=43,fd=6))
tcp LISTEN 0 128 *:22 *:* users:(("sshd",pid=44,fd=3))
"""


def test_listeners_have_address_program_and_unit(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "bin"
    program(folder, "ss", f"cat <<'END'\n{LISTENING.strip()}\nEND")
    program(folder, "ps", "printf '   41 systemd-resolved.service\\n   42 app.service\\n   44 -\\n'")
    program(folder, "ip", "echo '2: eth0    inet 10.77.0.2/24 brd 10.77.0.255 scope global eth0'")
    program(folder, "systemctl", '[ "$2" = nftables ] && echo active || echo inactive')
    program(folder, "ufw", "echo Status: active")
    observed = look(folder, network=True)
    assert observed.addresses == {"10.77.0.2": "eth0"}
    assert observed.firewalls == ("nftables", "ufw")
    assert observed.listeners == (
        host.Listener("udp", "127.0.0.53", 53, "systemd-resolve", "lo", "systemd-resolved.service"),
        host.Listener("udp", "0.0.0.0", 67, "", "virbr0", ""),
        host.Listener("tcp", "::", 8080, "java", "", "app.service"),
        host.Listener("tcp", "*", 22, "sshd", "", ""),
    )
    assert look(folder).listeners == ()


def test_sockets_are_queried_and_processes_have_a_start_time(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen()

        def serve() -> None:
            connection, _peer = server.accept()
            with connection:
                connection.sendall(b"you said " + connection.recv(100))

        threading.Thread(target=serve, daemon=True).start()
        own = pathlib.Path("/proc/self/comm").read_text(encoding="ascii").strip()
        observed = look(sockets={path: ("show info",), f"{path}x": ("show info",)}, processes=(own,))
    assert observed.answers == {path: {"show info": "you said show info\n"}, f"{path}x": {"show info": ""}}
    assert observed.booted_at < observed.processes[str(os.getpid())] <= observed.now


def test_other_lines_are_skipped_and_a_missing_end_is_an_error() -> None:
    whole = printed(Request())
    assert host.read(f"Warning: sudo says hello\n{whole.strip()}\r\nbye\n").fact("kernel") == platform.release()
    for cut in ("", "sudo: a password is required\n", whole[:-20]):
        with pytest.raises(ValueError, match="ended before its output was complete"):
            host.read(cut)


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
def test_versions_are_read_from_the_output_of_programs(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


def test_times_of_files_and_services_use_the_same_clock() -> None:
    """Otherwise services that have loaded their files would seem older than these, and be restarted."""
    before, now, after = _uptime(), time.time(), _uptime()
    assert now - after - 1.5 < look().booted_at < now - before + 1.5
    body = LOOK.read_text(encoding="utf-8").partition("def booted_at")[2].partition("\ndef ")[0]
    assert "return time.time() - time.clock_gettime(CLOCK_BOOTTIME)\n" in body


def test_a_file_is_newer_than_a_service_only_beyond_clock_precision_and_not_in_the_future() -> None:
    observed = Host(files={"/f": host.File("/f", "", changed_at=100.0)}, now=200.0)
    assert observed.newer("/f", 99.0) and not observed.newer("/f", 99.96) and not observed.newer("/f", 101.0)
    assert not observed.newer("/g", 1.0) and not Host(files=observed.files, now=99.0).newer("/f", 1.0)


def test_braces_are_escaped_for_ansible_and_unchanged_on_the_machine() -> None:
    request = Request(files=("/{{ x }}/{{{",))
    assert json.loads(request.as_text())["files"] == ["/{{ x }}/{{{"]


def _uptime() -> float:
    return float(pathlib.Path("/proc/uptime").read_text(encoding="ascii").split()[0])
