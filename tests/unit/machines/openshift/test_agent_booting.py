# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot servers give to machines that agents install."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import entries, model
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import agent_booting, booting
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import machine, settings

NAMES = [f"boot-artifacts/agent.x86_64-{end}" for end in ("initrd.img", "rootfs.img", "vmlinuz")]
MADE: dict[str, t.Any] = {
    "path": "/srv/installations/edge",
    "publishable": dict(zip(NAMES, ("a" * 64, "b" * 64, "c" * 64), strict=True)),
    "secret": [NAMES[0]],
    # Of the release: agents boot their own.
    "artifacts": {
        kind: {"location": f"https://m.example.com/{kind}", "sha256": "d" * 64}
        for kind in ("kernel", "initramfs", "rootfs")
    },
}


def test_all_machines_boot_one_live_system_whose_initramfs_holds_the_keys() -> None:
    found = booting.read({"edge": {booting.INSTALLATION: MADE}})
    assert found["artifacts"] == [
        {"path": "edge/kernel", "source": f"/srv/installations/edge/{NAMES[2]}", "checksum": f"sha256:{'c' * 64}"},
        {
            "path": "edge/initramfs",
            "source": f"/srv/installations/edge/{NAMES[0]}",
            "checksum": f"sha256:{'a' * 64}",
            "secret": True,
        },
        {"path": "edge/rootfs", "source": f"/srv/installations/edge/{NAMES[1]}", "checksum": f"sha256:{'b' * 64}"},
    ]
    assert found["ignitions"] == []
    boots = {"kernel": "edge/kernel", "initramfs": "edge/initramfs", "rootfs": "edge/rootfs"}
    assert found["profiles"] == [
        {"role": role, "cluster": "edge", **boots, "live": True, "arguments": ["rw"]} for role in ("master", "worker")
    ]


def test_the_kernel_gets_the_arguments_of_the_script_that_the_tool_writes() -> None:
    """Section 6 of tests/openshift/behaviours.yml."""
    found = booting.read({"ocp": {booting.INSTALLATION: MADE}})
    given = settings(machines=[machine("master-0", "master", 11)], **found)
    site, faults = model.read(given)
    assert site and not faults
    (profile,) = [one for one in site.profiles if one.role == "master"]
    assert set(entries.arguments(site, site.machines[0], profile, "http://boot").split()) == {
        "coreos.live.rootfs_url=http://boot/images/ocp/rootfs",
        "rw",
        "ignition.firstboot",
        "ignition.platform.id=metal",
    }


def test_files_that_are_going_to_be_made_are_assumed_and_the_initramfs_is_known_to_hold_keys() -> None:
    found = booting.read({"edge": {booting.AWAITED: NAMES}})
    assert [(one["path"], one["assumed"], one.get("secret", False)) for one in found["artifacts"]] == [
        ("edge/kernel", True, False),
        ("edge/initramfs", True, True),
        ("edge/rootfs", True, False),
    ]
    assert len(found["profiles"]) == 2


@pytest.mark.parametrize(
    "names", [[], NAMES[1:], ["bootstrap.ign", "boot-artifacts/agent.x86_64.ipxe"], [f"other/{name}" for name in NAMES]]
)
def test_without_all_three_there_is_nothing(names: list[str]) -> None:
    assert agent_booting.read("edge", {}, names) == {}


def test_an_initramfs_holds_keys_whatever_is_said_of_it_and_so_does_what_is_said_to() -> None:
    made = {**MADE, "secret": [NAMES[1]]}
    found = agent_booting.read("edge", made, NAMES)["artifacts"]
    assert [one["path"] for one in found if one.get("secret")] == ["edge/initramfs", "edge/rootfs"]
