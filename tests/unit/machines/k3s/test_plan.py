# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine needs before K3s is started on it, what it is, and that a member which has everything is left alone."""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host, Listener, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.leaving import restored
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.plan import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.request import request
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import BEGIN, certificate
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_prerequisites import FACTS
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_configuration import SETTINGS as CLUSTER

SUM, OTHER = "1" * 64, "2" * 64
SETTINGS: dict[str, t.Any] = {
    **CLUSTER,
    "programs": [
        {"source": "https://mirror.example.com/k3s", "checksum": f"sha256:{SUM}", "architecture": "x86_64"},
        {"source": "/files/k3s-arm64", "checksum": f"sha256:{OTHER}", "architecture": "aarch64"},
    ],
    "images": [{"source": "/files/k3s-airgap-images-amd64.tar.zst", "checksum": f"sha256:{SUM}"}],
    "registries": {"mirrors": {"docker.io": {"endpoint": ["https://mirror.example.com"]}}},
    "skipped_checks": [],
}
BARE = Host(facts={**FACTS, "architecture": "x86_64"}, addresses={"10.0.0.11": "eth0"}, now=BEGIN.timestamp())
PRINTED = "k3s version v1.36.4+k3s1 (1a2b3c4d)\ngo version go1.26.1\n"


def ready(**changed: t.Any) -> Host:
    """The machine after everything in the plan for a bare one was done, as the next run observes it."""
    made = plan(BARE, {**SETTINGS, **changed})
    assert not made["faults"]
    modes = {one["path"]: one["mode"] for one in made["files"]}
    files = {path: File(path, text, modes[path]) for path, text in made["contents"].items()}
    files[places.RECORD] = File(places.RECORD, made["record"], "0600")
    copied = f"{places.COPIED}/k3s-airgap-images-amd64.tar.zst"
    files[copied] = File(copied, f"sha256:{SUM}\n")
    return dataclasses.replace(
        BARE,
        files=files,
        facts={**BARE.facts, "archives": f"{places.IMAGES}/k3s-airgap-images-amd64.tar.zst\n"},
        folders=(places.SETTINGS, f"{places.SETTINGS}/config.yaml.d", "/etc/systemd/system"),
        checksums={places.PROGRAM: SUM},
        commands={"k3s": Command(0, PRINTED)},
    )


def member(role: str = "server", **changed: t.Any) -> Host:
    """The same once K3s runs. An agent has no certificates of a server."""
    host = ready(role=role, **changed)
    pem = certificate(days=3650)
    present = [places.AUTHORITY, places.NODE_CERTIFICATE, places.TOKEN]
    files = {places.AUTHORITY: File(places.AUTHORITY, pem)}
    files |= {path: File(path, certificate(days=365)) for path in places.NODE_CERTIFICATES}
    if role == "server":
        present += [places.SERVER_AUTHORITY, places.ETCD, places.ADMIN, places.AGENT_TOKEN]
        files[places.SERVER_AUTHORITY] = File(places.SERVER_AUTHORITY, pem)
        files |= {path: File(path, certificate(days=365)) for path in places.CERTIFICATES}
    entry = "token-file: /etc/rancher/k3s/token\nserver: https://10.0.0.1:6443\n"
    files[places.ENTRY] = File(places.ENTRY, entry)
    unit = Unit(loaded=True, active=True, enabled=True, started_at=host.now - 60, changed_at=host.now - 50)
    return dataclasses.replace(
        host,
        facts={**host.facts, "present": "\n".join(present)},
        files={**host.files, **files},
        units={places.UNITS[role]: unit},
    )


