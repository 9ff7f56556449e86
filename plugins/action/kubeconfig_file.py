# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes or removes the kubeconfig of a cluster that was installed, on the controller. No result has any of it."""

from __future__ import annotations

import pathlib
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _kubeconfig_file, _variables

_OPTIONS: dict[str, dict[str, t.Any]] = {
    "path": {"type": "str", "required": True},
    "kubeconfig": {"type": "dict", "default": {}},
    "server": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


class ActionModule(ActionBase):
    """The action of kubeconfig_file. It connects to no host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_OPTIONS)
        path = _kubeconfig_file.place(args["path"])
        kubeconfig = _variables.plain(args["kubeconfig"])
        text = _kubeconfig_file.written(kubeconfig) if kubeconfig else ""
        try:
            if args["state"] == "absent":
                return result | self._absent(path, kubeconfig, args["server"])
            faults = [str(fault) for fault in _kubeconfig_file.refused(path, args["server"])]
            if faults:
                return result | {"changed": False, "failed": True, "msg": faults[0]}
            changed = not text or _kubeconfig_file.differs(path, text)
            if changed and text and not self._task.check_mode:
                _kubeconfig_file.write(path, text)
        except HwaccelError as error:
            return result | {"changed": False, "failed": True, "msg": str(error)}
        return result | {"changed": changed, "writes": changed, "path": str(path)}

    def _absent(self, path: pathlib.Path, kubeconfig: dict[str, t.Any], server: str) -> dict[str, t.Any]:
        kept = _kubeconfig_file.kept(path, kubeconfig, server)
        if kept == "" and not self._task.check_mode:
            _kubeconfig_file.remove(path)
        return {"changed": kept == "", "writes": kept == "", "path": str(path), "kept": kept or ""}
