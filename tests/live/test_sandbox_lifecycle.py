# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox starts, stays as it is, loses processes, stops, goes on and leaves nothing."""

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
    """A sandbox without nodes that each test here leaves as it found it: running. The last one deletes it."""
    made = make_sandbox(NO_NODES)
    yield made
    made.close()


def client_of(made: Sandbox) -> Client:
    return connect({"kubeconfig": made.kubeconfig})


def running_from(folder: pathlib.Path) -> list[str]:
    """Command lines of all processes that have to do with the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line:
                found.append(line)
    return found


def names_and_times(made: Sandbox) -> dict[pathlib.Path, int]:
    """Of what a run of ours may write; etcd, the logs and the agent's status go on by themselves."""
    own = {made.audit_log.name, "agent-status.json", "agent-status.json.new"}
    paths = [
        path
        for path in made.state_dir.rglob("*")
        if path.name not in own and not {"etcd", "logs"} & set(path.parts) and path.is_file()
    ]
    return {path: path.stat().st_mtime_ns for path in paths}


def test_second_start_changes_nothing(sandbox: Sandbox) -> None:
    before = names_and_times(sandbox)
    run = sandbox.start()
    assert (run.changed, run.actions, run.died) == (False, [], [])
    assert names_and_times(sandbox) == before


def test_stopped_keeps_everything_and_goes_on(empty: Sandbox) -> None:
    made = empty
    kubeconfig = pathlib.Path(made.kubeconfig).read_bytes()
    maps = client_of(made).resource("v1", "ConfigMap")
    client_of(made).create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kept", "namespace": "default"},
            "data": {"a": "1"},
        },
        maps,
    )
    assert made.stop().changed
    assert running_from(made.state_dir) == []
    assert not made.stop().changed
    run = made.start()
    assert run.changed
    assert run.died == []
    assert pathlib.Path(made.kubeconfig).read_bytes() == kubeconfig
    assert client_of(made).get(maps, "kept", "default")["data"] == {"a": "1"}


def test_a_process_that_died_is_told_and_started_again(empty: Sandbox) -> None:
    made = empty
    uid = client_of(made).get(client_of(made).resource("v1", "Namespace"), "kube-system")["metadata"]["uid"]
    for component in COMPONENTS:
        killed = made.kill(component)
        while process.identity(killed):
            time.sleep(0.01)
        run = made.start()
        assert run.changed
        assert [row["component"] for row in run.died] == [component]
        assert run.died[0]["log_tail"]
        assert f"restarted {component}: it had died" in run.actions
        assert not made.start().changed
    assert client_of(made).get(client_of(made).resource("v1", "Namespace"), "kube-system")["metadata"]["uid"] == uid


def test_one_that_ends_at_once_fails_the_run_with_its_words(empty: Sandbox, tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "kwok"
    broken.write_text("#!/bin/sh\necho this is not kwok\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    made, whole = empty, empty.programs
    made.stop()
    made.programs = dataclasses.replace(
        whole, programs={**whole.programs, "kwok": str(broken)}, digests={**whole.digests, "kwok": "other"}
    )
    with pytest.raises(HwaccelError, match=r"kwok ended(.|\n)*this is not kwok"):
        made.start(NO_NODES)
    made.programs = whole
    run = made.start()
    assert [row["component"] for row in run.died] == ["kwok"]
    assert not made.start().changed


def test_another_version_restarts_the_component(empty: Sandbox) -> None:
    made, whole = empty, empty.programs
    made.programs = dataclasses.replace(whole, digests={**whole.digests, "kube-scheduler": "another version"})
    assert made.start().actions == ["restarted kube-scheduler: its program or configuration has changed"]
    made.programs = whole
    made.start()


def test_a_process_without_its_pid_file_is_found_and_replaced(empty: Sandbox) -> None:
    made = empty
    lost = process.known(made.layout.pid_file("etcd"))
    assert lost is not None
    made.layout.pid_file("etcd").unlink()
    assert "started etcd" in made.start().actions
    assert not process.running(lost)
    assert len([line for line in running_from(made.state_dir) if "/bin/etcd " in line]) == 1


def test_a_port_that_was_taken_meanwhile_is_left_to_its_new_owner(empty: Sandbox) -> None:
    made = empty
    made.stop()
    taken = layout.read_json(made.layout.record)["ports"]["kube-apiserver"]
    with socket.socket() as other:
        # What the stopped server left in TIME_WAIT is no obstacle to another.
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", taken))
        other.listen()
        run = made.start()
        assert f"moved kube-apiserver off port {taken}, which another program has taken" in run.actions
        assert client_of(made).server_version()["major"] == "1"


def test_two_sandboxes_do_not_know_each_other(empty: Sandbox, sandbox: Sandbox) -> None:
    namespaces = [
        client_of(made).get(client_of(made).resource("v1", "Namespace"), "kube-system")["metadata"]["uid"]
        for made in (sandbox, empty)
    ]
    assert len(set(namespaces)) == 2
    ports = [set(layout.read_json(made.layout.record)["ports"].values()) for made in (sandbox, empty)]
    assert not ports[0] & ports[1]


def test_absent_leaves_nothing_not_even_what_has_no_pid_file_and_keeps_another(
    empty: Sandbox, sandbox: Sandbox
) -> None:
    made = empty
    made.layout.pid_file("kwok").unlink()
    made.close()
    assert running_from(made.state_dir) == []
    assert not made.state_dir.exists()
    assert not sandbox.start().changed
    made.close()


def test_a_foreign_folder_is_not_deleted(make_sandbox: t.Any) -> None:
    made = make_sandbox(start=False)
    made.state_dir.mkdir()
    (made.state_dir / "thesis.tex").touch()
    with pytest.raises(HwaccelError, match="not a sandbox and is not deleted"):
        made.close()
    (made.state_dir / "thesis.tex").unlink()
    made.close()


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
def test_a_run_killed_in_its_middle_is_finished_by_the_next(make_sandbox: t.Any, after: str) -> None:
    """after: the file that it has come to."""
    made = make_sandbox(start=False)
    arguments = [str(made.state_dir), made.programs.folder, str(REPOSITORY / "roles" / "sandbox" / "files")]
    with subprocess.Popen([sys.executable, "-c", _START, *arguments], start_new_session=True) as run:
        while not (made.state_dir / after).exists():
            assert run.poll() is None
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGKILL)
    made.start(SMALL_FLEET)
    assert not made.start(SMALL_FLEET).changed
    assert len(running_from(made.state_dir)) == len(COMPONENTS)
    nodes = client_of(made).list(client_of(made).resource("v1", "Node")).items
    assert sorted(node["metadata"]["name"] for node in nodes) == ["cpu-0", "gpu-0", "gpu-1"]
    made.close()


def test_all_components_are_processes_of_their_own(sandbox: Sandbox) -> None:
    pids = {process.known(sandbox.layout.pid_file(name)).pid for name in COMPONENTS}  # type: ignore[union-attr]
    assert len(pids) == len(COMPONENTS) == len(CONTROL_PLANE) + 1
