# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems that HAProxy reports in a configuration, with their lines."""

from __future__ import annotations

import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import files

_WHAT = "HAProxy does not accept the desired configuration"
_ALERT = re.compile(r"^\[ALERT\]\s+\(\d+\) : (?:config : )?(.*)$")
_PLACE = re.compile(r"parsing \[/dev/stdin:(\d+)\] : ")
#: Final messages, which only summarize.
_CLOSING = ("Fatal errors found in configuration", "Error(s) found in configuration file")
_STEP = "correct it in load_balancer_services or load_balancer_extra"


def faults(configuration: str, status: int, said: str) -> list[Fault]:
    """configuration: the text that HAProxy has read from standard input."""
    if status == 0:
        return []
    found = []
    for alert in (match.group(1).rstrip(".") for line in said.splitlines() if (match := _ALERT.match(line.strip()))):
        if alert.startswith(_CLOSING):
            continue
        place = _PLACE.search(alert)
        line = files.line(configuration, int(place.group(1))) if place else ""
        found.append(Fault(_WHAT, f"line: {line}" if line else "", _PLACE.sub("", alert), _STEP))
    return found or [Fault(_WHAT, "", said.strip() or f"haproxy -c: exit status {status}", _STEP)]
