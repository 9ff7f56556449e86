# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of an ignition file and their types, by version of the specification (coreos/ignition, config/v3_0 to v3_6, schema). Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.values import near
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.strict_json import below, within

#: Minor versions of specification 3, the newest of OpenShift's installer and of Ignition itself.
OLDEST, NEWEST = 0, 6
_VERSION = re.compile(r"3\.([0-9]{1,2})\.0", re.ASCII)
#: A similar name is looked for in each of them, which takes time.
_MOST_WARNINGS = 50
_ARTICLES = {"string": "a", "integer": "an", "boolean": "a"}
_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
#: Go's int, into which Ignition reads numbers.
_LARGEST_INTEGER = 2**63


@dataclasses.dataclass(frozen=True)
class Field:
    """kind: "string", "integer", "boolean", or a name in FIELDS; many: whether it is a list of these; since: minor version that has it first."""

    kind: str
    many: bool = False
    since: int = 0
    required: bool = False


_STRING, _NEEDED, _INTEGER, _BOOLEAN = (
    Field("string"),
    Field("string", required=True),
    Field("integer"),
    Field("boolean"),
)
_STRINGS = Field("string", many=True)


def _many(kind: str, since: int = 0) -> Field:
    return Field(kind, True, since)


_OWNER = {"id": _INTEGER, "name": _STRING}
_NODE = {"path": _NEEDED, "overwrite": _BOOLEAN, "user": Field("owner"), "group": Field("owner")}

FIELDS: dict[str, dict[str, Field]] = {
    "config": {
        "ignition": Field("ignition", required=True),
        "kernelArguments": Field("kernel arguments", since=3),
        "passwd": Field("passwd"),
        "storage": Field("storage"),
        "systemd": Field("systemd"),
    },
    "ignition": {
        "version": _NEEDED,
        "config": Field("configs"),
        "proxy": Field("proxy", since=1),
        "security": Field("security"),
        "timeouts": Field("timeouts"),
    },
    "configs": {"merge": _many("resource"), "replace": Field("resource")},
    "proxy": {"httpProxy": _STRING, "httpsProxy": _STRING, "noProxy": _STRINGS},
    "security": {"tls": Field("tls")},
    "tls": {"certificateAuthorities": _many("resource")},
    "timeouts": {"httpResponseHeaders": _INTEGER, "httpTotal": _INTEGER},
    "resource": {
        "source": _STRING,
        "compression": _STRING,
        "httpHeaders": _many("header", 1),
        "verification": Field("verification"),
    },
    "header": {"name": _NEEDED, "value": _STRING},
    "verification": {"hash": _STRING},
    "kernel arguments": {"shouldExist": _STRINGS, "shouldNotExist": _STRINGS},
    "passwd": {"users": _many("user"), "groups": _many("user group")},
    "user": {
        "name": _NEEDED,
        "gecos": _STRING,
        "groups": _STRINGS,
        "homeDir": _STRING,
        "noCreateHome": _BOOLEAN,
        "noLogInit": _BOOLEAN,
        "noUserGroup": _BOOLEAN,
        "passwordHash": _STRING,
        "primaryGroup": _STRING,
        "shell": _STRING,
        "shouldExist": Field("boolean", since=2),
        "sshAuthorizedKeys": _STRINGS,
        "system": _BOOLEAN,
        "uid": _INTEGER,
    },
    "user group": {
        "name": _NEEDED,
        "gid": _INTEGER,
        "passwordHash": _STRING,
        "shouldExist": Field("boolean", since=2),
        "system": _BOOLEAN,
    },
    "owner": _OWNER,
    "storage": {
        "directories": _many("directory"),
        "disks": _many("disk"),
        "files": _many("file"),
        "filesystems": _many("filesystem"),
        "links": _many("link"),
        "luks": _many("luks", 2),
        "raid": _many("raid"),
    },
    "directory": {**_NODE, "mode": _INTEGER},
    "file": {**_NODE, "mode": _INTEGER, "contents": Field("resource"), "append": _many("resource")},
    "link": {**_NODE, "target": _NEEDED, "hard": _BOOLEAN},
    "disk": {"device": _NEEDED, "partitions": _many("partition"), "wipeTable": _BOOLEAN},
    "partition": {
        "guid": _STRING,
        "label": _STRING,
        "number": _INTEGER,
        "resize": Field("boolean", since=2),
        "shouldExist": _BOOLEAN,
        "sizeMiB": _INTEGER,
        "startMiB": _INTEGER,
        "typeGuid": _STRING,
        "wipePartitionEntry": _BOOLEAN,
    },
    "filesystem": {
        "device": _NEEDED,
        "format": _STRING,
        "label": _STRING,
        "mountOptions": _many("string", 1),
        "options": _STRINGS,
        "path": _STRING,
        "uuid": _STRING,
        "wipeFilesystem": _BOOLEAN,
    },
    "raid": {
        "name": _NEEDED,
        "devices": _STRINGS,
        "level": _NEEDED,
        "options": _STRINGS,
        "spares": _INTEGER,
    },
    "luks": {
        "name": _NEEDED,
        "cex": Field("cex", since=5),
        "clevis": Field("clevis"),
        "device": _NEEDED,
        "discard": Field("boolean", since=4),
        "keyFile": Field("resource"),
        "label": _STRING,
        "openOptions": _many("string", 4),
        "options": _STRINGS,
        "uuid": _STRING,
        "wipeVolume": _BOOLEAN,
    },
    "cex": {"enabled": _BOOLEAN},
    "clevis": {"custom": Field("clevis pin"), "tang": _many("tang"), "threshold": _INTEGER, "tpm2": _BOOLEAN},
    "clevis pin": {"config": _STRING, "needsNetwork": _BOOLEAN, "pin": _STRING},
    "tang": {"advertisement": Field("string", since=4), "thumbprint": _NEEDED, "url": _NEEDED},
    "systemd": {"units": _many("unit")},
    "unit": {
        "name": _NEEDED,
        "contents": _STRING,
        "dropins": _many("drop-in"),
        "enabled": _BOOLEAN,
        "mask": _BOOLEAN,
    },
    "drop-in": {"name": _NEEDED, "contents": _STRING},
}


