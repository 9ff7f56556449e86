# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of variables that become lines of configuration files. Pure."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: C0, DEL and C1, and other line ends (Unicode, section 5.8).
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_WHY = "the text after it would become a separate line of a configuration file"


def faults(role: str, settings: c.Mapping[str, t.Any], lines: c.Container[str] = ()) -> list[Fault]:
    """Problems of texts with a line end or another control character, including keys of dictionaries. Texts are not shown, because they may be passwords.

    settings: by the names of the role's variables without the role. lines: names of variables whose texts may have several lines.
    """
    found = []
    for name, value in settings.items():
        pattern = _CONTROL_IN_LINES if name in lines else _CONTROL
        for where in _where(value, pattern, f"{role}_{name}"):
            found.append(
                Fault(
                    "a text has a line end or another control character",
                    where,
                    _WHY,
                    "remove it, also at the end of a text block",
                )
            )
    return found


def _where(value: t.Any, pattern: re.Pattern[str], place: str) -> c.Iterator[str]:
    if isinstance(value, str):
        if pattern.search(value):
            yield place
    elif isinstance(value, c.Mapping):
        for key, item in value.items():
            if pattern.search(str(key)):
                yield f"{place}, a key"
            else:
                yield from _where(item, pattern, f"{place}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _where(item, pattern, f"{place}[{number}]")
