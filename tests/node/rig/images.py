# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container images of a real node without access to a registry: they are created here, under the names in manifests.

ensure_images(components, busybox, say) returns one archive with all of them, from the cache or written now.
`ctr -n k8s.io images import ARCHIVE` imports them on a node. Because the manifests use IfNotPresent, they run unmodified then.
The substitutes of NVIDIA's images are in nvidia_images.py.
"""

from __future__ import annotations

import collections.abc as c
import hashlib
import json
import pathlib
import subprocess

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import architecture
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder, locked
from ansible_collections.hwaccel.gpu.tests.node.rig import archive, nvidia_images
from ansible_collections.hwaccel.gpu.tests.node.rig.archive import Image, Layer, Link
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Components, Say, forget_unused, used

#: Default image of containerd 2.4 for the sandbox of a pod (internal/cri/config).
PAUSE = "registry.k8s.io/pause:3.10.2"
#: Image with a shell for pods of tests.
BUSYBOX = "localhost/busybox:1"
#: User of NFD's image, which has no shell.
NFD_USER = "65534:65534"
_ARCHIVE = "images.tar"


def busybox_layer(busybox: pathlib.Path) -> Layer:
    """A shell in /bin, with a link for each tool of this busybox."""
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True, timeout=240).stdout.split()
    return {
        "bin/busybox": busybox,
        "tmp": archive.Folder(0o1777),
        **{f"bin/{name}": Link("busybox") for name in listed if name != "busybox"},
    }


def node_images(components: Components, busybox: pathlib.Path) -> tuple[list[Image], dict[str, Layer]]:
    """The images of every node: sandbox, shell and Node Feature Discovery."""
    layers: dict[str, Layer] = {
        "pause": {"pause": components.program("pause")},
        "busybox": busybox_layer(busybox),
        "nfd": {f"usr/bin/{name}": components.program(name) for name in ("nfd-gc", "nfd-master", "nfd-worker")},
    }
    images = [
        Image(PAUSE, ("pause",), entrypoint=("/pause",), user="65535:65535"),
        Image(BUSYBOX, ("busybox",), command=("sh",)),
        Image(nvidia_images.defaults("feature_discovery")["feature_discovery_image"], ("nfd",), user=NFD_USER),
    ]
    return images, layers


def ensure_images(
    components: Components,
    busybox: pathlib.Path,
    say: Say,
    drivers: c.Mapping[str, str] | None = None,
    environment: c.Mapping[str, str] | None = None,
) -> pathlib.Path:
    """The archive with all images. busybox: a static busybox for this machine, such as /bin/busybox of Debian's busybox-static.

    drivers: result of nvidia_images.driver_images for the nodes; without it, the archive contains no substitutes of NVIDIA's images.
    """
    images, layers = node_images(components, busybox)
    if drivers is not None:
        more, their_layers = nvidia_images.stand_ins(components, drivers)
        images, layers = images + more, layers | their_layers
    contents = (components.key, hashlib.sha256(busybox.read_bytes()).hexdigest())
    return ensure_archives({_ARCHIVE: images}, layers, contents, say, environment) / _ARCHIVE


def ensure_archives(
    archives: c.Mapping[str, list[Image]],
    layers: c.Mapping[str, Layer],
    contents: c.Sequence[str],
    say: Say,
    environment: c.Mapping[str, str] | None = None,
) -> pathlib.Path:
    """The folder with these archives by name, from the cache or written now. contents: digests of all files in the layers."""
    described = json.dumps([*contents, [_described(images, layers) for images in archives.values()]], sort_keys=True)
    cache = cache_folder(environment) / "node" / "images"
    folder = cache / hashlib.sha256(described.encode()).hexdigest()[:24]
    if not _complete(folder, archives):
        with locked(folder):
            if not _complete(folder, archives):
                say(f"writing {sum(len(images) for images in archives.values())} container images")
                for name, images in archives.items():
                    new = folder / f"{name}.new"
                    archive.write(new, images, layers, architecture())
                    new.replace(folder / name)
                forget_unused(cache)
    used(folder)
    return folder


def _complete(folder: pathlib.Path, names: c.Iterable[str]) -> bool:
    return all((folder / name).is_file() for name in names)


def _described(images: c.Iterable[Image], layers: c.Mapping[str, Layer]) -> object:
    """The contents of an archive, without paths of this machine: programs are identified by the key of the components."""
    contents = {
        name: {path: what.name if isinstance(what, pathlib.Path) else repr(what) for path, what in layer.items()}
        for name, layer in layers.items()
    }
    return [[repr(image) for image in images], contents]
