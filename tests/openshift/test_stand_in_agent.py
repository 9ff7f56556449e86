# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's agent commands: what they make, what they check beside the others, and what their images carry."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import agent

_PXE = ("agent", "create", "pxe-files")
_BASE_URL = "http://boot.example.com/ocp"
_AUTH = {"auth/kubeconfig", "auth/kubeadmin-password"}


def network(address: str) -> dict[str, t.Any]:
    return {"interfaces": [{"name": "eno1", "ipv4": {"address": [{"ip": address, "prefix-length": 24}]}}]}


def prepared(
    folder: pathlib.Path, agent_changes: dict[str, t.Any] | None = None, changes: dict[str, t.Any] | None = None
) -> pathlib.Path:
    support.configure(folder, changes)
    content = support.changed(support.AGENT_BASE, agent_changes or {})
    (folder / support.AGENT_CONFIG).write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


def hosts(**more: t.Any) -> dict[str, t.Any]:
    """The base's hosts, of which the first one has these as well."""
    first, *others = support.AGENT_BASE["hosts"]
    return {"hosts": [{**first, **more}, *others]}


def created(folder: pathlib.Path, keys: str, *words: str) -> support.Run:
    done = support.run(folder, *(words or _PXE), keys=keys)
    assert done.status == 0, done.err
    return done


def test_pxe_files(tmp_path: pathlib.Path, keys: str) -> None:
    created(prepared(tmp_path), keys)
    names = {f"boot-artifacts/agent.x86_64-{name}" for name in ("vmlinuz", "initrd.img", "rootfs.img")}
    assert support.names(tmp_path) == {*names, *_AUTH, support.STATE, ".openshift_install.log"}


def test_script_of_ipxe(tmp_path: pathlib.Path, keys: str) -> None:
    created(prepared(tmp_path, {"bootArtifactsBaseURL": _BASE_URL}), keys)
    lines = (tmp_path / "boot-artifacts" / "agent.x86_64.ipxe").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!ipxe"
    assert f"initrd --name initrd {_BASE_URL}/agent.x86_64-initrd.img" in lines
    [kernel] = [line for line in lines if line.startswith("kernel ")]
    assert kernel.startswith(f"kernel {_BASE_URL}/agent.x86_64-vmlinuz initrd=initrd ")
    assert f" coreos.live.rootfs_url={_BASE_URL}/agent.x86_64-rootfs.img " in kernel
    assert kernel.endswith(" ignition.firstboot ignition.platform.id=metal")


def test_files_of_arm64(tmp_path: pathlib.Path, keys: str) -> None:
    architecture = {
        "controlPlane.architecture": "arm64",
        "compute": [{"name": "worker", "replicas": 0, "architecture": "arm64"}],
    }
    created(prepared(tmp_path, changes=architecture), keys)
    assert "boot-artifacts/agent.aarch64-vmlinuz" in support.names(tmp_path)


def test_image(tmp_path: pathlib.Path, keys: str) -> None:
    created(prepared(tmp_path), keys, "agent", "create", "image")
    assert support.names(tmp_path) == {"agent.x86_64.iso", *_AUTH, support.STATE, ".openshift_install.log"}


@pytest.mark.parametrize(
    ("command", "name"),
    [("pxe-files", "boot-artifacts/agent.x86_64-initrd.img"), ("image", "agent.x86_64.iso")],
)
def test_what_machines_boot_carries_keys_and_the_pull_secret(
    tmp_path: pathlib.Path, keys: str, command: str, name: str
) -> None:
    created(prepared(tmp_path), keys, "agent", "create", command)
    (tmp_path / "config.ign").write_bytes(agent.ignition_in((tmp_path / name).read_bytes()))
    found = support.contents(support.ignition(tmp_path / "config.ign"))
    assert found[support.DOCKER_CONFIG].decode() == support.cases()["base"]["pullSecret"]
    assert any(b"PRIVATE KEY" in content for content in found.values())


