# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated RHEL 9 with firewalld and with SELinux in enforcing mode, whose state results from the tasks that have run on it. It executes nothing.

Packages, files and services are simulated as far as roles/machine/files/look.py would read them.
"""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import hashlib
import json
import pathlib
import shlex
import typing as t

ADDRESS = "192.0.2.2"
OS_RELEASE = 'NAME="Red Hat Enterprise Linux"\nVERSION_ID="9.6"\nID="rhel"\nID_LIKE="fedora"\nPRETTY_NAME="Red Hat Enterprise Linux 9.6 (Plow)"\n'
_CONFIG = "/etc/hwaccel-gpu/load_balancer/haproxy/50-services.cfg"
#: Boot loaders in packages.
_EFI = "/boot/efi/EFI/redhat"
_LOADERS = ("/tftpboot/pxelinux.0", "/tftpboot/ldlinux.c32", f"{_EFI}/shimx64.efi", f"{_EFI}/grubx64.efi")
#: The parts that the role reads.
_CAPABILITIES = """<domainCapabilities><domain>kvm</domain><os supported='yes'><enum name='firmware'><value>bios</value><value>efi</value></enum>
<loader supported='yes'><value>/usr/share/edk2/ovmf/OVMF_CODE.secboot.fd</value><enum name='secure'><value>yes</value><value>no</value></enum></loader></os>
<cpu><mode name='host-passthrough' supported='yes'/></cpu></domainCapabilities>"""


@dataclasses.dataclass(frozen=True)
class Task:
    """A task: its name, the full name of its action, and its arguments."""

    name: str
    action: str
    args: dict[str, t.Any]

    @property
    def module(self) -> str:
        return self.action.rpartition(".")[2]


def result_of(task: Task, before: c.Sequence[Task]) -> dict[str, t.Any]:
    """The result of a task. before: previous tasks of this run and of earlier ones."""
    machine = _Machine(before)
    # A repeated task with the same arguments changes nothing.
    result = {"changed": task not in before, "rc": 0, "stdout": "", "stderr": ""}
    if task.module == "ping":
        return {"changed": False, "ansible_facts": {"discovered_interpreter_python": "/usr/libexec/platform-python"}}
    if task.module == "stat":
        checksum = machine.fetched.get(task.args["path"])
        return {"changed": False, "stat": {"exists": True, "checksum": checksum} if checksum else {"exists": False}}
    if task.module == "script" and task.args["cmd"].startswith("look.py"):
        request = json.loads(shlex.split(task.args["cmd"])[1])
        return result | {"stdout": json.dumps({"observed": machine.observed(request)})}
    if task.module == "command" and "hypervisor.sh" in task.args.get("argv", []):
        return result | {"stdout": machine.hypervisor()}
    if task.name.startswith("verify | Send the requests that machines will send"):
        return result | {"stdout": json.dumps({"wrong": [], "notes": []})}
    return result


def written(task: Task) -> dict[str, str]:
    """Texts of the files that a task writes, by path."""
    if task.module == "copy" and "content" in task.args:
        return {task.args["dest"]: task.args["content"]}
    if task.module == "command" and task.args.get("argv", [""])[0] == "sh" and "stdin" in task.args:
        rows = (line.split(" ", 1) for line in task.args["stdin"].splitlines())
        return {path: base64.b64decode(text[1:]).decode() for text, path in rows}
    return {}


class _Machine:
    """The state after these tasks. Times are the numbers of tasks, as if each took a second."""

    def __init__(self, before: c.Sequence[Task]) -> None:
        self._now = len(before)
        self._packages: set[str] = set()
        self._files: dict[str, tuple[str, int]] = {}
        self._modes: dict[str, str] = {}
        #: Checksums by path.
        self.fetched: dict[str, str] = {}
        self._booleans: set[str] = set()
        self._copied: dict[str, str] = {}
        #: Time by unit at which it has loaded its files.
        self._loaded: dict[str, int] = {}
        #: Definition and state of the only virtual machine.
        self._domain: tuple[str, str] = ("", "")
        for at, task in enumerate(before, 1):
            self._files |= {path: (text, at) for path, text in written(task).items() if "/staging/" not in path}
            if task.module == "copy":
                self._modes[task.args["dest"]] = task.args["mode"]
            elif task.name.startswith("fetch | Download files"):
                download = json.loads(task.args["stdin"])
                self.fetched[download["path"]] = download["checksum"]
            if task.module == "package":
                self._packages |= set(task.args["name"])
            elif task.module == "seboolean":
                self._booleans.add(task.args["name"])
            elif task.module == "systemd" and task.args.get("state") in ("started", "restarted", "reloaded"):
                self._loaded[task.args["name"]] = at
            elif task.module == "copy" and "src" in task.args:
                self._copied[task.args["dest"]] = task.args["src"]
            elif task.module == "virt":
                self._domain = (
                    task.args.get("xml", self._domain[0]),
                    task.args.get("state", self._domain[1] or "shut off"),
                )

    def observed(self, request: dict[str, t.Any]) -> dict[str, t.Any]:
        """The output of look.py."""
        config = self._files.get(_CONFIG, ("", 0))[0] if "haproxy" in self._loaded else ""
        description = next(
            (line.split(None, 1)[1] for line in config.splitlines() if line.strip().startswith("description ")), ""
        )
        info = f"Pid: 7\ndescription: {description}\n" if description else ""
        sums = {path: _digest(path) for path in _LOADERS} if self._packages else {}
        sums |= {path: _digest(text) for path, (text, _at) in self._files.items()}
        sums |= {
            path: sums.get(source) or hashlib.sha256(pathlib.Path(source).read_bytes()).hexdigest()
            for path, source in self._copied.items()
        }
        return {
            "files": {
                path: {"text": text, "mode": self._modes.get(path, "0644"), "uid": 0, "gid": 0, "changed_at": float(at)}
                for path, (text, at) in self._files.items()
            },
            "imports": [],
            "folders": [],
            "checksums": sums,
            "units": {name: self._unit(name) for name in request["units"]},
            "commands": {},
            "answers": {path: {"show info": info, "show stat": ""} for path in request["sockets"]},
            "processes": {"7": float(self._loaded.get("haproxy", 0))},
            "facts": self._facts(),
            "addresses": {"127.0.0.1": "lo", ADDRESS: "eth0"},
            "listeners": [
                {
                    "protocol": "tcp",
                    "address": "0.0.0.0",
                    "device": "",
                    "port": 22,
                    "process": "sshd",
                    "unit": "sshd.service",
                }
            ],
            "firewalls": ["firewalld"],
            "booted_at": 0.0,
            "now": float(self._now),
        }

    def _facts(self) -> dict[str, str]:
        return {
            "os_release": OS_RELEASE,
            "kernel": "5.14.0-570.el9.x86_64",
            "selinux": "Enforcing",
            "packages": "\n".join(self._packages),
            "programs": "\n".join(sorted(self._packages & {"haproxy", "keepalived"})),
            "libraries": "selinux semanage" if "python3-libsemanage" in self._packages else "selinux",
            "limit": f"Max open files {1 << 19} {1 << 19} files",
            "memory": f"MemTotal: {16 << 20} kB",
            "free_bytes": str(1 << 34),
            "haproxy_connect_any": f"haproxy_connect_any --> {'on' if 'haproxy_connect_any' in self._booleans else 'off'}",
        }

    def _unit(self, name: str) -> dict[str, str]:
        """Properties of a unit, as systemd prints them."""
        at = self._loaded.get(name, 0)
        return {
            "LoadState": "loaded" if name in self._packages else "not-found",
            "ActiveState": "active" if at else "inactive",
            "UnitFileState": "enabled" if at else "disabled",
            "ExecMainStartTimestampMonotonic": f"{at}000000",
            "StateChangeTimestampMonotonic": f"{at}000000",
            "LimitNOFILE": str(1 << 19),
        }

    def hypervisor(self) -> str:
        """The output of hypervisor.sh."""
        definition, state = self._domain
        parts = {
            "lacking": "",
            "refused": "",
            "capabilities": _CAPABILITIES,
            "bridges": "br0",
            "memory": str(64 << 20),
            "users": "",
            "room": "/dev/vda1 1000 500 524288000 50% /var/lib/libvirt",
        }
        if definition:
            parts |= {
                "definition": definition,
                "state": state,
                "autostart": "enable",
                "image": f'{{"virtual-size": {120 << 30}}}',
                "written": "0",
            }
        return "".join(f"\n== {name}\n{text}\n" for name, text in parts.items())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
