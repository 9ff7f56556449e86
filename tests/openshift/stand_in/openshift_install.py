# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""openshift-install for tests, which cannot have the real one: what it makes, refuses, keeps and consumes, and the statuses with which it ends.

python -m ansible_collections.hwaccel.gpu.tests.openshift.stand_in.openshift_install NAME [ARGUMENT...]

NAME is how the tool was called. launcher.py writes a program that calls this; settings.py has what a test can ask of it. Each behaviour has a
line in behaviours.yml and a test.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import os
import pathlib
import signal
import sys
import time
import types
import typing as t

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import release
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.faults import Ended, Files
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.log import LEVELS, OTHER_NAMES, Log
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.settings import Settings

INTERRUPTED = 8
_FLAGS = ("--dir", "--log-level")
#: Of gather bootstrap. Masters and keys can be given several times.
_GATHERING = ("--bootstrap", "--master", "--key")


@dataclasses.dataclass(frozen=True)
class Call:
    """A command, its words behind each other, and its flags, the values of one that is repeated by line."""

    name: str
    words: tuple[str, ...]
    flags: dict[str, str]

    @property
    def folder(self) -> pathlib.Path:
        return pathlib.Path(self.flags.get("--dir", "."))


class Usage(Exception):
    """Arguments that the tool does not know."""


def parsed(name: str, arguments: c.Sequence[str], known: c.Collection[str]) -> Call:
    words: list[str] = []
    flags: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        one = rest.pop(0)
        if not one.startswith("-"):
            words.append(one)
            continue
        flag, equals, value = one.partition("=")
        if flag not in known:
            raise Usage(f"unknown flag: {flag}")
        if not equals:
            if not rest:
                raise Usage(f"flag needs an argument: {flag}")
            value = rest.pop(0)
        flags[flag] = f"{flags[flag]}\n{value}" if flag in flags and flag in _GATHERING else value
    return Call(name, tuple(words), flags)


def main(arguments: c.Sequence[str], environment: c.Mapping[str, str]) -> int:
    """arguments: the name by which the tool is called, and the others. Returns the status."""
    settings = Settings.of(environment)
    _record(arguments, settings)
    known = (*_FLAGS, *_GATHERING, "--stream") if release.RELEASES[settings.release].several else (*_FLAGS, *_GATHERING)
    try:
        call = parsed(arguments[0], arguments[1:], known)
        command = _command(call)
        if "--stream" in call.flags and command is not _coreos:
            raise Usage("unknown flag: --stream")
        for flag in _GATHERING:
            if flag in call.flags and command is not _gather:
                raise Usage(f"unknown flag: {flag}")
        level = call.flags.get("--log-level", "info")
        level = OTHER_NAMES.get(level, level)
        if level not in LEVELS:
            raise Usage(f'invalid log-level: not a valid logrus Level: "{level}"')
    except Usage as error:
        Log("info", settings.now).fatal(f"Error executing openshift-install: {error}")
        return 1
    return _run(command, call, settings, level)


def _run(command: Command, call: Call, settings: Settings, level: str) -> int:
    log = Log(level, settings.now)
    try:
        if command in _IN_FOLDER:
            call.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            log.open(call.folder)
        files = Files(call.folder, settings.fault)
        files.due()
        command(call, settings, log, files)
    except Ended as error:
        log.error(str(error))
        return error.status
    except OSError as error:
        log.error(f"open {error.filename}: {str(error.strerror).lower()}")
        return 1
    except KeyboardInterrupt:
        log.warning("Received interrupt signal")
        return INTERRUPTED
    return 0


def _interrupted(_number: int, _frame: types.FrameType | None) -> None:
    raise KeyboardInterrupt


def _record(arguments: c.Sequence[str], settings: Settings) -> None:
    if settings.calls:
        entry = {"arguments": list(arguments), "folder": os.getcwd(), "process": os.getpid(), "time": time.time()}
        with open(settings.calls, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


Command = t.Callable[[Call, Settings, Log, Files], None]


def _version(call: Call, settings: Settings, log: Log, _files: Files) -> None:
    found = release.RELEASES[settings.release]
    if not found.injected:
        log.warning("Release Image Architecture not detected. Release Image Architecture is unknown")
    sys.stdout.write(release.version_text(call.name, found))


def _coreos(call: Call, settings: Settings, _log: Log, _files: Files) -> None:
    found = release.RELEASES[settings.release]
    by_name = {stream.name: stream for stream in found.streams}
    wanted = call.flags.get("--stream")
    if not wanted and found.several and not found.injected:
        raise Ended("failed to determine the stream of CoreOS: the release's version is not known, use --stream")
    if wanted and wanted not in by_name:
        raise Ended(f'invalid stream "{wanted}": valid values are {", ".join(by_name)}')
    stream = by_name[wanted] if wanted else found.streams[0]
    print(json.dumps(release.stream_json(stream, settings.images), indent=2))


def _create(call: Call, settings: Settings, log: Log, files: Files) -> None:
    from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import assets, store

    targets, done = assets.TARGETS[call.words[1]]
    installation = assets.Installation(settings, log, call.words[1] == "single-node-ignition-config")
    store.Store(installation.assets(), files, log).run(targets)
    log.info(done.format(call.folder))


def _create_agent(call: Call, settings: Settings, log: Log, files: Files) -> None:
    from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import agent, store

    targets, done = agent.TARGETS[call.words[2]]
    store.Store(agent.AgentInstallation(settings, log).assets(), files, log).run(targets)
    log.info(done.format(call.folder))


def _wait(call: Call, settings: Settings, log: Log, files: Files) -> None:
    from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import assets, store, waiting

    known = assets.Installation(settings, log).assets()
    agent = call.words[0] == "agent"
    waiting.wait(call.words[-1], store.Store(known, files, log), files, log, settings, agent)


#: By their words.
def _gather(call: Call, settings: Settings, log: Log, files: Files) -> None:
    from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import gathering

    masters, keys = (call.flags.get(flag, "").splitlines() for flag in ("--master", "--key"))
    gathering.gather(call.flags.get("--bootstrap", ""), masters, keys, files, log, settings)


COMMANDS: dict[tuple[str, ...], Command] = {
    ("version",): _version,
    ("coreos", "print-stream-json"): _coreos,
    **{
        ("create", name): _create
        for name in ("install-config", "manifests", "ignition-configs", "single-node-ignition-config")
    },
    **{("agent", "create", name): _create_agent for name in ("pxe-files", "image")},
    **{("wait-for", phase): _wait for phase in ("bootstrap-complete", "install-complete")},
    **{("agent", "wait-for", phase): _wait for phase in ("bootstrap-complete", "install-complete")},
    ("gather", "bootstrap"): _gather,
}
#: Those with a target directory, which has a log.
_IN_FOLDER = (_create, _create_agent, _wait, _gather)


def _command(call: Call) -> Command:
    if call.words not in COMMANDS:
        raise Usage(f'unknown command "{" ".join(call.words)}" for "openshift-install"')
    return COMMANDS[call.words]


if __name__ == "__main__":
    # Also where whoever started it ignores them, as a shell does in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    sys.exit(main(sys.argv[1:], os.environ))
