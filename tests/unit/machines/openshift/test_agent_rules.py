# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agent-based installer refuses, at its key, and all at once."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import role
from ansible_collections.hwaccel.gpu.tests.unit.machines.openshift.sites import AGENT, MASTERS, WORKERS

ONE = {**AGENT, "machines": MASTERS[:1], "balancers": {}}


def hosts(**more: t.Any) -> list[dict[str, t.Any]]:
    """Of the file, with other values of the first."""
    return [
        {
            "hostname": one["name"],
            "role": one["role"],
            "interfaces": [{"name": "boot0", "macAddress": one["mac"]}],
            **(more if number == 0 else {}),
        }
        for number, one in enumerate([*MASTERS, *WORKERS])
    ]


def case(key: str, *, of: dict[str, t.Any] = AGENT, says: str = "", **given: t.Any) -> t.Any:
    return pytest.param(key, {**of, **given}, says, id=f"{key} {says}")


CASES = [
    case("apiVersion", agent_config={"apiVersion": "v1"}),
    case("kind", agent_config={"kind": "Agent"}),
    case("rendezvousIP", machines=[], says="no address is given"),
    case("rendezvousIP", agent_config={"rendezvousIP": "10.33.3.50/24"}, says="not an IP address"),
    case(
        "hosts[3].role",
        agent_config={"rendezvousIP": "10.33.3.44"},
        static_networks=[{"network": "10.33.3.0/24"}],
        says="the worker worker-0",
    ),
    case("hosts[0].interfaces", machines=[{**MASTERS[0], "mac": ""}, *MASTERS[1:]], says="has no interface"),
    case("hosts[0].interfaces[0].macAddress", agent_config={"hosts": hosts(interfaces=[{"name": "a"}])}),
    case(
        "hosts[0].interfaces[0].macAddress",
        agent_config={"hosts": hosts(interfaces=[{"name": "a", "macAddress": "01:54:00:33:03:32"}])},
        says="not of a group",
    ),
    case(
        "hosts[0].interfaces[0].macAddress",
        agent_config={"hosts": hosts(interfaces=[{"name": "a", "macAddress": "52:54:00:33:03:32:11:22"}])},
        says="six bytes",
    ),
    case(
        "hosts[1].interfaces[0].macAddress",
        agent_config={"hosts": hosts(interfaces=[{"name": "a", "macAddress": MASTERS[1]["mac"].upper()}])},
        says="that of hosts[0]",
    ),
    case("hosts[0].role", agent_config={"hosts": hosts(role="bootstrap")}),
    case(
        "hosts[0].rootDeviceHints.wwnWithExtension",
        agent_config={"hosts": hosts(rootDeviceHints={"wwnWithExtension": "1"})},
    ),
    case(
        "hosts[0].rootDeviceHints.wwnVendorExtension",
        agent_config={"hosts": hosts(rootDeviceHints={"wwnVendorExtension": "1"})},
    ),
    case("hosts[0].rootDeviceHints.deviceName", agent_config={"hosts": hosts(rootDeviceHints={"deviceName": "sda"})}),
    case(
        "hosts[0].rootDeviceHints.deviceName",
        machines=[{**MASTERS[0], "install_device": "/dev/disk/by-id/wwn-0x5"}, *MASTERS[1:]],
        says="hwaccel_root_device_hints",
    ),
    case("hosts", install_config={"controlPlane": {"replicas": 1}}, says="3 hosts are masters, and 1 replicas are set"),
    case("hosts", install_config={"compute": [{"name": "worker", "replicas": 1}]}, says="2 hosts are workers"),
    case("hosts", install_config={"compute": [{"name": "worker", "replicas": 4}]}, says="5 hosts, and 7 replicas"),
    case("additionalNTPSources[1]", time_servers=["10.33.3.1", "time_1"]),
    case("bootArtifactsBaseURL", boot_artifacts_url="10.33.3.18/agent"),
    case("bootArtifactsBaseURL", boot_artifacts_url="http://[10.33/agent"),
    case("controlPlane.replicas", machines=MASTERS[:2], says="2 masters"),
    case("featureSet", install_config={"featureSet": "TechPreviewNoUpgrade"}),
    case("platform", install_config={"platform": {"none": None, "aws": {}}}),
    case("compute.replicas", of=ONE, install_config={"compute": [{"name": "worker", "replicas": 1}]}),
    case("platform", of=ONE, install_config={"platform": {"none": None, "baremetal": {}}}, says="with one master"),
    case("networking.networkType", of=ONE, install_config={"networking": {"networkType": "Calico"}}),
]


@pytest.mark.parametrize(("key", "settings", "says"), CASES)
def test_it_is_refused_at_its_key(key: str, settings: dict[str, t.Any], says: str) -> None:
    found = [one for one in role.checked(settings)["faults"] if one.get("key") == key and not one["ours"]]
    assert found, role.checked(settings)["faults"]
    assert says in " ".join(one["text"] for one in found)
    assert all(one["next_step"] and one["document"] in one["where"] for one in found)


def test_all_of_them_are_told_at_once() -> None:
    bad = hosts(role="x", interfaces=[], rootDeviceHints={"deviceName": "sda", "wwnWithExtension": "1"})
    given = {**AGENT, "agent_config": {"hosts": bad, "bootArtifactsBaseURL": "x", "rendezvousIP": "x"}}
    keys = {one["key"] for one in role.checked(given)["faults"]}
    assert {
        "hosts[0].role",
        "hosts[0].interfaces",
        "hosts[0].rootDeviceHints.deviceName",
        "hosts[0].rootDeviceHints.wwnWithExtension",
        "bootArtifactsBaseURL",
        "rendezvousIP",
    } <= keys


def test_an_older_version_is_accepted() -> None:
    assert role.checked({**AGENT, "agent_config": {"apiVersion": "v1alpha1"}})["faults"] == []
    assert role.checked({**ONE, "install_config": {"platform": {"none": None, "external": {}}}})["faults"] == []
