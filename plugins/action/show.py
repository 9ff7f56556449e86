# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows lines unchanged. A debug task would show them as JSON, from which commands cannot be copied."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable

display = Display()


class ActionModule(ActionBase):
    """The action of show. It connects to no host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(
            argument_spec={"lines": {"type": "list", "elements": "str", "required": True}}
        )
        lines = [printable(line) for line in args["lines"]]
        if lines and not self._task.no_log:
            # Lines of a task with run_once do not belong to a host.
            whose = [] if self._task.run_once else [f"{(task_vars or {}).get('inventory_hostname', 'localhost')}:"]
            # All lines are written at once, because otherwise lines of hosts that run in parallel would mix.
            display.display("\n".join([*whose, *lines]))
        return result | {"changed": False, "lines": lines}