def test_kernel_and_root_file_system_carry_nothing(tmp_path: pathlib.Path, keys: str) -> None:
    created(prepared(tmp_path), keys)
    for name in ("vmlinuz", "rootfs.img"):
        assert (tmp_path / "boot-artifacts" / f"agent.x86_64-{name}").read_bytes().startswith(b"A stand-in for the")


def test_the_agents_inputs_are_consumed(tmp_path: pathlib.Path, keys: str) -> None:
    done = created(prepared(tmp_path), keys)
    consumed = {f"Consuming {name} from target directory" for name in ("Install Config", "Agent Config")}
    assert consumed <= set(done.lines("info"))


def test_it_needs_the_release_image(tmp_path: pathlib.Path, keys: str) -> None:
    done = support.run(prepared(tmp_path), *_PXE, registry="unreachable", keys=keys)
    assert done.status == 1
    assert "is not reachable" in done.lines("error")[0]
    assert not (tmp_path / "boot-artifacts").exists()


def test_static_networks_need_nmstate(tmp_path: pathlib.Path, keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    monkeypatch.setenv("PATH", str(tmp_path))
    done = support.run(prepared(folder, hosts(networkConfig=network("10.33.3.11"))), *_PXE, keys=keys)
    assert done.status == 1
    assert 'exec: "nmstatectl": executable file not found' in done.lines("error")[0]
    (tmp_path / "nmstatectl").write_text("#!/bin/sh\n", encoding="utf-8")
    os.chmod(tmp_path / "nmstatectl", 0o755)
    created(folder, keys)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"platform": {"aws": {"region": "x"}}},
            'Platform: Unsupported value: "aws": supported values: "baremetal", "vsphere", "none", "external", "nutanix"',
        ),
        (
            {"controlPlane": {"replicas": 2, "fencing": {"credentials": [{}, {}]}}},
            "ControlPlane.Replicas can only be set to 5, 4, 3, or 1. Found 2",
        ),
        ({"controlPlane.replicas": 6}, "ControlPlane.Replicas can only be set to 5, 4, 3, or 1. Found 6"),
        ({"controlPlane.replicas": 1, "compute": [{"name": "worker", "replicas": 2}]}, "Compute.Replicas must be 0"),
        (
            {"controlPlane.replicas": 1, "platform": {"vsphere": {}}},
            "Only platform none and external supports 1 ControlPlane",
        ),
        (
            {"controlPlane.replicas": 1, "networking.networkType": "Calico"},
            "Only OVNKubernetes network type is allowed",
        ),
        ({"featureSet": "TechPreviewNoUpgrade"}, "FeatureSet: Forbidden"),
    ],
)
def test_checks_of_install_config(tmp_path: pathlib.Path, changes: dict[str, t.Any], reason: str) -> None:
    done = support.run(prepared(tmp_path, changes=changes), *_PXE)
    assert done.status == 1
    assert "invalid install-config configuration: " in done.lines("error")[0]
    assert reason in done.lines("error")[0]


def test_the_agent_makes_the_other_checks_too(tmp_path: pathlib.Path) -> None:
    done = support.run(prepared(tmp_path, changes={"metadata.name": "DgxPod"}), *_PXE)
    assert done.status == 3
    assert "metadata.name" in done.lines("error")[0]


@pytest.mark.parametrize("masters", [1, 3, 4, 5])
def test_numbers_of_masters(tmp_path: pathlib.Path, keys: str, masters: int) -> None:
    created(prepared(tmp_path, {"hosts": []}, {"controlPlane.replicas": masters}), keys)


