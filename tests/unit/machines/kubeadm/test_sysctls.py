# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the kernel are as they were once a machine has left its cluster."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.leaving import restored
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.plan import plan
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_plan import BARE, SETTINGS

OLD = {"ip_forward": "0", "ipv6_forward": "0", "inotify": "128"}
NODE = {"ip_forward": "1", "ipv6_forward": "1", "inotify": "8192"}
ALL = [
    "net.ipv4.ip_forward=0",
    "net.ipv6.conf.all.forwarding=0",
    "net.ipv6.conf.default.forwarding=0",
    "fs.inotify.max_user_instances=128",
]


def having(facts: dict[str, str], record: str = "") -> Host:
    files = {places.RECORD: File(places.RECORD, record, "0600")} if record else {}
    return dataclasses.replace(BARE, facts={**BARE.facts, **facts}, files=files)


@pytest.mark.parametrize(
    ("networks", "before", "now", "written"),
    [
        ("10.244.0.0/16,fd00:1::/64", OLD, NODE, ALL),
        ("10.244.0.0/16", OLD, NODE, [ALL[0], ALL[3]]),
        # Others have set them meanwhile as they were.
        ("10.244.0.0/16", OLD, OLD, []),
        ("10.244.0.0/16", NODE, NODE, []),
    ],
)
def test_what_the_role_has_changed_is_written_again(
    networks: str, before: dict[str, str], now: dict[str, str], written: list[str]
) -> None:
    made = plan(having(before), {**SETTINGS, "pod_network": networks})
    assert made["faults"] == []
    left = restored(having(now, made["record"]), SETTINGS)
    assert left["sysctls"] == written
    assert ("sysctls" in json.loads(made["record"])["settings"]) is (before is OLD)
