# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows lines unchanged. A debug task would show them as JSON, from which commands cannot be copied."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _lines


class ActionModule(ActionBase):
    """The action of show. It connects to no host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(
            argument_spec={
                "lines": {"type": "list", "elements": "str", "required": True},
                "failure": {"type": "str", "default": ""},
            }
        )
        shown = _lines.show(args["lines"], self._task, task_vars or {})
        if args["failure"]:
            # Without the lines, which Ansible would show again as JSON.
            return result | {"changed": False, "failed": True, "msg": args["failure"]}
        return result | {"changed": False, "lines": shown}
