# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building from Go modules, with a stand-in for Go: toolchain, steps, cache, resolver."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import types
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import resolver
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import (
    Build,
    Go,
    Sources,
    cached_build,
    find_go,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import Components, in_folder

CONTROL_PLANE_SOURCES = pathlib.Path(__file__).parents[3] / "roles" / "sandbox" / "files" / "control_plane"
FAKE_GO = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$1 $2" in
  "env GOVERSION") echo "go$GO_IS";;
  "mod download") ;;
  "list -deps") printf 'a\\nb\\nc\\n';;
  "build -v")
    if [ -n "$GO_BREAKS" ]; then echo "main.go:1: syntax error"; exit 1; fi
    while [ "$1" != -o ]; do shift; done; printf 'binary' > "$2"; chmod "${GO_MODE:-755}" "$2";;
esac
"""


@pytest.fixture
def sources(tmp_path: pathlib.Path) -> Sources:
    folder = tmp_path / "control_plane"
    folder.mkdir()
    (folder / "go.mod").write_text(
        "module x\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.36.4\n\texample.org/y v0.1.0 // indirect\n)\n",
        encoding="utf-8",
    )
    for name in ("go.sum", "main.go"):
        (folder / name).write_text(name, encoding="utf-8")
    return Sources(folder)


@pytest.fixture
def environment(tmp_path: pathlib.Path) -> dict[str, str]:
    (tmp_path / "path").mkdir()
    go = tmp_path / "path" / "go"
    go.write_text(FAKE_GO, encoding="utf-8")
    go.chmod(0o755)
    return {"PATH": f"{go.parent}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls"), "GO_IS": "1.26.8"}


def resolved(wanted: resolver.ComponentRequest) -> tuple[list[str], Components]:
    lines = []
    steps = resolver.resolve(wanted)
    while True:
        try:
            lines.append(next(steps))
        except StopIteration as found:
            return [line for line in lines if line], found.value


def wanted(
    sources: Sources | None, environment: dict[str, str], cache: pathlib.Path, **more: t.Any
) -> resolver.ComponentRequest:
    return resolver.ComponentRequest(
        cache,
        sources=sources.folder if sources else None,
        environment=environment,
        **({"ways": ("cache", "build")} | more),
    )


def test_what_the_sources_say() -> None:
    real = Sources(CONTROL_PLANE_SOURCES)
    assert real.go_line() == (1, 26, 0)
    assert real.kubernetes() == "v1.36.4"
    assert 150 < real.modules() < 400
    assert "-X k8s.io/component-base/version.gitMinor=36" in real.flags()[1]


def test_built_once_then_from_the_cache(sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    lines, built = resolved(wanted(sources, environment, tmp_path / "cache"))
    assert built.source == "build"
    assert built.verified
    assert any(line.startswith("building Kubernetes v1.36.4") for line in lines)
    assert (tmp_path / "cache" / "building").is_dir()
    assert list((tmp_path / "cache" / "building").iterdir()) == []
    calls = (tmp_path / "calls").read_text(encoding="utf-8")
    lines, cached = resolved(wanted(sources, environment, tmp_path / "cache"))
    assert (cached.source, cached.folder, lines) == ("cache", built.folder, [])
    assert (tmp_path / "calls").read_text(encoding="utf-8") == calls


def test_a_toolchain_of_our_own_leaves_nothing_in_the_users_home(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    """Go counts its calls in the configuration folder, and reads the user's settings there."""
    asked = Build(sources, tmp_path / "cache", environment | {"HOME": "/home/me"})
    job = asked._job("compile", ("go", "build"), Go("go", "1.26.0", own=True))
    assert pathlib.Path(job.environment["XDG_CONFIG_HOME"]).is_relative_to(tmp_path / "cache")
    assert job.environment["GOENV"] == "/home/me/.config/go/env"
    assert (
        asked._job("compile", ("go", "build"), Go("go", "1.26.0", own=False))
        .environment.keys()
        .isdisjoint({"XDG_CONFIG_HOME", "GOENV"})
    )


