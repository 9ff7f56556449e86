# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords of proxies: a fault in settings, and read from a Secret."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import TRAINING, daemon_sets, run
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

PROXY = "http://bob:planted@proxy.example.com:3128"


def plan(**settings: t.Any) -> dict[str, t.Any]:
    return run("driver", stack.fleet(stack.node_class()), pools=[TRAINING], source="build", **settings)


def main_container(result: dict[str, t.Any]) -> dict[str, t.Any]:
    return t.cast(
        dict[str, t.Any],
        daemon_sets(result, "nvidia-driver-training-6")[0]["spec"]["template"]["spec"]["containers"][0],
    )


def test_a_password_in_a_setting_is_a_fault_and_in_no_object() -> None:
    result = plan(build={"https_proxy": PROXY, "no_proxy": "10.0.0.0/8"}, toolkit_env={"HTTPS_PROXY": PROXY})
    assert [(fault["what"], fault["where"]) for fault in result["faults"]] == [
        ("https_proxy contains a user or password", "driver_build"),
        ("HTTPS_PROXY contains a user or password", "driver_toolkit_env"),
    ]
    assert "proxy_secret" in result["faults"][0]["next_step"]
    assert "planted" not in repr(result)
    assert {"name": "NO_PROXY", "value": "10.0.0.0/8"} in main_container(result)["env"]


def test_a_proxy_without_password_is_set_directly_and_one_with_it_by_a_secret() -> None:
    plain = plan(build={"https_proxy": "http://proxy.example.com:3128"})
    assert plain["faults"] == []
    assert {"name": "https_proxy", "value": "http://proxy.example.com:3128"} in main_container(plain)["env"]
    assert "envFrom" not in main_container(plain)
    secret = plan(build={"proxy_secret": "proxy"})
    assert secret["faults"] == []
    assert main_container(secret)["envFrom"] == [{"secretRef": {"name": "proxy"}}]
