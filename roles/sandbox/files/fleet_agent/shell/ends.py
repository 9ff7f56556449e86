# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways in which a script ends before its last command."""

from __future__ import annotations


class Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Jump(Exception):
    """break, continue or return."""

    def __init__(self, kind: str, value: int) -> None:
        super().__init__(kind)
        self.kind, self.value = kind, value
