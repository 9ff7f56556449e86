# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of an installation: from what its files were created, and what they were. It is kept beside the folder. Pure.

It holds no secret: inputs that are secrets are hashes with a salt, files are checksums.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import strict_json
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.inputs import Inputs

FORMAT = 1
_SUFFIX = ".hwaccel-gpu.json"
_WHAT = "the record of the installation cannot be read"
_NEXT = "restore it from a backup, or move it away and set adopt: true if the files are those of this cluster"


def path_of(folder: str) -> str:
    """Where the record of a folder is: beside it, so that it stays when the folder is moved away and created again."""
    return folder.rstrip("/") + _SUFFIX


@dataclasses.dataclass(frozen=True)
class Tool:
    """openshift-install, as its command `version` describes it. release_image: with its digest."""

    version: str
    release_image: str
    architecture: str


@dataclasses.dataclass(frozen=True)
class Record:
    """salt: of the inputs' hashes, random for each record.

    checksums: SHA-256 of each file that boot servers publish, by its name in the folder. auth/kubeconfig is none of them: `wait-for` changes it.
    infrastructure: infraID of metadata.json; created: time of the run that created the files, in ISO 8601; installed: when the cluster was first observed as
    installed, "" before.
    """

    inputs: Inputs
    salt: str
    tool: Tool
    checksums: c.Mapping[str, str]
    infrastructure: str
    created: str
    installed: str = ""

    @property
    def fingerprint(self) -> str:
        """The same for two records if their files are created from the same inputs by the same tool. Boot servers keep it with the files."""
        return fingerprint(self.inputs, self.tool)

    def to_json(self) -> str:
        body = {"format": FORMAT, "fingerprint": self.fingerprint, **dataclasses.asdict(self)}
        body["inputs"] = dict(self.inputs.values)
        return json.dumps(body, indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, data: bytes, origin: str) -> Record:
        """Raises HwaccelError. origin: the path of the record, for messages."""
        body = strict_json.parse(data, _WHAT, origin, _NEXT)
        if not isinstance(body, dict):
            raise _damaged(origin, "it is not an object")
        if body.get("format") != FORMAT:
            why = f"its format is {str(body.get('format'))[:20]}, and this version of the collection reads {FORMAT}"
            raise HwaccelError(
                _WHAT, origin, why, "use the version of the collection that has written it, or a newer one"
            )
        wrong = [name for name, fits in _TYPES.items() if not fits(body.get(name))]
        if wrong or body.keys() != {*_TYPES, "format"}:
            raise _damaged(origin, f"a field is missing or invalid: {', '.join(wrong or sorted(body))}")
        made = cls(
            inputs=Inputs(body["inputs"]),
            tool=Tool(**body["tool"]),
            **{name: body[name] for name in ("salt", "checksums", "infrastructure", "created", "installed")},
        )
        if made.fingerprint != body["fingerprint"]:
            raise _damaged(origin, "its fingerprint is not that of its inputs: somebody has edited it")
        return made


def fingerprint(inputs: Inputs, tool: Tool) -> str:
    return digest([dict(inputs.values), dataclasses.asdict(tool)])


def _damaged(origin: str, why: str) -> HwaccelError:
    return HwaccelError(_WHAT, origin, why, _NEXT)


def _text(value: t.Any) -> bool:
    return isinstance(value, str)


def _moment(value: t.Any) -> bool:
    try:
        return value == "" or datetime.datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _values(value: t.Any) -> bool:
    return isinstance(value, dict) and not any(isinstance(one, (dict, list)) for one in value.values())


def _texts(value: t.Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _tool(value: t.Any) -> bool:
    return _texts(value) and value.keys() == {field.name for field in dataclasses.fields(Tool)}


_TYPES: dict[str, c.Callable[[t.Any], bool]] = {
    "fingerprint": _text,
    "inputs": _values,
    "salt": _text,
    "tool": _tool,
    "checksums": _texts,
    "infrastructure": _text,
    "created": _moment,
    "installed": _moment,
}