def test_a_bare_machine_gets_the_program_of_its_architecture_and_files_that_others_cannot_read() -> None:
    made = plan(BARE, SETTINGS)
    assert made["faults"] == [] and made["found"]["state"] == "absent"
    assert [(one["path"], one["source"], one["remote"]) for one in made["programs"]] == [
        (places.PROGRAM, "https://mirror.example.com/k3s", True)
    ]
    assert [one["name"] for one in made["images"]] == ["k3s-airgap-images-amd64.tar.zst"]
    assert {one["path"]: one["mode"] for one in made["files"]} == {
        places.CONFIGURATION: "0600",
        "/etc/systemd/system/k3s.service": "0644",
        places.REGISTRIES: "0600",
    }
    assert "ExecStart=/usr/local/bin/k3s server\n" in made["contents"]["/etc/systemd/system/k3s.service"]
    # Credentials of a registry are in no record.
    assert "mirror.example.com" not in made["record"]


def test_a_machine_that_is_ready_needs_nothing() -> None:
    made = plan(ready(), SETTINGS)
    assert made["programs"] == made["images"] == made["files"] == made["absent"] == [] and made["record"] == ""


@pytest.mark.parametrize("role", ["server", "agent"])
def test_a_member_that_runs_as_it_is_set_is_left_alone(role: str) -> None:
    made = plan(member(role), {**SETTINGS, "role": role})
    assert made["faults"] == []
    assert (made["found"]["state"], made["found"]["serves"]) == ("member", role == "server")
    assert made["turn"]["reasons"] == made["files"] == made["programs"] == []
    assert made["found"]["version"] == [1, 36, 4] and made["found"]["endpoint"] == "https://10.0.0.1:6443"


def changed(host: Host, **facts: str) -> Host:
    return dataclasses.replace(host, facts={**host.facts, **facts})


def without(host: Host, *paths: str) -> Host:
    return changed(host, present="\n".join(one for one in host.fact("present").split() if one not in paths))


@pytest.mark.parametrize(
    ("host", "state", "why"),
    [
        (BARE, "absent", ""),
        (member(), "member", ""),
        # K3s completes by itself what a server with data lacks.
        (without(member(), places.NODE_CERTIFICATE, places.AUTHORITY), "member", ""),
        (without(member(), places.ETCD), "half made", f"{places.SERVER_AUTHORITY} exists, and {places.ETCD} does not"),
        (without(member("agent"), places.NODE_CERTIFICATE), "half made", places.NODE_CERTIFICATE),
        (
            dataclasses.replace(BARE, units={"rke2-server": Unit(loaded=True)}),
            "foreign",
            "RKE2 is installed (unit rke2-server)",
        ),
        (dataclasses.replace(BARE, units={"kubelet": Unit(loaded=True, active=True)}), "foreign", "unit kubelet"),
        (dataclasses.replace(BARE, units={"k3s": Unit(loaded=True)}), "foreign", "not by this role (unit k3s)"),
    ],
)
def test_what_a_machine_is(host: Host, state: str, why: str) -> None:
    found = plan(host, SETTINGS)["found"]
    assert found["state"] == state and why in found["why"]


def test_a_lone_server_has_data_in_sqlite() -> None:
    lone = without(member(), places.ETCD)
    lone = changed(lone, present=f"{lone.fact('present')}\n{places.SQLITE}")
    alone = {**SETTINGS, "machines": SETTINGS["machines"][:1]}
    found = plan(lone, alone)["found"]
    assert (found["state"], found["data"]) == ("member", True)
    faults = plan(lone, SETTINGS)["faults"]
    assert [one["text"] for one in faults if "the server has SQLite, and etcd is set" in one["text"]]


def test_a_machine_whose_authority_is_being_replaced_says_so() -> None:
    host = member()
    assert not plan(host, SETTINGS)["found"]["rotating"]
    begun = dataclasses.replace(host, facts={**host.facts, "rotating": places.ROTATION})
    assert plan(begun, SETTINGS)["found"]["rotating"]
    assert request(SETTINGS).facts["rotating"] == ("exists", places.ROTATION)


