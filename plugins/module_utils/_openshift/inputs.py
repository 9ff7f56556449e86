# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs of an installation in a form that may be kept and shown: values by key, secrets by hash only. Pure.

openshift-install consumes its inputs, so that without a record nobody could say from what a folder was created.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import hashlib
import hmac
import json
import math
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import canonical
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.strict_json import below

#: A value that is not shown. What follows is an HMAC with the salt of the record: without that, a weak password could be guessed from its hash in a log.
_HASHED = "hmac-sha256:"
#: A trust bundle is none, but users have put keys in it.
_SECRET_KEY = re.compile(r"pass|secret|token|credential|private|auth|apikey|\.key$|keyfile|trustbundle$", re.IGNORECASE)
#: Longer texts are files inside a value, such as contents in an ignition file or a trust bundle, and would not fit into a message.
_LONGEST_SHOWN = 200
_SHOWN_HASH = 8
_MOST_NAMED = 10
#: Shorter texts are no secrets, and would be hidden inside words.
_SHORTEST = 4


@dataclasses.dataclass(frozen=True)
class Inputs:
    """values: by document and key, such as "install-config.yaml: networking.machineNetwork[0].cidr"."""

    values: c.Mapping[str, str | int | float | bool | None]

    @classmethod
    def of(cls, documents: c.Mapping[str, t.Any], salt: str) -> Inputs:
        """documents: parsed ones by the name of their file; salt: of the record, the same for all that are compared."""
        found: dict[str, t.Any] = {}
        for name, document in documents.items():
            for key, value, hidden in _leaves(document):
                found[f"{name}: {key}" if key else name] = _hashed(value, salt) if hidden else value
        return cls(found)


@dataclasses.dataclass(frozen=True)
class Difference:
    """A key with another value. before, after: for messages, "" if there is no such key."""

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        if not self.before:
            return f"{self.key} ({self.after} is new)"
        return (
            f"{self.key} ({self.before} is gone)"
            if not self.after
            else f"{self.key} ({self.before} is now {self.after})"
        )


def differences(before: Inputs, after: Inputs) -> tuple[Difference, ...]:
    """In the order of the keys. Empty if the inputs are the same."""
    keys = sorted({*before.values, *after.values})
    return tuple(
        Difference(key, _shown(before, key), _shown(after, key))
        for key in keys
        if key not in before.values
        or key not in after.values
        or canonical(before.values[key]) != canonical(after.values[key])
    )


def named(found: c.Sequence[Difference]) -> str:
    """Differences for a message: the first ones, and the number of the others."""
    more = len(found) - _MOST_NAMED
    return "; ".join(map(str, found[:_MOST_NAMED])) + (f"; and {more} more" if more > 0 else "")


def secrets_of(documents: c.Mapping[str, t.Any]) -> tuple[str, ...]:
    """The texts whose hashes `Inputs.of` keeps, and those inside a pull secret: wherever a program prints its inputs, they are hidden."""
    found: set[str] = set()
    for document in documents.values():
        for _key, text, hidden in _leaves(document):
            if hidden and isinstance(text, str):
                found.update({text}, _inside(text))
    return tuple(text for text in found if len(text) >= _SHORTEST)


def _inside(text: str) -> c.Iterator[str]:
    """The texts in a document in JSON, such as a pull secret."""
    with contextlib.suppress(ValueError):
        yield from (value for _key, value, _hidden in _leaves(json.loads(text)) if isinstance(value, str))


def _leaves(value: t.Any, key: str = "", hidden: bool = False) -> c.Iterator[tuple[str, t.Any, bool]]:
    """(key, value, whether it is hidden) of everything below. Empty collections are values."""
    if isinstance(value, dict) and value:
        shown = shown_keys(value)
        for name, item in value.items():
            secret = hidden or is_secret_key(str(name)) or (shown is not None and name not in shown)
            yield from _leaves(item, below(key, str(name)), secret)
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from _leaves(item, f"{key}[{position}]", hidden)
    elif isinstance(value, (dict, list)):
        yield key, "{}" if isinstance(value, dict) else "[]", False
    else:
        yield key, _scalar(value), hidden or is_hidden(value)


def shown_keys(document: c.Mapping[str, t.Any]) -> tuple[str, ...] | None:
    """Of a Secret, also in a List, the keys whose values may be shown; None for anything else."""
    return ("apiVersion", "kind", "type", "metadata") if document.get("kind") == "Secret" else None


def _scalar(value: t.Any) -> t.Any:
    """The value as JSON has it. YAML also has dates, binary data and numbers that are infinite."""
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if finite and isinstance(value, (str, int, float, bool, type(None))) else str(value)


def is_secret_key(name: str) -> bool:
    """Whether nothing below a key with this name is shown."""
    return bool(_SECRET_KEY.search(name))


def is_hidden(value: t.Any) -> bool:
    """Whether a value is not shown whatever its key is: contents of files, and URLs with credentials."""
    if not isinstance(value, str):
        return isinstance(value, bytes)
    contents = len(value) > _LONGEST_SHOWN or "\n" in value.strip() or value.startswith("data:")
    return contents or credentials.in_value(value)


def _hashed(value: t.Any, salt: str) -> str:
    text = canonical(value).encode("utf-8", "surrogatepass")
    return _HASHED + hmac.new(salt.encode("utf-8"), text, hashlib.sha256).hexdigest()


def shown_hash(value: t.Any, salt: str) -> str:
    """What messages have in the place of a secret. salt: not public, the same for all that are compared."""
    return _short(_hashed(_scalar(value), salt))


def _short(hashed: str) -> str:
    return f"hash {hashed[len(_HASHED) :][:_SHOWN_HASH]}…"


def _shown(inputs: Inputs, key: str) -> str:
    if key not in inputs.values:
        return ""
    value = inputs.values[key]
    if isinstance(value, str) and value.startswith(_HASHED):
        return _short(value)
    return canonical(value)
