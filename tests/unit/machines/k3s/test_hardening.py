# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cluster_k3s_hardening sets on a machine, what it leaves as it is set, and that it goes again. The documentation has the same table."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, hardening, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.leaving import restored
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.plan import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.request import request
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_plan import BARE, SETTINGS, changed, member

TOP = pathlib.Path(__file__).parents[4]
CIS = {**SETTINGS, "hardening": "cis", "configuration": {}, "server_configuration": {}}
AGENT = {**CIS, "role": "agent", "serves": False}
#: As the kernel has them after its start, in the words of sysctl.
DEFAULTS = """vm.overcommit_memory = 0
vm.panic_on_oom = 0
kernel.panic = 0
kernel.panic_on_oops = 0
kernel.keys.root_maxkeys = 1000000
kernel.keys.root_maxbytes = 25000000
"""
NAMES = [line.split(" = ")[0] for line in DEFAULTS.splitlines()]


def hardened(host: Host) -> Host:
    """The kernel once its settings are loaded."""
    values = {"vm.overcommit_memory": "1", "kernel.panic": "10", "kernel.panic_on_oops": "1"}
    rows = (line.split(" = ") for line in DEFAULTS.splitlines())
    return changed(host, sysctls="\n".join(f"{name} = {values.get(name, value)}" for name, value in rows))


def written(settings: dict[str, t.Any]) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", yaml.safe_load(configuration.text(settings)))


def test_a_server_gets_what_the_guide_has_for_it() -> None:
    made = plan(changed(BARE, sysctls=DEFAULTS), CIS)
    assert made["faults"] == [] and made["hardened"] and made["kernel"] == [places.HARDENED]
    modes = {one["path"]: one["mode"] for one in made["files"]}
    assert (modes[places.ADMISSION], modes[places.AUDIT], modes[places.HARDENED]) == ("0600", "0600", "0644")
    found = yaml.safe_load(made["contents"][places.CONFIGURATION])
    assert found["protect-kernel-defaults"] is True
    assert found["kube-apiserver-arg+"] == [
        "enable-admission-plugins=NodeRestriction,EventRateLimit",
        "admission-control-config-file=/etc/rancher/k3s/hardening-admission.yaml",
        "audit-log-path=/var/lib/rancher/k3s/server/logs/audit.log",
        "audit-log-maxage=30",
        "audit-log-maxbackup=10",
        "audit-log-maxsize=100",
        "service-account-extend-token-expiration=false",
        "audit-policy-file=/etc/rancher/k3s/hardening-audit.yaml",
    ]
    assert found["kube-controller-manager-arg+"] == ["terminated-pod-gc-threshold=100"]
    assert [text.partition("=")[0] for text in found["kubelet-arg+"]] == [
        "streaming-connection-idle-timeout",
        "tls-cipher-suites",
    ]
    assert made["contents"][places.HARDENED].splitlines()[1:] == [
        "vm.overcommit_memory = 1",
        "vm.panic_on_oom = 0",
        "kernel.panic = 10",
        "kernel.panic_on_oops = 1",
        "kernel.keys.root_maxkeys = 1000000",
        "kernel.keys.root_maxbytes = 25000000",
    ]
    assert request(CIS).facts["sysctls"] == ("output", "sysctl", *NAMES)


def test_an_agent_gets_no_option_that_only_servers_know() -> None:
    made = plan(changed(BARE, sysctls=DEFAULTS), AGENT)
    assert made["faults"] == []
    paths = {one["path"] for one in made["files"]}
    assert places.HARDENED in paths and not paths & {places.ADMISSION, places.AUDIT}
    assert {name for name in written(AGENT) if name.endswith("-arg+")} == {"kubelet-arg+"}


def test_the_default_level_of_pods_is_restricted_but_for_the_system() -> None:
    pods, events = yaml.safe_load(plan(BARE, CIS)["contents"][places.ADMISSION])["plugins"]
    assert pods["configuration"]["defaults"]["enforce"] == "restricted"
    assert pods["configuration"]["exemptions"]["namespaces"] == ["kube-system"]
    assert events["configuration"]["limits"] == [{"type": "Server", "qps": 5000, "burst": 20000}]


def test_whoever_sets_an_argument_keeps_it_and_is_told() -> None:
    own = {
        "configuration": {"protect-kernel-defaults": False, "kubelet-arg": ["max-pods=77"]},
        "server_configuration": {
            "kube-apiserver-arg": ["audit-log-maxage=90", "enable-admission-plugins+=AlwaysPullImages"]
        },
    }
    settings = {**CIS, **own}
    found = written(settings)
    assert found["protect-kernel-defaults"] is False
    # What is set replaces config.yaml, as it does without hardening.
    assert found["kubelet-arg"][-1] == "max-pods=77" and len(found["kubelet-arg"]) == 3 and "kubelet-arg+" not in found
    arguments = found["kube-apiserver-arg"]
    assert "audit-log-maxage=30" not in arguments
    assert arguments.index("enable-admission-plugins=NodeRestriction,EventRateLimit") < arguments.index(
        "enable-admission-plugins+=AlwaysPullImages"
    )
    assert plan(BARE, settings)["messages"] == [
        "cluster_k3s_hardening leaves it as it is set: protect-kernel-defaults is False, audit-log-maxage=90 is set (1.2.17)"
    ]
    same = {**CIS, "server_configuration": {"kube-apiserver-arg": "audit-log-maxage=30"}}
    assert plan(BARE, same)["messages"] == [] and written(same)["kube-apiserver-arg"].count("audit-log-maxage=30") == 1
    assert plan(BARE, {**SETTINGS, **own})["messages"] == []


