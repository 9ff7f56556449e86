# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin on a simulated fleet: its groups and variables, and a play on one of the groups."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet, quarantine
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "training",
            "count": 2,
            "kernel": "5.15.0-185-generic",
            "gpu": GPU,
        },
        {"name": "cpu", "count": 1},
    ],
}
DECLARED = [{"name": "training", "nodes": ["training-0", "training-1"], "gpu": {"count": 8}}]
OPTIONS = {"host_address": "InternalIP", "labels": ["hwaccel.gpu/*"], "pools": DECLARED}
TASKS = [
    {
        "ansible.builtin.debug": {
            "msg": "{{ inventory_hostname }} at {{ ansible_host }}: {{ hwaccel_node.quarantine_reason }}"
        }
    }
]


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> t.Any:
    return make_sandbox(FLEET)


def run(folder: pathlib.Path, program: str, *arguments: str) -> str:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("K8S_AUTH_", "KUBE", "ANSIBLE_"))
    }
    clean |= {
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
    }
    command = [sys.executable, "-m", "ansible", program, "-i", "site.fleet.hwaccel.yml", *arguments]
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    return done.stdout


def test_a_quarantined_node_is_listed_and_plays_run_on_it(
    sandbox: t.Any, client: Client, tmp_path: pathlib.Path
) -> None:
    audit = AuditLog(sandbox.audit_log)
    assert quarantine.quarantine(
        client, fleet.NODE, "training-1", "driver", "the module does not load", lambda _node: quarantine.HARD
    )
    (tmp_path / "site.fleet.hwaccel.yml").write_text(
        yaml.safe_dump({"plugin": "hwaccel.gpu.fleet", "kubeconfig": sandbox.kubeconfig, **OPTIONS})
    )
    (tmp_path / "play.yml").write_text(
        yaml.safe_dump([{"hosts": "pool_training", "connection": "local", "gather_facts": False, "tasks": TASKS}])
    )
    listed = json.loads(
        run(tmp_path, "inventory", "--list"), object_hook=lambda value: value.get("__ansible_unsafe", value)
    )
    played = run(tmp_path, "playbook", "play.yml")
    assert {
        name: listed[name]["hosts"]
        for name in ("pool_training", "pool_cpu", "quarantined_driver", "kernel_5_15_0_185_generic")
    } == {
        "pool_training": ["training-0", "training-1"],
        "pool_cpu": ["cpu-0"],
        "quarantined_driver": ["training-1"],
        "kernel_5_15_0_185_generic": ["training-0", "training-1"],
    }
    # No driver is deployed.
    assert listed["gpu_unschedulable"]["hosts"] == ["training-0", "training-1"]
    assert listed["_meta"]["hostvars"]["training-1"]["hwaccel_node"]["labels"] == {"hwaccel.gpu/quarantine": "driver"}
    assert "training-1 at 127.0.0.1: the module does not load" in played
    assert "training-0 at 127.0.0.1" in played and "cpu-0" not in played
    # The test itself wrote the quarantine, and the inventory wrote nothing.
    assert [(write.verb, write.name) for write in audit.our_writes()] == [("patch", "training-1")]
