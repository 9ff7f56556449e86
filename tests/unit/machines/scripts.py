# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts that roles run on machines, as modules."""

from __future__ import annotations

import importlib.util
import pathlib
import typing as t


def loaded(path: pathlib.Path) -> t.Any:
    """A new module at each call, as tests replace parts of it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