def test_an_admission_file_of_others_has_no_limits_of_events_without_which_the_api_server_would_not_start() -> None:
    settings = {**CIS, "server_configuration": {"kube-apiserver-arg": ["admission-control-config-file=/etc/psa.yaml"]}}
    assert not [text for text in written(settings)["kube-apiserver-arg"] if "EventRateLimit" in text]
    assert plan(BARE, settings)["messages"] == [
        "cluster_k3s_hardening leaves it as it is set: admission-control-config-file=/etc/psa.yaml is set (5.2.1 to 5.2.13), "
        "events are not limited (1.2.9)"
    ]


def test_who_knows_that_secrets_are_not_encrypted_is_told() -> None:
    told = plan(BARE, {**CIS, "secrets_encryption": False})["messages"]
    assert told == ["cluster_k3s_hardening leaves it as it is set: Secrets are not encrypted (1.2.27)"]


@pytest.mark.parametrize("role", ["server", "agent"])
def test_a_hardened_member_is_left_alone(role: str) -> None:
    settings = {**CIS, "role": role, "serves": role == "server"}
    made = plan(hardened(member(**settings)), settings)
    assert (made["faults"], made["turn"]["reasons"], made["files"], made["kernel"], made["record"]) == (
        [],
        [],
        [],
        [],
        "",
    )


def test_a_running_cluster_is_hardened_in_turns_and_the_kernel_first() -> None:
    host = changed(member(configuration={}, server_configuration={}), sysctls=DEFAULTS)
    made = plan(host, CIS)
    assert made["faults"] == [] and made["kernel"] == [places.HARDENED]
    assert f"its K3s has not loaded {places.ADMISSION}" in made["turn"]["reasons"] and made["turn"]["restart"]
    record = json.loads(made["record"])["settings"]
    assert record["sysctls"] == "vm.overcommit_memory=0 kernel.panic=0 kernel.panic_on_oops=0"


def test_another_text_of_a_file_that_the_api_server_reads_is_loaded_by_a_restart() -> None:
    host = hardened(member(**CIS))
    later = dataclasses.replace(host.files[places.AUDIT], changed_at=host.now)
    host = dataclasses.replace(host, files={**host.files, places.AUDIT: later})
    assert plan(host, CIS)["turn"]["reasons"] == [f"its K3s has not loaded {places.AUDIT}"]


def test_a_machine_that_is_not_hardened_any_more_keeps_none_of_its_files_but_remembers() -> None:
    host = hardened(member(**CIS))
    made = plan(host, {**CIS, "hardening": ""})
    assert made["absent"] == [places.HARDENED, places.ADMISSION, places.AUDIT] and made["turn"]["restart"]
    # So that its NetworkPolicies go, also if a run was killed.
    assert made["hardened"] and made["kernel"] == []
    assert not plan(BARE, {**CIS, "hardening": ""})["hardened"]
    others = dataclasses.replace(BARE, files={places.AUDIT: File(places.AUDIT, "theirs\n")})
    assert plan(others, {**CIS, "hardening": ""})["absent"] == []


def test_a_machine_that_leaves_has_its_kernel_as_before() -> None:
    host = changed(BARE, sysctls=DEFAULTS)
    record = plan(host, CIS)["record"]
    there = dataclasses.replace(hardened(member(**CIS)))
    there = dataclasses.replace(there, files={**there.files, places.RECORD: File(places.RECORD, record, "0600")})
    left = restored(there, CIS)
    assert left["sysctls"] == ["vm.overcommit_memory=0", "kernel.panic=0", "kernel.panic_on_oops=0"]
    assert {places.HARDENED, places.ADMISSION, places.AUDIT} <= set(left["absent"])
    assert restored(changed(there, sysctls=DEFAULTS), CIS)["sysctls"] == []


# -- the page


def rows() -> list[str]:
    """Lines of its table, by what is set."""
    shown = {
        hardening.OPTION: lambda one: f"`{one.name}: {str(one.value).lower()}`",
        hardening.ARGUMENT: lambda one: (
            f"`{one.option}`: `{one.setting.partition('TLS_')[0]}{'...' if 'TLS_' in one.setting else ''}`"
        ),
        hardening.SYSCTL: lambda one: f"`{one.setting}`",
        hardening.OBJECTS: lambda one: "NetworkPolicies",
        hardening.ALWAYS: lambda one: "without hardening, too",
    }
    return [
        f"| {one.number or '-'} | {one.what} | {shown[one.kind](one)} |"
        for one in hardening.CONTROLS
        if one.kind != hardening.LEFT
    ]


def test_the_page_has_every_control() -> None:
    page = (TOP / "docs" / "k3s-hardening.md").read_text(encoding="utf-8")
    expected = [
        *rows(),
        *(f"| {one.number} | {one.what} |" for one in hardening.CONTROLS if one.kind == hardening.LEFT),
    ]
    table = [line for line in page.splitlines() if line.startswith(("| -", "| 1", "| 3", "| 4", "| 5"))]
    assert table == expected, "\n".join(["the page should have:", *expected])


def test_every_object_is_one_that_the_guide_has() -> None:
    read = yaml.safe_load((TOP / "roles/cluster_k3s/files/policies.yml").read_text(encoding="utf-8"))["items"]
    assert {one["kind"] for one in read} == {"NetworkPolicy"}
    assert {one["metadata"]["namespace"] for one in read if one["metadata"]["name"] == "intra-namespace"} == {
        "kube-system",
        "default",
        "kube-public",
    }
