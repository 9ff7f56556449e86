# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot servers give to machines of clusters of OpenShift."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import booting

INSTALLATION: dict[str, t.Any] = {
    "path": "/srv/installations/ocp",
    "publishable": {"bootstrap.ign": "a" * 64, "master.ign": "b" * 64, "worker.ign": "c" * 64},
    "artifacts": {
        kind: {"location": f"https://mirror.example.com/{kind}", "sha256": "d" * 64}
        for kind in ("kernel", "initramfs", "rootfs")
    },
}
OCP = {"hwaccel_machine_network": "10.33.3.0/24", booting.INSTALLATION: INSTALLATION}
NONE: dict[str, list[dict[str, t.Any]]] = {"artifacts": [], "ignitions": [], "profiles": []}


def test_machines_boot_the_release_with_the_ignition_file_of_their_role() -> None:
    found = booting.read({"ocp": OCP, "edge": {}})
    assert found["artifacts"][0] == {
        "path": "ocp/kernel",
        "source": "https://mirror.example.com/kernel",
        "checksum": f"sha256:{'d' * 64}",
    }
    assert found["ignitions"][0] == {"path": "ocp/bootstrap.ign", "source": "/srv/installations/ocp/bootstrap.ign"}
    assert [one["role"] for one in found["profiles"]] == ["bootstrap", "master", "worker"]
    assert found["profiles"][2] == {
        "role": "worker",
        "cluster": "ocp",
        "kernel": "ocp/kernel",
        "initramfs": "ocp/initramfs",
        "rootfs": "ocp/rootfs",
        "ignition": "ocp/worker.ign",
        "arguments": ["rd.neednet=1", "ip=dhcp"],
    }


IN_PLACE = "bootstrap-in-place-for-live-iso.ign"


def test_a_master_that_installs_itself_boots_a_live_system_and_its_workers_are_installed_as_usual() -> None:
    names = {IN_PLACE: "a" * 64, "worker.ign": "c" * 64}
    found = booting.read({"ocp": {**OCP, booting.INSTALLATION: {**INSTALLATION, "publishable": names}}})
    by = {one["role"]: one for one in found["profiles"]}
    assert set(by) == {"master", "worker"} and "live" not in by["worker"]
    assert (by["master"]["ignition"], by["master"]["live"]) == (f"ocp/{IN_PLACE}", True)
    assert by["master"]["arguments"] == ["rd.neednet=1", "ip=dhcp"]
    assert [one["path"] for one in found["artifacts"]] == ["ocp/kernel", "ocp/initramfs", "ocp/rootfs"]
    assert not [one for one in found["artifacts"] if "secret" in one], "they are those of the release"
    assert booting.read({"ocp": {booting.AWAITED: [IN_PLACE]}})["ignitions"][0]["assumed"]


def test_a_disk_for_all_clusters_is_not_for_a_live_system_that_finds_its_own() -> None:
    derived = booting.read(
        {"ocp": OCP, "edge": {booting.INSTALLATION: {**INSTALLATION, "publishable": {IN_PLACE: "a" * 64}}}}
    )
    profile = {"role": "master", "install_device": "/dev/sda", "arguments": ["ip=eno1:dhcp"]}
    given: dict[str, t.Any] = {"artifacts": [], "ignitions": [], "profiles": [profile]}
    by = {(one["cluster"], one["role"]): one for one in booting.with_given(derived, given)["profiles"]}
    assert by["ocp", "master"]["install_device"] == "/dev/sda"
    assert "install_device" not in by["edge", "master"] and by["edge", "master"]["arguments"] == ["ip=eno1:dhcp"]
    # dns_pxe refuses it.
    given["profiles"] = [{**profile, "cluster": "edge"}]
    found = booting.with_given(derived, given)["profiles"]
    assert [one["install_device"] for one in found if one["cluster"] == "edge"] == ["/dev/sda"]


@pytest.mark.parametrize(
    ("networks", "argument"),
    [
        ("fd33::/64", "ip=dhcp6"),
        (["10.33.3.0/24", "fd33::/64"], "ip=dhcp"),
        (["fd33::/64"], "ip=dhcp6"),
        ([], "ip=dhcp"),
    ],
)
def test_machines_ask_for_an_address_of_the_first_machine_network(networks: t.Any, argument: str) -> None:
    found = booting.read({"ocp": {**OCP, "hwaccel_machine_network": networks}})
    assert found["profiles"][0]["arguments"][-1] == argument


