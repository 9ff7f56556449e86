# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jetson boards and small machines before K3s is started there: what they are, what they lack, and the label with which they register.

Texts of /etc/nv_tegra_release and /proc/device-tree/model are in the form of JetPack 4 to 7.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host as observed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import boards, kernel, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.plan import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.request import request
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_plan import BARE, SETTINGS, changed, member
from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded
from ansible_collections.hwaccel.gpu.tests.unit.machines.test_host import LOOK, printed

AGENT = {**SETTINGS, "role": "agent", "serves": False, "images": []}
LONE = {**SETTINGS, "images": [], "machines": [one for one in SETTINGS["machines"] if one["host"] in ("s1", "a1")]}
ORIN, NANO = "NVIDIA Jetson Orin Nano Developer Kit\0", "NVIDIA Jetson Nano Developer Kit\0"
R36 = (
    "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 UTC 2025"
)
R32 = (
    "# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref, EABI: aarch64, DATE: Sat Feb 19 17:05:08 UTC 2022"
)
EVERY = "\n".join(["/proc/config.gz", *(f"{name}=m" for name in kernel.OPTIONS)])


def board(model: str = ORIN, tegra: str = R36, **facts: str) -> Host:
    most = {"architecture": "aarch64", "mounted": "ext4", "medium": "", "size_bytes": str(250 * 1000**3)}
    memory = {"memory": "MemTotal:        7802108 kB"}
    return changed(
        BARE,
        **{
            **most,
            **memory,
            "kernel": "5.15.148-tegra",
            "model": model,
            "tegra": tegra,
            "kernel_options": EVERY,
            **facts,
        },
    )


def texts(host: Host, settings: dict[str, t.Any]) -> list[str]:
    return [one["text"] for one in plan(host, settings)["faults"]]


@pytest.mark.parametrize(
    ("model", "tegra", "name", "release"),
    [
        (ORIN, R36, "Orin Nano", 36),
        ("NVIDIA Orin Nano Developer Kit\0", R36.replace("36", "35", 1), "Orin Nano", 35),
        (NANO, R32, "Nano", 32),
        ("NVIDIA Jetson Nano 2GB Developer Kit\0", R32, "Nano 2GB", 32),
        ("NVIDIA Jetson Xavier NX Developer Kit\0", R32, "Xavier NX", 32),
        ("Jetson-AGX\0", R32, "AGX Xavier", 32),
        ("NVIDIA Jetson AGX Xavier Developer Kit\0", R36.replace("36", "35", 1), "AGX Xavier", 35),
        ("NVIDIA Jetson AGX Orin Developer Kit\0", R36, "AGX Orin", 36),
        ("NVIDIA Jetson AGX Thor Developer Kit\0", "# R38 (release), REVISION: 2.0", "AGX Thor", 38),
        ("quill\0", R32, "TX2", 32),
        ("lanai-3636\0", R32, "another board", 32),
        ("NVIDIA Jetson Orin NX Engineering Reference Developer Kit\0", "", "Orin NX", 0),
        ("", R36, "another board", 36),
    ],
)
def test_a_board_is_known_by_its_release_or_its_model(model: str, tegra: str, name: str, release: int) -> None:
    found = boards.known(board(model, tegra))
    assert found and (found.board.name, found.release) == (name, release)


def test_other_machines_are_none() -> None:
    assert boards.known(BARE) is None
    assert boards.known(board("Raspberry Pi 5 Model B Rev 1.0\0", "")) is None


def test_a_board_registers_with_the_label_of_nodes_with_gpus() -> None:
    made = plan(board(), AGENT)
    assert made["faults"] == []
    assert yaml.safe_load(made["contents"][places.CONFIGURATION])["node-label"] == ["nvidia.com/gpu.present=true"]
    assert "node-label" not in plan(BARE, AGENT)["contents"][places.CONFIGURATION]
    # Who has set it, by hwaccel_node_labels, has reasons.
    for value in ("true", "false"):
        settings = {**AGENT, "labels": {"nvidia.com/gpu.present": value}}
        assert "node-label" not in plan(board(), settings)["contents"][places.CONFIGURATION]


