# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that leaves its cluster is as before, by what the role has recorded, and what others have made stays."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.leaving import restored as _restored
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import predicted
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_plan import BRIDGE, ready
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_turn import host as server

KUBEADM, KUBELET = (f"{places.PROGRAMS_FOLDER}/{name}" for name in ("kubeadm", "kubelet"))
SETTINGS = {"node": "cp1", "runtime_socket": "", "packages": []}
OURS = [places.MODULES, places.SYSCTL, places.UNIT, places.UNIT_DROP_IN, places.CONTAINERD]


def restored(machine: Host) -> dict[str, t.Any]:
    return _restored(machine, SETTINGS)


def recorded(machine: Host, **changed: t.Any) -> Host:
    """With another record than the role has written."""
    record = {**json.loads(machine.text(places.RECORD)), **changed}
    return dataclasses.replace(
        machine, files={**machine.files, places.RECORD: File(places.RECORD, json.dumps(record), "0600")}
    )


def test_all_that_the_role_has_made_goes() -> None:
    made = restored(server())
    assert made["resets"] and made["faults"] == [] and made["messages"] == []
    assert sorted(made["absent"]) == sorted([*OURS, KUBEADM, KUBELET, BRIDGE])
    assert made["stops"] == ["kubelet"] and made["reload_units"]
    assert made["packages"] == ["containerd"]
    # Its packages leave the images.
    assert made["removed"] == ["/var/lib/containerd", places.FOLDER]
    assert made["found"]["state"] == "member"
    assert predicted(made, absent=True)[0] == "remove the node"
    assert made["left"] and made["network"] and made["identity"] == {"node name": "cp1"}


def test_a_program_that_a_killed_run_has_begun_to_unpack_goes_too() -> None:
    facts = {"cni_plugins": f"{BRIDGE}\n{places.CNI_PLUGINS}/mine\n{places.UNPACKING}"}
    absent = restored(server(facts=facts))["absent"]
    assert [path for path in absent if path.startswith(places.CNI_PLUGINS)] == [BRIDGE, places.UNPACKING]


def test_secrets_that_a_run_has_left_go_too() -> None:
    machine = server(facts={"secrets": places.SECRETS})
    assert places.SECRETS in restored(machine)["absent"] and places.SECRETS not in restored(server())["absent"]


def test_keys_that_kubeadm_does_not_remove_go_too() -> None:
    """Of a run that was killed before kubeadm has made anything."""
    facts = {"encryption_kept": places.ENCRYPTION}
    assert places.ENCRYPTION in restored(server(facts=facts))["absent"]
    assert places.ENCRYPTION not in restored(server())["absent"] and restored(Host(facts=facts))["absent"] == []


def test_a_machine_that_was_never_one_of_the_cluster_is_left_alone() -> None:
    made = restored(Host())
    assert predicted(made, absent=True) == [] and made["removed"] == [] and not made["resets"] and not made["left"]
    # It may have given its name to another one.
    assert made["identity"] == {}


def test_a_run_continues_one_that_was_killed() -> None:
    """kubeadm was reset, and files are gone, but not the record."""
    left = dataclasses.replace(ready(), files={places.RECORD: ready().files[places.RECORD]}, checksums={})
    made = restored(left)
    assert (made["left"], made["resets"], made["absent"]) == (True, False, [])
    assert made["removed"] == ["/var/lib/containerd", places.FOLDER]


def test_what_was_there_before_or_was_changed_by_others_stays() -> None:
    machine = server()
    files = json.loads(machine.text(places.RECORD))["files"]
    files[KUBELET]["existed"] = True
    machine = recorded(machine, files=files)
    machine = dataclasses.replace(machine, files={**machine.files, places.SYSCTL: File(places.SYSCTL, "mine\n")})
    made = restored(machine)
    assert KUBELET not in made["absent"] and places.SYSCTL not in made["absent"]
    assert made["messages"] == [
        f"{places.SYSCTL} stays, as others have changed it",
        f"{KUBELET} stays, as it was there before",
    ]


