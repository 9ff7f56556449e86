# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches of a role, tested on its objects before these are applied, so that a patch without a match is reported before any change."""

from __future__ import annotations

import collections.abc as c
import importlib.util
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests, patches
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault


def faults(objects: c.Sequence[t.Any], settings: c.Mapping[str, t.Any], called: str) -> list[Fault]:
    """called: the role's variable. A role without objects has nothing to patch, and invalid patches are reported by the validation of inputs."""
    read, wrong = patches.read(settings.get("patches"), called)
    if wrong or not read or not objects:
        return []
    # The objects may be applied on another machine that has the library.
    tried = [one for one in read if isinstance(one.operations, dict) or importlib.util.find_spec("jsonpatch")]
    return patches.apply_all(manifests.load(list(objects))[0], tried)[1]
