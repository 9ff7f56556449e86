# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""daemon.json of Docker, and drop-ins of CRI-O, K3s and RKE2."""

from __future__ import annotations

import json
import random
import tomllib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import docker, drop_ins
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import RuntimeSettings

ADDITIONAL, DEFAULT = RuntimeSettings(), RuntimeSettings(default=True)
OURS = {"args": [], "path": "/usr/bin/nvidia-container-runtime"}
EXISTING = """{
  "storage-opts": ["size=9007199254740993"],
  "max-concurrent-uploads": 9007199254740993,
  "default-runtime": "nvidia",
  "exec-opts": ["native.cgroupdriver=systemd"]
}
"""


def with_runtime(text: str, desired: RuntimeSettings = ADDITIONAL, *, knows_cdi: bool = False) -> str:
    return docker.with_runtime(text, desired, knows_cdi=knows_cdi)


def test_the_runtime_is_added_and_a_previous_default_removed() -> None:
    assert (
        with_runtime(EXISTING)
        == """{
  "storage-opts": [
    "size=9007199254740993"
  ],
  "max-concurrent-uploads": 9007199254740993,
  "exec-opts": [
    "native.cgroupdriver=systemd"
  ],
  "runtimes": {
    "nvidia": {
      "args": [],
      "path": "/usr/bin/nvidia-container-runtime"
    }
  }
}
"""
    )


def test_a_file_in_the_desired_state_is_unchanged() -> None:
    odd = '{"runtimes":   {"nvidia": {"path": "/usr/bin/nvidia-container-runtime",\n "args": []}}}'
    assert with_runtime(odd) == odd


@pytest.mark.parametrize(("text", "expected"), [("", True), ('{"a": 1}', False), ('{\n\t"a": 1\n}\n', True)])
def test_line_end_and_indentation_of_the_file_are_kept(text: str, expected: bool) -> None:
    rendered = with_runtime(text)
    assert rendered.endswith("\n") == expected
    assert ("\n" in rendered) == ("\n" in text or not text)
    assert ('\n\t"runtimes"' in rendered) == ("\t" in text)


def test_another_default_and_arguments_of_the_runtime_are_kept() -> None:
    rendered = json.loads(
        with_runtime(
            '{"default-runtime": "crun", "runtimes": {"nvidia": {"path": "/old", "args": ["-d"]}, "crun": {"path": "/c"}}}'
        )
    )
    assert rendered["default-runtime"] == "crun"
    assert rendered["runtimes"] == {"nvidia": {"path": OURS["path"], "args": ["-d"]}, "crun": {"path": "/c"}}


@pytest.mark.parametrize(
    ("version", "cdi", "features", "checked"),
    [
        ("20.10.24", True, None, False),
        ("23.0.1", True, None, True),
        ("25.0.0", True, {"cdi": True}, True),
        ("28.1.1", False, {"cdi": False}, True),
    ],
)
def test_cdi_and_validation_are_used_if_the_version_has_them(
    version: str, cdi: bool, features: t.Any, checked: bool
) -> None:
    rendered = docker.render(
        Host(commands={"docker": Command(0, f"Docker version {version}, build 1")}), RuntimeSettings(cdi=cdi)
    )
    assert json.loads(rendered.contents[0].text).get("features") == features
    assert [check.command[:2] for check in rendered.checks] == ([("dockerd", "--validate")] if checked else [])
    assert bool(rendered.messages) == (features is None)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not JSON: .*line 1 column 2"), ("[]", "not a JSON object"), ('{"a": 1, "a": 2}', "it has a twice")],
)
def test_a_damaged_file_is_reported(text: str, message: str) -> None:
    with pytest.raises(HwaccelError, match=rf"daemon.json\).*{message}.*Next: correct the file"):
        with_runtime(text)


