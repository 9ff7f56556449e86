# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems that dnsmasq, nginx and nft report in a configuration, with their lines. Pure."""

from __future__ import annotations

import collections.abc as c
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import files
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command

_NUMBER = re.compile(r"(?:line |:)(\d+)")
_STEP = "correct what it reports; custom lines are in dns_pxe_dnsmasq_extra and dns_pxe_nginx_extra"


def faults(results: c.Mapping[str, Command], staged: c.Mapping[str, str]) -> list[Fault]:
    """results: of checkers by name. staged: texts by path that they have read. Each path contains the name of its checker."""
    refused = {name: done for name, done in results.items() if done.status}
    return [_fault(name, done.error.strip() or done.output.strip(), staged) for name, done in refused.items()]


def _fault(name: str, said: str, staged: c.Mapping[str, str]) -> Fault:
    named = next((text for path, text in staged.items() if path in said), "")
    found = _NUMBER.search(said)
    line = files.line(named, int(found.group(1))) if found else ""
    why = f"{said}. The line is: {line}" if line else said
    return Fault(f"{name} does not accept its new configuration, nothing was changed", "", why, _STEP)
