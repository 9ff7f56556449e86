# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests and MachineConfigs of users: what is refused before the installer sees it, and that each pool gets one."""

from __future__ import annotations

import base64
import copy
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import disks, role
from ansible_collections.hwaccel.gpu.tests.unit.machines.openshift.sites import AGENT, SETTINGS

ROLE = "machineconfiguration.openshift.io/role"
CONFIG: dict[str, t.Any] = {
    "apiVersion": "machineconfiguration.openshift.io/v1",
    "kind": "MachineConfig",
    "metadata": {"name": "50-own", "labels": {ROLE: "worker"}},
    "spec": {"config": {"ignition": {"version": "3.2.0"}}},
}
CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"a": "b"}}
POOL = {"apiVersion": CONFIG["apiVersion"], "kind": "MachineConfigPool", "metadata": {"name": "gpu"}, "spec": {}}
FILE = {"path": "/etc/a", "mode": 420, "contents": {"source": "data:,a"}}


def config(pool: str = "worker", name: str = "50-own", **spec: t.Any) -> dict[str, t.Any]:
    found = copy.deepcopy(CONFIG)
    found["metadata"] = {"name": name, "labels": {ROLE: pool}}
    sections = {key: spec.pop(key) for key in ("storage", "systemd", "passwd") if key in spec}
    found["spec"] = {"config": {"ignition": {"version": spec.pop("version", "3.2.0")}, **sections}, **spec}
    return found


def storage(**file: t.Any) -> dict[str, t.Any]:
    return config(storage={"files": [{**FILE, **file}]})


def files(**given: t.Any) -> dict[str, t.Any]:
    made = role.inputs({**SETTINGS, **given})
    return {one["path"]: yaml.safe_load(one["content"]) for one in made if one["path"].startswith("openshift/")}


def pool(name: str, **given: t.Any) -> dict[str, t.Any]:
    return files(**given)[f"openshift/99_hwaccel-gpu-machineconfig-{name}.yaml"]


MANIFESTS = [
    ("key kind occurs twice", ["apiVersion: v1\nkind: A\nkind: B\n"]),
    ("not valid YAML", ["a: [\n"]),
    ("not a mapping", ["text only"]),
    ("kind of a manifest is invalid", [{**CONFIGMAP, "kind": ""}]),
    ("apiVersion of a manifest is invalid", [{"kind": "ConfigMap", "metadata": {"name": "a"}}]),
    ("name", [{**CONFIGMAP, "metadata": {}}]),
    ("'C' is not the name of a ConfigMap", [{**CONFIGMAP, "metadata": {"name": "C"}}]),
    ("is defined 2 times", [CONFIGMAP, yaml.safe_dump(CONFIGMAP)]),
    (
        "the installer makes it",
        [{"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": {"name": "cluster"}}],
    ),
    (
        "the installer makes it",
        [{**CONFIGMAP, "kind": "Secret", "metadata": {"name": "pull-secret", "namespace": "openshift-config"}}],
    ),
    ("machineconfiguration.openshift.io/v1", [{**CONFIG, "apiVersion": "machineconfiguration.openshift.io/v1alpha1"}]),
    ("neither a dictionary nor YAML", [7]),
]


@pytest.mark.parametrize(("says", "given"), MANIFESTS)
def test_a_manifest_that_fails_later_is_refused(says: str, given: list[t.Any]) -> None:
    faults = role.checked({**SETTINGS, "manifests": given})["faults"]
    assert says in " ".join(one["text"] for one in faults), faults
    assert all("cluster_openshift_manifests" in one["text"] for one in faults)


def test_a_manifest_that_this_role_makes_is_refused() -> None:
    network = {"apiVersion": "operator.openshift.io/v1", "kind": "Network", "metadata": {"name": "cluster"}, "spec": {}}
    assert role.checked({**SETTINGS, "manifests": [network]})["faults"] == []
    (fault,) = role.checked({**SETTINGS, "manifests": [network], "network_mtu": 8900})["faults"]
    assert "this role makes it" in fault["text"]