@pytest.mark.parametrize("variables", [{}, {booting.INSTALLATION: {}}, {booting.INSTALLATION: {"publishable": {}}}])
def test_without_files_there_is_nothing(variables: dict[str, t.Any]) -> None:
    assert booting.read({"ocp": variables}) == NONE


def test_files_that_are_going_to_be_made_are_assumed() -> None:
    found = booting.read({"ocp": {booting.AWAITED: ["bootstrap.ign", "master.ign", "worker.ign"]}})
    rows = [*found["artifacts"], *found["ignitions"]]
    assert len(rows) == 6 and all(one["assumed"] for one in rows)
    made = booting.read({"ocp": {**OCP, booting.AWAITED: ["worker.ign"]}})
    assert [one["path"] for one in made["ignitions"]] == [one["path"] for one in found["ignitions"]]
    assert not [one for one in [*made["artifacts"], *made["ignitions"]] if "assumed" in one]


def test_in_check_mode_the_release_of_files_that_are_there_is_assumed() -> None:
    found = booting.read({"ocp": {booting.INSTALLATION: {**INSTALLATION, "artifacts": {}}}})
    assert all("assumed" in one for one in found["artifacts"])
    assert not [one for one in found["ignitions"] if "assumed" in one]


def test_without_a_bootstrap_file_workers_can_still_be_added() -> None:
    later = {**INSTALLATION, "publishable": {"worker.ign": "c" * 64}}
    assert [one["role"] for one in booting.read({"ocp": {booting.INSTALLATION: later}})["profiles"]] == ["worker"]


def test_what_the_inventory_has_wins_key_by_key() -> None:
    derived = booting.read({"ocp": OCP, "ocp2": {**OCP, booting.INSTALLATION: {**INSTALLATION, "path": "/srv/2"}}})
    kernel = {"path": "ocp/kernel", "source": "/srv/kernel", "checksum": f"sha256:{'e' * 64}"}
    given: dict[str, list[dict[str, t.Any]]] = {
        "artifacts": [kernel],
        "ignitions": [{"path": "other.ign", "source": "/srv/other.ign"}],
        "profiles": [
            {"role": "worker", "cluster": "ocp", "install_device": "/dev/sda"},
            {"role": "master", "arguments": ["ip=eno1:dhcp"]},
            {"role": "worker", "cluster": "k3s", "kernel": "debian/linux", "initramfs": "debian/initrd"},
        ],
    }
    found = booting.with_given(derived, given)
    assert kernel in found["artifacts"] and len(found["artifacts"]) == 6
    assert found["ignitions"][-1] == given["ignitions"][0] and len(found["ignitions"]) == 7
    by = {(one["cluster"], one["role"]): one for one in found["profiles"]}
    assert by["ocp", "worker"]["install_device"] == "/dev/sda" and "install_device" not in by["ocp2", "worker"]
    assert by["ocp", "master"]["arguments"] == by["ocp2", "master"]["arguments"] == ["ip=eno1:dhcp"]
    assert by["k3s", "worker"] == given["profiles"][2]
    assert len(found["profiles"]) == 7


@pytest.mark.parametrize("wrong", ["text", ["text"], {"path": "a"}])
def test_what_is_no_list_of_dictionaries_is_left_to_the_role(wrong: t.Any) -> None:
    given = {"artifacts": [], "ignitions": [], "profiles": wrong}
    assert booting.with_given(booting.read({"ocp": OCP}), given) == given


def test_without_such_clusters_the_inventory_is_as_it_is() -> None:
    given: dict[str, list[dict[str, t.Any]]] = {
        "artifacts": [{"path": "a"}],
        "ignitions": [{"path": "b"}],
        "profiles": [{"role": "worker", "install_device": "/dev/sda"}],
    }
    assert booting.with_given(NONE, given) == given


def test_the_file_with_the_keys_goes_once_the_bootstrap_is_complete() -> None:
    """In the run that has published it, too."""
    found = booting.read({"ocp": {**OCP, "cluster_openshift_bootstrap": {"complete": True, "removable": False}}})
    assert [one["path"] for one in found["ignitions"]] == ["ocp/master.ign", "ocp/worker.ign"]
    assert [one["role"] for one in found["profiles"]] == ["master", "worker"]
    there = booting.read({"ocp": {**OCP, "cluster_openshift_bootstrap": {"complete": False, "removable": False}}})
    assert len(there["ignitions"]) == 3


