# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin, run by `ansible-inventory` and `ansible-playbook` on a server with simulated nodes."""

from __future__ import annotations

import collections.abc as c
import json
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, status
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.programs import environment

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
TOKEN = "planted-token"
TEMPLATE = "{{ lookup('ansible.builtin.pipe', 'touch executed') }}"
H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81559",
}
TRAINING = {"name": "training", "selector": "pool=training", "gpu": {"count": 8}}


@pytest.fixture
def other_server() -> c.Iterator[Fake]:
    fake = Fake()
    fake.answers = nodes(s.node("elsewhere"))
    yield fake
    fake.close()


@pytest.fixture
def server() -> c.Iterator[Fake]:
    fake = Fake()
    fake.answers = nodes(
        s.node("training-0", allocatable=8, labels={**H100, "pool": "training", "topology.kubernetes.io/zone": "a"}),
        s.node("training-1", allocatable=7, labels={**H100, "pool": "training"}),
        s.node("cpu-0", gpus=0, kernel="6.8.0-134-generic"),
    )
    yield fake
    fake.close()


def nodes(*items: s.Obj) -> list[Answer]:
    return [
        Answer(
            body={"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": list(items)}
        )
    ]


class Runs:
    """Runs programs of Ansible with a file of the plugin as the inventory."""

    def __init__(self, folder: pathlib.Path, server: Fake) -> None:
        self.folder, self.server = folder, server
        self.name = "production.fleet.hwaccel.yml"

    def configure(self, **options: t.Any) -> None:
        content = {"plugin": "hwaccel.gpu.fleet", "host": self.server.host, "api_key": TOKEN, **options}
        (self.folder / self.name).write_text(yaml.safe_dump(content), encoding="utf-8")

    def program(
        self, name: str, *arguments: str, environ: c.Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        clean = environment(self.folder, "K8S_AUTH_", "KUBE")
        clean |= {"ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "4000"}
        clean |= {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true", "HOME": str(self.folder)}
        command = [sys.executable, "-m", "ansible", name, "-i", self.name, *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=clean | dict(environ or {}),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def list(self, *arguments: str, **more: t.Any) -> dict[str, t.Any]:
        done = self.program("inventory", "--list", *arguments, **more)
        assert done.returncode == 0 and not done.stderr, done.stderr
        # ansible-core marks unsafe texts like this; since 2.19 all texts of the plugin.
        found = json.loads(done.stdout, object_hook=lambda value: value.get("__ansible_unsafe", value))
        return {
            "vars": found.pop("_meta")["hostvars"],
            "all": found.pop("all")["children"],
            **{name: group.get("hosts") for name, group in found.items()},
        }

    def play(self, plays: list[dict[str, t.Any]], *arguments: str) -> str:
        (self.folder / "play.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
        done = self.program("playbook", "play.yml", *arguments)
        assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
        return done.stdout

    def fails(self, *arguments: str) -> str:
        done = self.program("inventory", "--list", *arguments)
        assert done.returncode, done.stdout
        assert TOKEN not in done.stdout + done.stderr
        return " ".join(done.stderr.split())


@pytest.fixture
def runs(tmp_path: pathlib.Path, server: Fake) -> Runs:
    configured = Runs(tmp_path, server)
    configured.configure()
    return configured


def test_groups_variables_and_constructed_options(runs: Runs) -> None:
    runs.configure(
        pools=[TRAINING, {"name": "not yet", "selector": "pool=none"}],
        labels=["topology.*"],
        strict=True,
        leading_separator=False,
        compose={"gpus": "(hwaccel_node.gpu or {}).count | default(0)"},
        groups={"lame": "hwaccel_node.obstacles | length > 0"},
        keyed_groups=[
            {"key": "hwaccel_node.labels['topology.kubernetes.io/zone'] | default('nowhere')", "separator": "-"}
        ],
    )
    found = runs.list()
    assert (found["pool_training"], found["pool_cpu"]) == (["training-0", "training-1"], ["cpu-0"])
    assert (found["gpu_schedulable"], found["gpu_unschedulable"], found["lame"]) == (
        ["training-0"],
        ["training-1"],
        ["training-1"],
    )
    assert found["product_NVIDIA_H100_80GB_HBM3"] == found["kernel_6_8_0_111_generic"] == ["training-0", "training-1"]
    assert (found["a"], found["nowhere"]) == (["training-0"], ["cpu-0", "training-1"])
    assert {"pool_not_yet", "quarantined"} <= set(found["all"])
    assert found["vars"]["training-0"]["hwaccel_node"]["labels"] == {"topology.kubernetes.io/zone": "a"}
    assert [int(found["vars"][name]["gpus"]) for name in ("training-0", "cpu-0")] == [8, 0]
    assert runs.server.received[0].headers["Authorization"] == f"Bearer {TOKEN}"


def test_values_of_a_node_are_not_templated(runs: Runs) -> None:
    marked = s.node("odd", kernel=TEMPLATE, os_image=TEMPLATE, labels={"a": TEMPLATE})
    marked["status"]["addresses"] = [{"type": "InternalIP", "address": TEMPLATE}]
    runs.server.answers = nodes(marked)
    runs.configure(labels=["*"], host_address="InternalIP", compose={"copied": "hwaccel_node.os_image"})
    tasks = [{"ansible.builtin.debug": {"msg": "{{ [hwaccel_node, copied, groups, ansible_host] | to_json }}"}}]
    output = runs.play([{"hosts": "pool_default", "gather_facts": False, "tasks": tasks}])
    assert output.count("touch executed") > 3
    assert not (runs.folder / "executed").exists()


def test_connections_from_the_environment_templates_and_aliases(runs: Runs) -> None:
    environ = {"K8S_AUTH_HOST": runs.server.host, "K8S_AUTH_API_KEY": TOKEN}
    runs.configure(host="", api_key="")
    assert runs.list(environ=environ)["pool_cpu"] == ["cpu-0"]
    runs.configure(
        api_key="{{ lookup('ansible.builtin.env', 'FLEET_TOKEN') }}",
        verify_ssl="{{ 1 == 2 }}",
        host_prefix="{{ 'x' * 2 }}-",
        cluster="frank-furt",
    )
    found = runs.list(environ={"FLEET_TOKEN": "another"})
    assert found["cluster_frank_furt"] == ["xx-cpu-0", "xx-training-0", "xx-training-1"]
    assert found["vars"]["xx-cpu-0"]["hwaccel_cluster"] == "frank-furt"
    assert [request.headers["Authorization"] for request in runs.server.received] == [
        f"Bearer {TOKEN}",
        "Bearer another",
    ]


def test_the_cache_holds_until_the_request_or_the_server_changes(runs: Runs, other_server: Fake) -> None:
    cache = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(runs.folder / "cache")}
    runs.configure(**cache)
    first = runs.list()
    runs.server.answers = nodes(s.node("new"))
    assert runs.list() == first
    assert len(runs.server.received) == 1
    runs.configure(**cache, label_selector="a=b")
    assert list(runs.list()["vars"]) == ["new"]
    runs.configure(**cache)
    runs.play([{"hosts": "new", "gather_facts": False}], "--flush-cache")
    assert list(runs.list()["vars"]) == ["new"]
    assert [request.query.get("labelSelector") for request in runs.server.received] == [None, "a=b", None]
    runs.configure(**cache, host=other_server.host)
    assert list(runs.list()["vars"]) == ["elsewhere"]
    assert TOKEN not in "".join(path.read_text(encoding="utf-8") for path in (runs.folder / "cache").iterdir())


def test_an_error_of_the_server_is_reported(runs: Runs) -> None:
    runs.server.answers = [status(401, f"no such token: {TOKEN}", "Unauthorized")]
    message = runs.fails("-vvv")
    assert "listing nodes" in message and "check that the token" in message and runs.server.host in message
    runs.configure(pools=[TRAINING, {"name": "b", "selector": "pool in (training, b)"}])
    runs.server.answers = nodes(s.node("t", labels={"pool": "training"}))
    assert "pools training and b overlap" in runs.fails()


def test_a_file_with_another_name_is_not_accepted(runs: Runs) -> None:
    runs.name = "production.yml"
    runs.configure()
    assert "could not be verified by inventory plugin 'hwaccel.gpu.fleet'" in runs.fails()
    assert not runs.server.received
