# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The toolkit as single programs, on a machine without a package manager."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import predicted
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import containerd, plan, programs
from ansible_collections.hwaccel.gpu.tests.unit.machines.runtime import test_plan
from ansible_collections.hwaccel.gpu.tests.unit.machines.runtime.test_plan import applied, machine, planned, texts

SUM = "1" * 64
PROGRAMS = [{"name": name, "source": f"/files/{name}", "checksum": f"sha256:{SUM}"} for name in programs.NEEDED]
SETTINGS: dict[str, t.Any] = {"toolkit_source": "programs", "programs": PROGRAMS}
PATHS = [programs.path(name) for name in programs.NEEDED]
BARE = {"managers": "", "package": "", "runtime_binary": "", "local_writable": "yes", "architecture": "aarch64"}


def installed(host: Host, **facts: str) -> Host:
    """With the programs."""
    facts = {**host.facts, "runtime_binary": programs.path(programs.RUNTIME), **facts}
    return dataclasses.replace(host, checksums=dict.fromkeys(PATHS, SUM), facts=facts)


def test_they_are_installed_without_a_package_manager() -> None:
    bare = machine(**BARE)
    made = planned(bare, **SETTINGS)
    assert made["faults"] == [] and made["toolkit"]["install"] and made["toolkit"]["names"] == []
    assert [one["path"] for one in made["programs"]] == PATHS and not made["programs"][0]["remote"]
    assert [text for text in predicted(made, absent=False) if text.startswith("install")] == [
        f"install {path}" for path in PATHS
    ]
    assert json.loads(made["record"])["packages"] == []
    # The first run writes what the second one finds.
    assert "/usr/local/bin/nvidia-container-runtime" in made["contents"][containerd.DROP_IN]
    again = planned(installed(applied(bare, made, at=0.0)), **SETTINGS)
    assert predicted(again, absent=False) == [] and again["record"] == "" and not again["toolkit"]["install"]


def test_another_program_is_replaced() -> None:
    host = installed(machine(**BARE))
    host = dataclasses.replace(host, checksums={**host.checksums, PATHS[1]: "2" * 64})
    assert [one["path"] for one in planned(host, **SETTINGS)["programs"]] == [PATHS[1]]


def test_they_go_with_a_teardown_and_what_was_there_before_stays() -> None:
    bare = dataclasses.replace(machine(**BARE), checksums={PATHS[2]: "2" * 64})
    made = planned(bare, **SETTINGS)
    host = installed(applied(bare, made))
    restored = plan.restored(host, {**test_plan.SETTINGS, **SETTINGS})
    assert [path for path in restored["absent"] if path.startswith(programs.FOLDER)] == PATHS[:2]
    # Whatever is set then.
    assert plan.restored(host, test_plan.SETTINGS)["absent"] == restored["absent"]


@pytest.mark.parametrize(
    ("facts", "provider"),
    [
        ({"usr_writable": ""}, "hwaccel"),
        ({"ostree": "yes"}, "hwaccel"),
        ({"usr_writable": "", "local_writable": ""}, "container"),
        ({"etc_writable": ""}, "container"),
    ],
)
def test_a_system_whose_usr_cannot_be_changed_may_have_them(facts: dict[str, str], provider: str) -> None:
    assert planned(machine(**{**BARE, **facts}), **SETTINGS)["provider"] == provider


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"programs": PROGRAMS[:1]}, "lacks nvidia-ctk, nvidia-cdi-hook"),
        ({"programs": [{**one, "architecture": "x86_64"} for one in PROGRAMS]}, "give them for aarch64"),
        ({"programs": [*PROGRAMS, {**PROGRAMS[0], "name": "nvidia-smi"}]}, "nvidia-smi is no program of the toolkit"),
        ({"mode": "legacy"}, "cannot have the mode legacy"),
    ],
    ids=["some are missing", "of another architecture", "an unknown one", "a mode that needs a library"],
)
def test_what_cannot_work_is_a_problem(changed: dict[str, t.Any], told: str) -> None:
    assert told in " ".join(texts(planned(machine(**BARE), **{**SETTINGS, **changed})))
