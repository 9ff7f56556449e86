# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the user that contain something undefined. Pure."""

from __future__ import annotations

import collections.abc as c
import functools
import pathlib
import re
import typing as t

import yaml
from ansible.errors import AnsibleError, AnsibleUndefinedVariable

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _misspelled
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inputs

_TOP = pathlib.Path(__file__).resolve().parents[2]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Messages of ansible-core: "'name' is undefined", and for parts (2.16) "'dict object' has no attribute 'part'" or "list object has no element 4",
#: (2.19) "object of type 'dict' has no attribute 'part'"; for hosts "hostvars['name']", which 2.16 follows by "is undefined".
_NAME = re.compile(r"'([A-Za-z_]\w*)' is undefined")
_PART = re.compile(r"has no (?:attribute|element) '?([^'.\s]+)'?")
_HOST = re.compile(r"hostvars\['([^']+)'\]")
_INTERNAL = re.compile(r"<class|object of type|\b\w+ object\b|Error\b|template string|Traceback")
_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST = 200


@functools.cache
def public() -> frozenset[str]:
    """Names of all variables that users set: those of the argument specs of all roles, and those of the playbooks."""
    named = set(_read(_TOP / "playbooks" / "vars" / "public.yml")["hwaccel_public_variables"])
    return frozenset(named.union(*options().values()))


@functools.cache
def facts() -> frozenset[str]:
    """Names of all facts and results that playbooks and roles leave behind."""
    return frozenset(_read(_TOP / "playbooks" / "vars" / "public.yml")["hwaccel_facts"])


@functools.cache
def options() -> dict[str, dict[str, dict[str, t.Any]]]:
    """By role, its variables with their argument specification."""
    found: dict[str, dict[str, dict[str, t.Any]]] = {}
    for path in _TOP.glob("roles/*/meta/argument_specs.yml"):
        entries = _read(path)["argument_specs"].values()
        found[path.parents[1].name] = {
            name: option for entry in entries for name, option in (entry.get("options") or {}).items()
        }
    return found


@functools.cache
def _defaults() -> dict[str, t.Any]:
    """The default of each variable of the roles, as it is written."""
    found: dict[str, t.Any] = {}
    for path in _TOP.glob("roles/*/defaults/main.yml"):
        found |= _read(path) or {}
    return found


