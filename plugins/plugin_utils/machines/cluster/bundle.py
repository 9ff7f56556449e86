# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the machines of a cluster need from elsewhere, for networks without a way out. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import io
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import table

Data = c.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Need:
    """kind: program, archive, image or package. name: of it; of an image its reference. source: address, path on the controller, or where it is from.

    architecture: empty for all. checksum: as it is set, empty if none is. bytes: None if unknown. note: what is not known of it.
    """

    kind: str
    name: str
    source: str = ""
    architecture: str = ""
    checksum: str = ""
    bytes: int | None = None
    note: str = ""


def files(settings: Data, sizes: c.Mapping[str, int]) -> list[Need]:
    """Programs and archives. sizes: in bytes, by source, of files that are known."""
    return [
        *(_file("program", str(one.get("name") or _name(one)), one, sizes) for one in settings["programs"]),
        *(
            _file("archive", _name(one), one, sizes)
            for kind in ("images", "cni_plugins")
            for one in settings.get(kind, [])
        ),
    ]


def lines(found: c.Sequence[Need]) -> list[str]:
    """A table, and the sum of the sizes that are known."""
    rows = [
        (one.kind, one.name, one.architecture or "any", _size(one.bytes), one.checksum or one.note, one.source)
        for one in found
    ]
    known = [one.bytes for one in found if one.bytes is not None]
    files = sum(one.kind in ("program", "archive") for one in found)
    return [
        *table(("what", "name", "architecture", "size", "checksum", "from"), rows),
        "",
        f"{len(found)} in all. Sizes of {len(known)} of {files} files are known: {_size(sum(known))}.",
    ]


def _name(one: Data) -> str:
    return str(one["source"]).rpartition("/")[2]


def _file(kind: str, name: str, one: Data, sizes: c.Mapping[str, int]) -> Need:
    source = str(one["source"])
    return Need(kind, name, source, str(one.get("architecture") or ""), str(one["checksum"]), sizes.get(source))


def of_manifests(role: str, definition: t.Any) -> list[str]:
    """Images of all containers of a network plugin, wherever they are in its objects, in their order. Raises HwaccelError if they cannot be read."""
    if isinstance(definition, str):
        try:
            # As in _manifests.parse_manifests.
            definition = list(yaml.safe_load_all(io.StringIO(definition)))
        except yaml.YAMLError:
            raise HwaccelError(
                "the manifests of the network plugin are no YAML",
                f"{role}_network",
                "",
                "correct them, as `kubectl apply --dry-run=client` reads them",
            ) from None
        return [image for one in definition for image in of_manifests(role, one)] if definition else []
    if isinstance(definition, c.Mapping):
        own = [definition["image"]] if isinstance(definition.get("image"), str) and "name" in definition else []
        return own + [
            image for value in definition.values() if not isinstance(value, str) for image in of_manifests(role, value)
        ]
    if isinstance(definition, (list, tuple)):
        # Texts in a list are manifests only at the top, where objects are.
        return [
            image for one in definition if not isinstance(one, str) or "\n" in one for image in of_manifests(role, one)
        ]
    return []


def _size(size: int | None) -> str:
    """In the units of IEC 80000-13."""
    if size is None:
        return "unknown"
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024  # type: ignore[assignment]
    return f"{size:.1f} GiB"