@pytest.mark.parametrize(
    ("given", "reason", "upgrade"),
    [
        (
            {"version": "1.36.5+k3s1", "programs": [{"source": "/files/new", "checksum": f"sha256:{OTHER}"}]},
            "its K3s is v1.36.4+k3s1",
            True,
        ),
        ({"programs": [{"source": "/files/new", "checksum": f"sha256:{OTHER}"}]}, "its K3s is another program", False),
        ({"names": ["other.example.com"]}, f"its K3s has not loaded {places.CONFIGURATION}", False),
        ({"registries": {}}, f"its K3s has not loaded {places.REGISTRIES}", False),
    ],
)
def test_why_a_member_has_a_turn(given: dict[str, t.Any], reason: str, upgrade: bool) -> None:
    made = plan(member(), {**SETTINGS, **given})
    assert made["faults"] == []
    assert any(reason in one for one in made["turn"]["reasons"]) and made["turn"]["restart"]
    assert made["turn"]["upgrade"] == upgrade
    # The program is made ready, and replaced in the turn only.
    assert {one["path"] for one in made["programs"]} <= {places.STAGED}


def test_a_file_that_is_newer_than_the_start_is_not_loaded() -> None:
    host = member()
    stale = dataclasses.replace(host.files[places.CONFIGURATION], changed_at=host.now - 5)
    made = plan(dataclasses.replace(host, files={**host.files, places.CONFIGURATION: stale}), SETTINGS)
    assert made["turn"]["reasons"] == [f"its K3s has not loaded {places.CONFIGURATION}"]


def test_k3s_that_does_not_run_is_started_in_a_turn() -> None:
    host = member()
    made = plan(dataclasses.replace(host, units={"k3s": Unit(loaded=True)}), SETTINGS)
    assert made["turn"]["reasons"] == ["its K3s does not run"]
    # Whose kubelet does not run is not drained, and a start ends no pod.
    assert made["turn"]["restart"] and made["turn"]["stays"]


def test_a_turn_that_was_interrupted_is_continued() -> None:
    host = member()
    kept = File(places.TURN, json.dumps({"gated": True, "upgrade": True}))
    turn = plan(dataclasses.replace(host, files={**host.files, places.TURN: kept}), SETTINGS)["turn"]
    assert (turn["begun"], turn["gated"], turn["upgrade"]) == (True, True, True)


@pytest.mark.parametrize(
    # Where they have expired, servers are started again before their turns.
    ("days", "told", "due"),
    [(300, "", False), (59, "expires in 59 days", True), (-1, "", False)],
)
def test_certificates_are_issued_again_before_they_expire(days: int, told: str, due: bool) -> None:
    host = member()
    pem = certificate(days=365 if days > 0 else 1)
    now = BEGIN.timestamp() + (365 - days) * 86400 if days > 0 else BEGIN.timestamp() + 2 * 86400
    files = {**host.files, places.CERTIFICATES[0]: File(places.CERTIFICATES[0], pem)}
    host = dataclasses.replace(host, files=files, now=now)
    made = plan(host, SETTINGS)
    assert bool(made["turn"]["reasons"]) == due
    assert told in " ".join(made["turn"]["reasons"])
    assert made["found"]["expired"] == (days < 0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"version": "1.36.4"}, "which is no release of K3s"),
        ({"version": "1.31.0+k3s1"}, "which is no release of K3s that is supported"),
        ({"programs": [SETTINGS["programs"][1]]}, "k3s is not installed"),
        ({"configuration": {"token": "secret"}}, "token cannot be set there"),
        ({"server_configuration": {"tls-san+": ["x"]}}, "tls-san cannot be set there"),
        ({"dns_domain": "a\nb"}, "a text has a line end"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, t.Any], told: str) -> None:
    faults = [one["text"] for one in plan(BARE, {**SETTINGS, **given})["faults"]]
    assert any(told in one for one in faults)
    assert not any("secret" in one for one in faults)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("pod_network", "10.99.0.0/16", "the network of pods of the cluster is 10.42.0.0/16, and 10.99.0.0/16 is set"),
        ("service_network", "10.98.0.0/16", "the network of Services of the cluster is 10.43.0.0/16"),
        ("dns_domain", "other.local", "the domain of Services of the cluster is cluster.local"),
    ],
)
def test_what_a_cluster_keeps_is_not_changed(name: str, value: str, told: str) -> None:
    made = plan(member(), {**SETTINGS, name: value})
    assert any(told in one["text"] for one in made["faults"])
    assert made["files"] == [] and made["record"] == ""