def test_manifests_become_files_of_their_own() -> None:
    role_binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "a:b"},
        "rules": [],
    }
    text = yaml.safe_dump_all([{**CONFIGMAP, "metadata": {"name": name, "namespace": "n"}} for name in ("b", "a")])
    made = files(manifests=[text, role_binding])
    assert {path: body["metadata"]["name"] for path, body in made.items()} == {
        "openshift/99_hwaccel-gpu-001-clusterrole-a-b.yaml": "a:b",
        "openshift/99_hwaccel-gpu-002-configmap-a.yaml": "a",
        "openshift/99_hwaccel-gpu-003-configmap-b.yaml": "b",
    }
    agents = {one["path"] for one in role.inputs({**AGENT, "manifests": [CONFIGMAP]})}
    assert agents == {"install-config.yaml", "agent-config.yaml", "openshift/99_hwaccel-gpu-001-configmap-c.yaml"}


MACHINE_CONFIGS = [
    ("is no MachineConfig", CONFIGMAP),
    (f"has no label {ROLE}", {**CONFIG, "metadata": {"name": "a"}}),
    ("the pool gpu does not exist", config("gpu")),
    ("spec.kernelArgument is unknown", config(kernelArgument=["a"])),
    ("kernelArguments is not a list of words", config(kernelArguments=["a b"])),
    ("kernelArguments is not a list of words", config(kernelArguments="a")),
    ("iommu=pt occurs twice", config(kernelArguments=["iommu=pt", "iommu=pt"])),
    ("3.9.0 is not supported", config(version="3.9.0")),
    ("2.2.0 is not supported", config(version="2.2.0")),
    ("no version is not supported", {**CONFIG, "spec": {"config": {}}}),
    ("it is not a dictionary", {**CONFIG, "spec": {"config": "x"}}),
    (
        "networkd is not in version 3.2.0, and Ignition ignores it",
        {**CONFIG, "spec": {"config": {"ignition": {"version": "3.2.0"}, "networkd": {}}}},
    ),
    (
        "files[0].path of MachineConfig 50-own (cluster_openshift_machine_configs[0], document 1, line 1)): it is not absolute",
        storage(path="etc/a"),
    ),
    ("a field is missing (spec.config.storage.files[0].path of", storage(path=None)),
    ("the value occurs twice (spec.config.storage.files[1].path of", config(storage={"files": [FILE, FILE]})),
    ("Next: write 0644, or 420 in JSON", storage(mode=644)),
    ("is not a mode", storage(mode="0644")),
    ("it is more than 0o7777", storage(mode=8**4)),
    ("not a data URL", storage(contents={"source": "http://10.33.3.18/a"})),
    ("its base64 is not valid", storage(contents={"source": "data:;base64,%%"})),
    ("append is not supported", storage(append=[{"source": "data:,a"}])),
    ("it has to be a list, and is an object", config(storage={"files": FILE})),
    ("it has to be an object, and is a list", config(storage=[FILE])),
    ("it has no suffix of a unit", config(systemd={"units": [{"name": "a"}]})),
    ("it has no section", config(systemd={"units": [{"name": "a.service", "contents": "ExecStart=/a"}]})),
    ("the user 'root' is not supported", config(passwd={"users": [{"name": "root"}]})),
    (
        "systemd.units[0].enable is not in version 3.2.0",
        config(systemd={"units": [{"name": "a.service", "enable": True}]}),
    ),
    ("it leads through a link", config(storage={"files": [FILE], "links": [{"path": "/etc", "target": "/a"}]})),
    ("a field is missing (spec.config.storage.disks[0].device", config(storage={"disks": [{"wipeTable": True}]})),
    ("the hash is not valid", storage(contents={"source": "data:,a", "verification": {"hash": "md5-0"}})),
    ("its gzip data is truncated", storage(contents={"source": "data:,a", "compression": "gzip"})),
    (
        "ignition.security is not supported",
        {**CONFIG, "spec": {"config": {"ignition": {"version": "3.2.0", "security": {}}}}},
    ),
    (
        "Next: give spec.kernelArguments",
        {**CONFIG, "spec": {"config": {"ignition": {"version": "3.3.0"}, "kernelArguments": {"shouldExist": ["a"]}}}},
    ),
]


