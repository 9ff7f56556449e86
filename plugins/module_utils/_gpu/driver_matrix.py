# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver image a node needs: the published tags as data with their sources, and the selection.

The table has the tags that are known to exist, not all: no registry is queried, and a user's own images (`precompiled` and `builds` of
`choose`) are added to the table.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

REPOSITORY = "nvcr.io/nvidia"
IMAGE = "driver"

#: Driver versions with images that build in place, the newest of each branch.
#: Source: github.com/NVIDIA/gpu-driver-container 06a208c (2026-08-17), versions.mk.
VERSIONS = ("580.178.04", "595.91.07", "610.57.04")
#: Production branch that supports the oldest GPUs; source: the same, and `driver.version` of GPU Operator v26.7.0 (595.91.07).
DEFAULT_VERSION = "595.91.07"

#: osTag → architectures of the images that build in place.
#: Source: github.com/NVIDIA/gpu-driver-container 06a208c: DISTRIBUTIONS in the Makefile, and multi-arch.mk (amd64 and arm64 by default).
BUILD_TAGS: dict[str, tuple[str, ...]] = {
    "ubuntu22.04": ("amd64", "arm64"),
    "ubuntu24.04": ("amd64", "arm64"),
    "ubuntu26.04": ("amd64", "arm64"),
    "rhel8": ("amd64", "arm64"),
    "rhel9": ("amd64", "arm64"),
    "rhel10": ("amd64", "arm64"),
    "rocky8": ("amd64", "arm64"),
    "rocky9": ("amd64", "arm64"),
    "rocky10": ("amd64", "arm64"),
}
#: Branches without an image for an OS; source: `.driver-versions-ubuntu26.04` of .common-ci.yml there.
NOT_BUILT = frozenset({("580", "ubuntu26.04")})
#: Operating systems by os-release ID whose tags have the major version only.
FAMILY_MAJOR_ONLY = ("ol", "rocky", "rhel")

#: (branch, osTag) → kernels with a precompiled image, amd64 by default.
#: Sources: NVIDIA's own publishing lists, github.com/NVIDIA/cloud-native-docs pull request 261 (2025-09-25) and github.com/NVIDIA/gpu-driver-container
#: issues 679 (2026-04-02), 767 (2026-05-08), 836 (2026-07-01), 853 (2026-07-03), as far as they were accessible; architectures from multi-arch.mk there
#: (ubuntu22.04 and 26.04: amd64 only; ubuntu24.04 both, azure-fde amd64 only; the lists have none, so only amd64 counts as known).
PRECOMPILED: dict[tuple[str, str], tuple[str, ...]] = {
    ("580", "ubuntu22.04"): (
        "5.15.0-156-generic",
        "5.15.0-1092-aws",
        "5.15.0-1096-azure",
        "6.8.0-1039-aws",
        "5.15.0-173-generic",
        "5.15.0-177-generic",
        "5.15.0-185-generic",
        "5.15.0-1098-nvidia",
        "5.15.0-1100-oracle",
        "5.15.0-1101-nvidia",
        "5.15.0-1103-aws",
        "5.15.0-1103-oracle",
        "5.15.0-1106-aws",
        "5.15.0-1106-nvidia",
        "5.15.0-1108-oracle",
        "5.15.0-1110-azure",
        "5.15.0-1111-aws",
        "5.15.0-1111-azure",
        "5.15.0-1114-azure",
        "5.15.0-1116-azure",
        "6.8.0-106-generic",
        "6.8.0-111-generic",
        "6.8.0-1047-oracle",
        "6.8.0-1049-nvidia",
        "6.8.0-1050-aws",
        "6.8.0-1050-oracle",
        "6.8.0-1053-aws",
        "6.8.0-1058-nvidia",
        "6.8.0-1059-azure",
    ),
    ("580", "ubuntu24.04"): (
        "6.8.0-106-generic",
        "6.8.0-111-generic",
        "6.8.0-1046-azure-fde",
        "6.8.0-1047-nvidia",
        "6.8.0-1047-oracle",
        "6.8.0-1049-nvidia",
        "6.8.0-1049-oracle",
        "6.8.0-1050-aws",
        "6.8.0-1050-oracle",
        "6.8.0-1053-aws",
        "6.8.0-1053-azure-fde",
        "6.8.0-1054-azure",
        "6.8.0-1057-oracle",
        "6.8.0-1058-nvidia",
        "6.8.0-1060-aws",
    ),
    ("595", "ubuntu22.04"): (
        "5.15.0-185-generic",
        "5.15.0-1106-nvidia",
        "5.15.0-1108-oracle",
        "5.15.0-1111-aws",
        "5.15.0-1114-azure",
        "5.15.0-1116-azure",
        "6.8.0-1058-nvidia",
        "6.8.0-1059-azure",
    ),
    ("595", "ubuntu24.04"): ("6.8.0-134-generic", "6.8.0-1057-oracle", "6.8.0-1058-nvidia", "6.8.0-1060-aws"),
    ("595", "ubuntu26.04"): (
        "7.0.0-27-generic",
        "7.0.0-1006-aws",
        "7.0.0-1006-azure-fde",
        "7.0.0-1007-azure",
        "7.0.0-1007-oracle",
        "7.0.0-1008-aws",
        "7.0.0-1009-nvidia",
        "7.0.0-1013-nvidia",
    ),
}

#: Source: docs.nvidia.com/datacenter/tesla, "Supported Drivers and CUDA Toolkit Versions": R470 is the oldest whose driver containers were published.
OLDEST_BRANCH = 470