def test_a_program_of_another_version_that_nothing_replaces_is_a_fault() -> None:
    faults = plan(member(), {**SETTINGS, "version": "1.36.5+k3s1"})["faults"]
    assert [one for one in faults if "K3s v1.36.4+k3s1 is installed, and 1.36.5+k3s1 is set" in one["text"]]


def test_a_port_that_is_taken_is_a_fault_of_a_new_machine_only() -> None:
    listeners = (Listener("tcp", "0.0.0.0", 6443, "haproxy", unit="haproxy.service"),)
    new = plan(dataclasses.replace(BARE, listeners=listeners), SETTINGS)["faults"]
    assert ["TCP port 6443 is taken by haproxy (haproxy.service)" in one["text"] for one in new] == [True]
    assert plan(dataclasses.replace(member(), listeners=listeners), SETTINGS)["faults"] == []


def test_configuration_of_others_stays_and_is_told() -> None:
    made = plan(changed(BARE, present=places.FOREIGN_CONFIGURATION), SETTINGS)
    assert made["messages"] == [f"{places.FOREIGN_CONFIGURATION} stays as it is, beside {places.CONFIGURATION}"]
    assert made["faults"] == []
    assert places.FOREIGN_CONFIGURATION not in made["contents"]


def test_a_machine_that_leaves_loses_what_the_role_has_written() -> None:
    made = restored(member(), SETTINGS)
    assert (made["left"], made["resets"], made["unit"]) == (True, True, "k3s")
    assert set(made["absent"]) >= {places.CONFIGURATION, places.PROGRAM, places.TOKEN, places.AGENT_TOKEN, places.ENTRY}
    assert made["removed"] == [places.FOLDER] and made["stops"] == ["k3s"]
    assert restored(BARE, SETTINGS)["left"] is False


def test_a_program_that_was_there_before_stays() -> None:
    there = dataclasses.replace(BARE, checksums={places.PROGRAM: OTHER}, commands={"k3s": Command(0, PRINTED)})
    kept = plan(there, SETTINGS)["record"]
    host = dataclasses.replace(member(), files={**member().files, places.RECORD: File(places.RECORD, kept)})
    made = restored(host, SETTINGS)
    assert places.PROGRAM not in made["absent"]
    assert f"{places.PROGRAM} stays, as it was there before" in made["messages"]


def test_the_configuration_is_read_as_k3s_reads_it() -> None:
    text = plan(BARE, SETTINGS)["contents"][places.CONFIGURATION]
    assert yaml.safe_load(text)["node-name"] == "s1"


def test_options_that_the_role_decides_are_not_taken_from_others() -> None:
    """A server of another cluster, or another folder of data, would join in."""
    faults = plan(
        changed(BARE, present=places.FOREIGN_CONFIGURATION, foreign_options=places.FOREIGN_CONFIGURATION), SETTINGS
    )["faults"]
    assert ["the configuration of others would join in" in one["text"] for one in faults] == [True]
    pattern = re.compile(request(SETTINGS).facts["foreign_options"][1])
    assert [
        bool(pattern.search(line)) for line in ("server: https://x", '"data-dir": /d', "kubelet-arg: []", "# token: x")
    ] == [True, True, False, False]