@pytest.mark.parametrize(("says", "given"), MACHINE_CONFIGS)
def test_a_machine_config_that_machines_would_refuse_is_told_with_its_place(says: str, given: dict[str, t.Any]) -> None:
    faults = role.checked({**SETTINGS, "machine_configs": [given]})["faults"]
    assert says in " ".join(one["text"] for one in faults), faults
    assert all("cluster_openshift_machine_configs[0]" in one["where"] and one["next_step"] for one in faults)
    assert "the file" not in " ".join(one["next_step"] for one in faults)


def test_a_pool_gets_one_of_all_that_it_needs() -> None:
    first = config(
        name="60-b",
        storage={"files": [{**FILE, "path": "/etc/b"}]},
        kernelArguments=["iommu=pt"],
        kernelType="realtime",
    )
    second = config(name="50-a", storage={"files": [FILE]}, version="3.4.0", extensions=["kernel-devel"])
    made = pool(
        "worker",
        machine_configs=[first],
        manifests=[second],
        kernel_arguments={"worker": ["pci=realloc", "iommu=pt"]},
        time_servers=["10.33.3.1", "time.example.com"],
    )
    assert made["metadata"] == {"name": "99-hwaccel-gpu-worker", "labels": {ROLE: "worker"}}
    spec = made["spec"]
    assert spec["kernelArguments"] == ["iommu=pt", "pci=realloc"]
    assert (spec["kernelType"], spec["extensions"]) == ("realtime", ["kernel-devel"])
    assert spec["config"]["ignition"] == {"version": "3.4.0"}
    by_path = {one["path"]: one for one in spec["config"]["storage"]["files"]}
    assert list(by_path) == ["/etc/a", "/etc/b", "/etc/chrony.conf"]
    chrony = by_path["/etc/chrony.conf"]
    text = base64.b64decode(chrony["contents"]["source"].partition("base64,")[2]).decode()
    assert text.splitlines()[:2] == ["server 10.33.3.1 iburst", "server time.example.com iburst"]
    assert {"makestep 1.0 3", "rtcsync", "driftfile /var/lib/chrony/drift"} <= set(text.splitlines())
    assert (chrony["mode"], chrony["overwrite"]) == (420, True)


def test_masters_get_the_time_too_and_other_pools_only_if_they_exist() -> None:
    made = files(time_servers=["10.33.3.1"], kernel_arguments={"gpu": ["a=1"]}, manifests=[POOL])
    pools = [one.rpartition("-")[2] for one in made if "machineconfig-" in one]
    assert pools == ["gpu.yaml", "master.yaml", "worker.yaml"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (storage(), storage(mode=384)),
        (config(kernelType="realtime"), config(kernelType="default")),
        (
            config(systemd={"units": [{"name": "a.service", "enabled": True}]}),
            config(systemd={"units": [{"name": "a.service", "enabled": False}]}),
        ),
    ],
)
def test_two_that_disagree_are_told(one: dict[str, t.Any], other: dict[str, t.Any]) -> None:
    renamed = {**other, "metadata": {**other["metadata"], "name": "51-other"}}
    (fault,) = role.checked({**SETTINGS, "machine_configs": [one, renamed]})["faults"]
    assert "is set twice" in fault["text"] and "50-own" in fault["text"] and "51-other" in fault["text"]
    same = {**one, "metadata": {**one["metadata"], "name": "51-other"}}
    assert role.checked({**SETTINGS, "machine_configs": [one, same]})["faults"] == []


