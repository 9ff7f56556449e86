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

_REPOSITORY = "registry.k8s.io"
#: Images with the version of Kubernetes (cmd/kubeadm/app/images/images.go). Tags of the others change with patch releases, so only kubeadm itself knows them.
_VERSIONED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
_UNKNOWN = "tag: see `kubeadm config images list`"
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


def needs(settings: Data, network: t.Any, listed: c.Iterable[str], sizes: c.Mapping[str, int]) -> list[Need]:
    """All that is needed. settings: of the cluster. network: manifests of the network plugin, as `definition` of manifest_set takes them.

    listed: images that kubeadm has named, empty if it could not be asked. sizes: in bytes, by source, of files that are known. Images that archives may have
    are listed too: what an archive has is not read. Raises HwaccelError if the manifests cannot be read.
    """
    return [
        *(_file("program", str(one["name"]), one, sizes) for one in settings["programs"]),
        *(_file("archive", str(one["source"]).rpartition("/")[2], one, sizes) for one in settings["images"]),
        *_images(settings, network, list(listed)),
        *(Need("package", name, "repositories of the machines") for name in _packages(settings)),
    ]


def _packages(settings: Data) -> list[str]:
    return [*(f"{name} {settings['version']}" for name in settings["packages"]), *settings["runtime_packages"]]


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


def _file(kind: str, name: str, one: Data, sizes: c.Mapping[str, int]) -> Need:
    source = str(one["source"])
    return Need(kind, name, source, str(one.get("architecture") or ""), str(one["checksum"]), sizes.get(source))


def _images(settings: Data, network: t.Any, listed: list[str]) -> list[Need]:
    """Without those of phases that are skipped, and each of them once."""
    repository = settings["image_repository"] or _REPOSITORY
    others = ("etcd", "coredns/coredns" if repository == _REPOSITORY else "coredns")
    pause = str(settings["pause_image"]).replace(f"{_REPOSITORY}/", f"{repository}/", 1)
    named = listed or [
        *(f"{repository}/{name}:v{settings['version']}" for name in _VERSIONED),
        *(f"{repository}/{name}" for name in others),
    ]
    skipped = [*settings["skipped_phases"], *(["addon/kube-proxy"] if settings["proxy_mode"] == "none" else [])]
    without = [name for name in ("kube-proxy", "coredns") if {"addon", f"addon/{name}"} & set(skipped)]
    kept = [image for image in named if image.rpartition("/")[2].partition(":")[0] not in without]
    # kubeadm wants its own pause image on machines, whatever their runtime is set to.
    every = dict.fromkeys([*kept, pause, *_of_manifests(network)])
    return [
        Need("image", image, image.partition("/")[0], note="" if ":" in image.rpartition("/")[2] else _UNKNOWN)
        for image in every
    ]


def _of_manifests(definition: t.Any) -> list[str]:
    """Images of all containers, wherever they are in the objects, in their order."""
    if isinstance(definition, str):
        try:
            # As in _manifests.parse_manifests.
            definition = list(yaml.safe_load_all(io.StringIO(definition)))
        except yaml.YAMLError:
            raise HwaccelError(
                "the manifests of the network plugin are no YAML",
                "cluster_kubeadm_network",
                "",
                "correct them, as `kubectl apply --dry-run=client` reads them",
            ) from None
        return [image for one in definition for image in _of_manifests(one)] if definition else []
    if isinstance(definition, c.Mapping):
        own = [definition["image"]] if isinstance(definition.get("image"), str) and "name" in definition else []
        return own + [
            image for value in definition.values() if not isinstance(value, str) for image in _of_manifests(value)
        ]
    if isinstance(definition, (list, tuple)):
        # Texts in a list are manifests only at the top, where objects are.
        return [image for one in definition if not isinstance(one, str) or "\n" in one for image in _of_manifests(one)]
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