_VERSION = re.compile(r"^\d+(\.\d+){0,2}$")
_LABEL_VALUE = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_TAG = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")
_ARCHITECTURE_SUFFIXES = (".x86_64", ".aarch64")


@dataclasses.dataclass(frozen=True)
class DriverImage:
    """tag: the part after the colon; source: precompiled or build; why: one sentence for the user."""

    tag: str
    version: str
    source: str
    os_tag: str
    why: str

    def reference(self, repository: str = REPOSITORY, image: str = IMAGE) -> str:
        return f"{repository}/{image}:{self.tag}"


class NoDriverImage(HwaccelError):
    """No image that is known to exist supports this node class."""


def os_tag(os_id: str, os_version: str) -> str:
    """How driver tags name an OS. Since GPU Operator 26.7 only the major version for RHEL, Rocky and Oracle Linux (internal/state/nodepool.go there)."""
    return os_id + (os_version.split(".", maxsplit=1)[0] if os_id in FAMILY_MAJOR_ONLY else os_version)


def branch(version: str) -> str:
    return version.split(".", maxsplit=1)[0]


def is_version(text: str) -> bool:
    """Whether it has the format of a version ("595.91.07") or a branch ("595"), whether it exists or not."""
    return _VERSION.fullmatch(text) is not None


def is_known_branch(version: str) -> bool:
    """Whether a branch is between the oldest and the newest with an image of NVIDIA. Branches between them are not all listed."""
    return OLDEST_BRANCH <= int(branch(version)) <= max(int(branch(known)) for known in VERSIONS)


def precompiled_exists(
    kernel: str, tag_of_os: str, architecture: str, version: str, extra: c.Container[str] = ()
) -> bool:
    """extra: complete tags that exist according to the user ("580-6.8.0-45-generic-ubuntu24.04")."""
    if f"{branch(version)}-{kernel}-{tag_of_os}" in extra:
        return True
    return architecture == "amd64" and kernel in PRECOMPILED.get((branch(version), tag_of_os), ())


def choose(
    kernel: str,
    os_id: str,
    os_version: str,
    arch: str,
    version: str = "",
    source: str = "",
    *,
    precompiled: c.Container[str] = (),
    builds: c.Container[str] = (),
) -> DriverImage:
    """The image for one node class.

    version: "" means DEFAULT_VERSION; source: "precompiled", "build", or "" for precompiled if known, else build in place.
    precompiled, builds: additional tags that exist (own builds, a mirror). Raises NoDriverImage with the next step.
    """
    version = version or DEFAULT_VERSION
    where = f"kernel {kernel}, {os_id} {os_version}, {arch}, driver {version}"
    if not is_version(version):
        why = f"{version!r} is not a driver version"
        raise NoDriverImage(
            f"no driver image for kernel {kernel}", where, why, "set one like 580.178.04, or a branch like 580"
        )
    name = os_tag(os_id, os_version)
    tag = f"{branch(version)}-{kernel}-{name}"
    if source != "build" and precompiled_exists(kernel, name, arch, version, precompiled) and _TAG.fullmatch(tag):
        return DriverImage(tag, version, "precompiled", name, f"a precompiled image for kernel {kernel} is published")
    if source == "precompiled":
        raise NoDriverImage(
            f"no driver image for kernel {kernel}",
            where,
            f"the table has no precompiled image {tag}",
            "boot a kernel that has one, name the tag if you know that it exists, or allow source: build",
        )
    return _build(where, kernel, name, arch, version, builds)


def _build(where: str, kernel: str, name: str, arch: str, version: str, builds: c.Container[str]) -> DriverImage:
    if "." not in version:
        full = [known for known in VERSIONS if branch(known) == version]
        version = full[0] if full else version
    tag = f"{version}-{name}"
    published = (branch(version), name) not in NOT_BUILT and "." in version
    if tag in builds or (arch in BUILD_TAGS.get(name, ()) and published):
        return DriverImage(
            tag,
            version,
            "build",
            name,
            f"no precompiled image for kernel {kernel} is known, so the module is built on the node",
        )
    if name in BUILD_TAGS and published:
        why = f"there is no image for {arch}"
    elif name in BUILD_TAGS:
        why = f"no image of driver {version} is published for {name}"
    else:
        why = f"no driver images are published for {name or 'an unknown operating system'}"
    next_step = "install the driver on the host (provider: host), or build an image and name its tag"
    raise NoDriverImage(f"no driver image for kernel {kernel}", where, why, next_step)


def label_value(kernel: str) -> str:
    """A kernel's name as a label value, unchanged if it is valid; a changed one has a digest so that "6.1+" and "6.1_" stay apart."""
    if _LABEL_VALUE.fullmatch(kernel):
        return kernel
    digest = hashlib.sha256(kernel.encode(errors="replace")).hexdigest()[:6]
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", kernel)[:56].strip("-_.")
    return f"{plain}-{digest}" if plain else f"kernel-{digest}"


def object_name(kernel: str, budget: int = 40) -> str:
    """A kernel's name as a part of an object's name: lower case, without the architecture; truncated and made unique by a digest if it is too long."""
    plain = kernel
    for suffix in _ARCHITECTURE_SUFFIXES:
        plain = plain.removesuffix(suffix)
    plain = plain.lower().replace("_", ".")
    legal = re.sub(r"[^a-z0-9.-]", "-", plain)
    legal = re.sub(r"[.-]*\.[.-]*", ".", legal).strip(".-")
    if legal == plain and len(legal) <= budget:
        return legal
    digest = hashlib.sha256(kernel.encode(errors="replace")).hexdigest()[:6]
    return f"{legal[: budget - 7].strip('.-')}-{digest}".lstrip("-")
