# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/variables.md lists the variables that playbooks and roles read, and the keys of pools."""

from __future__ import annotations

import collections.abc as c
import pathlib
import re
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pools
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import fleet

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGE = (TOP / "docs" / "variables.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w.\[\]]+)` \| [^|]+ \|([^|]*)\|", re.MULTILINE)
#: Without the demo, which sets variables like a user.
SOURCES = [
    path
    for folder in ("playbooks", "roles")
    for path in sorted((TOP / folder).rglob("*.yml"))
    if path.name not in ("demo.yml", "public.yml")
]
PLAYBOOKS = "\n".join(path.read_text(encoding="utf-8") for path in sorted((TOP / "playbooks").glob("*.yml")))
#: Plugins that read host variables.
SOURCES += [
    *sorted((TOP / "plugins" / "filter").glob("*_inventory.py")),
    TOP / "plugins" / "action" / "cluster_preflight.py",
    TOP / "plugins" / "plugin_utils" / "_checks.py",
]
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)


def rows(part: str) -> dict[str, str]:
    """Default by variable or key."""
    return {name: default.strip().strip("`") for name, default in ROW.findall(part)}


VARIABLES, KEYS = map(rows, PAGE.split("## Pools"))


def test_exactly_the_variables_that_are_read_are_documented() -> None:
    # Variables that playbooks set themselves: as a key, a registered result or a loop variable.
    internal = set(re.findall(r"^\s*(?:register: |loop_var: )?(hwaccel_\w+)(?::|$)", TEXT, re.MULTILINE))
    # Installers set it too, for the clusters that they make.
    internal -= {"hwaccel_connection"}
    read = set(re.findall(r"\bhwaccel_[a-z_]+", TEXT))
    assert {name for name in VARIABLES if name.startswith("hwaccel_")} == read - internal


def test_the_list_of_public_variables_has_every_documented_variable() -> None:
    listed = yaml.safe_load((TOP / "playbooks" / "vars" / "public.yml").read_text(encoding="utf-8"))[
        "hwaccel_public_variables"
    ]
    assert listed == list(VARIABLES)
    # Entry points of roles are chosen by the playbook, and are in no argument spec.
    assert {name for name in listed if not name.startswith("hwaccel_")} == set(
        re.findall(r"\b(?:\w+_entry|demo_fleet)\b", PLAYBOOKS)
    )


def set_by(value: t.Any) -> c.Iterator[str]:
    """Names of facts and results in tasks."""
    if isinstance(value, dict):
        yield from value.get("ansible.builtin.set_fact") or ()
        yield from [value["register"]] if "register" in value else []
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from set_by(item)


def test_exactly_the_facts_that_playbooks_and_roles_leave_behind_are_listed() -> None:
    listed = yaml.safe_load((TOP / "playbooks" / "vars" / "public.yml").read_text(encoding="utf-8"))["hwaccel_facts"]
    tasks = [yaml.load(path.read_text(encoding="utf-8"), yaml.SafeLoader) for path in SOURCES if path.suffix == ".yml"]
    found = {name for name in set_by(tasks) if not name.startswith(("__", "{{"))}
    # An action sets the outcomes of roles on machines, and those of phases.
    found |= {"hwaccel_phase_outcomes"} | {
        f"{role}_outcome"
        for role in (
            "cluster_k3s",
            "cluster_kubeadm",
            "cluster_openshift",
            "dns_pxe",
            "load_balancer",
            "machine_boot",
            "node_runtime",
        )
    }
    # Tasks that installers share set these by the name of the installer's role.
    found |= {f"cluster_{name}_{fact}" for name in ("k3s", "kubeadm") for fact in ("faults", "predicted")}
    # The demo is no source here, and the last one is a variable of the inventory plugin's hosts.
    assert listed == sorted({*found, "demo_began", "hwaccel_node"})


def test_documented_defaults_are_those_of_playbooks_and_roles() -> None:
    found = {
        name: value.strip("'")
        for name, value in re.findall(r"\b(hwaccel_\w+) \| default\('{0,2}('[^']*'|\[\]|false)", TEXT)
    }
    assert len(found) > 10
    assert {name: VARIABLES[name] for name in found if name in VARIABLES} == {
        name: value for name, value in found.items() if name in VARIABLES
    }


def test_exactly_the_keys_of_a_pool_are_documented() -> None:
    plain = set(pools.CHECKS) - {"gpu", "driver", "interconnect"}
    parts = {"gpu": pools.GPU_CHECKS, "driver": pools.DRIVER_CHECKS, "interconnect": pools.INTERCONNECT_CHECKS}
    nested = {f"{part}.{key}" for part, keys in parts.items() for key in keys}
    machines = {f"machines[].{key}" for key in fleet.MACHINE_CHECKS}
    assert set(KEYS) == plain | nested | machines


def test_the_example_is_valid() -> None:
    example = yaml.safe_load(PAGE.split("```yaml\n")[1].split("```")[0])["hwaccel_pools"]
    found, faults = fleet.read_fleet(example, None)
    assert faults == []
    assert [pool.name for pool in found.pools] == ["training", "dgx"]
    assert len(found.gpus) == 1
