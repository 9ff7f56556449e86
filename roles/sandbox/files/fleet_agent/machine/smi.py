# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi. Its options, fields, messages and exit statuses are those of the real one of driver 580.159.04 with an H100, which
tests/unit/fleet_agent/machine/nvidia_smi.yml records. What is not simulated ends with an error, and never with an invented answer.
"""

from __future__ import annotations

import re
from typing import Any

from fleet_agent.loop import Process
from fleet_agent.machine import nvml
from fleet_agent.machine.faults import OFF_THE_BUS
from fleet_agent.machine.hostfs import gpu_uuid, pci_address

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed "
    "and running.\n"
)
#: Exit statuses (its manual, RETURN VALUE; the last one is recorded).
_INVALID, _NO_DEVICE, _NO_DRIVER, _LOST, _UNKNOWN = 2, 6, 9, 15, 255
_LIST = ("-L", "--list-gpus")
#: Queries, and other options of theirs.
_GPUS, _APPS, _FORMAT, _ID = "--query-gpu", "--query-compute-apps", "--format", ("-i", "--id")
_HELP = "Please run 'nvidia-smi -h'"
_MODIFIERS = frozenset(("csv", "noheader", "nounits"))
#: Options and commands of the real one that are not simulated.
_LACKING = re.compile(
    r"-([qxdlfepcrBh]|lms|mig|pm|pl|lgc)|--(query|xml-format|display|loop|loop-ms|filename|ecc-config|reset-ecc-errors|compute-mode|"
    r"multi-instance-gpu|persistence-mode|power-limit|lock-gpu-clocks|gpu-reset|list-excluded-gpus|help|version)|"
    r"topo|nvlink|mig|dmon|pmon|daemon|replay|drain|clocks|conf-compute|vgpu"
)
#: Fields with several names, and how the header names those with a unit.
_SAME = {
    _GPUS: {"gpu_name": "name", "gpu_uuid": "uuid"},
    _APPS: {"name": "process_name"},
}
_UNITS = {"memory.total": "MiB"}
_FIELDS = {
    _GPUS: frozenset(
        [
            "index",
            "uuid",
            "name",
            "driver_version",
            "count",
            "memory.total",
            "ecc.mode.current",
            "mig.mode.current",
            "ecc.errors.uncorrected.volatile.total",
        ]
    ),
    _APPS: frozenset(["gpu_name", "gpu_uuid", "pid", "process_name"]),
}


class _Refused(Exception):
    """args: the message and the exit status."""


def _smi_present(proc: Any) -> bool:
    path = proc.argv[0]
    if "/" in path:
        return bool(proc.view.is_file(path) or (path == "/usr/bin/nvidia-smi" and proc.container.driver_injected))
    return bool(
        proc.container.driver_injected
        or proc.container.image.family == "driver"
        or proc.view.is_file("/usr/bin/nvidia-smi")
    )


def nvidia_smi(proc: Any) -> Process:
    if not _smi_present(proc):
        proc.out(
            f"sh: line 1: {proc.argv[0]}: "
            + ("No such file or directory\n" if "/" in proc.argv[0] else "command not found\n")
        )
        return 127
    return output(proc, proc.argv[1:])
    yield


def output(proc: Any, arguments: list[str] | tuple[str, ...] = ()) -> int:
    """GPUs are numbered as NVML enumerates those that the process can open, from 0 in each container."""
    try:
        given = _parsed(list(arguments))
        every = _found(proc)
        gpus = _chosen(every, given.get(_ID[0]))
        if _LIST[0] in given:
            for number, index in gpus:
                proc.say(f"GPU {number}: {_product(proc)} (UUID: {gpu_uuid(proc.host.spec.name, index)})")
        elif _GPUS in given:
            _table(proc, given, _GPUS, [_of_gpu(proc, number, index, len(every)) for number, index in gpus])
        elif _APPS in given:
            _table(proc, given, _APPS, _of_processes(proc, [index for _number, index in gpus]))
        else:
            _overview(proc, gpus)
    except _Refused as refused:
        text, status = refused.args
        proc.out(text)
        return int(status)
    return 0


def _parsed(words: list[str]) -> dict[str, str]:
    """Options and their values. Raises _Refused."""
    listing, queries = [word for word in words if word in _LIST], [word for word in words if _name(word) in _SAME]
    if len(queries) > 1:
        raise _Refused("Only one --query-* switch can be used at a time.\n", _INVALID)
    known = (_ID[0], _name(queries[0]), _FORMAT) if queries else (_ID[0],)
    given = {_LIST[0]: ""} if listing else {}
    rest = [word for word in words if word not in _LIST]
    while rest:
        word = rest.pop(0)
        if listing:
            raise _Refused(f"ERROR: Option {word} is not valid for this command. {_HELP} for help.\n\n", _INVALID)
        if _name(word) not in known:
            raise _unknown(word, bool(queries))
        given[_name(word)] = word.partition("=")[2] if "=" in word or not rest else rest.pop(0)
    if not set(given.get(_FORMAT, "csv").split(",")) <= _MODIFIERS:
        raise _Refused("Format modifier is not recognized.\n", _INVALID)
    return given


def _name(word: str) -> str:
    name = word.partition("=")[0]
    return _ID[0] if name in _ID else name


def _unknown(word: str, queried: bool) -> _Refused:
    if _LACKING.fullmatch(_name(word)):
        return _Refused(f"[sandbox] {word} of nvidia-smi is not simulated\n", _UNKNOWN)
    if queried:
        return _Refused(f"ERROR: Option {word} is not recognized. {_HELP} for help.\n\n", _INVALID)
    return _Refused(f"ERROR: Option {word} is not recognized. {_HELP}.\n\n", _UNKNOWN)


def _found(proc: Any) -> list[tuple[int, int]]:
    """Number in the container and on the host of each GPU. Raises _Refused if the driver does not respond, or there is none."""
    host = proc.host
    if "nvidia" not in host.modules:
        raise _Refused(NO_DRIVER, _NO_DRIVER)
    gpus = nvml.visible_gpus(proc.container)
    if not gpus:
        raise _Refused("No devices were found\n", _NO_DEVICE)
    lost = next((index for index in gpus if host.struck.get(index) == OFF_THE_BUS), None)
    if lost is not None:
        what = f"Unable to determine the device handle for GPU {pci_address(lost)}"
        raise _Refused(f"{what}: GPU is lost.  Reboot the system to recover this GPU\n", _LOST)
    return list(enumerate(gpus))


def _chosen(gpus: list[tuple[int, int]], chosen: str | None) -> list[tuple[int, int]]:
    """chosen: number of a GPU, None for all."""
    found = [(number, index) for number, index in gpus if chosen in (None, str(number))]
    if not found:
        raise _Refused("No devices were found\n", _NO_DEVICE)
    return found


def _overview(proc: Any, gpus: list[tuple[int, int]]) -> None:
    """Its tables, shortened to what they say of driver and GPUs."""
    version = proc.host.modules["nvidia"]
    proc.say(f"| NVIDIA-SMI {version}    Driver Version: {version}    CUDA Version: {nvml.cuda_version(version)} |")
    for number, _index in gpus:
        proc.say(f"|   {number}  {_product(proc)}    On  |  {proc.host.spec.gpu.memory_mib}MiB |")


def _table(proc: Any, given: dict[str, str], query: str, rows: list[dict[str, str]]) -> None:
    """Rows of the requested fields. Raises _Refused for a field that is unknown or not simulated."""
    form = given.get(_FORMAT, "csv").split(",")
    fields = [_SAME[query].get(field, field) for field in given[query].split(",")]
    for asked, field in zip(given[query].split(","), fields, strict=True):
        if field and field not in _FIELDS[query]:
            raise _Refused(f'Field "{asked}" is not a valid field to query.\n\n', _INVALID)
    if "noheader" not in form:
        proc.say(", ".join(f"{field} [{_UNITS[field]}]" if field in _UNITS else field for field in fields))
    for row in rows:
        units = {
            field: "" if "nounits" in form or not row[field].isdigit() else f" {unit}"
            for field, unit in _UNITS.items()
            if field in row
        }
        proc.say(", ".join(row.get(field, "") + units.get(field, "") for field in fields))


def _of_gpu(proc: Any, number: int, index: int, count: int) -> dict[str, str]:
    gpu = proc.host.spec.gpu
    return {
        "index": str(number),
        "uuid": gpu_uuid(proc.host.spec.name, index),
        "name": _product(proc),
        "driver_version": proc.host.modules["nvidia"],
        "count": str(count),
        "memory.total": str(gpu.memory_mib),
        "ecc.mode.current": _mode(gpu.ecc),
        "mig.mode.current": _mode(gpu.mig if gpu.mig_capable else None),
        "ecc.errors.uncorrected.volatile.total": str(int(index in proc.host.struck)) if gpu.ecc else "[N/A]",
    }


def _of_processes(proc: Any, gpus: list[int]) -> list[dict[str, str]]:
    """Processes that use the GPUs. The driver has their pids of the host, so that none is listed in another process namespace (recorded; also
    NVIDIA/nvidia-docker issue 179).
    """
    if not proc.pod.spec.get("hostPID"):
        return []
    return [
        {
            "gpu_name": _product(proc),
            "gpu_uuid": gpu_uuid(proc.host.spec.name, index),
            "pid": str(4000 + number),
            "process_name": "job",
        }
        for number, held in enumerate(proc.host.computing.values())
        for index in held
        if index in gpus
    ]


def _product(proc: Any) -> str:
    return str(proc.host.spec.gpu.product.replace("-", " "))


def _mode(enabled: bool | None) -> str:
    """ "[N/A]" for a GPU without the mode, such as MIG on an L4 (driver 595.71.05)."""
    return "[N/A]" if enabled is None else "Enabled" if enabled else "Disabled"