@pytest.mark.parametrize(
    ("host", "settings", "told"),
    [
        (
            board(read_only="/etc\n/usr/local/bin\n/var/lib/rancher/k3s"),
            AGENT,
            ["the file system is read-only (/etc)", "read-only (/usr/local/bin)", "read-only (/var/lib/rancher/k3s)"],
        ),
        (changed(BARE, read_only="/usr/local/bin"), AGENT, ["the file system is read-only (/usr/local/bin)"]),
        (board(mounted="overlay"), AGENT, ["a boot would lose what is written (/var/lib/rancher/k3s)"]),
        (board(medium="SD"), SETTINGS, ["a server with etcd would be on an SD card"]),
        (board(medium="SD"), {**LONE, "datastore": "etcd"}, ["a server with etcd would be on an SD card"]),
        (changed(BARE, medium="SD"), SETTINGS, ["a server with etcd would be on an SD card"]),
        (board(size_bytes=str(30 * 1000**3)), AGENT, ["the file system has 30 GB (/var/lib/rancher/k3s)"]),
        (board(memory="MemTotal: 3900000 kB"), LONE, []),
        (board(memory="MemTotal: 1990000 kB"), LONE, ["has 1943 MiB of memory"]),
        (board(memory="MemTotal: 990000 kB"), LONE, ["has 966 MiB of memory"]),
        (board(memory="MemTotal: 1990000 kB"), AGENT, []),
        (board(memory="MemTotal: 990000 kB"), AGENT, ["has 966 MiB of memory"]),
        (
            board(NANO, R32, cgroup="tmpfs"),
            AGENT,
            ["the NVIDIA Jetson Nano Developer Kit has Linux for Tegra 32 (/etc/nv_tegra_release)"],
        ),
    ],
)
def test_what_a_board_lacks_is_told_before_anything_is_done(
    host: Host, settings: dict[str, t.Any], told: list[str]
) -> None:
    found = texts(host, settings)
    assert len(found) == len(told) and all(part in text for part, text in zip(told, found, strict=True)), found
    assert all("Next: " in text for text in found)


@pytest.mark.parametrize(
    ("host", "settings"),
    [
        (board(medium="SD"), LONE),
        (board(medium="SD"), AGENT),
        (board(medium="MMC"), SETTINGS),
        (board(medium="SD"), {**SETTINGS, "skipped_checks": ["storage"]}),
        (board(size_bytes=str(52 * 1000**3)), AGENT),
        (board(size_bytes=str(30 * 1000**3)), {**AGENT, "skipped_checks": ["disk"]}),
        (board(memory="MemTotal: 990000 kB"), {**AGENT, "skipped_checks": ["memory"]}),
        (board(NANO, R32, cgroup="tmpfs"), {**AGENT, "version": "1.34.1+k3s1"}),
        (board(NANO, R32, cgroup="tmpfs"), {**AGENT, "skipped_checks": ["cgroup"]}),
        (changed(BARE, mounted="overlay"), AGENT),
    ],
)
def test_what_does_is_left_alone(host: Host, settings: dict[str, t.Any]) -> None:
    assert texts(host, settings) == []


# -- the kernel


def without(*names: str, where: str = "/proc/config.gz") -> str:
    return "\n".join([where, *(f"{name}=y" for name in kernel.OPTIONS if name not in names)])


@pytest.mark.parametrize(
    ("lacks", "settings", "told"),
    [
        (
            ("VXLAN",),
            AGENT,
            ["lacks CONFIG_VXLAN (/proc/config.gz): flannel needs it. Next: boot a kernel that has it, or set"],
        ),
        (("VXLAN",), {**AGENT, "flannel_backend": "host-gw"}, []),
        (("VXLAN",), {**AGENT, "skipped_checks": ["kernel"]}, []),
        (("WIREGUARD",), AGENT, []),
        (("WIREGUARD",), {**AGENT, "flannel_backend": "wireguard-native"}, ["lacks CONFIG_WIREGUARD"]),
        (("BRIDGE_NETFILTER", "MEMCG"), AGENT, ["lacks CONFIG_MEMCG", "lacks CONFIG_BRIDGE_NETFILTER"]),
        (("IP_NF_FILTER",), AGENT, []),
        (("IP_NF_FILTER", "NFT_COMPAT"), AGENT, ["lacks CONFIG_IP_NF_FILTER"]),
        (("CGROUP_FREEZER", "CGROUP_CPUACCT"), AGENT, []),
        (("OVERLAY_FS",), AGENT, ["lacks CONFIG_OVERLAY_FS"]),
        (("OVERLAY_FS",), {**AGENT, "configuration": {"snapshotter": "native"}}, []),
        (("OVERLAY_FS",), {**AGENT, "engine": "docker"}, []),
        (("IP_SET",), AGENT, []),
        (("IP_SET",), {**AGENT, "hardening": "cis"}, ["lacks CONFIG_IP_SET"]),
    ],
)
def test_each_option_that_the_kernel_lacks_is_a_problem_by_its_name(
    lacks: tuple[str, ...], settings: dict[str, t.Any], told: list[str]
) -> None:
    docker = {"docker": Unit(loaded=True, active=True)}
    found = texts(dataclasses.replace(board(kernel_options=without(*lacks)), units=docker), settings)
    assert len(found) == len(told) and all(part in text for part, text in zip(told, found, strict=True)), found


