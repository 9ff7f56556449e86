# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases that the stand-in can be: version, release image, streams of CoreOS and their artefacts (section 0 of behaviours.yml)."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import typing as t

ARCHITECTURES = ("x86_64", "aarch64", "ppc64le", "s390x")
_MIRROR = "https://rhcos.mirror.openshift.com/art/storage/prod/streams"


@dataclasses.dataclass(frozen=True)
class Stream:
    """A stream of CoreOS: name, and the build of its artefacts."""

    name: str
    build: str

    def artefact(self, kind: str, architecture: str) -> str:
        """The name of a file, which differs between releases: never to be built by who reads the stream. kind: kernel, initramfs, rootfs, iso."""
        dashed = self.name == "rhcos"
        middle = f"-live-{kind}-" if dashed else f"-live-{kind}."
        end = {"kernel": "", "iso": ".iso"}.get(kind, ".img")
        return f"rhcos-{self.build}{middle}{architecture}{end}"

    def location(self, kind: str, architecture: str) -> str:
        return f"{_MIRROR}/{self.name}/builds/{self.build}/{architecture}/{self.artefact(kind, architecture)}"


@dataclasses.dataclass(frozen=True)
class Release:
    """digest: of the release image, "" where none is injected. pointers: specification of master.ign and worker.ign."""

    version: str
    commit: str
    image: str
    streams: tuple[Stream, ...]
    pointers: str

    @property
    def injected(self) -> bool:
        return "@sha256:" in self.image

    @property
    def several(self) -> bool:
        """Whether `coreos print-stream-json` has --stream."""
        return len(self.streams) > 1


def _digest(version: str) -> str:
    return hashlib.sha256(version.encode()).hexdigest()


_TWO = (Stream("rhel-9", "9.8.20260815-0"), Stream("rhel-10", "10.2.20260815-0"))
_NEWEST = "3.6.0"
RELEASES = {
    "4.20": Release(
        "4.20.4",
        "7e30b7d6b421",
        f"quay.io/openshift-release-dev/ocp-release@sha256:{_digest('4.20.4')}",
        (Stream("rhcos", "9.6.20250826-1"),),
        "3.2.0",
    ),
    "5.0": Release(
        "5.0.0",
        "00c2b5a4",
        f"quay.io/openshift-release-dev/ocp-release@sha256:{_digest('5.0.0')}",
        _TWO,
        _NEWEST,
    ),
    "development": Release(
        "unreleased-master-12345-g00c2b5a4",
        "00c2b5a4",
        "registry.ci.openshift.org/origin/release:5.0",
        _TWO,
        _NEWEST,
    ),
}


def version_text(called: str, release: Release) -> str:
    """called: path by which the tool was started, which its first line repeats."""
    architecture = "amd64" if release.injected else "unknown"
    return (
        f"{called} {release.version}\nbuilt from commit {release.commit}\n"
        f"release image {release.image}\nrelease architecture {architecture}\n"
    )


def content(location: str) -> bytes:
    """What the stand-in for an artefact contains, for a server in tests."""
    return f"A stand-in for {location.rpartition('/')[2]}.\n".encode()


def stream_json(stream: Stream, images: str) -> dict[str, t.Any]:
    """images: folder of files, by their kinds, that are the artefacts; "" for those of `content`."""
    return {
        "stream": stream.name,
        "metadata": {"last-modified": "2026-08-15T00:00:00Z", "generator": "stand-in"},
        "architectures": {
            architecture: {
                "artifacts": {
                    "metal": {
                        "release": stream.build,
                        "formats": {
                            "iso": {"disk": _entry(stream, "iso", architecture, "")},
                            "pxe": {
                                kind: _entry(stream, kind, architecture, images)
                                for kind in ("rootfs", "initramfs", "kernel")
                            },
                        },
                    }
                }
            }
            for architecture in ARCHITECTURES
        },
    }


def _entry(stream: Stream, kind: str, architecture: str, images: str) -> dict[str, str]:
    location = stream.location(kind, architecture)
    made = pathlib.Path(images, kind).read_bytes() if images else content(location)
    return {"location": location, "sha256": hashlib.sha256(made).hexdigest()}
