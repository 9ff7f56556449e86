# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine needs before it can become a node, and that a machine that has it is left alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host, Listener, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.plan import plan
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import BEGIN, certificate
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_prerequisites import FACTS
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_documents import SETTINGS as CLUSTER

SUM = f"sha256:{'1' * 64}"
BRIDGE = f"{places.CNI_PLUGINS}/bridge"
SETTINGS: dict[str, t.Any] = {
    **CLUSTER,
    "host": "cp1",
    "node": "cp1",
    "address": "10.0.0.11",
    "role": "server",
    "serves": True,
    "pause_image": "registry.k8s.io/pause:3.10.2",
    "runtime_packages": ["containerd"],
    "packages": [],
    "programs": [
        {"name": "kubeadm", "source": "https://mirror.example.com/kubeadm", "checksum": SUM},
        {"name": "kubelet", "source": "/files/kubelet", "checksum": SUM},
    ],
    "images": [{"source": "/files/node.tar", "checksum": SUM}],
    "cni_plugins": [{"source": "/files/cni.tgz", "checksum": SUM}],
    "skipped_checks": [],
}
BARE = Host(
    facts={**FACTS, "ip_forward": "0", "managers": "apt-get", "programs": "", "overlay": "nodev\toverlay"},
    addresses={"10.0.0.11": "eth0"},
    now=1000.0,
)


def ready(changed: dict[str, t.Any] | None = None) -> Host:
    """The machine after everything in the plan for a bare one was done, as the next run observes it."""
    made = plan(BARE, {**SETTINGS, **(changed or {})})
    files = {path: File(path, text) for path, text in made["contents"].items()}
    files[places.RECORD] = File(places.RECORD, made["record"], "0600")
    imported = f"{places.IMPORTED}/node.tar"
    files[imported] = File(imported, f"{SUM}\n")
    unpacked = f"{places.UNPACKED}/cni.tgz"
    files[unpacked] = File(unpacked, json.dumps({"made": ["bridge"], "checksum": SUM}))
    return dataclasses.replace(
        BARE,
        facts={
            **BARE.facts,
            "ip_forward": "1",
            "br_netfilter": "/proc/sys/net/bridge",
            "programs": "kubeadm\nkubelet\ncontainerd",
            "cni_plugins": BRIDGE,
        },
        files=files,
        checksums={f"{places.PROGRAMS_FOLDER}/{name}": "1" * 64 for name in ("kubeadm", "kubelet")},
        commands={"containerd": Command(0, "containerd github.com/containerd/containerd 1.6.20")},
        units={
            "containerd": Unit(loaded=True, active=True, enabled=True, started_at=900.0),
            "kubelet": Unit(loaded=True, active=False, enabled=True),
        },
        folders=(*(path.rpartition("/")[0] for path in files),),
    )


@pytest.mark.parametrize(
    ("tried", "told"),
    [
        (Command(0, ""), ""),
        (
            Command(1, "", "modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/6.1.0-1\n"),
            "the kernel does not have br_netfilter (modprobe): modprobe: FATAL: Module br_netfilter not found",
        ),
        (Command(127, ""), "the kernel does not have br_netfilter (modprobe): modprobe ends with 127"),
    ],
)
def test_modules_that_are_not_there_are_loaded_or_a_problem(tried: Command, told: str) -> None:
    made = plan(dataclasses.replace(BARE, commands={"modprobe": tried}), SETTINGS)
    assert made["modules"] == ["br_netfilter"]
    texts = [one["text"] for one in made["faults"]]
    assert len(texts) == bool(told) and told in "".join(texts)
    assert plan(ready(), SETTINGS)["modules"] == []


