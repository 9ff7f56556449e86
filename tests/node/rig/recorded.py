# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA's programs did in the configurations of real_programs.yml: the simulated ones are held to it without building the real ones.

As a program, it runs all of them as root, and writes the file.
"""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import tempfile
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.node.rig import alone
from ansible_collections.hwaccel.gpu.tests.node.rig.components import (
    PLUGIN_MODULE,
    SOURCES,
    Components,
    ensure_components,
    version_of,
)

TABLE = pathlib.Path(__file__).parents[1] / "real_programs.yml"
RECORD = pathlib.Path(__file__).parents[3] / "tests/unit/fleet_agent/programs/real_programs.json"
PROGRAMS = {"plugin": "nvidia-device-plugin", "discovery": "gpu-feature-discovery", "config-manager": "config-manager"}
LABELS = "/tmp/labels"
#: Of GPU feature discovery, unless a row has others.
ONCE = {
    "GFD_ONESHOT": "true",
    "GFD_NO_TIMESTAMP": "true",
    "GFD_USE_NODE_FEATURE_API": "false",
    "GFD_OUTPUT_FILE": LABELS,
}


def rows() -> dict[tuple[str, str], dict[str, t.Any]]:
    """All configurations, by kind of program and name, with what alone.run needs."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    found = {}
    for kind, named in table.items():
        for name, row in named.items():
            common = ONCE if kind == "discovery" else {}
            found[kind, name] = {
                "program": PROGRAMS[kind],
                **row,
                "environment": common | row.get("environment", {}),
            }
    return found


def recorded() -> dict[str, t.Any]:
    return dict(json.loads(RECORD.read_text(encoding="utf-8")))


def observed(components: Components) -> dict[str, t.Any]:
    """What the real programs do now, in the form of the file."""
    found: dict[str, t.Any] = {"version": version_of(SOURCES, PLUGIN_MODULE), **{kind: {} for kind in PROGRAMS}}

    def run(row: dict[str, t.Any]) -> dict[str, t.Any]:
        # Names of sockets have at most 108 bytes.
        with tempfile.TemporaryDirectory(prefix="alone-", dir="/tmp") as folder:
            return alone.run(components, pathlib.Path(folder), row)

    # They wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for (kind, name), result in zip(rows(), pool.map(run, rows().values()), strict=True):
            found[kind][name] = result
    return found


if __name__ == "__main__":
    RECORD.write_text(json.dumps(observed(ensure_components(print)), indent=1, sort_keys=True) + "\n", encoding="utf-8")
