# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot servers, load balancers and hypervisors know of an installation, as module openshift_wait takes it. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import email.utils
import ipaddress
import json
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines, witnesses
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import boot_log, domain
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import entries, latch, wishes
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.place import MEMORY, WISHES, WRITTEN
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.machine import members

Row = c.Mapping[str, t.Any]
#: When a machine has downloaded a file, and which.
_Download = tuple[float, boot_log.Event]
#: Of journalctl with --output=short-unix, and of nginx's format "combined".
_UNIX, _LOCAL = re.compile(r"(\d{9,}\.\d+) "), re.compile(r"\[(\d\d)/(\w{3})/(\d{4}):(\S+ [+-]\d{4})\]")
_DOWNLOADED = re.compile(r'"GET [^"]*" 200 |dnsmasq-tftp\[\d+\]: sent ')
#: The kernel's first line.
_STARTED = "Linux version "
_ERROR = re.compile(
    r"error|fail|refused|unauthorized|denied|x509|timed? ?out|no such|no space|expired|not yet valid|not found",
    re.IGNORECASE,
)
#: Sequences with which a program colours its output or moves the cursor, and other characters that are no text.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
#: Of ECONNRESET.
_RESET = "Connection reset by peer"
#: Lines of a console, and characters of each: kubelet writes its URL first, and why it failed behind it.
_SAID, _LONGEST_LINE = 5, 1000
_LONGEST = 300
#: HAProxy sends no new connections to a member in one of these states.
_OUT = ("MAINT", "DRAIN")


@dataclasses.dataclass(frozen=True)
class _Told:
    """What a witness has answered. reads: of witness.py. wrong: of self_test.py. why: why it could not be read, "" if it could."""

    host: str
    kind: str
    reads: Row
    wrong: tuple[str, ...]
    why: str


@dataclasses.dataclass
class _Memory:
    """joined: clusters and names of machines that have been nodes. used: MAC addresses of those that were written since they were to be installed."""

    joined: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    used: set[str] = dataclasses.field(default_factory=set)

    def add(self, server: _Told) -> list[str]:
        """Problems of damaged files."""
        files = {path: str((server.reads.get("files") or {}).get(path) or "") for path in (MEMORY, WISHES, WRITTEN)}
        kept, faults = latch.read(files[MEMORY], MEMORY)
        _found, used, wrong = wishes.read(files[WISHES], files[WRITTEN], WISHES)
        self.joined |= {(one.cluster, one.name) for one in kept.members}
        self.used |= used
        return [f"{server.kind} {server.host}: {fault}" for fault in (*faults, *wrong)]


def judged(request: Row, told: c.Iterable[Row]) -> dict[str, t.Any]:
    """request: of witnesses.read. told: of each witness that was asked its host and kind, what its programs have printed (reads and requests, "" if it did not
    run), and why one has failed, "" if none has.

    machines, surroundings: options of openshift_wait. Machines are only known where a boot server could be read. written: hosts that have files of this
    installation or of one before. notes: who could not be read.
    """
    heard = [_read(one) for one in told]
    servers = [one for one in heard if one.kind == witnesses.BOOT_SERVER and not one.why]
    unread = [one.host for one in heard if one.kind == witnesses.BOOT_SERVER and one.why]
    notes = [_note(one) for one in heard if one.why]
    memory = _Memory()
    for server in servers:
        notes += memory.add(server)
    consoles = {path: str(text) for one in heard for path, text in (one.reads.get("tails") or {}).items()}
    rows = []
    for given in request["machines"]:
        said = _said(consoles.get(domain.console(given["host"]), ""))
        kept = {"joined": (request["cluster"], given["label"]) in memory.joined, "written": given["mac"] in memory.used}
        rows.append({**_of_logs(given, request["cluster"], servers, unread), "said": said, **kept})
    written = [
        given["host"] for given, row in zip(request["machines"], rows, strict=True) if row["written"] or row["joined"]
    ]
    return {
        "machines": rows if servers else [],
        "surroundings": _surroundings(request["cluster"], heard),
        "written": list(dict.fromkeys(written)),
        "notes": notes,
    }


def _read(told: Row) -> _Told:
    why = " ".join(str(told["why"] or "").split())
    reads: Row = {}
    wrong: list[str] = []
    try:
        reads = json.loads(told["reads"]) if told["reads"] else {}
        wrong = json.loads(told["requests"])["wrong"] if told["requests"] else []
    except (ValueError, TypeError, KeyError) as error:
        why = why or f"its answer cannot be read ({type(error).__name__} {error})"
    return _Told(str(told["host"]), str(told["kind"]), reads, tuple(map(str, wrong)), why)


def _note(one: _Told) -> str:
    why = one.why[:_LONGEST].rstrip(".")
    step = "verify that it is on and that Ansible can connect to it"
    return f"{one.kind} {one.host} could not be read, and what it knows is missing ({why}). Next: {step}"


