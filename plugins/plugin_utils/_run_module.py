# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one module of this collection from its file: python -P _run_module.py FOLDER MODULE, with its arguments as JSON on standard input.

FOLDER holds ansible_collections, and MODULE is the whole name of its Python module. Started by _direct.py only.
"""

from __future__ import annotations

import os
import runpy
import sys
import types


def main() -> None:
    # AnsibleModule reads standard input if there are no arguments (developer guide, "Verifying your module code in a virtual environment").
    folder, name = sys.argv[1:]
    del sys.argv[1:]
    # The package "ansible" has a regular package of this name, which would take precedence over a namespace package regardless of the path.
    package = types.ModuleType("ansible_collections")
    package.__path__ = [os.path.join(folder, "ansible_collections")]
    sys.modules["ansible_collections"] = package
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
