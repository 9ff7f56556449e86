# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module documents, beside what it does."""

from __future__ import annotations

import types
import typing as t

import yaml

_FACTS = ("type", "elements", "default", "choices", "required", "aliases")


def options_match(module: types.ModuleType) -> None:
    """Each option of the argument spec is documented as it is, and no other, at any depth."""
    _compare(yaml.safe_load(module.DOCUMENTATION)["options"], module.ARGUMENT_SPEC)


def _compare(documented: dict[str, t.Any], spec: dict[str, t.Any]) -> None:
    assert set(documented) == set(spec)
    for name, one in spec.items():
        for fact in _FACTS:
            assert documented[name].get(fact) == one.get(fact), (name, fact)
        _compare(documented[name].get("suboptions") or {}, one.get("options") or {})
