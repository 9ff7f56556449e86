# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a sandbox in a folder, verified by the folder's checksums."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import file_digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import CONTROL_PLANE

#: One binary with all components, which is selected by the name that it is started with (see roles/sandbox/files/control_plane).
ALL_IN_ONE = "controlplane"
MANIFEST = "SHA256SUMS"


@dataclasses.dataclass(frozen=True)
class Components:
    """The programs, their source, and whether their checksums were verified."""

    source: str
    folder: str
    verified: bool
    programs: dict[str, str]
    digests: dict[str, str]

    def paths(self) -> dict[str, pathlib.Path]:
        return {name: pathlib.Path(path) for name, path in self.programs.items()}


def in_folder(folder: pathlib.Path, source: str) -> Components:
    """The components in a folder. Raises ManyFaults with all that are missing, not executable or altered."""
    if not folder.is_dir():
        raise HwaccelError(
            "the folder of the components does not exist", str(folder), next_step="correct the path, or leave it unset"
        )
    faults = []
    programs: dict[str, str] = {}
    digests: dict[str, str] = {}
    of_file: dict[pathlib.Path, str] = {}
    checksums = read_manifest(folder / MANIFEST)
    for name in CONTROL_PLANE:
        path = next((one for one in (folder / name, folder / ALL_IN_ONE) if one.is_file()), None)
        if path is None:
            faults.append(
                Fault(
                    f"{name} is missing",
                    str(folder),
                    next_step=f"add the program {name}, or {ALL_IN_ONE} for all programs",
                )
            )
            continue
        path = path.resolve()
        if not os.access(path, os.X_OK):
            faults.append(Fault(f"{path.name} is not executable", str(path), next_step=f"chmod +x {path}"))
        if path not in of_file:
            of_file[path] = file_digest(path)
            fault = _compare(path, of_file[path], checksums, folder)
            faults += [fault] if fault else []
        programs[name], digests[name] = str(path), of_file[path]
    if faults:
        raise ManyFaults(faults)
    return Components(source, str(folder), bool(checksums), programs, digests)


def in_cache(folder: pathlib.Path) -> Components | None:
    """The components in an entry of the cache; None if it is incomplete or altered, and must be recreated."""
    try:
        found = in_folder(folder, "cache")
    except HwaccelError:
        return None
    return found if found.verified else None


def read_manifest(path: pathlib.Path) -> dict[str, str]:
    """{file: digest} of a manifest in sha256sum's format, {} if there is none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#"))
    return {parts[1].lstrip("*").removeprefix("./"): parts[0].lower() for parts in pairs if len(parts) == 2}


def write_manifest(folder: pathlib.Path, names: t.Iterable[str]) -> None:
    lines = [f"{file_digest(folder / name)}  {name}\n" for name in sorted(names)]
    (folder / MANIFEST).write_text("".join(lines), encoding="utf-8")


def _compare(path: pathlib.Path, digest: str, checksums: dict[str, str], folder: pathlib.Path) -> Fault | None:
    if not checksums:
        return None
    expected = checksums.get(path.name)
    if expected == digest:
        return None
    why = f"its SHA-256 is {digest}, {MANIFEST} says {expected}" if expected else f"{MANIFEST} does not list it"
    return Fault(
        f"{path.name} does not match the folder's checksums",
        str(folder),
        why,
        "download the folder again: it was altered or is incomplete",
    )
