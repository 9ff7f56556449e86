# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox starts, stays unchanged, loses processes, stops, continues, and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import layout, process
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import COMPONENTS, CONTROL_PLANE
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY, SMALL_FLEET, Sandbox

NO_NODES: dict[str, t.Any] = {"pools": []}


@pytest.fixture(scope="module")
def empty(make_sandbox: t.Any) -> t.Any:
    """A sandbox without nodes, which runs again at the end of each test. The last test deletes it."""
    sandbox = make_sandbox(NO_NODES)
    yield sandbox
    sandbox.close()


def client_of(sandbox: Sandbox) -> Client:
    return connect({"kubeconfig": sandbox.kubeconfig})


def running_from(folder: pathlib.Path) -> list[str]:
    """Command lines of all processes that contain the folder."""
    lines = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line:
                lines.append(line)
    return lines


def names_and_times(sandbox: Sandbox) -> dict[pathlib.Path, int]:
    """Files that only our runs write, with their times. Those of etcd, the logs and the agent's status change continuously."""
    others = {sandbox.audit_log.name, "agent-status.json", "agent-status.json.new"}
    paths = [
        path
        for path in sandbox.state_dir.rglob("*")
        if path.name not in others and not {"etcd", "logs"} & set(path.parts) and path.is_file()
    ]
    return {path: path.stat().st_mtime_ns for path in paths}


def test_a_second_start_changes_nothing(sandbox: Sandbox) -> None:
    before = names_and_times(sandbox)
    run = sandbox.start()
    assert (run.changed, run.actions, run.died) == (False, [], [])
    assert names_and_times(sandbox) == before


def test_a_stopped_sandbox_keeps_everything_and_can_be_started_again(empty: Sandbox) -> None:
    kubeconfig = pathlib.Path(empty.kubeconfig).read_bytes()
    maps = client_of(empty).resource("v1", "ConfigMap")
    client_of(empty).create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kept", "namespace": "default"},
            "data": {"a": "1"},
        },
        maps,
    )
    assert empty.stop().changed
    assert running_from(empty.state_dir) == []
    assert not empty.stop().changed
    run = empty.start()
    assert run.changed
    assert run.died == []
    assert pathlib.Path(empty.kubeconfig).read_bytes() == kubeconfig
    assert client_of(empty).get(maps, "kept", "default")["data"] == {"a": "1"}


def test_a_process_that_died_is_reported_and_restarted(empty: Sandbox) -> None:
    uid = client_of(empty).get(client_of(empty).resource("v1", "Namespace"), "kube-system")["metadata"]["uid"]
    for component in COMPONENTS:
        killed = empty.kill(component)
        while process.identity(killed):
            time.sleep(0.01)
        run = empty.start()
        assert run.changed
        assert [row["component"] for row in run.died] == [component]
        assert run.died[0]["log_tail"]
        assert f"restarted {component}: it had died" in run.actions
        assert not empty.start().changed
    assert client_of(empty).get(client_of(empty).resource("v1", "Namespace"), "kube-system")["metadata"]["uid"] == uid


def test_a_process_that_ends_at_once_fails_the_run_with_its_output(empty: Sandbox, tmp_path: pathlib.Path) -> None:
    faulty = tmp_path / "kwok"
    faulty.write_text("#!/bin/sh\necho this is not kwok\nexit 1\n", encoding="utf-8")
    faulty.chmod(0o755)
    original = empty.programs
    empty.stop()
    empty.programs = dataclasses.replace(
        original, programs={**original.programs, "kwok": str(faulty)}, digests={**original.digests, "kwok": "other"}
    )
    with pytest.raises(HwaccelError, match=r"kwok ended(.|\n)*this is not kwok"):
        empty.start(NO_NODES)
    empty.programs = original
    run = empty.start()
    assert [row["component"] for row in run.died] == ["kwok"]
    assert not empty.start().changed


def test_another_version_restarts_the_component(empty: Sandbox) -> None:
    original = empty.programs
    empty.programs = dataclasses.replace(original, digests={**original.digests, "kube-scheduler": "another version"})
    assert empty.start().actions == ["restarted kube-scheduler: its program or configuration has changed"]
    empty.programs = original
    empty.start()