@dataclasses.dataclass
class Findings:
    """faults: why Ignition refuses the file. warnings: what Ignition ignores, which is rarely meant."""

    faults: list[Fault] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)

    def add(self, what: str, place: str, why: str = "", next_step: str = "correct the file") -> None:
        self.faults.append(Fault(what, place, why, next_step))

    def unique(self, values: c.Iterable[t.Any], place: str, key: str, known: set[t.Any] | None = None) -> None:
        """A fault for each value that occurs again. key: "" if the values are strings. known: values of other lists that count; these are added."""
        known = set() if known is None else known
        for position, value in enumerate(values):
            name = value.get(key, "") if key else value
            if name in known and name != "":
                self.add(
                    "the value occurs twice",
                    f"{place}[{position}]" + (f".{key}" if key else ""),
                    next_step="remove one of them",
                )
            known.add(name)


def minor_version(value: t.Any, where: str) -> int:
    """Of a parsed file. Raises HwaccelError if it is none of specification 3, or has a version that is not known. where: of the file, for messages."""
    section = value.get("ignition") if isinstance(value, dict) else None
    version = section.get("version") if isinstance(section, dict) else None
    where = within(where, "ignition.version")
    if not isinstance(version, str):
        next_step = "name a file that Ignition reads. YAML of Butane has to be converted first"
        raise HwaccelError("this is not an ignition file", where, "it has no version", next_step)
    found = _VERSION.fullmatch(version)
    if found is None or not OLDEST <= int(found[1]) <= NEWEST:
        what = "the version of the ignition file is not supported"
        next_step = f"create the file with a version from 3.{OLDEST}.0 to 3.{NEWEST}.0"
        raise HwaccelError(what, where, f"it is {version[:20]!r}", next_step)
    return int(found[1])


def known_part(value: t.Any, minor: int, findings: Findings) -> dict[str, t.Any]:
    """The file with nothing but values of the right types in fields that the version has: what else there is, is in the findings.

    null is the same as no value, as for Ignition.
    """
    return _structure(value, "config", minor, "", findings)


def _structure(value: t.Any, kind: str, minor: int, place: str, findings: Findings) -> dict[str, t.Any]:
    if not isinstance(value, dict):
        findings.add("the value has another type", place, f"it has to be an object, and is {_type(value)}")
        return {}
    fields = {name: field for name, field in FIELDS[kind].items() if field.since <= minor}
    made: dict[str, t.Any] = {}
    for name, item in value.items():
        if name not in fields:
            if len(findings.warnings) < _MOST_WARNINGS:
                findings.warnings.append(_unused(name, kind, minor, below(place, name)))
        elif item is not None:
            found = _field(item, fields[name], minor, below(place, name), findings)
            if found is not None:
                made[name] = found
    for name, field in fields.items():
        if field.required and value.get(name) in (None, ""):
            findings.add("a field is missing", below(place, name), "", "set it")
    return made


def _unused(name: str, kind: str, minor: int, place: str) -> str:
    later = FIELDS[kind].get(name)
    why = f"it is there since 3.{later.since}.0" if later else near(name, FIELDS[kind])
    return f"{place} is not in version 3.{minor}.0, and Ignition ignores it" + (f": {why}" if why else "")


def _field(item: t.Any, field: Field, minor: int, place: str, findings: Findings) -> t.Any:
    """None if the type is another one."""
    if not field.many:
        return _single(item, field.kind, minor, place, findings)
    if not isinstance(item, list):
        findings.add("the value has another type", place, f"it has to be a list, and is {_type(item)}")
        return None
    found = [_single(one, field.kind, minor, f"{place}[{position}]", findings) for position, one in enumerate(item)]
    return found if None not in found else None


def _single(item: t.Any, kind: str, minor: int, place: str, findings: Findings) -> t.Any:
    if kind not in _TYPES:
        return _structure(item, kind, minor, place, findings)
    # A Boolean is an integer in Python.
    if not isinstance(item, _TYPES[kind]) or isinstance(item, bool) != (kind == "boolean"):
        findings.add(
            "the value has another type", place, f"it has to be {_ARTICLES[kind]} {kind}, and is {_type(item)}"
        )
        return None
    if isinstance(item, int) and not -_LARGEST_INTEGER <= item < _LARGEST_INTEGER:
        findings.add("the number is too large", place)
        return None
    return item


def _type(value: t.Any) -> str:
    """The type of a value, as JSON calls it. The value itself can be a secret."""
    if value is None:
        return "null"
    names: c.Mapping[type, str] = {bool: "a Boolean", int: "an integer", float: "a number", str: "a string"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")
