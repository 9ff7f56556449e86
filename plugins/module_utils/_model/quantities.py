# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes quantities ("1500m", "8Gi", "1e3") as exact numbers."""

from __future__ import annotations

import fractions
import re

_SUFFIXES = {
    "n": fractions.Fraction(1, 10**9),
    "u": fractions.Fraction(1, 10**6),
    "m": fractions.Fraction(1, 1000),
    "": fractions.Fraction(1),
    **{suffix: fractions.Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": fractions.Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)


def parse(text: str | int | float) -> fractions.Fraction:
    """The number that a quantity stands for. Raises ValueError for what is none."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    sign, number, exponent, suffix = match.groups()
    value = fractions.Fraction(number.rstrip(".") if not number.startswith(".") else f"0{number}")
    value *= fractions.Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""]
    return -value if sign == "-" else value