def test_chrony_of_a_user_and_time_servers_are_told() -> None:
    (fault, _other) = role.checked(
        {
            **SETTINGS,
            "machine_configs": [
                storage(path="/etc/chrony.conf"),
                config("master", "50-m", storage={"files": [{**FILE, "path": "/etc/chrony.conf"}]}),
            ],
            "time_servers": ["10.33.3.1"],
        }
    )["faults"]
    assert "/etc/chrony.conf" in fault["text"]


DISK = {"device": "/dev/disk/by-id/nvme-b", "mount": "/var/lib/containers"}


def test_a_disk_becomes_a_partition_a_file_system_and_a_mount() -> None:
    more = {**DISK, "mount": "/var/lib/scratch-1", "filesystem": "ext4", "start_mib": 1000, "label": "scratch"}
    config_of = pool("worker", disks={"worker": [{**DISK, "size_mib": 1000}, more]})["spec"]["config"]
    assert config_of["storage"]["disks"] == [
        {
            "device": DISK["device"],
            "wipeTable": False,
            "partitions": [
                {"label": "var-lib-containers", "startMiB": 0, "sizeMiB": 1000},
                {"label": "scratch", "startMiB": 1000, "sizeMiB": 0},
            ],
        }
    ]
    assert [(one["device"], one["path"], one["format"]) for one in config_of["storage"]["filesystems"]] == [
        ("/dev/disk/by-partlabel/var-lib-containers", "/var/lib/containers", "xfs"),
        ("/dev/disk/by-partlabel/scratch", "/var/lib/scratch-1", "ext4"),
    ]
    units = {one["name"]: one["contents"] for one in config_of["systemd"]["units"]}
    assert list(units) == ["var-lib-containers.mount", r"var-lib-scratch\x2d1.mount"]
    first = units["var-lib-containers.mount"].splitlines()
    assert "Where=/var/lib/containers" in first and "What=/dev/disk/by-partlabel/var-lib-containers" in first
    assert r"Requires=systemd-fsck@dev-disk-by\x2dpartlabel-var\x2dlib\x2dcontainers.service" in first


@pytest.mark.parametrize(
    ("says", "given"),
    [
        ("no stable name", {"device": "/dev/sdb"}),
        ("not /var or below it", {"mount": "/srv"}),
        ("mount is missing", {"mount": ""}),
        ("'btrfs' is unknown", {"filesystem": "btrfs"}),
        ("no name of a partition", {"label": "a/b"}),
        ("unknown: path", {"path": "/var"}),
        ("has the system's partitions", {"device": "/dev/disk/by-path/pci-0"}),
        ("has the system's partitions", {"device": "/dev/disk/by-path/pci-0", "start_mib": 24999}),
    ],
)
def test_a_disk_that_cannot_be_is_told(says: str, given: dict[str, t.Any]) -> None:
    faults = role.checked({**SETTINGS, "disks": {"worker": [{**DISK, **given}]}})["faults"]
    assert says in " ".join(one["text"] for one in faults), faults


def test_a_disk_of_the_system_has_room_behind_it() -> None:
    behind = {"device": "/dev/disk/by-path/pci-0", "mount": "/var", "start_mib": 25000}
    assert role.checked({**SETTINGS, "disks": {"worker": [behind]}})["faults"] == []
    bad = {**DISK, "device": "/dev/sdb"}
    both = role.checked({**SETTINGS, "disks": {"worker": [bad], "master": [bad]}})["faults"]
    assert [one["where"] for one in both] == ["cluster_openshift_disks.worker[0]", "cluster_openshift_disks.master[0]"]
    twice = role.checked({**SETTINGS, "disks": {"worker": [DISK, DISK]}})["faults"]
    assert "is mounted twice" in " ".join(one["text"] for one in twice)


@pytest.mark.parametrize(
    ("path", "unit"), [("/var", "var"), ("/var/lib/a-b", r"var-lib-a\x2db"), ("/var/a.b_c:d", "var-a.b_c:d")]
)
def test_names_of_units_are_those_of_systemd(path: str, unit: str) -> None:
    assert disks.escaped(path) == unit
