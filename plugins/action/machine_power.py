# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power and boot device of a machine, by modules on the host of the task, which reaches its BMC or is its hypervisor."""

from __future__ import annotations

import pathlib
import re
import time
import typing as t

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._variables import plain
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import power, providers, request

display = Display()
#: Folder of the role with files that run on machines.
_SCRIPT = pathlib.Path(__file__).parents[2] / "roles" / "machine_boot" / "files" / "hypervisor.sh"
_BMC: dict[str, t.Any] = {
    "password": {"type": "str", "no_log": True, "default": ""},
    "ca": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 30},
    "retries": {"type": "int", "default": 2},
    "cipher": {"type": "str", "default": ""},
    "sessions": {"type": "bool", "default": True},
}
_SPEC: dict[str, t.Any] = {
    "request": {"type": "dict", "required": True},
    "state": {"type": "str", "choices": list(power.STATES), "default": power.PRESENT},
    "nodes": {"type": "dict", "default": {}},
    "bmc": {"type": "dict", "options": _BMC, "apply_defaults": True},
    "reachable": {"type": "bool", "default": True},
    "timeout": {"type": "int", "default": 120},
    "booted": {"type": "bool", "default": False},
    "reported": {"type": "bool", "default": False},
    "remove_disks": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):
    """The action of machine_power. It runs other modules, whose results are not returned."""

    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_SPEC)
        args = plain(args)
        host, clock = _Host(self, dict(task_vars or {})), _Clock()
        entry = args["request"]
        try:
            provider = self._provider(args, host, clock)
            nodes, booted, ended = args["nodes"], args["booted"], args["reported"]
            machine = power.Power(
                entry, nodes, provider, clock, self._say(host), args["timeout"], booted, ended, args["remove_disks"]
            )
            done = machine.ensure(args["state"], bool(self._task.check_mode))
        except power.Refused as error:
            return result | {"failed": True, "changed": True, "msg": printable(str(error))}
        except providers.Unreachable as error:
            where = str(self._task.delegate_to or host.name)
            fault = Fault(
                f"machine {entry['name']}: the host that connects to its BMC is unreachable",
                where,
                " ".join(str(error).split())[:300],
                "check that it is powered on and that Ansible can connect to it, or set machine_boot_from to another host",
            )
            return result | {"failed": True, "msg": str(fault)}
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            return result | {"failed": True, "msg": f"the answer cannot be read: {type(error).__name__} {error}"}
        faults = done.get("faults") if args["state"] != power.SETTLED else []
        failed = {"failed": True, "msg": "; ".join(fault["text"] for fault in faults)} if faults else {}
        return result | done | failed | {"sessions": provider.sessions, "state": args["state"]}

    def _provider(
        self, args: dict[str, t.Any], host: _Host, clock: _Clock
    ) -> providers.Redfish | providers.Ipmi | providers.Libvirt:
        entry, bmc = args["request"], args["bmc"]
        if entry["provider"] == request.LIBVIRT:
            return providers.Libvirt(
                host, entry, _SCRIPT.read_text(encoding="utf-8"), self._python(host), args["reachable"]
            )
        if entry["provider"] == request.IPMI:
            return providers.Ipmi(host, clock, entry, bmc)
        return providers.Redfish(host, clock, entry, bmc, bmc["sessions"])

    def _python(self, host: _Host) -> str:
        """The Python interpreter for modules on that host, because "auto" is not a program."""
        variables = host.variables
        if delegate := self._task.delegate_to:
            variables = variables.get("ansible_delegated_vars", {}).get(delegate, {})
        named = str(self._templar.template(variables.get("ansible_python_interpreter") or "auto"))
        return re.sub("^auto.*$", "python3", named)

    def _say(self, host: _Host) -> t.Callable[[str], None]:
        def say(line: str) -> None:
            if not self._task.no_log:
                display.display(f"{host.name}: {printable(line)}")

        return say


class _Clock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class _Host:
    """Runs modules instead of the action's own, also in check mode, in which only modules that read are run."""

    def __init__(self, action: ActionModule, variables: dict[str, t.Any]) -> None:
        self._action, self.variables = action, variables
        self.name = str(variables.get("inventory_hostname", "localhost"))

    def run(self, module: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        task = self._action._task
        kept, task.check_mode = task.check_mode, False
        # Modules write their arguments to the system log and to their result, which -vvv shows, and these can contain a password.
        quiet = {
            id(one): (one, one.no_log)
            for one in (task, self._action._play_context, self._action._connection._play_context)
        }
        for one, _no_log in quiet.values():
            one.no_log = True
        try:
            result = self._action._execute_module(module_name=module, module_args=arguments, task_vars=self.variables)
        except AnsibleConnectionFailure as error:
            raise providers.Unreachable(str(error)) from error
        finally:
            task.check_mode = kept
            for one, no_log in quiet.values():
                one.no_log = no_log
        if result.get("unreachable"):
            raise providers.Unreachable(str(result.get("msg", "")))
        return plain(dict(result))
