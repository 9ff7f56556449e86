# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds from Go modules with a stand-in for Go: toolchain, steps, cache, resolver."""

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
    if [ -n "$GO_FAILS" ]; then echo "main.go:1: syntax error"; exit 1; fi
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


def resolved(request: resolver.ComponentRequest) -> tuple[list[str], Components]:
    lines = []
    steps = resolver.resolve(request)
    while True:
        try:
            lines.append(next(steps))
        except StopIteration as found:
            return [line for line in lines if line], found.value


def request_of(
    sources: Sources | None, environment: dict[str, str], cache: pathlib.Path, **more: t.Any
) -> resolver.ComponentRequest:
    return resolver.ComponentRequest(
        cache,
        sources=sources.folder if sources else None,
        environment=environment,
        **({"ways": ("cache", "build")} | more),
    )


def test_versions_are_read_from_the_sources() -> None:
    real = Sources(CONTROL_PLANE_SOURCES)
    assert real.go_line() == (1, 26, 0)
    assert real.kubernetes() == "v1.36.4"
    assert 150 < real.modules() < 400
    assert "-X k8s.io/component-base/version.gitMinor=36" in real.flags()[1]


def test_components_are_built_once_and_then_cached(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    lines, built = resolved(request_of(sources, environment, tmp_path / "cache"))
    assert built.source == "build"
    assert built.verified
    assert any(line.startswith("building Kubernetes v1.36.4") for line in lines)
    assert (tmp_path / "cache" / "building").is_dir()
    assert list((tmp_path / "cache" / "building").iterdir()) == []
    calls = (tmp_path / "calls").read_text(encoding="utf-8")
    lines, cached = resolved(request_of(sources, environment, tmp_path / "cache"))
    assert (cached.source, cached.folder, lines) == ("cache", built.folder, [])
    assert (tmp_path / "calls").read_text(encoding="utf-8") == calls


def test_a_toolchain_of_the_collection_writes_nothing_to_the_home_folder(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    """Go writes telemetry to the configuration folder, and reads the user's settings there."""
    request = Build(sources, tmp_path / "cache", environment | {"HOME": "/home/me"})
    job = request._job("compile", ("go", "build"), Go("go", "1.26.0", own=True))
    assert pathlib.Path(job.environment["XDG_CONFIG_HOME"]).is_relative_to(tmp_path / "cache")
    assert job.environment["GOENV"] == "/home/me/.config/go/env"
    assert (
        request._job("compile", ("go", "build"), Go("go", "1.26.0", own=False))
        .environment.keys()
        .isdisjoint({"XDG_CONFIG_HOME", "GOENV"})
    )


def test_changed_sources_need_another_build(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    _lines, first = resolved(request_of(sources, environment, tmp_path / "cache"))
    (sources.folder / "main.go").write_text("changed", encoding="utf-8")
    assert cached_build(tmp_path / "cache", sources) is None
    _lines, second = resolved(request_of(sources, environment, tmp_path / "cache"))
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
@pytest.mark.parametrize("damage", [lose_checksums, empty_checksums, damage_checksums, alter_program, lose_program])
def test_a_cache_entry_that_does_not_match_its_checksums_is_replaced(
    sources: Sources,
    environment: dict[str, str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: t.Callable[[pathlib.Path], None],
    ways: tuple[str, ...],
) -> None:
    request = request_of(sources, environment, tmp_path / "cache", ways=ways)
    _lines, first = resolved(request)
    damage(pathlib.Path(first.folder))
    assert resolver.look(request) is None
    deleted: list[pathlib.Path] = []
    delete = shutil.rmtree
    monkeypatch.setattr(
        shutil, "rmtree", lambda folder, **options: (deleted.append(pathlib.Path(folder)), delete(folder, **options))
    )
    _lines, second = resolved(request)
    assert second == first
    assert in_folder(pathlib.Path(second.folder), "build") == first
    assert not any(folder.is_relative_to(tmp_path / "cache" / "components") for folder in deleted), (
        "another run could have used an incomplete entry"
    )
    assert list((tmp_path / "cache" / "building").iterdir()) == []


def test_a_build_that_is_not_executable_is_reported_and_not_repeated(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    with pytest.raises(HwaccelError, match="the new components in the cache cannot be used"):
        resolved(request_of(sources, environment | {"GO_MODE": "644"}, tmp_path / "cache"))


def test_looking_up_components_changes_nothing(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    request = request_of(sources, environment, tmp_path / "cache")
    assert resolver.look(request) is None
    assert not (tmp_path / "cache").exists()
    _lines, built = resolved(request)
    assert resolver.look(request) == dataclasses.replace(built, source="cache")
    pathlib.Path(built.programs["etcd"]).write_text("altered", encoding="utf-8")
    assert resolver.look(request) is None
    assert pathlib.Path(built.folder).exists()


def test_too_little_disk_space_for_the_only_source_is_reported(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: types.SimpleNamespace(free=1024**3))
    request = dataclasses.replace(request_of(sources, environment, tmp_path / "cache"), ways=("build",))
    with pytest.raises(HwaccelError, match=r"not enough disk space .* 1\.0 GiB are free, 6 are needed"):
        resolver.look(request)
    assert resolver.look(dataclasses.replace(request, ways=("release", "build"), releases=None)) is None


def test_an_interrupted_build_is_resumed(sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    steps = Build(sources, tmp_path / "cache", environment).run()
    while not next(steps).startswith("building"):
        pass
    t.cast("t.Generator[str, None, None]", steps).close()
    _lines, built = resolved(request_of(sources, environment, tmp_path / "cache"))
    assert built.verified
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert sum(1 for call in calls if call.startswith("mod download")) == 1


def test_a_failed_build_is_reported_with_the_output_of_the_compiler(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    with pytest.raises(HwaccelError, match="syntax error"):
        resolved(request_of(sources, environment | {"GO_FAILS": "1"}, tmp_path / "cache"))
    _lines, built = resolved(request_of(sources, environment, tmp_path / "cache"))
    assert built.verified


def test_an_old_go_is_not_used(environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    found, _checked = find_go((1, 26, 0), environment, tmp_path / "own")
    assert found == Go(str(tmp_path / "path" / "go"), "1.26.8", own=False)
    own = tmp_path / "own" / "lib" / "python3.11" / "site-packages" / "go" / "bin"
    own.mkdir(parents=True)
    (own / "go").write_text("#!/bin/sh\necho go1.30.1\n", encoding="utf-8")
    (own / "go").chmod(0o755)
    found, _checked = find_go((1, 30), environment, tmp_path / "own")
    assert found == Go(str(own / "go"), "1.30.1", own=True)
    found, checked = find_go((1, 31), environment, tmp_path / "own")
    assert found is None
    assert f"{tmp_path / 'path' / 'go'} is 1.26.8" in checked


def test_a_configured_folder_is_the_only_source(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    with pytest.raises(HwaccelError, match="does not exist"):
        resolved(request_of(sources, environment, tmp_path / "cache", folder=str(tmp_path / "none")))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "controlplane").touch(mode=0o755)
    lines, found = resolved(
        request_of(sources, environment | {"HWACCEL_COMPONENTS": str(tmp_path / "mine")}, tmp_path / "cache")
    )
    assert (lines, found.source) == ([], "folder")


def test_without_components_all_sources_are_reported_with_reasons(
    environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
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
            request_of(None, environment, tmp_path / "cache", ways=("cache", "release", "build"), releases=unreachable)
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


def test_sources_can_be_limited_by_the_environment(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    with pytest.raises(HwaccelError, match="the source build is not allowed"):
        resolved(request_of(sources, environment | {"HWACCEL_COMPONENT_SOURCES": "cache"}, tmp_path / "cache"))
    with pytest.raises(HwaccelError, match="unknown sources"):
        resolved(request_of(sources, environment | {"HWACCEL_COMPONENT_SOURCES": "cache,post"}, tmp_path / "cache"))


def test_the_build_record_has_the_versions_of_its_inputs(
    sources: Sources, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    _lines, built = resolved(request_of(sources, environment, tmp_path / "cache"))
    record = json.loads((pathlib.Path(built.folder) / "build.json").read_text(encoding="utf-8"))
    assert record["go"] == "1.26.8"
    assert record["sources"] == sources.digest()
    assert record["kubernetes"] == "v1.36.4"
