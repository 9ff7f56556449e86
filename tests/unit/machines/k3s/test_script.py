# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""k3s.py on a machine: how it waits for K3s, and what it removes. The rig runs it on machines."""

from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_k3s" / "files" / "k3s.py"
ACTIVE = {"ActiveState": "active", "SubState": "running", "NRestarts": "0", "Result": "success"}
STARTING = {**ACTIVE, "ActiveState": "activating", "SubState": "start"}


@pytest.fixture
def k3s(tmp_path: pathlib.Path) -> t.Any:
    module = loaded(PATH)
    module.ROOT, module.PAUSE = str(tmp_path), 0
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text("", encoding="utf-8")
    return module


def showing(k3s: t.Any, *states: dict[str, str]) -> None:
    """The last one stays."""
    each = itertools.chain(states, itertools.repeat(states[-1]))
    k3s.show = lambda _unit: next(each)


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ([STARTING, STARTING, ACTIVE], ""),
        # The job that is queued has not stopped the process of before.
        ([{**ACTIVE, "Job": "77"}, {**STARTING, "Job": "77"}, ACTIVE], ""),
        # The first starts may fail, while another server joins.
        ([STARTING, {**STARTING, "NRestarts": "2"}, {**ACTIVE, "NRestarts": "2"}], ""),
        ([STARTING, {**STARTING, "NRestarts": "3", "Result": "exit-code"}], "k3s has ended 3 times (exit-code)\n"),
        ([{**STARTING, "ActiveState": "failed", "Result": "timeout"}], "k3s has ended 1 times (timeout)\n"),
    ],
)
def test_k3s_is_waited_for_and_given_up_once_it_has_ended_often(
    k3s: t.Any, capsys: pytest.CaptureFixture[str], states: list[dict[str, str]], told: str
) -> None:
    showing(k3s, *states)
    assert (k3s.main("await", "k3s", "600"), capsys.readouterr().out) == (int(bool(told)), told)


def test_an_agent_that_does_not_reach_its_server_is_given_up_after_a_time(k3s: t.Any, capsys: t.Any) -> None:
    showing(k3s, STARTING)
    assert k3s.main("await", "k3s-agent", "0") == 1
    assert capsys.readouterr().out == "k3s-agent is not ready after 0 s (activating, start)\n"