def test_two_masters_and_an_arbiter(tmp_path: pathlib.Path, keys: str) -> None:
    changes = {"controlPlane.replicas": 2, "arbiter": {"name": "arbiter", "replicas": 1}}
    created(prepared(tmp_path, {"hosts": []}, changes), keys)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"apiVersion": "v2"}, 'apiVersion: Unsupported value: "v2"'),
        ({"rendezvousIP": "master-0"}, '"master-0" is not a valid IP'),
        ({"bootArtifactsBaseURL": "boot.example.com/ocp"}, "bootArtifactsBaseURL: Invalid value"),
        ({"additionalNTPSources": ["not a name"]}, "NTP source is not a valid domain name nor a valid IP"),
    ],
)
def test_checks_of_agent_config(tmp_path: pathlib.Path, changes: dict[str, t.Any], reason: str) -> None:
    done = support.run(prepared(tmp_path, changes), *_PXE)
    assert done.status == 1
    assert "invalid Agent Config configuration: " in done.lines("error")[0]
    assert reason in done.lines("error")[0]


def test_time_servers_are_names_or_addresses(tmp_path: pathlib.Path, keys: str) -> None:
    created(prepared(tmp_path, {"additionalNTPSources": ["10.33.3.1", "ntp.example.com", "fd33::1"]}), keys)


def test_the_old_version_is_converted(tmp_path: pathlib.Path, keys: str) -> None:
    created(prepared(tmp_path, {"apiVersion": "v1alpha1"}), keys)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (hosts(interfaces=[]), "Hosts[0].Interfaces: Required value: at least one interface"),
        (hosts(interfaces=[{"name": "eno1"}]), "Hosts[0].Interfaces[0].macAddress: Required value"),
        (hosts(interfaces=[{"name": "eno1", "macAddress": "52:54:00:00"}]), "address 52:54:00:00: invalid MAC address"),
        (hosts(interfaces=[{"name": "eno1", "macAddress": "53:54:00:00:00:00"}]), "expected unicast mac address"),
        (hosts(interfaces=[{"name": "eno1", "macAddress": "52:54:00:00:00:02"}]), "duplicate MAC address found"),
        (hosts(role="boss"), "Role must either be 'master' or 'worker'"),
        (
            hosts(role="worker", networkConfig=network("10.33.3.11")),
            "has role 'worker' and has the rendezvousIP assigned to it",
        ),
        (hosts(rootDeviceHints={"wwnWithExtension": "0x1"}), "WWN extensions are not supported in root device hints"),
        ({"rendezvousIP": None}, "missing rendezvousIP in agent-config"),
    ],
)
def test_checks_of_hosts(tmp_path: pathlib.Path, changes: dict[str, t.Any], reason: str) -> None:
    done = support.run(prepared(tmp_path, changes), *_PXE)
    assert done.status == 1
    assert "invalid Hosts configuration: " in done.lines("error")[0]
    assert reason in done.lines("error")[0]


def test_all_faults_of_hosts_come_together(tmp_path: pathlib.Path) -> None:
    done = support.run(prepared(tmp_path, hosts(role="boss", interfaces=[])), *_PXE)
    assert "Hosts[0].Interfaces" in done.lines("error")[0]
    assert "Hosts[0].Host" in done.lines("error")[0]


def test_more_hosts_than_replicas(tmp_path: pathlib.Path) -> None:
    one = {
        "hostname": "worker-0",
        "role": "worker",
        "interfaces": [{"name": "eno1", "macAddress": "52:54:00:00:00:09"}],
    }
    done = support.run(prepared(tmp_path, {"hosts": [*support.AGENT_BASE["hosts"], one]}), *_PXE)
    assert done.status == 1
    assert (
        "the number of worker hosts defined (1) exceeds the configured Compute replicas (0)" in done.lines("error")[0]
    )


def test_fewer_hosts_than_replicas(tmp_path: pathlib.Path, keys: str) -> None:
    done = created(prepared(tmp_path, {"hosts": support.AGENT_BASE["hosts"][:2]}), keys)
    warning = "the number of master hosts defined (2) is less than the configured ControlPlane replicas (3)"
    assert warning in done.lines("warning")