def test_a_process_without_a_pid_file_is_detected_and_replaced(empty: Sandbox) -> None:
    lost = process.known(empty.layout.pid_file("etcd"))
    assert lost is not None
    empty.layout.pid_file("etcd").unlink()
    assert "started etcd" in empty.start().actions
    assert not process.running(lost)
    assert len([line for line in running_from(empty.state_dir) if "/bin/etcd " in line]) == 1


def test_a_port_that_another_program_uses_is_replaced(empty: Sandbox) -> None:
    empty.stop()
    port = layout.read_json(empty.layout.record)["ports"]["kube-apiserver"]
    with socket.socket() as other:
        # Connections of the stopped server in TIME_WAIT must not prevent the bind.
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        run = empty.start()
        assert f"moved kube-apiserver off port {port}, which another program has taken" in run.actions
        assert client_of(empty).server_version()["major"] == "1"


def test_two_sandboxes_are_independent(empty: Sandbox, sandbox: Sandbox) -> None:
    namespaces = [
        client_of(one).get(client_of(one).resource("v1", "Namespace"), "kube-system")["metadata"]["uid"]
        for one in (sandbox, empty)
    ]
    assert len(set(namespaces)) == 2
    ports = [set(layout.read_json(one.layout.record)["ports"].values()) for one in (sandbox, empty)]
    assert not ports[0] & ports[1]


def test_absent_leaves_nothing_also_without_pid_files_and_does_not_affect_another_sandbox(
    empty: Sandbox, sandbox: Sandbox
) -> None:
    empty.layout.pid_file("kwok").unlink()
    empty.close()
    assert running_from(empty.state_dir) == []
    assert not empty.state_dir.exists()
    assert not sandbox.start().changed
    empty.close()


def test_a_folder_of_another_program_is_not_deleted(make_sandbox: t.Any) -> None:
    sandbox = make_sandbox(start=False)
    sandbox.state_dir.mkdir()
    (sandbox.state_dir / "thesis.tex").touch()
    with pytest.raises(HwaccelError, match="not a sandbox and is not deleted"):
        sandbox.close()
    (sandbox.state_dir / "thesis.tex").unlink()
    sandbox.close()


_START = """
import pathlib, sys
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import components, layout, sandbox
supervisor = sandbox.supervisor_for(
    layout.layout("x", sys.argv[1]), components.in_folder(pathlib.Path(sys.argv[2]), "folder"), pathlib.Path(sys.argv[3]), sys.executable, sandbox.Run()
)
for _line in sandbox.start(supervisor, sandbox.FleetAsk({"pools": [{"name": "a", "count": 2}]}), 240):
    pass
"""


@pytest.mark.parametrize("after", ["pki/admin.crt", "sandbox.json", "run/etcd.pid", "run/kube-scheduler.pid"])
def test_the_next_run_completes_a_killed_one(make_sandbox: t.Any, after: str) -> None:
    """after: the file after whose creation the run is killed."""
    sandbox = make_sandbox(start=False)
    arguments = [str(sandbox.state_dir), sandbox.programs.folder, str(REPOSITORY / "roles" / "sandbox" / "files")]
    with subprocess.Popen([sys.executable, "-c", _START, *arguments], start_new_session=True) as run:
        while not (sandbox.state_dir / after).exists():
            assert run.poll() is None
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGKILL)
    sandbox.start(SMALL_FLEET)
    assert not sandbox.start(SMALL_FLEET).changed
    assert len(running_from(sandbox.state_dir)) == len(COMPONENTS)
    nodes = client_of(sandbox).list(client_of(sandbox).resource("v1", "Node")).items
    assert sorted(node["metadata"]["name"] for node in nodes) == ["cpu-0", "gpu-0", "gpu-1"]
    sandbox.close()


def test_all_components_are_separate_processes(sandbox: Sandbox) -> None:
    pids = {process.known(sandbox.layout.pid_file(name)).pid for name in COMPONENTS}  # type: ignore[union-attr]
    assert len(pids) == len(COMPONENTS) == len(CONTROL_PLANE) + 1