def test_mode_and_owner_are_kept() -> None:
    machine = Host(files={docker.CONFIG: File(docker.CONFIG, "{}", "0600", 5, 6)})
    rendered = docker.render(machine, ADDITIONAL).contents[0]
    assert (rendered.mode, rendered.uid, rendered.gid) == ("0600", 5, 6)


@pytest.mark.parametrize("seed", range(100))
def test_changes_are_idempotent_and_can_be_reverted(seed: int) -> None:
    chance = random.Random(seed)
    before: dict[str, t.Any] = {
        f"key-{number}": chance.choice([1, 2**60 + 1, "x", [1], {"y": None}]) for number in range(chance.randrange(4))
    }
    for section, entry in (
        ("runtimes", {"crun": {"path": "/c"}}),
        ("features", {"buildkit": True}),
        ("default-runtime", chance.choice(["crun", "nvidia"])),
    ):
        if chance.random() < 0.5:
            before[section] = entry
    text = json.dumps(before, indent=chance.choice([None, 2, 4]))
    desired, knows = RuntimeSettings(default=chance.random() < 0.5), chance.random() < 0.5
    once = with_runtime(text, desired, knows_cdi=knows)
    assert with_runtime(once, desired, knows_cdi=knows) == once
    back = docker.with_runtime(with_runtime(text, DEFAULT), ADDITIONAL, knows_cdi=False, original=text)
    assert json.loads(back) == json.loads(with_runtime(text, ADDITIONAL))
    edited = json.dumps({**json.loads(once), "debug": True})
    assert json.loads(docker.without_runtime(edited, text, "nvidia")) == {**before, "debug": True}


@pytest.mark.parametrize("desired", [ADDITIONAL, DEFAULT])
def test_cri_o_has_a_drop_in(desired: RuntimeSettings) -> None:
    rendered = drop_ins.render_crio(desired)
    runtime = tomllib.loads(rendered.contents[0].text)["crio"]["runtime"]
    assert runtime["runtimes"] == {"nvidia": {"runtime_path": OURS["path"], "runtime_type": "oci"}}
    assert runtime.get("default_runtime", "") == ("nvidia" if desired.default else "")


@pytest.mark.parametrize("product", ["k3s", "rke2"])
def test_k3s_and_rke2_have_a_file_for_the_default_only(product: str) -> None:
    machine = Host(facts={f"{product}_generated": "4"})
    path = f"/etc/rancher/{product}/config.yaml.d/90-hwaccel-gpu.yaml"
    assert [
        (one.path, one.text.splitlines()[-1]) for one in drop_ins.render_rancher(machine, product, DEFAULT).contents
    ] == [(path, "default-runtime: nvidia")]
    additional = drop_ins.render_rancher(machine, product, ADDITIONAL)
    assert (additional.contents, additional.absent, additional.stale) == ([], [path], "")
    assert (
        "not detected NVIDIA's runtime"
        in drop_ins.render_rancher(Host(facts={f"{product}_generated": "0"}), product, ADDITIONAL).stale
    )


def test_a_default_on_a_k3s_that_is_too_old_is_a_fault() -> None:
    machine = Host(commands={"k3s": Command(0, "k3s version v1.28.4+k3s2 (6ba6c1b6)")})
    assert "since 1.28.5" in str(drop_ins.render_rancher(machine, "k3s", DEFAULT).faults[0])
    machine.commands["k3s"] = Command(0, "k3s version v1.34.1+k3s1 (24fc436e)")
    assert drop_ins.render_rancher(machine, "k3s", DEFAULT).faults == []


@pytest.mark.parametrize(
    ("template", "faults"), [('{{ template "base" . }}\n[x]\n', 0), ("version = 2\n", 1), ('runtimes."nvidia"\n', 0)]
)
def test_a_template_that_hides_detected_runtimes_is_a_fault(template: str, faults: int) -> None:
    path = drop_ins.template_paths("k3s")[1]
    found = drop_ins.render_rancher(Host(files={path: File(path, template)}), "k3s", ADDITIONAL).faults
    assert [fault.where for fault in found] == [path] * faults
