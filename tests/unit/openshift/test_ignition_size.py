# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the largest files need: processor time by the pace of the machine, and memory of the whole process."""

from __future__ import annotations

import base64
import collections.abc as c
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.tools import pace
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i

LARGEST = 32 << 20
BUDGETS = pathlib.Path(__file__).parents[2] / "tools" / "budgets.json"


def bootstrap() -> bytes:
    return i.written(i.Installation().bootstrap())


def base64_files() -> bytes:
    """As a bootstrap file, with more contents."""
    config = i.Installation().bootstrap()
    noise = random.Random(1).randbytes(230_000)
    config["storage"]["files"] += [i.file(f"/var/lib/{number}", noise) for number in range(108)]
    return filled(i.written(config))


def percent_encoded() -> bytes:
    return filled(i.written(single("data:," + "a%41" * (LARGEST // 4 - 100))))


def compressed() -> bytes:
    """Two files, each as large as one may be after decompression."""
    source = f"data:;base64,{base64.b64encode(gzip.compress(bytes(LARGEST - 1))).decode()}"
    config = single(source, compression="gzip")
    config["storage"]["files"].append(config["storage"]["files"][0] | {"path": "/b"})
    return filled(i.written(config))


def single(source: str, **resource: t.Any) -> dict[str, t.Any]:
    contents = {"source": source, **resource}
    return {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/a", "contents": contents}]}}


def filled(data: bytes) -> bytes:
    """With blanks up to the size of the largest file."""
    assert len(data) <= LARGEST
    return data + b" " * (LARGEST - len(data))


def needed(data: bytes, folder: pathlib.Path) -> dict[str, float]:
    path = folder / "file.ign"
    path.write_bytes(data)
    program = pathlib.Path(__file__).parent / "measured.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(program), str(path)], capture_output=True, text=True, check=True, env=environment
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def slower() -> float:
    """The factor by which this machine is slower than that of the budgets."""
    budget: float = json.loads(BUDGETS.read_text(encoding="utf-8"))["pace"]
    return pace.seconds() / budget


@pytest.mark.parametrize(
    ("made", "seconds", "mib"),
    [(bootstrap, 0.5, 80), (base64_files, 5, 300), (percent_encoded, 5, 300), (compressed, 5, 300)],
)
def test_time_and_memory_are_limited(
    made: c.Callable[[], bytes], seconds: float, mib: float, tmp_path: pathlib.Path
) -> None:
    measured = needed(made(), tmp_path)
    assert measured["mib"] <= mib, measured
    assert measured["seconds"] <= seconds or measured["seconds"] <= seconds * slower(), measured
    if made in (bootstrap, base64_files):
        assert (measured["certificates"], measured["files"] >= 108) == (48, True)