def _of_logs(given: Row, cluster: str, servers: c.Sequence[_Told], unread: c.Sequence[str]) -> dict[str, t.Any]:
    """What boot servers have logged of a machine. unread: those that may know more."""
    row: dict[str, t.Any] = {"name": given["name"], "role": given["role"], "stage": boot_log.NOTHING}
    row["what"] = f"{', '.join(unread)} could not be read" if unread else ""
    if (machine := _as_logged(given, cluster)) is None:
        return row
    logs = [(one.reads["now"], log) for one in servers if (log := (one.reads.get("logs") or {}).get(given["address"]))]
    lines = [line for _now, log in logs for line in log["lines"]]
    verdict, known = boot_log.verdict(machine, lines), boot_log.events(lines, machine)
    downloads = [_downloads(log, machine) for _now, log in logs]
    quiet = [seconds for now, log in logs if (seconds := _quiet(log["lines"], machine, now)) is not None]
    if verdict.stage != boot_log.NOTHING:
        row["what"] = next((one.what for one in reversed(known) if one.stage == verdict.stage and not one.refused), "")
    return {
        **row,
        "stage": verdict.stage,
        "refused": verdict.refused,
        "fetches": sum(len(_fetched(one)) for one in downloads),
        "restarts": sum(_restarts(one, machine) for one in downloads),
        "quiet": min(quiet, default=None),
    }


def _as_logged(given: Row, cluster: str) -> machines.Machine | None:
    """None without an address, which other roles report."""
    try:
        address = ipaddress.ip_address(given["address"])
    except ValueError:
        return None
    return machines.Machine(given["label"], cluster, given["role"], address, given["mac"])


def _downloads(log: Row, machine: machines.Machine) -> list[_Download]:
    """Complete downloads since the machine was started, and when. Without a mark, they may be of an earlier installation."""
    if log["earlier"]:
        return []
    lines = [line for line in log["lines"] if _DOWNLOADED.search(line)]
    return [(_moment(line) or 0.0, event) for line in lines for event in boot_log.events([line], machine)]


def _fetched(downloads: c.Iterable[_Download]) -> list[float]:
    """When it has downloaded its ignition file."""
    return [moment for moment, event in downloads if event.stage == boot_log.IGNITION]


def _restarts(downloads: c.Sequence[_Download], machine: machines.Machine) -> int:
    """Starts from the network after its ignition file: each reads its boot entry once. Lines of dnsmasq stand before those of the web server."""
    fetched, entry = _fetched(downloads), f"/{entries.file_name(machine)}"
    if not fetched:
        return 0
    return sum(moment > max(fetched) and entry in event.what for moment, event in downloads)


def _quiet(lines: c.Sequence[str], machine: machines.Machine, now: float) -> float | None:
    """Seconds since the last request, by the clock of the boot server. None if no line of this machine has a time."""
    moments = [moment for line in lines if (moment := _moment(line)) is not None and boot_log.events([line], machine)]
    return max(0.0, now - max(moments)) if moments else None


def _moment(line: str) -> float | None:
    if found := _UNIX.match(line):
        return float(found.group(1))
    if found := _LOCAL.search(line):
        # Names of months are English in any locale.
        return email.utils.parsedate_to_datetime(" ".join(found.groups())).timestamp()
    return None


def _said(text: str) -> str:
    """The last errors on a console since the machine was started."""
    lines = [_CONTROL.sub("", line).strip() for line in text.rpartition(_STARTED)[2].splitlines()]
    found = dict.fromkeys(line[:_LONGEST_LINE] for line in reversed(lines) if _ERROR.search(line))
    return "\n".join(reversed(list(found)[:_SAID]))


def _surroundings(cluster: str, heard: c.Sequence[_Told]) -> dict[str, t.Any]:
    statistics = [str(one.reads["statistics"]) for one in heard if "statistics" in one.reads]
    found: dict[str, t.Any] = {}
    for key, service in (("api_members", "api"), ("config_members", "machine-config")):
        sets = [names for text in statistics if (names := _members(text, f"{cluster}-{service}")) is not None]
        if sets:
            # What one of several load balancers lacks is missed by those whose connections it gets.
            found[key] = sorted(set.intersection(*sets))
    wrong = list(dict.fromkeys(text for one in heard for text in one.wrong))
    apps = [text for text in wrong if ".apps." in text]
    # A load balancer that serves 22623 to machines only resets the connection of a boot server, so the port can be reached.
    refused = [text for text in wrong if text not in apps and _RESET not in text]
    return {**found, "config_refused": "; ".join(refused), "wildcard": "; ".join(apps)}


def _members(statistics: str, backend: str) -> set[str] | None:
    """None if this HAProxy does not have the backend."""
    own = [one for one in members(statistics) if one.backend == backend]
    known = own or any(line.startswith(f"{backend},") for line in statistics.splitlines())
    return {one.name for one in own if not one.status.startswith(_OUT)} if known else None