def test_other_sources_are_another_build(sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    _lines, first = resolved(wanted(sources, environment, tmp_path / "cache"))
    (sources.folder / "main.go").write_text("changed", encoding="utf-8")
    assert cached_build(tmp_path / "cache", sources) is None
    _lines, second = resolved(wanted(sources, environment, tmp_path / "cache"))
    assert first.folder != second.folder


def lose_checksums(entry: pathlib.Path) -> None:
    (entry / "SHA256SUMS").unlink()


def empty_checksums(entry: pathlib.Path) -> None:
    (entry / "SHA256SUMS").write_text("", encoding="utf-8")


def damage_checksums(entry: pathlib.Path) -> None:
    (entry / "SHA256SUMS").write_bytes(b"\xff\x00")


def alter_program(entry: pathlib.Path) -> None:
    (entry / "controlplane").write_text("altered", encoding="utf-8")


def lose_program(entry: pathlib.Path) -> None:
    (entry / "controlplane").unlink()


@pytest.mark.parametrize("ways", [("cache", "build"), ("build",)])
@pytest.mark.parametrize("spoil", [lose_checksums, empty_checksums, damage_checksums, alter_program, lose_program])
def test_an_entry_of_the_cache_that_is_not_as_its_checksums_say_is_none(
    sources: Sources,
    environment: dict[str, str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: t.Callable[[pathlib.Path], None],
    ways: tuple[str, ...],
) -> None:
    asked = wanted(sources, environment, tmp_path / "cache", ways=ways)
    _lines, first = resolved(asked)
    spoil(pathlib.Path(first.folder))
    assert resolver.look(asked) is None
    deleted: list[pathlib.Path] = []
    delete = shutil.rmtree
    monkeypatch.setattr(
        shutil, "rmtree", lambda folder, **options: (deleted.append(pathlib.Path(folder)), delete(folder, **options))
    )
    _lines, second = resolved(asked)
    assert second == first
    assert in_folder(pathlib.Path(second.folder), "build") == first
    assert not any(folder.is_relative_to(tmp_path / "cache" / "components") for folder in deleted), (
        "others could have seen half of it"
    )
    assert list((tmp_path / "cache" / "building").iterdir()) == []


def test_a_build_that_cannot_run_is_told_and_not_built_again_and_again(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    with pytest.raises(HwaccelError, match="the new components in the cache cannot be used"):
        resolved(wanted(sources, environment | {"GO_MODE": "644"}, tmp_path / "cache"))


def test_a_look_finds_what_is_there_and_changes_nothing(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    asked = wanted(sources, environment, tmp_path / "cache")
    assert resolver.look(asked) is None
    assert not (tmp_path / "cache").exists()
    _lines, built = resolved(asked)
    assert resolver.look(asked) == dataclasses.replace(built, source="cache")
    pathlib.Path(built.programs["etcd"]).write_text("altered", encoding="utf-8")
    assert resolver.look(asked) is None
    assert pathlib.Path(built.folder).exists()


def test_a_look_sees_that_the_disk_is_too_small_for_the_only_way(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: types.SimpleNamespace(free=1024**3))
    asked = dataclasses.replace(wanted(sources, environment, tmp_path / "cache"), ways=("build",))
    with pytest.raises(HwaccelError, match=r"not enough disk space .* 1\.0 GiB are free, 6 are needed"):
        resolver.look(asked)
    assert resolver.look(dataclasses.replace(asked, ways=("release", "build"), releases=None)) is None


def test_a_build_that_was_cut_goes_on(sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    steps = Build(sources, tmp_path / "cache", environment).run()
    while not next(steps).startswith("building"):
        pass
    t.cast("t.Generator[str, None, None]", steps).close()
    _lines, built = resolved(wanted(sources, environment, tmp_path / "cache"))
    assert built.verified
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert sum(1 for call in calls if call.startswith("mod download")) == 1


def test_a_broken_build_is_told_with_the_compilers_words(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    with pytest.raises(HwaccelError, match="syntax error"):
        resolved(wanted(sources, environment | {"GO_BREAKS": "1"}, tmp_path / "cache"))
    _lines, built = resolved(wanted(sources, environment, tmp_path / "cache"))
    assert built.verified


def test_an_old_go_is_not_taken(environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    found, _seen = find_go((1, 26, 0), environment, tmp_path / "own")
    assert found == Go(str(tmp_path / "path" / "go"), "1.26.8", own=False)
    own = tmp_path / "own" / "lib" / "python3.11" / "site-packages" / "go" / "bin"
    own.mkdir(parents=True)
    (own / "go").write_text("#!/bin/sh\necho go1.30.1\n", encoding="utf-8")
    (own / "go").chmod(0o755)
    found, _seen = find_go((1, 30), environment, tmp_path / "own")
    assert found == Go(str(own / "go"), "1.30.1", own=True)
    found, seen = find_go((1, 31), environment, tmp_path / "own")
    assert found is None
    assert f"{tmp_path / 'path' / 'go'} is 1.26.8" in seen


def test_a_named_folder_is_the_only_way(sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    with pytest.raises(HwaccelError, match="does not exist"):
        resolved(wanted(sources, environment, tmp_path / "cache", folder=str(tmp_path / "none")))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "controlplane").touch(mode=0o755)
    lines, found = resolved(
        wanted(sources, environment | {"HWACCEL_COMPONENTS": str(tmp_path / "mine")}, tmp_path / "cache")
    )
    assert (lines, found.source) == ([], "folder")


def test_nothing_left_names_all_three_ways_and_why(environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    unreachable = [
        {
            "url": "http://127.0.0.1:1/all",
            "checksum": "sha256:" + "0" * 64,
            "files": dict.fromkeys(("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"), ""),
        }
    ]
    environment |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    with pytest.raises(HwaccelError) as caught:
        resolved(
            wanted(None, environment, tmp_path / "cache", ways=("cache", "release", "build"), releases=unreachable)
        )
    message = str(caught.value)
    for part in (
        "HWACCEL_COMPONENTS",
        "official release binaries",
        "Go modules",
        "http://127.0.0.1:1/all",
        "option sources",
        str(tmp_path / "cache" / "components"),
    ):
        assert part in message


def test_ways_can_be_limited_by_the_environment(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    with pytest.raises(HwaccelError, match="the source build is not allowed"):
        resolved(wanted(sources, environment | {"HWACCEL_COMPONENT_SOURCES": "cache"}, tmp_path / "cache"))
    with pytest.raises(HwaccelError, match="unknown sources"):
        resolved(wanted(sources, environment | {"HWACCEL_COMPONENT_SOURCES": "cache,post"}, tmp_path / "cache"))


def test_the_build_record_names_what_it_was_made_of(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    _lines, built = resolved(wanted(sources, environment, tmp_path / "cache"))
    record = json.loads((pathlib.Path(built.folder) / "build.json").read_text(encoding="utf-8"))
    assert record["go"] == "1.26.8"
    assert record["sources"] == sources.digest()
    assert record["kubernetes"] == "v1.36.4"