def test_a_kernel_with_control_groups_of_version_1_needs_more() -> None:
    settings = {**AGENT, "version": "1.34.1+k3s1"}
    found = texts(board(NANO, R32, cgroup="tmpfs", kernel_options=without("CGROUP_FREEZER")), settings)
    assert len(found) == 1 and "lacks CONFIG_CGROUP_FREEZER" in found[0]


def test_a_kernel_that_does_not_tell_its_options_has_none_that_are_missing() -> None:
    assert texts(board(kernel_options=""), AGENT) == []


def test_a_member_that_lacks_something_goes_on_and_is_told() -> None:
    made = plan(changed(member(), kernel_options=without("VXLAN")), SETTINGS)
    assert made["faults"] == [] and any("CONFIG_VXLAN" in text for text in made["messages"])


# -- the look at the machine


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> t.Any:
    return loaded(LOOK)


MOUNTS = """22 1 179:1 / / rw,relatime - ext4 /dev/root rw
25 22 0:22 / /run rw,nosuid - tmpfs tmpfs rw
31 22 259:1 / /var/lib/rancher rw - ext4 /dev/nvme0n1p1 rw
32 22 0:40 / /with\\040blank rw - overlay overlay rw
"""


def test_the_innermost_mount_has_a_folder(look: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "content", {"/proc/self/mountinfo": MOUNTS}.get)
    assert look.mount("/var/lib/rancher/k3s") == ("259:1", "ext4")
    assert look.mount("/var/lib/rancher-of-others") == look.mount("/etc") == ("179:1", "ext4")
    assert look.mounted("/with blank/x") == "overlay" and look.mounted("/run") == "tmpfs"


def test_a_card_is_known_by_its_disk_and_through_what_is_on_it(
    look: t.Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    for disk, kind in (("mmcblk0", "MMC"), ("mmcblk1", "SD"), ("sda", "0")):
        (tmp_path / disk / "device").mkdir(parents=True)
        (tmp_path / disk / "device" / "type").write_text(f"{kind}\n", encoding="ascii")
        (tmp_path / disk / f"{disk}p1").mkdir()
    (tmp_path / "dm-0" / "slaves").mkdir(parents=True)
    (tmp_path / "dm-0" / "slaves" / "mmcblk1p1").symlink_to(tmp_path / "mmcblk1" / "mmcblk1p1")
    found = {name: look.card(str(tmp_path / name)) for name in ("mmcblk0", "mmcblk1/mmcblk1p1", "sda/sdap1", "dm-0")}
    assert found == {"mmcblk0": "MMC", "mmcblk1/mmcblk1p1": "SD", "sda/sdap1": "", "dm-0": "SD"}


def test_options_of_the_kernel_are_read_where_it_has_them(
    look: t.Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    text = b"CONFIG_VXLAN=m\nCONFIG_MEMCG=y\n# CONFIG_KEYS is not set\nCONFIG_HZ=250\nCONFIG_VXLAN_MORE=y\n"
    paths = {
        "/proc/config.gz": tmp_path / "none.gz",
        f"/boot/config-{look.platform.release()}": tmp_path / "plain",
    }
    monkeypatch.setattr(look, "open", lambda path, mode: io.FileIO(paths.get(path, path), mode), raising=False)
    (tmp_path / "plain").write_bytes(text)
    monkeypatch.setattr(look.gzip, "open", lambda path, mode: gzip.GzipFile(paths[path], mode))
    plain = look.kernel_options("VXLAN", "KEYS", "MEMCG")
    assert plain == [f"/boot/config-{look.platform.release()}", "VXLAN=m", "MEMCG=y"]
    (tmp_path / "none.gz").write_bytes(gzip.compress(text))
    assert look.kernel_options("VXLAN", "KEYS", "MEMCG") == ["/proc/config.gz", "VXLAN=m", "MEMCG=y"]


def test_this_machine_answers_the_request_of_the_role() -> None:
    answered = observed.read(printed(request(SETTINGS)))
    assert answered.facts.keys() >= {"medium", "mounted", "read_only", "size_bytes", "kernel_options", "sysctls"}
    assert int(answered.fact("size_bytes")) > 0 and answered.fact("mounted")
    assert json.loads(request(SETTINGS).as_text())["facts"]["medium"] == ["medium", places.DATA]


def test_the_page_has_every_board() -> None:
    page = (LOOK.parents[3] / "docs" / "jetson.md").read_text(encoding="utf-8").splitlines()
    rows = [f"| {one.name} | {one.storage} GB | {one.agent} MiB, {one.server} MiB |" for one in boards.BOARDS]
    assert [line for line in page if line.endswith(" MiB |")] == rows