def test_a_bare_machine_gets_all_of_it() -> None:
    made = plan(BARE, SETTINGS)
    assert made["faults"] == []
    assert made["packages"] == ["containerd"]
    assert [(one["name"], one["path"], one["remote"]) for one in made["programs"]] == [
        ("kubeadm", "/usr/bin/kubeadm", True),
        ("kubelet", "/usr/bin/kubelet", False),
    ]
    assert [(one["name"], one["remote"]) for one in made["images"]] == [("node.tar", False)]
    assert [(one["name"], one["remote"]) for one in made["cni_plugins"]] == [("cni.tgz", False)]
    assert [one["path"] for one in made["files"]] == [
        places.MODULES,
        places.SYSCTL,
        places.UNIT,
        places.UNIT_DROP_IN,
        places.CONTAINERD,
    ]
    assert made["kernel"] and made["reload_units"]
    assert [(one["unit"], one["state"]) for one in made["actions"]] == [
        ("containerd", "started"),
        ("kubelet", "started"),
    ]
    assert made["found"]["state"] == "absent"
    record = json.loads(made["record"])
    assert record["packages"] == ["containerd"]
    assert set(record["files"]) == {one["path"] for one in (*made["files"], *made["programs"])}


def test_programs_and_images_are_those_of_the_machines_architecture() -> None:
    both = {
        name: [
            {**one, "architecture": of, "source": f"/{of}"} for one in SETTINGS[name] for of in ("aarch64", "x86_64")
        ]
        for name in ("programs", "images", "cni_plugins")
    }
    machine = dataclasses.replace(BARE, facts={**BARE.facts, "architecture": "aarch64"})
    made = plan(machine, {**SETTINGS, **both})
    assert {one["source"] for one in (*made["programs"], *made["images"], *made["cni_plugins"])} == {"/aarch64"}
    assert [one["name"] for one in made["programs"]] == ["kubeadm", "kubelet"]


def test_a_machine_that_has_all_of_it_is_left_alone() -> None:
    made = plan(ready(), SETTINGS)
    nothing = {
        key: made[key]
        for key in ("faults", "packages", "programs", "images", "cni_plugins", "files", "folders", "actions", "record")
    }
    assert {key: value for key, value in nothing.items() if value} == {}
    assert not made["kernel"] and not made["reload_units"]


def test_too_few_instances_of_inotify_are_raised_and_stay_raised() -> None:
    low = dataclasses.replace(ready(), facts={**ready().facts, "inotify": "128"})
    made = plan(low, SETTINGS)
    assert made["kernel"] and made["faults"] == []
    raised = "net.ipv4.ip_forward = 1\nfs.inotify.max_user_instances = 8192\n"
    assert made["contents"][places.SYSCTL] == raised and places.SYSCTL in [one["path"] for one in made["files"]]
    files = {**ready().files, places.SYSCTL: File(places.SYSCTL, raised)}
    again = plan(dataclasses.replace(low, facts={**low.facts, "inotify": "8192"}, files=files), SETTINGS)
    assert not again["kernel"] and again["files"] == []


def test_packets_of_ipv6_are_forwarded_where_a_network_has_its_addresses() -> None:
    both = {**SETTINGS, "service_network": "10.96.0.0/16,fd00:96::/112"}
    off = dataclasses.replace(ready(both), facts={**ready().facts, "ipv6_forward": "0"})
    made = plan(off, both)
    assert made["kernel"] and made["faults"] == []
    forwards = "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\nnet.ipv6.conf.default.forwarding = 1\n"
    assert made["contents"][places.SYSCTL] == forwards
    assert not plan(dataclasses.replace(off, facts={**off.facts, "ipv6_forward": "1"}), both)["kernel"]
    assert not plan(off, SETTINGS)["kernel"]
    (fault,) = plan(dataclasses.replace(off, facts={**off.facts, "ipv6_forward": ""}), both)["faults"]
    assert "the machine has no IPv6" in fault["text"]


def test_containerds_configuration_has_the_form_of_its_version() -> None:
    assert 'sandbox_image = "registry.k8s.io/pause:3.10.2"' in plan(BARE, SETTINGS)["contents"][places.CONTAINERD]
    two = dataclasses.replace(BARE, commands={"containerd": Command(0, "containerd v2.4.2")})
    text = plan(two, SETTINGS)["contents"][places.CONTAINERD]
    assert "\nversion = 3\n" in text and "SystemdCgroup = true" in text
    assert (
        "SystemdCgroup = false" in plan(two, {**SETTINGS, "cgroup_driver": "cgroupfs"})["contents"][places.CONTAINERD]
    )