def without_defaults(variables: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The variables without those that have the default of their role, whose errors are those of the variables that it refers to."""
    defaults = _defaults()
    return {name: value for name, value in variables.items() if name not in defaults or value != defaults[name]}


@functools.cache
def default_names() -> dict[str, frozenset[str]]:
    """By variable of a role whose default is a template, each name in that default, whether it is one of a variable or not."""
    found = {name: str(value) for name, value in _defaults().items() if any(_texts("", value))}
    return {name: frozenset(_WORD.findall(text)) for name, text in found.items()}


def without_idle_defaults(variables: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The variables without those that have the default of their role where nothing that it mentions is set.

    Such a value is the same on every machine and no fault of the user. To evaluate it costs as much as to evaluate one that was set, for each machine anew.
    """
    defaults, names = _defaults(), default_names()
    return {
        name: value
        for name, value in variables.items()
        if name not in names or value != defaults[name] or not names[name].isdisjoint(variables)
    }


def faults(host: str, variables: c.Mapping[str, t.Any], template: c.Callable[[t.Any], t.Any]) -> list[str]:
    """Errors in the public variables that are set, in order of their names.

    variables: of the host, unevaluated. template: evaluates one value with these variables; raises AnsibleUndefinedVariable.
    """
    found = []
    for name in sorted(public() & variables.keys()):
        for path, value in _texts(name, variables[name]):
            if reason := _fault(value, template):
                found.append(f"{path} of {host}: {reason}. Next: {_step(reason, name, host)}")
    return found


def misspelled(names: c.Iterable[str]) -> list[str]:
    """What is reported about variables that look like public ones and are none. names: of the host's variables, facts included."""
    found = _misspelled.unknown(set(names) - facts(), public(), options())
    return [
        f"{name} has no effect: hwaccel.gpu has no variable of this name."
        + (f" Did you mean {meant}?" if meant else "")
        for name, meant in found.items()
    ]


def of_batches(variables: c.Mapping[str, t.Any], template: c.Callable[[t.Any], t.Any]) -> list[str]:
    """Errors in the batch sizes of machines, which plays evaluate before their first task. They must not contain undefined values."""
    return [
        str(fault)
        for name in inputs.BATCHES
        if name in variables
        for fault in inputs.batch(plain(template(variables[name])), name)
    ]


def of_machines(role: str, variables: c.Mapping[str, t.Any], template: c.Callable[[t.Any], t.Any]) -> list[str]:
    """Errors in the values of a role on machines, reported before Ansible validates them against the argument specification with its own messages.

    They must not contain undefined values.
    """
    known, looked_at = options()[role], without_idle_defaults(variables)
    given = {name: plain(template(looked_at[name])) for name in known if name in looked_at}
    return [str(fault) for fault in inputs.judge(role, known, given)]


def plain(value: t.Any) -> t.Any:
    """The value without Ansible's tags: its origin, and whether it is trusted."""
    if isinstance(value, c.Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    # Unsafe texts of core 2.16 are unsafe texts as strings, too.
    if isinstance(value, str):
        return str.__str__(value)
    # Ansible's own types, such as encrypted strings.
    return None if value is None else str(value)


def fact(variables: c.Mapping[str, t.Any], name: str) -> dict[str, t.Any]:
    """What an action has kept of a host, empty if it has kept nothing; a role may have set a variable of that name, which counts more.

    As variables of the host, facts are deprecated since core 2.20 (INJECT_FACTS_AS_VARS).
    """
    known = variables.get(name) or (variables.get("ansible_facts") or {}).get(name) or {}
    return t.cast("dict[str, t.Any]", plain(known))


def _texts(path: str, value: t.Any) -> c.Iterator[tuple[str, str]]:
    """All strings in a value that may contain a template, with their place."""
    if isinstance(value, str):
        if "{" in value:
            yield path, value
    elif isinstance(value, c.Mapping):
        for key, item in value.items():
            yield from _texts(f"{path}.{key}", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _texts(f"{path}[{index}]", item)


def _fault(value: str, template: c.Callable[[t.Any], t.Any]) -> str:
    """Why a value cannot be evaluated, empty if it can."""
    try:
        result = template(value)
        # Core 2.16 returns undefined values in variables of another host as the text of their template.
        for _path, left in _texts("", result):
            if left != value:
                template(left)
    except AnsibleUndefinedVariable as error:
        return _undefined(str(error))
    except Exception as error:
        # Filters and lookups may raise any exception, and since core 2.19 default() hides all of them.
        # A variable with the placeholder of `omit` counts as not set.
        return "" if type(error).__name__ == "AnsibleValueOmittedError" else _failed(error)
    return ""


def _undefined(message: str) -> str:
    if found := _NAME.search(message):
        return f"{found[1]} is undefined"
    if found := _HOST.search(message):
        return f"the inventory has no host {found[1]}"
    if found := _PART.search(message):
        return f"{found[1]} is undefined in a value that it refers to"
    # The message of undef(hint=…), which core 2.16 repeats.
    first, _dot, rest = message.partition(". ")
    hint = first if rest.startswith(first) else message
    return "something in it is undefined" + ("" if _INTERNAL.search(hint) else f" ({hint[:_LONGEST]})")


def _failed(error: Exception) -> str:
    message = " ".join(str(getattr(error, "message", "") or error).split())
    plain = isinstance(error, AnsibleError) and not _INTERNAL.search(message)
    return "it cannot be evaluated" + (f" ({message[:_LONGEST].rstrip('.')})" if plain else "")


def _step(reason: str, name: str, host: str) -> str:
    missing = reason.removesuffix(" is undefined")
    if missing != reason:
        return f"define {missing} for {host}, or remove it from {name}"
    return f"correct the expression, or remove {name} from the variables of {host}"


def _read(path: pathlib.Path) -> t.Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
