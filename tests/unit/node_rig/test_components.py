# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a real node, with a stand-in for Go: keys, parts, checksums, and missing compilers."""

from __future__ import annotations

import os
import pathlib
import shutil

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.tests.node.rig import components
from ansible_collections.hwaccel.gpu.tests.node.rig.components import (
    SOURCES,
    Unavailable,
    ensure_components,
    parts,
    version_of,
)

FAKE_GO = """#!/bin/sh
if [ "$1" = env ]; then echo go1.26.8; exit 0; fi
echo "$CGO_ENABLED $*" >> "$CALLS"
if [ -n "$GO_FAILS" ]; then echo "main.go:1: syntax error"; exit 1; fi
target=$GOBIN
for word in "$@"; do
  case "$word" in */cmd/*|./*) name=${word%@*}; name=${name##*/}; echo "$name" > "$target/$name"; chmod 755 "$target/$name";; esac
done
"""

FAKE_GCC = """#!/bin/sh
echo "gcc $*" >> "$CALLS"
while [ "$1" != -o ]; do shift; done
echo library > "$2"; chmod 755 "$2"
"""


@pytest.fixture
def sources(tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(SOURCES, tmp_path / "sources"))


@pytest.fixture
def environment(tmp_path: pathlib.Path) -> dict[str, str]:
    folder = tmp_path / "path"
    folder.mkdir()
    for name, text in (("go", FAKE_GO), ("gcc", FAKE_GCC)):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


def calls(environment: dict[str, str]) -> list[str]:
    return pathlib.Path(environment["CALLS"]).read_text(encoding="utf-8").splitlines()


def changed(sources: pathlib.Path, text: str) -> pathlib.Path:
    """The sources with a changed stand-in."""
    (sources / "pause" / "main.go").write_text(f"package main // {text}\n", encoding="utf-8")
    return sources


def test_versions_are_those_of_go_mod() -> None:
    flags = " ".join(parts()[0].arguments)
    assert f"gitVersion={version_of(SOURCES, 'k8s.io/kubernetes')} " in flags
    assert f"version.version={version_of(SOURCES, 'sigs.k8s.io/node-feature-discovery')} " in flags
    assert "pathPrefix=/host-" in flags


def test_kubernetes_is_that_of_the_control_plane() -> None:
    control_plane = SOURCES.parents[2] / "roles" / "sandbox" / "files" / "control_plane"
    assert version_of(SOURCES, "k8s.io/kubernetes") == version_of(control_plane, "k8s.io/kubernetes")


def test_all_parts_are_built_once(sources: pathlib.Path, environment: dict[str, str]) -> None:
    messages: list[str] = []
    found = ensure_components(messages.append, environment, sources)
    assert found.program("kubelet").is_file()
    assert found.program("containerd").is_file()
    assert {line.split()[0] for line in calls(environment) if "nvidia-ctk@" in line} == {"1"}
    assert {line.split()[0] for line in calls(environment) if "kubelet" in line} == {"0"}
    assert {line.split()[0] for line in calls(environment) if "cmd/nvidia-device-plugin" in line} == {"1"}
    assert found.program("libnvidia-ml.so.1").read_text(encoding="utf-8") == "library\n"
    assert len(calls(environment)) == len(parts(sources))
    assert ensure_components(messages.append, environment, sources) == found
    assert len(calls(environment)) == len(parts(sources))
    assert not (found.folder.parents[2] / "building").exists()


def test_a_changed_stand_in_rebuilds_only_the_stand_ins(sources: pathlib.Path, environment: dict[str, str]) -> None:
    before = ensure_components(print, environment, sources)
    after = ensure_components(print, environment, changed(sources, "another"))
    assert after.key != before.key
    assert len(calls(environment)) == len(parts(sources)) + 1
    assert "./pause" in calls(environment)[-1]


def test_a_changed_library_rebuilds_only_the_library(sources: pathlib.Path, environment: dict[str, str]) -> None:
    ensure_components(print, environment, sources)
    (sources / "nvml" / "nvml.c").write_text("another", encoding="utf-8")
    ensure_components(print, environment, sources)
    assert len(calls(environment)) == len(parts(sources)) + 1
    assert "nvml/nvml.c" in calls(environment)[-1]


def test_builds_that_were_unused_for_a_week_are_deleted_by_the_next_build(
    sources: pathlib.Path, environment: dict[str, str]
) -> None:
    old, other = (ensure_components(print, environment, changed(sources, text)) for text in ("old", "other"))
    os.utime(old.folder.parent, (0, 0))
    new = ensure_components(print, environment, changed(sources, "new"))
    assert not old.folder.exists()
    assert other.program("kubelet").is_file()
    assert new.program("kubelet").is_file()


def test_an_altered_program_is_built_again(sources: pathlib.Path, environment: dict[str, str]) -> None:
    found = ensure_components(print, environment, sources)
    found.program("ctr").write_text("another", encoding="utf-8")
    again = ensure_components(print, environment, sources)
    assert again.program("ctr").read_text(encoding="utf-8") == "ctr\n"
    assert len(calls(environment)) == len(parts(sources)) + 1


def test_a_failed_build_shows_its_last_lines_and_keeps_its_log(
    sources: pathlib.Path, environment: dict[str, str]
) -> None:
    with pytest.raises(HwaccelError, match="syntax error") as raised:
        ensure_components(print, environment | {"GO_FAILS": "1"}, sources)
    assert pathlib.Path(raised.value.faults[0].where).read_text(encoding="utf-8") == "main.go:1: syntax error\n"
    assert ensure_components(print, environment, sources).program("kubelet").is_file()


@pytest.mark.parametrize(("missing", "message"), [("go", "needs Go 1.26"), ("gcc", "needs a C compiler")])
def test_missing_compilers_are_reported(
    sources: pathlib.Path,
    environment: dict[str, str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    message: str,
) -> None:
    go, checked = components.find_go((1, 26), environment, tmp_path)
    monkeypatch.setattr(
        components, "find_go", lambda *_arguments: (None, "none was found") if missing == "go" else (go, checked)
    )
    (tmp_path / "path" / missing).unlink()
    with pytest.raises(Unavailable, match=message):
        ensure_components(print, {**environment, "PATH": str(tmp_path / "path")}, sources)
