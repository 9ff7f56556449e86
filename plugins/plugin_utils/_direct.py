# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module of this collection in a process of the run's module server if it runs on the controller, and through ansible-core otherwise.

For each task ansible-core packs a module with all that it imports (110 files for these), and Python compiles them from source again.
A cluster's modules run on the controller with the Python that runs Ansible, which keeps compiled files: the CPU time of a site with
20 nodes and no change decreased from 27.6 s to 19.1 s. What one module has imported, the next ones of the run need as well: later, that
decreased it from 7.9 s to 5.5 s.
ansible.netcommon does the same for network devices (plugins/action/network.py, direct execution), but in the process of the worker.
Here each module has its own process, and gets its arguments as in the developer guide.
"""

from __future__ import annotations

import collections.abc as c
import json
import multiprocessing
import os
import pathlib
import socket
import sys
import typing as t

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common import json as serialization
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _module_process

_MODULES = pathlib.Path(__file__).parents[1] / "modules"
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
        path = _MODULES / f"{name.rpartition('.')[2]}.py"
        if not self._task.async_val and path.is_file() and self._is_ours(task_vars):
            try:
                connection = _connected()
            except OSError as error:
                display.vvv(f"Packing {name}, because no process can run its file: {error}")
            else:
                display.vvv(f"Running module file {path}")
                self._update_module_args(name, args, task_vars)
                with connection:
                    return self._run_file(connection, path.stem, args)
        return self._execute_module(
            module_name=name, module_args=args, task_vars=task_vars, wrap_async=bool(self._task.async_val)
        )

    def _run_file(self, connection: socket.socket, module: str, args: dict[str, t.Any]) -> dict[str, t.Any]:
        environment: dict[str, t.Any] = {}
        self._compute_environment_string(environment)
        self._used_interpreter = f"#!{sys.executable}"
        try:
            done = _module_process.run(
                connection,
                module,
                _written(args),
                {**os.environ, **{name: str(value) for name, value in environment.items()}},
            )
        except ConnectionError as error:
            raise AnsibleActionFail(
                f"{error}. Next: run again; with too little memory, the kernel's log names it"
            ) from error
        return self._read({"rc": done.rc, "stdout": done.stdout, "stderr": done.stderr})

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


def _connected() -> socket.socket:
    """Raises OSError if modules cannot run that way on this machine."""
    playbook = multiprocessing.parent_process()
    if not _module_process.SUPPORTED or playbook is None or playbook.pid is None:
        raise OSError("the system has no descriptors of processes")
    return _module_process.connect(pathlib.Path(constants.DEFAULT_LOCAL_TMP), playbook.pid)


def _written(args: dict[str, t.Any]) -> bytes:
    if hasattr(serialization, "get_module_encoder"):
        encoder = serialization.get_module_encoder(_PROFILE, serialization.Direction.CONTROLLER_TO_MODULE)
        return json.dumps({"ANSIBLE_MODULE_ARGS": args}, cls=encoder).encode()
    return json.dumps({"ANSIBLE_MODULE_ARGS": args}, cls=serialization.AnsibleJSONEncoder, vault_to_text=True).encode()
