# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module of this collection directly from its file if it runs on the controller, and through ansible-core otherwise.

For each run ansible-core packs a module with all that it imports (110 files for these), and Python compiles them from source again.
A cluster's modules run on the controller with the Python that runs Ansible, which keeps compiled files: the CPU time of a site with
20 nodes and no change decreased from 27.6 s to 19.1 s. ansible.netcommon does the same for network devices
(plugins/action/network.py, direct execution), but in the process of the worker. Here the module still has its own process, and gets
its arguments as in the developer guide.
"""

from __future__ import annotations

import collections.abc as c
import json
import pathlib
import shlex
import sys
import typing as t

from ansible import constants
from ansible.module_utils.common import json as serialization
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

_PLUGINS = pathlib.Path(__file__).parents[1]
_PACKAGE = "ansible_collections.hwaccel.gpu.plugins.modules"
_FOLDER = _PLUGINS.parents[3]
#: How arguments and results are written for modules that do not belong to ansible-core (2.19, module_utils/_internal/_json/_profiles).
_PROFILE = "legacy"

display = Display()


class DirectAction(ActionBase):
    """An action that runs the module of its name with run_module."""

    _supports_check_mode = True
    _supports_async = True

    def run_module(
        self, args: dict[str, t.Any], task_vars: dict[str, t.Any], module: str | None = None
    ) -> dict[str, t.Any]:
        """Result of the module with these arguments, in the format of _execute_module. It runs in the background if the task says so.

        module: its full name, by default that of the task.
        """
        name = module or self._task.action
        path = _PLUGINS / "modules" / f"{name.rpartition('.')[2]}.py"
        if self._task.async_val or not path.is_file() or not self._is_ours(task_vars):
            return self._execute_module(
                module_name=name, module_args=args, task_vars=task_vars, wrap_async=bool(self._task.async_val)
            )
        display.vvv(f"Running module file {path}")
        self._update_module_args(name, args, task_vars)
        command = [
            sys.executable,
            "-P",
            str(pathlib.Path(__file__).with_name("_run_module.py")),
            str(_FOLDER),
            f"{_PACKAGE}.{path.stem}",
        ]
        self._used_interpreter = f"#!{sys.executable}"
        done = self._low_level_execute_command(
            f"{self._compute_environment_string()} {shlex.join(command)}".strip(), in_data=_written(args)
        )
        return self._read(done)

    def _is_ours(self, task_vars: c.Mapping[str, t.Any]) -> bool:
        """Whether the module would run on this machine, as this user, with the Python that runs this."""
        if self._connection.transport != "local" or self._connection.become or constants.DEFAULT_KEEP_REMOTE_FILES:
            return False
        host = self._task.delegate_to
        variables = task_vars.get("ansible_delegated_vars", {}).get(host, {}) if host else task_vars
        python = variables.get("ansible_python_interpreter") or constants.config.get_config_value(
            "INTERPRETER_PYTHON", variables=dict(variables)
        )
        return bool(self._templar.template(python) == sys.executable)

    def _read(self, done: dict[str, t.Any]) -> dict[str, t.Any]:
        """The last part of _execute_module in ansible-core 2.16 to 2.18, 2.19 and 2.20, and since 2.21."""
        tagged = hasattr(serialization, "get_module_decoder")
        result = self._parse_returned_data(done, _PROFILE) if tagged else self._parse_returned_data(done)
        if not isinstance(result, dict):
            result.remove_internal_keys()
            return t.cast("dict[str, t.Any]", result.as_result_dict(for_round_trip=True))
        from ansible.utils.unsafe_proxy import wrap_var
        from ansible.vars.clean import remove_internal_keys

        remove_internal_keys(result)
        return result if tagged else t.cast("dict[str, t.Any]", wrap_var(result))


def _written(args: dict[str, t.Any]) -> bytes:
    if hasattr(serialization, "get_module_encoder"):
        encoder = serialization.get_module_encoder(_PROFILE, serialization.Direction.CONTROLLER_TO_MODULE)
        return json.dumps({"ANSIBLE_MODULE_ARGS": args}, cls=encoder).encode()
    return json.dumps({"ANSIBLE_MODULE_ARGS": args}, cls=serialization.AnsibleJSONEncoder, vault_to_text=True).encode()
