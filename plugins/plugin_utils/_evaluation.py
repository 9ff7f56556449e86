# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates variables with as few templates as possible: Ansible compiles each one anew, which takes a millisecond, and a role has a hundred."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _untemplated

#: A template that only names a variable, or gives it a default: most of those of roles.
_NAME = re.compile(
    r"\{\{ (?P<name>[A-Za-z_]\w*)(?: \| default\((?P<default>'[^'\\{]*'|true|false)(?P<falsy>, true)?\))? \}\}"
)


class Evaluation:
    """Evaluates values as Ansible does, each text once, and without Jinja where a template only names a variable.

    variables: of a task, unevaluated. template: evaluates one value with these variables; raises AnsibleUndefinedVariable.
    """

    def __init__(self, variables: c.Mapping[str, t.Any], template: c.Callable[[t.Any], t.Any]) -> None:
        self._variables, self._template = variables, template
        # By identity: another text that is equal may not be trusted, and is no template then.
        self._done: dict[int, tuple[str, t.Any]] = {}

    def __call__(self, value: t.Any) -> t.Any:
        if isinstance(value, c.Mapping):
            return {self(key): self(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self(item) for item in value]
        if not isinstance(value, str):
            return self._template(value)
        if "{" not in value:
            return value
        if id(value) not in self._done:
            self._done[id(value)] = (value, self._of_text(value))
        return self._done[id(value)][1]

    def _of_text(self, text: str) -> t.Any:
        found = _NAME.fullmatch(text)
        if not found or not _untemplated.is_trusted(text):
            return self._template(text)
        name, default = found["name"], found["default"]
        known = name in self._variables
        if default is None:
            return self(self._variables[name]) if known else self._template(text)
        if known and not _is_plain(self._variables[name]):
            # A default also counts where something in the variable is undefined.
            return self._template(text)
        if known and (self._variables[name] or not found["falsy"]):
            return self._variables[name]
        return default[1:-1] if default.startswith("'") else default == "true"


def _is_plain(value: t.Any) -> bool:
    """Whether there is no template in it."""
    if isinstance(value, c.Mapping):
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return "{" not in value if isinstance(value, str) else value is None or isinstance(value, (bool, int, float))