def test_a_configuration_of_others_is_never_written() -> None:
    theirs = dataclasses.replace(BARE, files={places.CONTAINERD: File(places.CONTAINERD, "version = 2\n")})
    assert places.CONTAINERD not in plan(theirs, SETTINGS)["contents"]
    edited = ready()
    edited.files[places.CONTAINERD] = File(places.CONTAINERD, "version = 2\n# ours\n")
    assert places.CONTAINERD not in plan(edited, SETTINGS)["contents"]
    cri_o = dataclasses.replace(BARE, units={"crio": Unit(loaded=True)})
    assert places.CONTAINERD not in plan(cri_o, SETTINGS)["contents"]


@pytest.mark.parametrize(("fact", "algorithm"), [("conffiles", "md5"), ("rpm_files", "sha256")])
def test_a_configuration_that_only_the_package_has_written_is_replaced_before_a_machine_joins(
    fact: str, algorithm: str
) -> None:
    """Also by the run that installs the package, which had found none."""
    text = 'version = 2\ndisabled_plugins = ["cri"]\n'
    known = {fact: f" {places.CONTAINERD} {hashlib.new(algorithm, text.encode()).hexdigest()}\n /etc/default/x 0\n"}
    files = {places.CONTAINERD: File(places.CONTAINERD, text)}
    packaged = dataclasses.replace(BARE, files=files, facts={**BARE.facts, **known})
    made = plan(packaged, SETTINGS)
    assert places.CONTAINERD in made["contents"]
    kept = json.loads(made["record"])["files"][places.CONTAINERD]
    assert (kept["existed"], kept["original"]) == (True, text)
    record = plan(BARE, SETTINGS)["record"]
    installing = dataclasses.replace(packaged, files={**files, places.RECORD: File(places.RECORD, record)})
    assert places.CONTAINERD in plan(installing, SETTINGS)["contents"]
    # Also with bytes that are no UTF-8, as look.py reads them.
    for line in ("# ours\n", "# \udcff\n"):
        edited = dataclasses.replace(packaged, files={places.CONTAINERD: File(places.CONTAINERD, f"{text}{line}")})
        assert places.CONTAINERD not in plan(edited, SETTINGS)["contents"]


def test_containerd_restarts_only_for_a_file_that_it_has_not_read() -> None:
    old = ready()
    old.files[places.CONTAINERD] = dataclasses.replace(old.files[places.CONTAINERD], changed_at=950.0)
    assert [(one["unit"], one["state"]) for one in plan(old, SETTINGS)["actions"]] == [("containerd", "restarted")]


def test_another_program_or_archive_is_fetched_again() -> None:
    other = f"sha256:{'2' * 64}"
    programs = [{**one, "checksum": other} for one in SETTINGS["programs"][:1]]
    images = [{**SETTINGS["images"][0], "checksum": other}]
    made = plan(ready(), {**SETTINGS, "programs": programs, "images": images})
    assert [one["name"] for one in made["programs"]] == ["kubeadm"]
    assert [one["name"] for one in made["images"]] == ["node.tar"]


@pytest.mark.parametrize(
    ("machine", "changed", "told"),
    [
        (BARE, {"programs": []}, "kubeadm, kubelet is not installed"),
        (BARE, {"version": ""}, "the version of Kubernetes is not set"),
        (BARE, {"version": "1.31.9"}, "Kubernetes 1.31.9 is not supported"),
        (
            dataclasses.replace(BARE, listeners=(Listener("tcp", "*", 2379, "etcd"),)),
            {},
            "TCP port 2379 is taken by etcd",
        ),
        (
            dataclasses.replace(BARE, files={places.RECORD: File(places.RECORD, "{")}),
            {},
            "the record of the role's changes is damaged",
        ),
        (BARE, {"dns_domain": "a\nb"}, "a text has a line end"),
    ],
)
def test_nothing_is_planned_with_a_fault(machine: Host, changed: dict[str, t.Any], told: str) -> None:
    made = plan(machine, {**SETTINGS, **changed})
    assert told in " ".join(one["text"] for one in made["faults"])
    assert made["files"] == [] and made["record"] == ""


