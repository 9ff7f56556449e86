# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of modules on a cluster that do not wait. It only changes how the module is started (plugin_utils/_direct.py)."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._direct import DirectAction


class ActionModule(DirectAction):
    """The action of node_info, bootstrap_info, machine_config_server_info, cluster_compare, cluster_confirm and openshift_credentials."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        return self.run_module(dict(self._task.args), dict(task_vars or {}))
