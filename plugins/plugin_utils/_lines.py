# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that an action shows to the user while it runs."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.utils.display import Display

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable

display = Display()


def show(lines: c.Iterable[str], task: t.Any, variables: c.Mapping[str, t.Any]) -> list[str]:
    """Shows lines under the name of the host, unless the task has no_log. Returns them as shown."""
    shown = [printable(line) for line in lines]
    if shown and not task.no_log:
        # Lines of a task with run_once do not belong to a host.
        whose = [] if task.run_once else [f"{variables.get('inventory_hostname', 'localhost')}:"]
        # All lines are written at once, because otherwise lines of hosts that run in parallel would mix.
        display.display("\n".join([*whose, *shown]))
    return shown
