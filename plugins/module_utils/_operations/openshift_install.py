# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an installation of OpenShift: created by openshift-install where the decision table says so, and otherwise left as they are."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import math
import pathlib
import re
import secrets
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import plain_yaml, strict_yaml
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.values import shown
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import decision, lifetimes, places
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.inputs import Inputs, secrets_of
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.observed import (
    Cluster,
    Folder,
    Observed,
    Requested,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.program import Artifact, Program
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record, Tool

UPI, IN_PLACE, AGENT = "upi", "in_place", "agent"
#: Of the bootstrap machine: it approves every request as long as it runs.
_APPROVER = "approve-csr.service"
_CREATES = (decision.CREATE, decision.REGENERATE)
_INSTALL_CONFIG, _AGENT_CONFIG = "install-config.yaml", "agent-config.yaml"
#: Of CoreOS, as Go and releases name them. Others have one name.
_ARCHITECTURES, _MULTI = {"x86_64": "amd64", "aarch64": "arm64"}, "multi"
_ADDRESS = re.compile(r"https?://[^\s/?#\x00-\x1f]+(/[^\s?#\x00-\x1f]*)?")
_STREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
#: NAME_MAX and PATH_MAX of Linux (limits.h), without what places.py adds to the name of a folder.
_PATH = re.compile(r"(?=.{1,4000}$)(/[^/\x00-\x1f]{0,200})+")
_PLACE = re.compile(r"(?:manifests|openshift)/[A-Za-z0-9][A-Za-z0-9_.-]*\.(?:ya?ml|json)")


@dataclasses.dataclass(frozen=True)
class Way:
    """before: the command after which manifests can be added, () if they are among the inputs; last: the one that writes the files; files: their names."""

    before: tuple[str, ...]
    last: tuple[str, ...]
    files: tuple[str, ...]


_MANIFESTS = ("create", "manifests")
WAYS = {
    UPI: Way(_MANIFESTS, ("create", "ignition-configs"), ("bootstrap.ign", "master.ign", "worker.ign")),
    IN_PLACE: Way(
        _MANIFESTS,
        ("create", "single-node-ignition-config"),
        ("bootstrap-in-place-for-live-iso.ign", "worker.ign"),
    ),
    # It reads manifests beside its inputs.
    AGENT: Way((), ("agent", "create", "pxe-files"), ()),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """files: contents by path in the folder; documents: parsed, by path and number; margin: None for the default; timeout: seconds of each command."""

    path: pathlib.Path
    program: pathlib.Path
    method: str
    files: c.Mapping[str, str]
    documents: c.Mapping[str, t.Any]
    own_approver: bool
    cluster: Cluster
    adopt: bool
    regenerate: bool
    regenerate_named: tuple[str, ...]
    margin: datetime.timedelta | None
    timeout: float


def run(params: t.Mapping[str, t.Any], now: datetime.datetime, check_mode: bool) -> Outcome:
    """params: the options of module openshift_install. Raises HwaccelError before anything is changed, or with the previous folder as it was.

    In check mode the program does not run, and nothing is locked.
    """
    settings = _settings(params)
    if check_mode:
        outcome = _Installation(settings, now, None).predicted()
        outcome.values["artifacts"] = {}
        return outcome
    program = Program(settings.program, secrets_of(settings.documents))
    # What the program says of itself comes before anything is touched: another program, or one without this stream, is an error without a trace.
    tool = program.tool()
    _fits(tool, params["architecture"], settings)
    found = artifacts(program, params["architecture"], params.get("stream") or "", params.get("mirror") or "")
    with places.locked(settings.path) as held:
        outcome = _Installation(settings, now, tool).done(program, tool, held)
    if outcome.failure is None:
        outcome.values["artifacts"] = found
    return outcome


def _fits(tool: Tool, architecture: str, settings: Settings) -> None:
    """Kernels of other architectures are there all the same, since a stream has those of all."""
    wanted = _ARCHITECTURES.get(architecture, architecture)
    if tool.architecture not in ("", _MULTI, wanted):
        raise HwaccelError(
            f"the release is of {tool.architecture}, and the machines are of {wanted}",
            str(settings.program),
            "",
            "use the openshift-install of a release for this architecture, or of a multi release",
        )


def _settings(params: t.Mapping[str, t.Any]) -> Settings:
    """Raises HwaccelError with all faults."""
    faults: list[Fault] = []
    files = {str(name): _text(content) for name, content in params["files"].items()}
    documents: dict[str, t.Any] = {}
    for name, text in files.items():
        documents |= _parsed(name, text, faults)
    wanted = [_INSTALL_CONFIG, *([_AGENT_CONFIG] if params["method"] == AGENT else [])]
    for name in wanted:
        if name not in files:
            faults.append(Fault(f"{name} is missing", "files", next_step=f"add {name} to files"))
    for name in files:
        if name not in wanted and not _PLACE.fullmatch(name):
            where = f"files: {name}"
            next_step = f"choose {' or '.join(wanted)}, or a file of manifests/ or openshift/"
            faults.append(Fault("openshift-install does not read this file", where, next_step=next_step))
    faults += _wrong(params)
    if faults:
        raise ManyFaults(faults)
    known = params["cluster"]
    return Settings(
        path=pathlib.Path(params["path"]),
        program=pathlib.Path(params["program"]),
        method=params["method"],
        files=files,
        documents=documents,
        own_approver=params["own_approver"],
        cluster=Cluster(**{**known, "written": tuple(known.get("written", ()))}),
        adopt=params["adopt"],
        regenerate=params["regenerate"],
        regenerate_named=tuple(params["regenerate_named"]),
        margin=None if params.get("margin") is None else datetime.timedelta(seconds=params["margin"]),
        timeout=params["timeout"],
    )


def _wrong(params: t.Mapping[str, t.Any]) -> c.Iterator[Fault]:
    """Options whose type says too little."""
    if not _PATH.fullmatch(params["path"]):
        why = "another one would depend on where the task runs, and names have at most 200 characters and no control character"
        yield Fault(
            f"{shown(params['path'])} is no absolute path", "path", why, "give one such as /srv/installations/ocp"
        )
    if "\x00" in params["program"]:
        yield Fault(f"{shown(params['program'])} is no file", "program", "", "give the path of openshift-install")
    if params["own_approver"] and params["method"] != UPI:
        why = "there is no bootstrap machine with a program that could be masked"
        yield Fault("own_approver cannot be set", f"method: {params['method']}", why, "leave it unset")
    for name in ("margin", "timeout"):
        # No comparison with what is no number is true.
        if params.get(name) is not None and not 0 < params[name] < math.inf:
            yield Fault(f"{name} is not positive", name, f"it is {params[name]:g}", "set a number of seconds")
    stream = params.get("stream") or ""
    if stream and not _STREAM.fullmatch(stream):
        yield Fault(f"{shown(stream)} is not the name of a stream", "stream", "", "give one such as rhel-10")
    mirror = params.get("mirror") or ""
    if mirror and not _ADDRESS.fullmatch(mirror):
        what = f"{shown(mirror)} is not the address of a folder"
        yield Fault(what, "mirror", "", "give one such as http://mirror.example.com/rhcos")


def _text(content: t.Any) -> str:
    if isinstance(content, str):
        return content
    return plain_yaml.text(content if isinstance(content, list) else [content])


def _parsed(name: str, text: str, faults: list[Fault]) -> dict[str, t.Any]:
    """The documents of a file by its name, and by their number where there are several."""
    read, wrong = strict_yaml.documents(text, f"files: {name}")
    faults += wrong
    if wrong:
        return {}
    found = [one for one in read if one is not None]
    if not found or not all(isinstance(one, dict) for one in found):
        faults.append(Fault("the file holds no object", f"files: {name}", next_step="write keys and values in YAML"))
    return {name: found[0]} if len(found) == 1 else {f"{name}[{number}]": one for number, one in enumerate(found)}


class _Installation:
    def __init__(self, settings: Settings, now: datetime.datetime, tool: Tool | None) -> None:
        """tool: as the program describes itself, None where it does not run."""
        self._settings, self._now = settings, now
        self._record = places.record_of(settings.path)
        self._tool = tool
        self._salt = self._record.salt if self._record else secrets.token_hex(16)
        # Settings that change what the files contain.
        kept = {"method": settings.method, "own_approver": settings.own_approver}
        self._inputs = Inputs.of({**settings.documents, "settings": kept}, self._salt)
        requested = Requested(
            self._inputs, self._tool, settings.adopt, settings.regenerate, settings.regenerate_named, settings.margin
        )
        folder = places.observe(settings.path)
        self._decision = decision.decide(Observed(folder, self._record, settings.cluster, requested, now))
        self._folder = folder

    def predicted(self) -> Outcome:
        creates = self._decision.action in _CREATES
        changed = self._decision.changed or self._first_seen() is not None
        return self._outcome(changed, () if creates else self._decision.publishable)

    def done(self, program: Program, tool: Tool, held: int) -> Outcome:
        decided, path = self._decision, self._settings.path
        if decided.action == decision.FAIL:
            return self._outcome(False, ())
        if decided.staging:
            places.clear(path)
        if decided.action in _CREATES:
            backup = self._create(program, tool, held)
            return self._outcome(True, sorted(self._folder.checksums), backup)
        if decided.action == decision.ADOPT:
            places.tighten(path)
            places.write_record(path, self._recorded(self._folder, tool))
        seen = self._first_seen()
        if seen:
            places.write_record(path, seen)
        return self._outcome(decided.changed or seen is not None, decided.publishable)

    def _first_seen(self) -> Record | None:
        """The record of a cluster that was not known to be installed: from now on, its silence does not mean that there is none."""
        record, reused = self._record, self._decision.action == decision.REUSE
        if record is None or record.installed or not (reused and self._settings.cluster.installed):
            return None
        return dataclasses.replace(record, installed=lifetimes.moment(self._now))

    def _create(self, program: Program, tool: Tool, held: int) -> str:
        """Where the previous folder is."""
        settings = self._settings
        staging = places.staged(settings.path)
        try:
            self._fill(staging, program, held)
            places.tighten(staging)
            # It is renamed as it was judged.
            self._folder = dataclasses.replace(self._judged(staging), path=str(settings.path))
            return places.put(staging, settings.path, self._recorded(self._folder, tool))
        finally:
            places.clear(settings.path)

    def _fill(self, staging: pathlib.Path, program: Program, held: int) -> None:
        settings, way = self._settings, WAYS[self._settings.method]
        inputs = {name: text for name, text in settings.files.items() if "/" not in name}
        places.write(staging, inputs)
        if way.before:
            program.create(way.before, staging, settings.timeout, held)
        # Also in place of what the program has written.
        places.write(staging, {name: text for name, text in settings.files.items() if name not in inputs})
        program.create(way.last, staging, settings.timeout, held)
        if settings.own_approver:
            bootstrap = staging / way.files[0]
            bootstrap.write_bytes(places.masked(bootstrap.read_bytes(), _APPROVER, bootstrap.name))

    def _judged(self, staging: pathlib.Path) -> Folder:
        """What is there. Raises HwaccelError if a file to publish is missing, or Ignition would refuse it."""
        found = places.observe(staging)
        wanted = WAYS[self._settings.method].files
        missing = [name for name in wanted if name not in found.checksums]
        if not found.checksums:
            missing = missing or [places.ARTIFACTS]
        where = str(self._settings.program)
        faults = [Fault(f"openshift-install has not written {name}", where, "", "check its log") for name in missing]
        faults += found.faults
        if faults:
            raise ManyFaults(faults)
        return found

    def _recorded(self, folder: Folder, tool: Tool) -> Record:
        return Record(
            inputs=self._inputs,
            salt=self._salt,
            tool=tool,
            checksums=folder.checksums,
            infrastructure=folder.infrastructure,
            created=lifetimes.moment(self._now),
        )

    def _outcome(self, changed: bool, publishable: c.Iterable[str], backup: str = "") -> Outcome:
        decided, folder, publishable = self._decision, self._folder, tuple(publishable)
        clock, tool = folder.clock, self._tool or (self._record.tool if self._record else None)
        values = {
            "row": decided.row,
            "action": decided.action,
            "message": decided.message,
            "silent": decided.unreachable,
            "path": str(self._settings.path),
            "backup": backup,
            "infrastructure": folder.infrastructure,
            "publishable": {name: folder.checksums[name] for name in publishable},
            "secret": sorted(folder.secret & set(publishable)),
            "release": dataclasses.asdict(tool) if tool else {},
            "not_after": lifetimes.moment(clock.not_after) if clock else "",
            "seconds_left": int((clock.not_after - self._now).total_seconds()) if clock else None,
        }
        failure = _failure(decided.faults) if decided.action == decision.FAIL else None
        return Outcome(changed, values, list(decided.notes), failure=failure)


def _failure(faults: tuple[Fault, ...]) -> HwaccelError:
    return ManyFaults(faults) if len(faults) > 1 else HwaccelError(**dataclasses.asdict(faults[0]))


def artifacts(program: Program, architecture: str, stream: str, mirror: str) -> dict[str, dict[str, str]]:
    """Kernel, initramfs and rootfs of the release. mirror: address of a folder that has them under their own names, "" for where the release says."""
    found = program.pxe(architecture, stream)
    return {name: dataclasses.asdict(_mirrored(one, mirror)) for name, one in found.items()}


def _mirrored(artifact: Artifact, mirror: str) -> Artifact:
    if not mirror:
        return artifact
    return dataclasses.replace(artifact, location=f"{mirror.rstrip('/')}/{artifact.location.rpartition('/')[2]}")