POINTERS = {"master.ign": '{"ignition":{"master":1}}', "worker.ign": '{"ignition":{"worker":1}}'}


def there(*hosts: str, artifacts: bool = True, **made: t.Any) -> dict[str, t.Any]:
    """Variables of a cluster that was installed when the run began. made: what the program has named."""
    known = {"hosts": list(hosts), "artifacts": artifacts, "pointers": POINTERS if hosts else {}}
    return {**OCP, booting.JOINING: known, booting.INSTALLATION: {**INSTALLATION, **made}}


def test_machines_that_are_added_get_pointers_and_never_files_of_the_installation() -> None:
    found = booting.read({"ocp": there("w1")})
    assert found["ignitions"] == [
        {"path": f"ocp/{file}", "content": POINTERS[file]} for file in ("master.ign", "worker.ign")
    ]
    assert [one["role"] for one in found["profiles"]] == ["master", "worker"]
    assert found["artifacts"][0]["source"] == "https://mirror.example.com/kernel"


@pytest.mark.parametrize("method", ["upi", "in_place", "agent"])
def test_a_lost_folder_and_any_method_are_enough(method: str) -> None:
    """Whatever the folder has or had."""
    files = {"upi": {}, "in_place": {"worker.ign": "c" * 64}, "agent": {}}[method]
    found = booting.read({"ocp": there("w1", publishable=files)})
    assert [one["path"] for one in found["ignitions"]] == ["ocp/master.ign", "ocp/worker.ign"]


@pytest.mark.parametrize(("artifacts", "rows"), [(True, 3), (False, 0)])
def test_kernels_are_assumed_only_if_the_program_can_name_them(artifacts: bool, rows: int) -> None:
    """Otherwise dns_pxe names each that is missing, and where it is added."""
    found = booting.read({"ocp": {**there("w1", artifacts=artifacts), booting.INSTALLATION: {}}})
    assert len(found["artifacts"]) == rows and all(one["assumed"] for one in found["artifacts"])
    assert found["profiles"][1]["kernel"] == "ocp/kernel"


def test_keys_of_profiles_are_no_profiles_where_a_cluster_has_problems() -> None:
    """Such as one that was installed and does not answer: whoever reads its problem is not told to set kernels in addition."""
    groups = {"gpu_clusters": ["ocp"], "boot_servers": ["boot"]}
    whole = {"role": "storage", "kernel": "debian/linux", "initramfs": "debian/initrd"}
    boot = {"dns_pxe_profiles": [{"role": "worker", "install_device": "/dev/sda"}, whole]}
    ocp = {"cluster_openshift_faults": [{"text": "it was installed, and does not answer now", "where": "ocp"}]}
    assert booting.of_server(groups, {"ocp": ocp, "boot": boot}, "boot")["profiles"] == [whole]
    # Without them, they may be meant as whole ones.
    unseen = {"cluster_openshift_faults": []}
    assert booting.of_server(groups, {"ocp": unseen, "boot": boot}, "boot")["profiles"] == boot["dns_pxe_profiles"]


def test_nothing_is_given_where_no_machine_is_added() -> None:
    groups = {"gpu_clusters": ["ocp"], "boot_servers": ["boot"]}
    kernel = {"path": "ocp/kernel", "source": "/srv/kernel", "checksum": f"sha256:{'e' * 64}"}
    given = [
        {"role": "worker", "install_device": "/dev/sda"},
        {"role": "bootstrap", "install_device": "/dev/sda"},
        {"role": "storage", "kernel": "debian/linux", "initramfs": "debian/initrd"},
    ]
    boot = {"dns_pxe_profiles": given, "dns_pxe_artifacts": [kernel]}
    resting = booting.of_server(groups, {"ocp": there(), "boot": boot}, "boot")
    assert resting == {"artifacts": [kernel], "ignitions": [], "profiles": given[2:]}
    added = booting.of_server(groups, {"ocp": there("w1", artifacts=False), "boot": boot}, "boot")
    assert [one["role"] for one in added["profiles"]] == ["master", "worker", "storage"]
    assert added["profiles"][1]["install_device"] == "/dev/sda"
    assert [one["source"] for one in added["artifacts"]].count("/srv/kernel") == 1
