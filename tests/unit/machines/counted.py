# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of hosts that count how often they are read: with many machines, each is to be read once."""

from __future__ import annotations

import collections
import typing as t


class Counted(dict[str, dict[str, t.Any]]):
    """Variables by host, with how often those of each were read."""

    def __init__(self, hosts: dict[str, dict[str, t.Any]]) -> None:
        super().__init__(hosts)
        self.read: collections.Counter[str] = collections.Counter()

    def __getitem__(self, host: str) -> dict[str, t.Any]:
        self.read[host] += 1
        return super().__getitem__(host)

    def get(self, host: str, default: t.Any = None) -> t.Any:
        # As a mapping of Ansible's does it, which reads its items by themselves.
        try:
            return self[host]
        except KeyError:
            return default