def placed(root: str, *paths: str) -> None:
    for path in paths:
        pathlib.Path(root + path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(root + path).write_text("x", encoding="utf-8")


def test_everything_that_k3s_has_made_goes_and_nothing_else(k3s: t.Any, capsys: t.Any) -> None:
    mine = (
        "/etc/rancher/k3s/config.yaml",
        "/etc/rancher/k3s/config.yaml.d/50-hwaccel-gpu.yaml",
        "/var/lib/rancher/other",
    )
    made = (
        "/etc/rancher/k3s/token",
        "/var/lib/rancher/k3s/server/db/state.db",
        "/run/k3s/containerd/x",
        "/var/lib/kubelet/y",
    )
    placed(k3s.ROOT, *mine, *made)
    k3s.family = set
    assert k3s.main("remove") == 0
    assert [path for path in made if pathlib.Path(k3s.ROOT + path).exists()] == []
    assert [path for path in mine if not pathlib.Path(k3s.ROOT + path).exists()] == []
    assert "remove /var/lib/rancher/k3s\n" in capsys.readouterr().out
    assert k3s.main("remove") == 0 and capsys.readouterr().out == ""


def test_a_reset_keeps_archives_of_images(k3s: t.Any) -> None:
    """They are copied once, and what was copied is known by a record elsewhere."""
    archive, data = "/var/lib/rancher/k3s/agent/images/a.tar", "/var/lib/rancher/k3s/agent/client-kubelet.crt"
    placed(k3s.ROOT, archive, data)
    k3s.family = set
    k3s.main("reset")
    assert pathlib.Path(k3s.ROOT + archive).exists() and not pathlib.Path(k3s.ROOT + data).exists()
    placed(k3s.ROOT, "/var/lib/kubelet/of-another")
    k3s.main("remove", "/var/lib/kubelet")
    assert not pathlib.Path(k3s.ROOT + "/var/lib/rancher/k3s").exists()
    assert pathlib.Path(k3s.ROOT + "/var/lib/kubelet/of-another").exists()


def test_mounts_are_found_where_a_link_leads(k3s: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """This reproduces a defect: the files of a mounted volume would have been removed."""
    target = pathlib.Path(k3s.ROOT + "/data/kubelet")
    (target / "pods/1/volumes/pv").mkdir(parents=True)
    pathlib.Path(k3s.ROOT + "/var/lib").mkdir(parents=True)
    pathlib.Path(k3s.ROOT + "/var/lib/kubelet").symlink_to(target)
    text = "/dev/sdb /data/kubelet/pods/1/volumes/pv ext4 rw 0 0\n"
    pathlib.Path(k3s.ROOT + "/proc/self/mounts").write_text(text, encoding="utf-8")
    assert k3s.mounted() == ["/data/kubelet/pods/1/volumes/pv"]
    monkeypatch.setattr(k3s.subprocess, "call", lambda *_argv, **_more: 1)
    with pytest.raises(OSError, match="still mounted"):
        k3s.unmount()


def test_a_mount_that_went_with_another_is_no_failure(k3s: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """/run/netns is shared where `ip netns` was used, so that each point in it is listed twice."""
    path = pathlib.Path(k3s.ROOT + "/proc/self/mounts")
    path.write_text("nsfs /run/netns/cni-1 nsfs rw 0 0\n" * 2, encoding="utf-8")
    called: list[list[str]] = []

    def umount(argv: list[str], **_more: t.Any) -> int:
        called.append(argv)
        path.write_text("", encoding="utf-8")
        return 0

    monkeypatch.setattr(k3s.subprocess, "call", umount)
    k3s.unmount()
    assert called == [["umount", "/run/netns/cni-1"]]


def test_nothing_is_removed_below_what_stays_mounted(k3s: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a file system of others: its files would be gone."""
    placed(k3s.ROOT, "/var/lib/kubelet/pods/1/volumes/data")
    text = "server:/export /var/lib/kubelet/pods/1/volumes nfs rw 0 0\n"
    pathlib.Path(k3s.ROOT + "/proc/self/mounts").write_text(text, encoding="utf-8")
    called: list[list[str]] = []
    monkeypatch.setattr(k3s.subprocess, "call", lambda argv, **_more: called.append(argv) or 1)
    k3s.family = set
    with pytest.raises(OSError, match="still mounted: /var/lib/kubelet/pods/1/volumes"):
        k3s.main("remove")
    assert called == [
        ["umount", "/var/lib/kubelet/pods/1/volumes"],
        ["umount", "--lazy", "/var/lib/kubelet/pods/1/volumes"],
    ]
    assert pathlib.Path(k3s.ROOT + "/var/lib/kubelet/pods/1/volumes/data").exists()


def test_only_shims_of_k3s_are_ended_with_what_they_have_started(k3s: t.Any) -> None:
    """A shim is told by its socket: those of Docker, or of another containerd, stay."""
    k3s.processes = lambda: iter(
        [
            (
                10,
                1,
                b"/var/lib/rancher/k3s/data/x/bin/containerd-shim-runc-v2\0-address\0/run/k3s/containerd/containerd.sock\0",
            ),
            (11, 10, b"nginx\0"),
            (12, 11, b"worker\0"),
            (20, 1, b"/usr/bin/containerd-shim-runc-v2\0-address\0/run/containerd/containerd.sock\0"),
            (21, 20, b"mine\0"),
            (30, 1, b"vi\0/run/k3s/containerd/containerd.sock\0"),
        ]
    )
    assert k3s.family() == {10, 11, 12}


@pytest.mark.parametrize(
    ("configuration", "removed"), [("docker: true\nnode-name: a\n", ["c1", "c2"]), ("node-name: a\n", []), ("", [])]
)
def test_containers_of_pods_go_where_docker_runs_them_and_no_others(
    k3s: t.Any, monkeypatch: pytest.MonkeyPatch, configuration: str, removed: list[str]
) -> None:
    asked, called = [], []
    monkeypatch.setattr(subprocess, "check_output", lambda argv, **_more: asked.append(argv) or b"c1\nc2\n")
    monkeypatch.setattr(subprocess, "check_call", lambda argv, **_more: called.append(argv))
    if configuration:
        placed(k3s.ROOT, k3s.CONFIGURATION)
        pathlib.Path(k3s.ROOT + k3s.CONFIGURATION).write_text(configuration, encoding="utf-8")
    k3s.family = set
    assert k3s.main("stop") == 0
    assert called == ([["docker", "rm", "--force", "--volumes", *removed]] if removed else [])
    assert all("--filter=label=io.kubernetes.docker.type" in argv for argv in asked) and bool(asked) == bool(removed)


def test_processes_are_read_as_the_kernel_shows_them() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", "a b"], stdin=subprocess.PIPE) as child:
        found = {number: (parent, command) for number, parent, command in loaded(PATH).processes()}
        parent, command = found[child.pid]
        child.communicate(b"\n", timeout=30)
    assert found[parent] and b"\0a b\0" in command
