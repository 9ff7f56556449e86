# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Providers of power control, each as the modules that it runs: Redfish, IPMI and libvirt. Pure except for the host that runs them."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import shlex
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.power import DELAY, Clock, Refused
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.vm import IMAGES

#: Transient errors. Wrong credentials are not among these, because retries could lock the account.
_TRANSIENT = re.compile(
    r"timed out|timeout|connection reset|remote end closed|HTTP Error 5\d\d|EOF occurred|Get Auth Capabilities error",
    re.I,
)
_SESSIONLESS = re.compile("resource not found|HTTP Error (404|405|501)")
_Data = c.Mapping[str, t.Any]


class Unreachable(Exception):
    """The host that runs modules cannot be reached."""


class Host(t.Protocol):
    """The host that connects to a BMC, or the hypervisor."""

    def run(self, module: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        """Runs a module and returns its result. Raises Unreachable."""


def _transient(message: object) -> bool:
    return _TRANSIENT.search(str(message)) is not None


def _repeated(
    request: c.Callable[[], dict[str, t.Any]], again: c.Callable[[_Data], bool], clock: Clock, retries: int
) -> dict[str, t.Any]:
    """The first result that needs no retry, otherwise the last one."""
    for _try in range(retries):
        result = request()
        if not again(result):
            return result
        clock.sleep(DELAY)
    return request()


class _Sessionless:
    """A provider without sessions."""

    sessions: t.ClassVar[bool] = False

    def open(self) -> str:
        return ""

    def close(self) -> None:
        """There is no session to close."""


@dataclasses.dataclass
class Redfish:
    """bmc: options of the action. sessions: whether to open one, and after `open` whether the BMC supports them. media: whether virtual media are read."""

    host: Host
    clock: Clock
    entry: _Data
    bmc: _Data
    sessions: bool
    _session: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def retries(self) -> int:
        return int(self.bmc["retries"])

    def _run(self, module: str, credentials: dict[str, t.Any], **arguments: t.Any) -> dict[str, t.Any]:
        way = {
            "baseuri": self.entry["bmc"]["address"],
            "validate_certs": self.entry["bmc"]["verify"],
            "timeout": self.bmc["timeout"],
        }
        ca = {"ca_path": self.bmc["ca"]} if self.bmc["ca"] else {}
        return self.host.run(f"community.general.{module}", {**way, **ca, **credentials, **arguments})

    def _repeated(self, request: c.Callable[[], dict[str, t.Any]], once: bool = False) -> dict[str, t.Any]:
        def again(result: _Data) -> bool:
            return bool(result.get("failed")) and _transient(result.get("msg", ""))

        return _repeated(request, again, self.clock, 0 if once else self.retries)

    @property
    def _password(self) -> dict[str, t.Any]:
        return {"username": self.entry["bmc"]["username"], "password": self.bmc["password"]}

    @property
    def _credentials(self) -> dict[str, t.Any]:
        return {"auth_token": self._session["token"]} if self._session else self._password

    def open(self) -> str:
        if not self.sessions:
            return ""
        command = {"category": "Sessions", "command": ["CreateSession"]}
        result = self._repeated(lambda: self._run("redfish_command", self._password, **command))
        session, message = result.get("session") or {}, str(result.get("msg", ""))
        if session.get("token"):
            self._session = {"token": str(session["token"]), "uri": str(session.get("uri") or "")}
            return ""
        # Later tasks do not open a session if the BMC does not support them.
        self.sessions = _SESSIONLESS.search(message) is None
        return message or "it has not opened a session" if self.sessions else ""

    def observe(self) -> dict[str, t.Any]:
        # Virtual media are read only if the request has media.
        media = ["GetVirtualMedia"] if self.entry["media"] else []
        commands = ["GetSystemInventory", "GetBootOverride", *media]
        result = self._run("redfish_info", self._credentials, category="Systems", command=commands)
        facts = result.get("redfish_facts")
        if not media or not facts or any(one[-1] for one in facts.get("virtual_media", {}).get("entries", ())):
            return result
        # Older BMCs have virtual media in their managers. A BMC without managers has none, which is reported.
        command = {"category": "Manager", "command": ["GetVirtualMedia"]}
        managers = self._repeated(lambda: self._run("redfish_info", self._credentials, **command))
        return {**result, "managers": managers.get("redfish_facts", {})}

    def transient(self, observed: _Data) -> bool:
        return "redfish_facts" not in observed and _transient(observed.get("msg", ""))

    def take(self, planned: _Data) -> None:
        give = dict(planned["give"])
        resource = give.pop("resource_id", "") or self.entry["bmc"]["system"]
        named = {"resource_id": resource} if resource else {}
        # All but a power cycle can be retried, because the module reads before it writes. A failed cycle may have been executed.
        result = self._repeated(
            lambda: self._run("redfish_command", self._credentials, **give, **named),
            once="PowerForceRestart" in give["command"],
        )
        # If the operating system cannot be shut down, the next step cuts the power.
        if result.get("failed") and not planned["limit"]:
            raise Refused(str(result.get("msg", "")))

    def close(self) -> None:
        if session := self._session:
            self._session = {}
            if session["uri"]:
                # If the BMC does not answer any more, the session is lost or expires.
                command = {"category": "Sessions", "command": ["DeleteSession"], "session_uri": session["uri"]}
                self._run("redfish_command", {"auth_token": session["token"]}, **command)


@dataclasses.dataclass
class Ipmi(_Sessionless):
    """Runs ipmitool instead of the modules of community.general: their library (pyghmi 1.5.61 to 1.6.19) fails with virtualbmc, because the two differ in the
    digest of a session. The password is passed on standard input and only to the environment of ipmitool.
    """

    host: Host
    clock: Clock
    entry: _Data
    bmc: _Data

    @property
    def retries(self) -> int:
        return int(self.bmc["retries"])

    def _run(self, *commands: c.Sequence[str]) -> dict[str, t.Any]:
        ask = [f'timeout "$0" ipmitool -v -I lanplus "$@" {shlex.join(command)} </dev/null' for command in commands]
        script = f"IFS= read -r IPMI_PASSWORD; export IPMI_PASSWORD; {' && '.join(ask)}; status=$?; "
        script += "[ $status != 124 ] || echo timed out >&2; exit $status"
        address, port = self.entry["bmc"]["address"], "623"
        if ":" in address:
            address, port = address.split(":")[:2]
        way = ["-H", address, "-p", port, "-U", self.entry["bmc"]["username"], "-E"]
        way += ["-C", self.bmc["cipher"]] if self.bmc["cipher"] else []
        argv = ["sh", "-c", script, str(self.bmc["timeout"]), *way]
        return _command(self.host, argv, stdin=self.bmc["password"])

    def observe(self) -> dict[str, t.Any]:
        return self._run(("chassis", "power", "status"), ("chassis", "bootparam", "get", "5"))

    def transient(self, observed: _Data) -> bool:
        return observed.get("rc") != 0 and _transient(observed.get("stderr", ""))

    def take(self, planned: _Data) -> None:
        result = _repeated(lambda: self._run(planned["give"]["argv"]), self.transient, self.clock, self.retries)
        # If the operating system cannot be shut down, the next step cuts the power.
        if result.get("rc") != 0 and not planned["limit"]:
            raise Refused(result.get("stderr") or result.get("msg") or "ipmitool has not reported a reason")


@dataclasses.dataclass
class Libvirt(_Sessionless):
    """script: observes a hypervisor and one of its machines. python: interpreter of modules there."""

    host: Host
    entry: _Data
    script: str
    python: str
    reachable: bool = True
    retries: int = 0

    def observe(self) -> dict[str, t.Any]:
        if not self.reachable:
            return {"unreachable": True, "msg": "Ansible cannot connect to it"}
        name, vm = self.entry["name"], self.entry["vm"]
        disk = vm["path"] or f"{IMAGES}/{name}.qcow2"
        try:
            return _command(self.host, ["sh", "-c", self.script, "hypervisor.sh", self.python, name, disk, vm["pool"]])
        except Unreachable as error:
            return {"unreachable": True, "msg": str(error)}

    def transient(self, _observed: _Data) -> bool:
        return False

    def take(self, planned: _Data) -> None:
        give, name = planned["give"], self.entry["name"]
        if "create" in give:
            self._done(_command(self.host, give["create"]))
        if "xml" in give:
            # A change of the boot order alone does not change autostart.
            autostart = {"autostart": True} if planned["kind"] == "define" else {}
            self._virt(command="define", xml=give["xml"], **autostart)
        for state in give.get("states", ()):
            # If the operating system cannot be shut down, the next step cuts the power.
            self._virt(may_fail=bool(planned["limit"]), name=name, state=state)
        if "undefine" in give:
            flags = ["managed_save", "snapshots_metadata", "nvram", "checkpoints_metadata"]
            self._virt(name=name, command="undefine", flags=flags)
        if disk := give.get("disk"):
            pool, _slash, volume = disk.partition("/")
            remove = ["rm", "-f", "--", disk]
            delete = ["virsh", "-c", "qemu:///system", "vol-delete", "--pool", pool, volume]
            self._done(_command(self.host, remove if disk.startswith("/") else delete))

    def _virt(self, may_fail: bool = False, **arguments: t.Any) -> None:
        self._done(self.host.run("community.libvirt.virt", arguments), may_fail)

    def _done(self, result: _Data, may_fail: bool = False) -> None:
        if result.get("failed") and not may_fail:
            raise Refused(str(result.get("stderr") or result.get("msg") or ""))


def _command(host: Host, argv: c.Sequence[str], **more: t.Any) -> dict[str, t.Any]:
    result = host.run("ansible.builtin.command", {"argv": list(argv), "expand_argument_vars": False, **more})
    # The message of the module contains only the status. If the command could not be started, the reason is in msg.
    stderr = result.get("stderr") or result.get("module_stderr") or ""
    return {**result, "stderr": stderr, "msg": "" if stderr else result.get("msg", "")}
