# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of a mutant, and whether the message that a user reads names the cause."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import DROPPED, Mutant, Obj, at

#: Refused by the engine or the API server, failed at a gate, or neither.
REFUSED, CAUGHT, SURVIVES = "refused", "caught", "survives"
#: A value that is shorter, names nothing.
_LEAST = 4
_ENTRY = re.compile(r"[,:=\s]+")
#: Words with which programs and the kubelet name the effect of a field, by the part of its path that they stand for.
_EFFECTS: dict[str, str] = {
    "privileged": r"not permitted|[Pp]ermission denied",
    "runAsUser": r"not permitted|[Pp]ermission denied|runAsNonRoot",
    "rules": r"cannot (\w+) resource|forbidden",
    "roleRef": r"cannot (\w+) resource|forbidden",
    "subjects": r"cannot (\w+) resource|forbidden",
    "command": r"executable file not found|[Nn]o such file|can't open|syntax error|not found",
    "args": r"executable file not found|[Nn]o such file|can't open|syntax error|not found|option requires an argument",
    "volumeMounts": r"[Nn]o such file|can't open|not a directory|[Rr]ead-only file system|mount propagation",
    "hostPath": r"[Nn]o such file|can't open|is not a (directory|file|socket)|mount the host's",
    "nodeAffinity": r"excludes the node|node selector|no \S+ .*pod",
    "nodeSelector": r"excludes the node",
    "tolerations": r"tolerat",
    "resources": r"Insufficient|quantities must match",
    "selector": r"empty selector|`selector` does not match",
    "image": r"image cannot be pulled|InvalidImageName",
    "startupProbe": r"probe",
    "readinessProbe": r"probe",
    "livenessProbe": r"probe",
    "automountServiceAccountToken": r"token|[Uu]nauthorized|credentials",
    "runtimeClassName": r"runtime",
    "hostPID": r"namespace|process",
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """gate: the stage that caught it. named: whether `text` names the cause."""

    mutant: Mutant
    state: str
    named: bool = False
    gate: str = ""
    text: str = ""


def outcome(mutant: Mutant, source: Obj, state: str, gate: str = "", text: str = "") -> Outcome:
    return Outcome(mutant, state, bool(text) and names_cause(mutant, source, text), gate, text)


def names_cause(mutant: Mutant, source: Obj, text: str) -> bool:
    """Whether a message names the field, its value, what the field belongs to, or the effect that only this field has.

    Names of the workload and its containers do not count: each message about them has these.
    """
    if any(re.search(effect, text) for part, effect in _EFFECTS.items() if part in mutant.path):
        return True
    if _dotted(mutant) in text:
        return True
    if mutant.path == ("apiVersion",) and mutant.value and text.startswith(f"{mutant.value} {mutant.kind} is unknown"):
        return True
    common = " ".join((mutant.name, *_containers(source)))
    return any(_says(text, word, common) for word in words(mutant, source))


def _says(text: str, word: str, common: str) -> bool:
    found = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)
    return bool(found) and (word not in common or f'"{word}"' in text)


def _dotted(mutant: Mutant) -> str:
    """The last parts of the field's path as the API server writes it."""
    parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in mutant.path)
    return ".".join(parts.split(".")[-2:])


def words(mutant: Mutant, source: Obj) -> list[str]:
    """Words that name the cause: the field, its old and new value, and what identifies the element of a list around it."""
    old = at(source, mutant.path)
    found = [part for part in mutant.path[-2:] if isinstance(part, str)]
    found += _texts(old) + ([str(mutant.value)] if mutant.change != DROPPED else [])
    if isinstance(old, str) and isinstance(mutant.value, str):
        # Of a list in a string, a program names the entry that it does not take.
        found += sorted(set(_ENTRY.split(mutant.value)) ^ set(_ENTRY.split(old)))
    for place in range(len(mutant.path), 0, -1):
        element = at(source, mutant.path[:place])
        if isinstance(mutant.path[place - 1], int) and isinstance(element, dict):
            found += [str(element[key]) for key in ("name", "key", "mountPath", "operator") if key in element]
            break
    if mutant.kind not in ("DaemonSet", "Deployment"):
        found.append(mutant.name)
    return [word for word in dict.fromkeys(found) if len(word) >= _LEAST and "\n" not in word]


def _texts(value: t.Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, one in value.items() for text in (key, *_texts(one))]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return [str(value)] if isinstance(value, (str, int)) and not isinstance(value, bool) else []


def _containers(source: Obj) -> c.Iterator[str]:
    spec = ((source.get("spec") or {}).get("template") or {}).get("spec") or source.get("spec") or {}
    for item in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        yield item["name"]
