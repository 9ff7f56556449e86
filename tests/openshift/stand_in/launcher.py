# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program in the place of openshift-install, which starts the stand-in."""

from __future__ import annotations

import pathlib
import shlex
import sys

#: Folder above ansible_collections.
_TREE = pathlib.Path(__file__).resolve().parents[6]
_MODULE = "ansible_collections.hwaccel.gpu.tests.openshift.stand_in.openshift_install"


def write(folder: pathlib.Path, name: str = "openshift-install", **settings: str) -> pathlib.Path:
    """settings: variables of settings.py without STAND_IN_, for whoever starts it with an environment of its own; one of its environment counts more."""
    lines = []
    for key, value in settings.items():
        variable = f"STAND_IN_{key.upper()}"
        lines.append(f'[ "${{{variable}+set}}" ] || {variable}={shlex.quote(value)}; export {variable}')
    start = f'PYTHONPATH={shlex.quote(str(_TREE))} exec {shlex.quote(sys.executable)} -m {_MODULE} "$0" "$@"'
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines, start, ""]), encoding="utf-8")
    path.chmod(0o755)
    return path
