# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of K3s that the rig has: those of the stand-in, or real binaries of the user's.

HWACCEL_K3S, HWACCEL_K3S_NEXT   paths of two releases, of which the second one is later: machines have them instead of the stand-in
HWACCEL_K3S_IMAGES              folder with a folder for each version, which has its archive k3s-airgap-images-amd64.tar
"""

from __future__ import annotations

import collections.abc as c
import os
import pathlib
import re
import subprocess

from ansible_collections.hwaccel.gpu.tests.cluster.rig.programs import VERSION as KUBERNETES
from ansible_collections.hwaccel.gpu.tests.cluster.rig.programs import next_patch

BINARIES, IMAGES = ("HWACCEL_K3S", "HWACCEL_K3S_NEXT"), "HWACCEL_K3S_IMAGES"
#: Of the stand-in, which has the version that it was built with.
BUILT = (f"{KUBERNETES}+k3s1", f"{next_patch(KUBERNETES)}+k3s1")


def real(environment: c.Mapping[str, str]) -> dict[str, pathlib.Path]:
    """Binaries by the version that they print, in order, empty if none is given. Raises ValueError if only a part is given or one is no K3s."""
    given = [environment.get(name, "") for name in (*BINARIES, IMAGES)]
    if not any(given):
        return {}
    if not all(given):
        raise ValueError(f"a real K3s needs all of {', '.join((*BINARIES, IMAGES))}")
    return {version(pathlib.Path(path)): pathlib.Path(path) for path in given[:2]}


def version(binary: pathlib.Path) -> str:
    """As main.go of K3s prints it: k3s version v1.36.4+k3s1 (commit). Raises ValueError for another program."""
    printed = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout
    found = re.match(r"k3s version (v\S+) ", printed)
    if not found:
        raise ValueError(f"{binary} is no K3s: it prints {printed[:80]!r}")
    return found[1]


REAL = real(os.environ)
VERSION, NEXT = tuple(REAL) or BUILT


def images(version: str, environment: c.Mapping[str, str]) -> pathlib.Path:
    """The folder with the archive of a real release."""
    return pathlib.Path(environment[IMAGES]) / version