def test_each_file_of_others_that_decides_is_named_and_others_are_compared_between_servers() -> None:
    drop_in = f"{places.SETTINGS}/config.yaml.d/60-mine.yaml"
    lines = "disable-network-policy: true\nsupervisor-metrics: true\n"
    there = changed(BARE, foreign_options=f"{drop_in}\n{places.CONFIGURATION}\n", foreign_critical=lines)
    made = plan(there, SETTINGS)
    assert [drop_in in one["text"] for one in made["faults"]] == [True]
    assert made["alike"] == ["disable-network-policy: true", "supervisor-metrics: true"]
    pattern = re.compile(request(SETTINGS).facts["foreign_critical"][1])
    assert [bool(pattern.search(line)) for line in ("egress-selector-mode: pod", "token: x")] == [True, False]


@pytest.mark.parametrize("lost", [{"archives": ""}, {}])
def test_an_archive_is_copied_again_where_only_its_disk_is_a_new_one(lost: dict[str, str]) -> None:
    names = [one["name"] for one in plan(changed(ready(), **lost), SETTINGS)["images"]]
    assert names == (["k3s-airgap-images-amd64.tar.zst"] if lost else [])


def test_registries_of_others_are_not_replaced() -> None:
    there = dataclasses.replace(BARE, files={places.REGISTRIES: File(places.REGISTRIES, "mirrors: {}\n")})
    assert ["there are registries of others already" in one["text"] for one in plan(there, SETTINGS)["faults"]] == [
        True
    ]
    assert plan(there, {**SETTINGS, "registries": {}})["faults"] == []


@pytest.mark.parametrize(
    ("runs", "wanted", "told", "upgrade"),
    [
        ("v1.36.4+k3s1", "1.36.4+k3s2", "", True),
        ("v1.36.4+k3s2", "1.36.4+k3s1", "the machine has K3s v1.36.4+k3s2, and 1.36.4+k3s1 is set", True),
        ("v1.36.4+k3s1", "1.36.4+k3s1", "", False),
    ],
)
def test_builds_of_one_version_are_releases_of_their_own(runs: str, wanted: str, told: str, upgrade: bool) -> None:
    printed = PRINTED.replace("v1.36.4+k3s1", runs)
    host = dataclasses.replace(member(), commands={"k3s": Command(0, printed)})
    programs = [{"source": "/files/new", "checksum": f"sha256:{OTHER}"}] if upgrade else SETTINGS["programs"]
    made = plan(host, {**SETTINGS, "version": wanted, "programs": programs})
    assert [told in one["text"] for one in made["faults"]] == ([True] if told else [])
    assert made["turn"]["upgrade"] == upgrade


def test_a_program_of_another_build_is_told_before_it_is_installed() -> None:
    faults = plan(ready(), {**SETTINGS, "version": "1.36.4+k3s2"})["faults"]
    assert ["K3s v1.36.4+k3s1 is installed, and 1.36.4+k3s2 is set" in one["text"] for one in faults] == [True]


def test_certificates_of_agents_are_issued_again_too() -> None:
    host = member("agent")
    files = {**host.files, **{path: File(path, certificate(days=30)) for path in places.NODE_CERTIFICATES}}
    turn = plan(
        dataclasses.replace(host, files=files, now=BEGIN.timestamp() + 25 * 86400), {**SETTINGS, "role": "agent"}
    )["turn"]
    assert any("expires in 5 days" in one for one in turn["reasons"]) and turn["restart"]
    # No pod of the node ends for that, unless something else has changed, too.
    assert turn["stays"]
    later = {**SETTINGS, "role": "agent", "configuration": {"kubelet-arg": ["max-pods=77"]}}
    turn = plan(dataclasses.replace(host, files=files, now=BEGIN.timestamp() + 25 * 86400), later)["turn"]
    assert turn["restart"] and not turn["stays"]


def test_files_of_another_kubelet_stay() -> None:
    kept = plan(changed(BARE, kubelet_files="/var/lib/kubelet/pki"), SETTINGS)["record"]
    host = member()
    assert restored(host, SETTINGS)["keeps"] == []
    files = {**host.files, places.RECORD: File(places.RECORD, kept)}
    assert restored(dataclasses.replace(host, files=files), SETTINGS)["keeps"] == [places.KUBELET]