def test_a_member_is_only_told_what_it_lacks() -> None:
    present = "\n".join((places.AUTHORITY, places.KUBELET_CONF, places.KUBELET_CONFIG))
    machine = dataclasses.replace(ready(), facts={**ready().facts, "present": present, "clock": "no"})
    made = plan(machine, SETTINGS)
    assert made["faults"] == []
    assert "the clock is not synchronized" in made["messages"][0]


@pytest.mark.parametrize(
    ("days", "keys", "told", "others"),
    [
        (61, "", "expires in 61 days", False),
        (59, "", "expires in 59 days", True),
        (-2, "", "expired 2 days ago", True),
        # kubeadm renews them, which is why the machine has a turn.
        (59, "\n".join((*places.AUTHORITY_KEYS, places.ETCD_AUTHORITY_KEY)), "", False),
    ],
)
def test_it_is_told_how_long_certificates_last_and_who_has_to_renew_them(
    days: int, keys: str, told: str, others: bool
) -> None:
    member = (places.AUTHORITY, places.KUBELET_CONF, places.KUBELET_CONFIG)
    server = (places.ADMIN, places.API_SERVER, places.ETCD, places.DATA)
    machine = dataclasses.replace(
        ready(),
        facts={**ready().facts, "present": "\n".join((*member, *server)), "keys": keys},
        files={**ready().files, (path := places.CERTIFICATES[0]): File(path, certificate(365))},
        now=BEGIN.timestamp() + 86400 * (365 - days),
    )
    made = plan(machine, SETTINGS)
    assert made["faults"] == []
    messages = [text for text in made["messages"] if "certificate" in text]
    assert len(messages) == bool(told)
    assert all(f"a certificate of its control plane {told}" in text for text in messages)
    assert ["renew it with that authority" in text for text in messages] == [others] * len(messages)


def test_agents_need_no_ports_of_servers() -> None:
    machine = dataclasses.replace(BARE, listeners=(Listener("tcp", "*", 2379, "etcd"),))
    assert plan(machine, {**SETTINGS, "role": "agent", "serves": False})["faults"] == []


def test_packages_come_by_the_systems_own_manager() -> None:
    machine = dataclasses.replace(BARE, facts={**BARE.facts, "managers": "dnf"})
    made = plan(machine, {**SETTINGS, "runtime_packages": ["containerd.io"]})
    assert made["packages"] == ["containerd.io"] and not made["apt"]
    assert plan(dataclasses.replace(BARE, facts={**BARE.facts, "programs": "crio"}), SETTINGS)["packages"] == []


@pytest.mark.parametrize(
    ("note", "there"),
    [
        (json.dumps({"made": ["bridge"]}), BRIDGE),
        (json.dumps({"made": ["bridge"], "checksum": f"sha256:{'2' * 64}"}), BRIDGE),
        (json.dumps({"made": ["bridge"], "checksum": SUM}), f"{places.CNI_PLUGINS}/loopback"),
        ("{", BRIDGE),
    ],
    ids=["a run was killed", "another release", "a program has gone", "no note"],
)
def test_cni_plugins_are_unpacked_again(note: str, there: str) -> None:
    path = f"{places.UNPACKED}/cni.tgz"
    machine = ready()
    machine = dataclasses.replace(
        machine, files={**machine.files, path: File(path, note)}, facts={**machine.facts, "cni_plugins": there}
    )
    assert [one["name"] for one in plan(machine, SETTINGS)["cni_plugins"]] == ["cni.tgz"]
