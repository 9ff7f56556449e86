# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives of images are compared with what a release of K3s needs."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import images
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.images import Image
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_configuration import SETTINGS as CLUSTER

SUM = f"sha256:{'1' * 64}"
#: As k3s-images.txt has them.
NAMES = (
    "klipper-helm:v0.9.14-build20260309",
    "klipper-lb:v0.4.15",
    "local-path-provisioner:v0.0.34",
    "mirrored-coredns-coredns:1.14.4",
    "mirrored-library-busybox:1.37.0",
    "mirrored-library-traefik:3.7.4",
    "mirrored-metrics-server:v0.8.1",
    "mirrored-pause:3.6",
)
ALL = [f"docker.io/rancher/{name}" for name in NAMES]
LIST, ARCHIVE = "/files/k3s-images.txt", "/files/k3s-airgap-images-amd64.tar.zst"
SETTINGS: dict[str, t.Any] = {
    **CLUSTER,
    "disable": [],
    "images": [{"source": ARCHIVE, "checksum": SUM}],
    "image_list": LIST,
}
_LISTED = {LIST: {"checksum": None, "text": "\n".join([*ALL, ""])}}


def judged(has: list[str], **changed: t.Any) -> tuple[list[str], list[str]]:
    read = {**_LISTED, ARCHIVE: {"checksum": SUM, "images": has}}
    faults, messages = images.judged({**SETTINGS, **changed}, read)
    return [str(fault) for fault in faults], messages


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("rancher/klipper-lb:v1", Image("docker.io", "rancher/klipper-lb", "v1")),
        ("busybox", Image("docker.io", "library/busybox", "")),
        ("localhost/a:1", Image("localhost", "a", "1")),
        ("registry.example.com:5000/a/b:1@sha256:12", Image("registry.example.com:5000", "a/b", "1")),
    ],
)
def test_references_are_completed(text: str, image: Image) -> None:
    assert Image.of(text) == image


def test_an_archive_of_the_release_does() -> None:
    assert judged(ALL) == ([], [])
    assert judged([name.removeprefix("docker.io/") for name in ALL]) == ([], [])


def test_an_image_that_is_in_no_archive_is_told_by_its_name() -> None:
    lacks = f"images of K3s 1.36.4+k3s1 are in no archive: {ALL[1]} (cluster_k3s_images)"
    assert [text[: len(lacks)] for text in judged([*ALL[:1], *ALL[2:]])[0]] == [lacks]
    # Whoever has a mirror may pull it.
    assert judged([*ALL[:1], *ALL[2:]], registries={"mirrors": {}}) == ([], [lacks.rpartition(" (")[0]])


def test_images_of_components_that_are_left_out_are_not_needed() -> None:
    disabled = ["coredns", "local-storage", "metrics-server", "servicelb", "traefik"]
    assert judged(ALL[-1:], disable=disabled) == ([], [])


def test_an_archive_of_another_release_is_told() -> None:
    older = [name.replace("v0.4.15", "v0.4.13") for name in ALL]
    (told,) = judged(older)[0]
    assert told.startswith(f"{ARCHIVE} is of another release of K3s than 1.36.4+k3s1")
    assert "it has docker.io/rancher/klipper-lb:v0.4.13, and docker.io/rancher/klipper-lb:v0.4.15 is needed" in told
    # Beside the one that is needed it does no harm.
    more = {"source": "/files/other.tar", "checksum": SUM}
    read = {
        **_LISTED,
        ARCHIVE: {"checksum": SUM, "images": older},
        "/files/other.tar": {"checksum": SUM, "images": ALL},
    }
    assert images.judged({**SETTINGS, "images": [*SETTINGS["images"], more]}, read) == ([], [])


def test_the_registry_of_an_image_counts() -> None:
    """Images of K3s move to another registry: docs/adrs/ghcr-system-images.md of K3s."""
    moved = [name.replace("docker.io/rancher", "ghcr.io/k3s-io") for name in ALL]
    (told,) = judged(moved)[0]
    assert "it has ghcr.io/k3s-io/klipper-helm" in told and "and 7 more differ" in told
    # K3s gives imported images the host of its default registry, and not another path.
    default = "registry.example.com"
    assert judged([name.replace("docker.io", "quay.io") for name in ALL], system_default_registry=default) == ([], [])
    assert len(judged(moved, system_default_registry=default)[0]) == 1


def test_another_pause_image_is_needed_instead() -> None:
    (told,) = judged(ALL, pause_image="registry.example.com/pause:3.10")[0]
    assert "are in no archive: registry.example.com/pause:3.10 (" in told
    assert (
        judged([*ALL[:-1], "registry.example.com/pause:3.10"], pause_image="registry.example.com/pause:3.10")[0] == []
    )


def test_without_a_list_names_are_compared() -> None:
    faults, messages = judged([name.rpartition(":")[0] + ":v1" for name in ALL[1:]], image_list="")
    assert ["are in no archive: klipper-helm (cluster_k3s_images)" in text for text in faults] == [True]
    assert "without their tags" in messages[0]


def test_archives_of_other_images_alone_are_not_those_of_k3s() -> None:
    assert judged(["example.com/app:1"]) == (
        [],
        ["No archive of cluster_k3s_images has an image of K3s, which machines then pull"],
    )


def test_what_could_not_be_read_may_have_it() -> None:
    more = [
        {"source": "https://example.com/more.tar.zst", "checksum": SUM},
        {"source": "/files/a.tar.lz4", "checksum": SUM},
    ]
    read = {
        **_LISTED,
        ARCHIVE: {"checksum": SUM, "images": ALL[1:]},
        "/files/a.tar.lz4": {"checksum": SUM, "why": "its format is read by machines only", "later": True},
    }
    faults, messages = images.judged({**SETTINGS, "images": [*SETTINGS["images"], *more]}, read)
    assert faults == [] and len(messages) == 3
    assert "more.tar.zst is not compared with the images of K3s: machines download it themselves" in messages[0]
    assert "its format is read by machines only" in messages[1] and ALL[0] in messages[2]


def test_machines_of_each_architecture_have_all() -> None:
    arm = "/files/k3s-airgap-images-arm64.tar.zst"
    both = [
        {"source": ARCHIVE, "checksum": SUM, "architecture": "x86_64"},
        {"source": arm, "checksum": SUM, "architecture": "aarch64"},
    ]
    read = {**_LISTED, ARCHIVE: {"checksum": SUM, "images": ALL}, arm: {"checksum": SUM, "images": ALL[1:]}}
    faults, _messages = images.judged({**SETTINGS, "images": both}, read)
    assert [ALL[0] in str(fault) and f"{arm} has others" in str(fault) for fault in faults] == [True]


def test_files_that_k3s_leaves_alone_and_lists_that_are_not_there_are_problems() -> None:
    odd = [{"source": "/files/images.tar.xz", "checksum": SUM}]
    (fault,) = images.judged(
        {**SETTINGS, "images": odd}, {**_LISTED, "/files/images.tar.xz": {"checksum": SUM, "images": []}}
    )[0]
    assert "/files/images.tar.xz would be left alone" in str(fault)
    (fault,) = images.judged(SETTINGS, {LIST: {"checksum": None, "why": "No such file or directory"}})[0]
    assert f"{LIST} cannot be read (cluster_k3s_image_list): No such file or directory" in str(fault)
