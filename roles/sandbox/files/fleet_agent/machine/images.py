# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which images exist: exact repositories of public registries, their basenames under any mirror, and tags. The data is in data/images.yaml."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
from typing import Any

import yaml


@dataclasses.dataclass(frozen=True)
class Image:
    """A parsed image reference."""

    reference: str
    repository: str
    tag: str
    digest: str

    @property
    def basename(self) -> str:
        return self.repository.rsplit("/", 1)[-1]

    @property
    def family(self) -> str:
        """The name of the known image, or an empty string. What a mirror calls an image is its administrator's choice, but for the last part."""
        known = tables()["families"].get(self.basename)
        if known is None or not f"/{self.repository}".endswith(known.get("path", "")):
            return ""
        place = _place(self.repository)
        public = place.partition("/")[0] in tables()["registries"]
        return self.basename if not public or place in known["repositories"] else ""

    @property
    def image_id(self) -> str:
        digest = self.digest or "sha256:" + hashlib.sha256(f"{self.basename}:{self.tag}".encode()).hexdigest()
        return f"{self.repository}@{digest}"


@functools.cache
def tables() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), os.pardir, "data", "images.yaml"), encoding="utf-8") as stream:
        return dict(yaml.safe_load(stream))


_REFERENCE = re.compile(
    r"^(?P<repository>(?:[A-Za-z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:(?:/|[._]|__|-+)[a-z0-9]+)*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?$"
)


@functools.lru_cache(maxsize=1024)
def parse(reference: str) -> Image | None:
    """None for an invalid reference (InvalidImageName)."""
    match = _REFERENCE.match(reference)
    if not match:
        return None
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return Image(reference, match["repository"], tag, match["digest"] or "")


def _place(repository: str) -> str:
    """With its registry: docker.io and library/ filled in."""
    first, _slash, rest = repository.partition("/")
    if not rest:
        return "docker.io/library/" + first
    if "." not in first and ":" not in first and first != "localhost":
        return "docker.io/" + repository
    return repository


def qualified(image: Image) -> str:
    """The name that containerd resolves."""
    return (
        _place(image.repository) + (f":{image.tag}" if image.tag else "") + (f"@{image.digest}" if image.digest else "")
    )


def not_found(image: Image) -> str:
    """containerd's message for a missing manifest (core/remotes/docker/resolver.go), with the runtime service's prefix."""
    name = qualified(image)
    return f'rpc error: code = NotFound desc = failed to pull and unpack image "{name}": failed to resolve image: {name}: not found'


def unavailable(image: Image) -> str:
    """containerd's message when the registry answers with an error (fault image_pull_failure)."""
    name, registry = qualified(image), qualified(image).split("/", maxsplit=1)[0]
    path = qualified(image)[len(registry) + 1 :].split(":", maxsplit=1)[0].split("@", maxsplit=1)[0]
    return (
        f'rpc error: code = Unknown desc = failed to pull and unpack image "{name}": failed to resolve image: unexpected status from HEAD request to '
        f"https://{registry}/v2/{path}/manifests/{image.tag or image.digest}: 503 Service Unavailable"
    )


@dataclasses.dataclass(frozen=True)
class DriverImage:
    """Content of a driver image: a version to build in place, or modules for one kernel."""

    version: str
    os_tag: str
    kernel: str = ""

    @property
    def precompiled(self) -> bool:
        return bool(self.kernel)


@functools.lru_cache(maxsize=256)
def driver_image(tag: str) -> DriverImage | None:
    """The content of an existing driver tag, else None."""
    data = tables()
    family = data["families"]["driver"]
    base, _dash, os_tag = tag.rpartition("-")
    if os_tag not in data["driver_os"]:
        return None
    if base in family["versions"]:
        return DriverImage(base, os_tag)
    branch, _dash, kernel = base.partition("-")
    return own_driver_image(tag) if kernel in data["precompiled"].get(f"{branch}-{os_tag}", ()) else None


def own_driver_image(tag: str) -> DriverImage | None:
    """The content of a precompiled image of somebody's own, which is what its tag says; None if it is no such tag."""
    base, _dash, os_tag = tag.rpartition("-")
    branch, _dash, kernel = base.partition("-")
    versions = [one for one in tables()["families"]["driver"]["versions"] if one.startswith(branch + ".")]
    return DriverImage(versions[-1], os_tag, kernel) if versions and kernel else None


@functools.lru_cache(maxsize=1024)
def exists(image: Image) -> bool:
    """Whether the registry has it. Any digest of a known repository exists."""
    if not image.family:
        return False
    if not image.tag:
        return True
    if image.family == "driver":
        return driver_image(image.tag) is not None
    return any(re.fullmatch(pattern, image.tag) for pattern in tables()["families"][image.family]["tags"])


def architectures(image: Image) -> list[str] | None:
    """Architectures of a driver image (None: all that matter)."""
    found = driver_image(image.tag) if image.family == "driver" else None
    if not found:
        return None
    return (
        ["amd64"] if found.precompiled else list(tables()["driver_os"][found.os_tag])
    )  # The lists have no architecture of precompiled images.


def has_shell(image: Image) -> bool:
    return bool(tables()["families"].get(image.family, {}).get("shell", True))


def pull_seconds(image: Image) -> float:
    return float(tables()["families"].get(image.family, {}).get("pull", 2))


def user(image: Image) -> int:
    """The uid of the image's programs if the pod sets none."""
    return int(tables()["families"].get(image.family, {}).get("user", 0))


def environment(image: Image) -> dict[str, str]:
    """Environment of the image itself."""
    return dict(tables()["families"].get(image.family, {}).get("env") or {})
