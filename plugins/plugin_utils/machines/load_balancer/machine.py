# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed machine of a load balancer, with the running HAProxy."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import SOCKETS
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.request import (
    BOOLEAN,
    INFO,
    STATISTICS,
)


@dataclasses.dataclass(frozen=True)
class Server:
    backend: str
    name: str
    status: str
    sessions: int


@dataclasses.dataclass(frozen=True)
class Machine(host.Host):
    """The observed machine, with values derived for a load balancer."""

    @property
    def family(self) -> str:
        """Family of the system: redhat or debian."""
        release = self.os_release
        names = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
        return "redhat" if names & {"rhel", "fedora", "centos"} else "debian"

    @functools.cached_property
    def _info(self) -> dict[str, str]:
        return dict(line.split(": ", 1) for line in self._answer(INFO).splitlines() if ": " in line)

    @property
    def description(self) -> str:
        """Description of the configuration of the running HAProxy, empty if none runs."""
        return self._info.get("description", "")

    @property
    def worker_started_at(self) -> float:
        """Start of the worker that answers, in seconds since 1970, 0 if none does."""
        return self.processes.get(self._info.get("Pid", ""), 0.0)

    @functools.cached_property
    def servers(self) -> tuple[Server, ...]:
        """Members of the running HAProxy."""
        return members(self._answer(STATISTICS))

    @property
    def programs(self) -> list[str]:
        return self.fact("programs").split()

    @property
    def libraries(self) -> list[str]:
        """Installed libraries of the machine's Python."""
        return self.fact("libraries").split()

    @property
    def limit(self) -> int:
        """Limit of open files of the first process, 0 if it is unknown."""
        words = self.fact("limit").split()
        return int(words[3]) if len(words) > 3 and words[3].isdigit() else 0

    @property
    def memory_kib(self) -> int:
        words = self.fact("memory").split()
        return int(words[1]) if len(words) > 1 else 0

    @property
    def free_bytes(self) -> int:
        return int(self.fact("free_bytes") or 0)

    @property
    def may_connect(self) -> bool:
        """Whether SELinux allows HAProxy to connect."""
        return self.fact(BOOLEAN).endswith("--> on")

    def _answer(self, command: str) -> str:
        return self.answers.get(SOCKETS[self.family], {}).get(command, "")


def members(statistics: str) -> tuple[Server, ...]:
    """Of the answer to STATISTICS, which is CSV."""
    rows = csv.DictReader(io.StringIO(statistics.lstrip("# ")))
    return tuple(
        Server(row["pxname"], row["svname"], row["status"], int(row["scur"] or 0))
        for row in rows
        if row["svname"] not in ("FRONTEND", "BACKEND")
    )


def read(printed: str) -> Machine:
    """As host.read documents it."""
    return host.read_as(Machine, printed)
