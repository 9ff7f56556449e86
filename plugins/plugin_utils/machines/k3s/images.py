# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images that K3s needs, and archives that are to have them. Pure.

Which images a release has is in its k3s-images.txt. They have hosts and paths that change between releases (docs/adrs/ghcr-system-images.md of K3s), so that
an archive of another release does not do.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import posixpath
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import sources

Settings = c.Mapping[str, t.Any]
#: Names of images without mirrored-, and the component that needs them, empty for each node (scripts/airgap/image-list.txt, manifests/*.yaml of K3s).
_NEEDED_BY = {
    "pause": "",
    "coredns-coredns": "coredns",
    "klipper-helm": "traefik",
    "klipper-lb": "servicelb",
    "library-busybox": "local-storage",
    "library-traefik": "traefik",
    "local-path-provisioner": "local-storage",
    "metrics-server": "metrics-server",
}
#: What K3s imports; it only logs that it does not know another file (preloadFile in pkg/agent/containerd/containerd.go).
_IMPORTED = (".tar", ".tar.lz4", ".tar.bz2", ".tbz", ".tar.gz", ".tgz", ".tar.zst", ".tzst")


@dataclasses.dataclass(frozen=True)
class Image:
    """host: of its registry. path: without the host. tag: empty if it is known by its digest only."""

    host: str
    path: str
    tag: str

    @classmethod
    def of(cls, text: str) -> Image:
        """A reference as runtimes complete it (github.com/distribution/reference, normalize.go)."""
        name = text.partition("@")[0]
        first, slash, rest = name.partition("/")
        host, path = (
            (first, rest) if slash and ({".", ":"} & set(first) or first == "localhost") else ("docker.io", name)
        )
        path, _colon, tag = path.partition(":")
        return cls(host, f"library/{path}" if host == "docker.io" and "/" not in path else path, tag)

    @property
    def name(self) -> str:
        return posixpath.basename(self.path).removeprefix("mirrored-")

    def __str__(self) -> str:
        return f"{self.host}/{self.path}{f':{self.tag}' if self.tag else ''}"


def needed(settings: Settings, listed: str) -> list[Image]:
    """Images of components that are not left out. listed: text of k3s-images.txt."""
    images = [Image.of(line.strip()) for line in listed.splitlines() if line.strip() and not line.startswith("#")]
    found = [one for one in images if _NEEDED_BY.get(one.name, "") not in settings["disable"]]
    if not settings["pause_image"]:
        return found
    return [Image.of(settings["pause_image"]), *(one for one in found if one.name != "pause")]


def names(settings: Settings) -> list[str]:
    """Of images of components that are not left out, without mirrored-, as they are the same in all releases."""
    return [name for name, component in _NEEDED_BY.items() if component not in settings["disable"]]


def judged(settings: Settings, read: sources.Read) -> tuple[list[Fault], list[str]]:
    """Problems of files, and what could not be found out. read: what sources.py has printed."""
    faults, listed_in = sources.faults("cluster_k3s", settings, read), settings["image_list"]
    listed = read.get(listed_in, {})
    if listed_in and not listed.get("text"):
        next_step = "copy k3s-images.txt of the release to the controller, or unset the variable"
        faults.append(Fault(f"{listed_in} cannot be read", "cluster_k3s_image_list", listed.get("why", ""), next_step))
    if faults or not settings["images"]:
        return faults, []
    unknown = [str(one["source"]) for one in settings["images"] if not _is_imported(str(one["source"]))]
    if unknown:
        why = f"K3s imports no file with such a name, only {', '.join(_IMPORTED)}"
        return [Fault(f"{some(unknown)} would be left alone", "cluster_k3s_images", why, "rename or convert it")], []
    found: list[Fault] = []
    messages: list[str] = []
    for archives in _by_architecture(settings["images"]):
        more, told = _lacking(settings, str(listed.get("text", "")), archives, read)
        found += [fault for fault in more if fault not in found]
        messages += [text for text in told if text not in messages]
    return found, messages


def _is_imported(source: str) -> bool:
    # An address may have a query.
    return source.lower().partition("?")[0].endswith((*_IMPORTED, ".txt"))


def _by_architecture(archives: c.Sequence[Settings]) -> list[list[Settings]]:
    """Those that machines of each architecture get."""
    each = sorted({one.get("architecture", "") for one in archives} - {""}) or [""]
    return [[one for one in archives if one.get("architecture", "") in ("", mine)] for mine in each]


def _lacking(
    settings: Settings, listed: str, archives: c.Sequence[Settings], read: sources.Read
) -> tuple[list[Fault], list[str]]:
    """Images that none of these archives has. Where one could not be read, or there are registries, machines may have them all the same."""
    paths = [str(one["source"]) for one in archives if not str(one["source"]).endswith(".txt")]
    has = {path: [Image.of(one) for one in read[path]["images"]] for path in paths if "images" in read.get(path, {})}
    unread = [path for path in paths if path not in has]
    messages = [f"{path} is not compared with the images of K3s: {_why(path, read)}" for path in unread]
    ours = {image.name for images in has.values() for image in images if image.name in _NEEDED_BY}
    if not ours:
        return [], messages or ["No archive of cluster_k3s_images has an image of K3s, which machines then pull"]
    others: list[Fault] = []
    if listed:
        keys = {_key(settings, image) for images in has.values() for image in images}
        lacking = [image for image in needed(settings, listed) if _key(settings, image) not in keys]
        own = Image.of(settings["pause_image"])
        others = _of_others(settings, [image for image in lacking if image != own], has)
        missing = [str(image) for image in lacking if image == own or image.name not in ours]
    else:
        messages.append(
            "Archives are compared with K3s by the names of images only, without their tags: cluster_k3s_image_list is not set"
        )
        missing = [name for name in names(settings) if name not in ours]
    if not missing:
        return others, messages
    lacks = Fault(
        f"images of K3s {settings['version']} are in no archive: {', '.join(missing)}",
        "cluster_k3s_images",
        f"{some(list(has))} {'has' if len(has) == 1 else 'have'} others of it",
        "take k3s-airgap-images of the release, or add an archive with these",
    )
    if unread or settings["registries"] or settings["system_default_registry"]:
        return others, [*messages, lacks.what]
    return [*others, lacks], messages


def _why(path: str, read: sources.Read) -> str:
    return str(read[path]["why"]) if path in read else "machines download it themselves"


def _key(settings: Settings, image: Image) -> tuple[str, ...]:
    """K3s gives imported images the host of system-default-registry, too (retagImages in pkg/agent/containerd/containerd.go)."""
    host = "" if settings["system_default_registry"] else image.host
    return (host, image.path, image.tag)


def _of_others(settings: Settings, lacking: c.Sequence[Image], has: c.Mapping[str, c.Sequence[Image]]) -> list[Fault]:
    """Archives that have other images of the same names."""
    found = []
    for source, images in has.items():
        pairs = [(there, wanted) for wanted in lacking for there in images if there.name == wanted.name]
        if pairs:
            more = f", and {len(pairs) - 1} more differ" if len(pairs) > 1 else ""
            why = f"it has {pairs[0][0]}, and {pairs[0][1]} is needed{more}"
            next_step = "take the archive and k3s-images.txt of the release that is set"
            what = f"{source} is of another release of K3s than {settings['version']}"
            found.append(Fault(what, "cluster_k3s_images", why, next_step))
    return found