def test_a_configuration_that_the_role_has_replaced_is_as_before() -> None:
    """containerd's, as its package has brought it."""
    machine = server()
    files = json.loads(machine.text(places.RECORD))["files"]
    files[places.CONTAINERD] |= {"existed": True, "original": "version = 2\n"}
    services = {"containerd": {"active": True, "enabled": True}}
    machine = recorded(machine, files=files, packages=[], services=services)
    made = restored(machine)
    assert made["restores"] == {places.CONTAINERD: "version = 2\n"} and places.CONTAINERD not in made["absent"]
    assert f"restore {places.CONTAINERD}" in predicted(made, absent=True)
    assert ("containerd", "restarted") in [(one["unit"], one["state"]) for one in made["actions"]]

    def with_text(text: str) -> dict[str, t.Any]:
        there = File(places.CONTAINERD, text)
        return restored(dataclasses.replace(machine, files={**machine.files, places.CONTAINERD: there}))

    again, edited = with_text("version = 2\n"), with_text("version = 3\n")
    assert (again["restores"], again["messages"]) == ({}, []), "a run that was killed has restored it"
    assert edited["restores"] == {}
    assert edited["messages"] == [f"{places.CONTAINERD} stays, as others have changed it"]


def test_a_container_runtime_that_was_there_before_reads_its_own_configuration_again() -> None:
    machine = recorded(
        server(),
        packages=[],
        services={"containerd": {"active": True, "enabled": True}, "kubelet": {"active": False, "enabled": False}},
    )
    made = restored(machine)
    assert [(one["unit"], one["state"]) for one in made["actions"]] == [("containerd", "restarted")]
    assert made["packages"] == [] and made["removed"] == [places.FOLDER]


def test_a_container_runtime_that_did_not_run_before_is_stopped() -> None:
    machine = server()
    files = {
        path: one for path, one in json.loads(machine.text(places.RECORD))["files"].items() if path != places.CONTAINERD
    }
    services = {"containerd": {"active": False, "enabled": False}, "kubelet": {"active": False, "enabled": False}}
    made = restored(recorded(machine, packages=[], files=files, services=services))
    assert [(one["unit"], one["state"], one["enabled"]) for one in made["actions"]] == [
        ("containerd", "stopped", False)
    ]
    services["containerd"] = {"active": True, "enabled": True}
    assert restored(recorded(machine, packages=[], files=files, services=services))["actions"] == []


def test_a_kubelet_of_a_package_is_as_before() -> None:
    machine = server()
    files = {path: one for path, one in json.loads(machine.text(places.RECORD))["files"].items() if path != places.UNIT}
    made = restored(recorded(machine, files=files))
    assert made["stops"] == []
    assert [(one["unit"], one["state"], one["enabled"]) for one in made["actions"]] == [("kubelet", "stopped", False)]


def test_snapshots_stay() -> None:
    machine = server(facts={"snapshots": f"{places.SNAPSHOTS}/a.db"})
    made = restored(machine)
    assert places.FOLDER not in made["removed"] and places.RECORD in made["removed"]
    assert made["messages"] == [f"snapshots of etcd stay in {places.SNAPSHOTS}"]


def test_another_distribution_is_not_touched() -> None:
    made = restored(Host(units={"k3s": Unit(loaded=True)}))
    assert "K3s is installed" in made["faults"][0]["text"] and not made["resets"]


def test_network_interfaces_of_before_are_remembered() -> None:
    assert restored(server())["before"] == []
    assert restored(recorded(server(), settings={"before": "/sys/class/net/cni0 /etc/cni/net.d/10.conf"}))[
        "before"
    ] == [
        "/sys/class/net/cni0",
        "/etc/cni/net.d/10.conf",
    ]


def test_nothing_is_removed_by_guess_where_nothing_was_recorded() -> None:
    machine = server()
    files = {path: file for path, file in machine.files.items() if path != places.RECORD}
    made = restored(dataclasses.replace(machine, files=files))
    assert made["resets"] and not made["network"]
    assert made["absent"] == [] and made["removed"] == []


def test_which_cluster_an_earlier_run_has_begun_to_remove() -> None:
    assert restored(server())["confirmed"] == ""
    assert restored(server(files={places.TEARDOWN: File(places.TEARDOWN, "2a62\n")}))["confirmed"] == "2a62"
