# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files that a thousand simulated programs read in every cycle, but which are parsed once."""

from __future__ import annotations

import copy
import functools
from typing import Any

import yaml


def load(text: str) -> Any:
    """Like yaml.safe_load. The caller may change the result. Raises yaml.YAMLError."""
    return copy.deepcopy(_parsed(text))


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    return yaml.safe_load(text)
