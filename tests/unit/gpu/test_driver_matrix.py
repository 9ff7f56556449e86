# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice of driver images, and kernels as names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import driver_matrix as m

K = "6.8.0-111-generic"
AMD = "amd64"


@pytest.mark.parametrize(
    ("args", "tag", "source"),
    [
        ((K, "ubuntu", "24.04", AMD, "580.178.04"), f"580-{K}-ubuntu24.04", "precompiled"),
        ((K, "ubuntu", "24.04", AMD, "580"), f"580-{K}-ubuntu24.04", "precompiled"),
        ((K, "ubuntu", "24.04", AMD, "580", "build"), "580.178.04-ubuntu24.04", "build"),
        ((K, "ubuntu", "24.04", "arm64", "580"), "580.178.04-ubuntu24.04", "build"),
        (("6.8.0-45-generic", "ubuntu", "24.04", AMD, "580.178.04"), "580.178.04-ubuntu24.04", "build"),
        (("5.14.0-570.el9.x86_64", "rhel", "9.6", AMD), f"{m.DEFAULT_VERSION}-rhel9", "build"),
        (("5.14.0-570.el9.x86_64", "rocky", "9.7", AMD, "580.178.04"), "580.178.04-rocky9", "build"),
        (("7.0.0-27-generic", "ubuntu", "26.04", AMD, "595"), "595-7.0.0-27-generic-ubuntu26.04", "precompiled"),
        (("5.14.0-570.el9.x86_64", "rhel", "9.6", AMD, "575.57.08"), "575.57.08-rhel9", "build"),
    ],
)
def test_choice(args: tuple[str, ...], tag: str, source: str) -> None:
    found = m.choose(*args)
    assert (found.tag, found.source) == (tag, source)
    assert found.why
    assert found.reference("mirror:5000/nvidia") == f"mirror:5000/nvidia/driver:{tag}"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (
            ("6.8.0-45-generic", "ubuntu", "24.04", AMD, "580", "precompiled"),
            "no precompiled image 580-6.8.0-45-generic-ubuntu24.04",
        ),
        ((K, "debian", "12", AMD), "no driver images are published for debian12"),
        ((K, "", "", AMD), "unknown operating system"),
        ((K, "ubuntu", "24.04", "riscv64"), "no image for riscv64"),
        (("7.0.0-27-generic", "ubuntu", "26.04", AMD, "580"), "no image of driver 580"),
        ((K, "ubuntu", "24.04", AMD, "latest"), "not a driver version"),
        ((K, "ubuntu", "24.04", AMD, "999", "build"), "no image of driver 999"),
    ],
)
def test_no_image(args: tuple[str, ...], text: str) -> None:
    with pytest.raises(m.NoDriverImage, match=f"no driver image for kernel {re.escape(args[0])}") as raised:
        m.choose(*args)
    assert text in str(raised.value)
    assert raised.value.faults[0].next_step


def test_images_that_the_user_knows() -> None:
    tag = "580-6.8.0-45-generic-ubuntu24.04"
    assert m.choose("6.8.0-45-generic", "ubuntu", "24.04", "arm64", "580", precompiled={tag}).tag == tag
    assert m.choose(K, "debian", "12", AMD, "580.178.04", builds={"580.178.04-debian12"}).source == "build"


def test_table_names_only_what_its_sources_can_mean() -> None:
    for (branch, name), kernels in m.PRECOMPILED.items():
        assert branch in {m.branch(version) for version in m.VERSIONS}
        assert name in m.BUILD_TAGS
        assert len(set(kernels)) == len(kernels)
        assert all(
            re.fullmatch(r"\d+\.\d+\.0-\d+-(generic|aws|azure|azure-fde|nvidia|oracle)", kernel) for kernel in kernels
        )


@pytest.mark.parametrize(
    ("os_id", "version", "tag"),
    [
        ("ubuntu", "24.04", "ubuntu24.04"),
        ("rhel", "9.6", "rhel9"),
        ("rocky", "8.10", "rocky8"),
        ("ol", "9.4", "ol9"),
        ("rhcos", "4.18", "rhcos4.18"),
    ],
)
def test_os_tags(os_id: str, version: str, tag: str) -> None:
    assert m.os_tag(os_id, version) == tag


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("6.8.0-111-generic", "6.8.0-111-generic"),
        ("5.14.0-570.el9.x86_64", "5.14.0-570.el9"),
        ("4.18.0-553.EL8_10.x86_64", "4.18.0-553.el8.10"),
    ],
)
def test_kernels_in_object_names(kernel: str, name: str) -> None:
    assert m.object_name(kernel) == name


def test_kernels_that_are_no_label_values_are_told_apart() -> None:
    assert m.label_value(K) == K
    assert m.label_value("6.1.0+") != m.label_value("6.1.0~")


@given(st.text(min_size=1, max_size=120))
def test_any_kernel_gets_legal_names(kernel: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", m.label_value(kernel))
    name = m.object_name(kernel)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)
    assert len(name) <= 40
