# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JMESPath expressions of users: their validation and their values."""

from __future__ import annotations

import typing as t


def fault_of(expression: t.Any) -> str:
    """Why an expression is invalid, "" if it is valid."""
    if not isinstance(expression, str) or not expression:
        return "it is not a string"
    try:
        import jmespath
    except ImportError:
        return "the Python library jmespath is missing on the host that runs this module"
    try:
        jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError as error:
        return _one_line(error)
    return ""


def evaluate(expression: str, data: t.Any) -> tuple[t.Any, str]:
    """(its value, ""), or (None, why it has none). The expression is one in which `fault_of` found nothing."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.search(expression, data), ""
    except JMESPathError as error:
        return None, f"{expression}: {_one_line(error)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
