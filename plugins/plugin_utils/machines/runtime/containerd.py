# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drop-in for containerd's configuration with NVIDIA's runtime.

How containerd merges drop-ins, from its sources (mergeConfig, cmd/containerd/server/config/config.go, before 2.0 services/server/config/config.go)
and from `containerd config dump` of 1.6.20 and 2.4.2: 1.x uses the whole table of a plugin from the last file that has it, and ignores that of the main
file. 2.x merges key by key. So for 1.x the drop-in is a copy of the plugin's table in the other files, with the runtime added.
"""

from __future__ import annotations

import collections.abc as c
import copy
import fnmatch
import posixpath
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import toml
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import (
    HEADER,
    STAGING,
    Check,
    Rendered,
    RuntimeSettings,
)

CONFIG = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-hwaccel-gpu.toml"
#: The file of the toolkit's container (roles/driver/templates/toolkit.yml.j2).
OF_TOOLKIT_CONTAINER = "/etc/containerd/conf.d/99-nvidia.toml"
#: The plugin with the runtimes, by the version of the configuration file: up to 2, and since 3 (containerd 2.0).
_PLUGINS = ("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
_COPY = "# containerd 1.x takes this table instead of that of the other files, so it is a copy of theirs with the runtime {handler} added.\n"
#: Keys of a configuration below which there are credentials of registries.
_SECRET_KEYS = ("auth", "password", "identitytoken", "identity_token")
BEFORE, AFTER = f"{STAGING}/containerd/before.toml", f"{STAGING}/containerd/after.toml"
_STAGED_DROP_IN = f"{STAGING}/containerd/drop-in.toml"
Table = dict[str, t.Any]


def serves_pods(host: Host, config: str) -> bool:
    """Whether its plugin for Kubernetes is enabled: packages of Docker disable it. `render` refuses a file that cannot be parsed."""
    try:
        disabled = toml.parse(host.text(config), config).get("disabled_plugins", [])
    except HwaccelError:
        return True
    return not {"cri", *_PLUGINS} & set(disabled)


def handler_of_others(host: Host, config: str, handler: str) -> str:
    """Another file that has the runtime already, empty if there is none."""
    for path in (config, *_others(host)):
        try:
            parsed = toml.parse(host.text(path), path)
        except HwaccelError:
            continue
        if any(handler in _runtimes(_plugin(parsed, name)) for name in _PLUGINS):
            return path
    return ""


def render(host: Host, config: str, desired: RuntimeSettings) -> Rendered:
    """The main file with at most one added line, and the drop-in. Raises HwaccelError if the existing files cannot be parsed."""
    made = Rendered()
    dumped = host.commands.get("containerd_dump", Command(127, ""))
    if dumped.status:
        next_step = (
            f"correct the file until `containerd -c {config} config dump` succeeds: the service would not start either"
        )
        raise HwaccelError(
            "containerd does not accept its present configuration", config, dumped.error.strip()[-300:], next_step
        )
    main = host.text(config)
    parsed = toml.parse(main, config)
    effective = toml.parse(dumped.output, "containerd config dump")
    version = int(parsed.get("version") or (1 if parsed else effective.get("version", 2)))
    if version < 2:
        why, next_step = (
            "it has no `version`, or version 1",
            "convert it to version 2 with `containerd config migrate` of containerd 1.7 or 2.x",
        )
        raise HwaccelError("containerd's configuration has a form that is no longer supported", config, why, next_step)
    others = [toml.parse(host.text(path), path) for path in _others(host)]
    replacing = host.version("containerd")[:1] < (2,)
    plugin = _PLUGINS[version > 2]
    table = _desired_table([parsed, *others], plugin, desired, effective, replacing=replacing)
    text = (
        HEADER
        + (_COPY.format(handler=desired.handler) if replacing else "")
        + toml.dump({"version": version, "plugins": {plugin: table}})
    )
    own = host.files.get(config)
    sensitive = _has_secrets(parsed) or any(map(_has_secrets, others))
    covered = _order(host, parsed, config)
    new = main if DROP_IN in covered else toml.with_import(main, DROP_IN, version, config)
    made.contents = [
        Content.instead_of(own if replacing else None, DROP_IN, text, sensitive=sensitive),
        Content.instead_of(own, config, new, sensitive=sensitive),
    ]
    made.loaded = [*host.imports]
    _stage(made, new, [*covered, *([] if DROP_IN in covered else [DROP_IN])], text, config)
    if replacing and DROP_IN in covered:
        later = [
            path
            for path in covered[covered.index(DROP_IN) + 1 :]
            if plugin in toml.parse(host.text(path), path).get("plugins", {})
        ]
        made.faults += [_hidden(path) for path in later]
    return made


def staged_faults(before: Command, after: Command, desired: RuntimeSettings) -> list[Fault]:
    """Problems of a staged configuration. As containerd reads it, it must differ only in the runtime."""
    what, where = "containerd does not accept its new configuration, nothing was changed", f"{AFTER} on the machine"
    if after.status:
        return [Fault(what, where, after.error.strip()[-300:], "report this as a bug of the role, with that file")]
    new = [
        line
        for line in after.error.splitlines()
        if "unknown key" in line and _warning(line) not in map(_warning, before.error.splitlines())
    ]
    if new:
        return [
            Fault(
                what,
                where,
                new[0][-300:],
                "report this as a bug of the role, with that file and `containerd --version`",
            )
        ]
    was, becomes = toml.parse(before.output, BEFORE), toml.parse(after.output, AFTER)
    present = [_plugin(becomes, name) for name in _PLUGINS if desired.handler in _runtimes(_plugin(becomes, name))]
    if not present or (desired.default and present[0]["containerd"].get("default_runtime_name") != desired.handler):
        return [
            Fault(
                what,
                where,
                f"the runtime {desired.handler} is not in the configuration that containerd has read",
                "report this as a bug of the role, with that file and `containerd --version`",
            )
        ]
    if lost := _differences(_without_ours(was, desired.handler), _without_ours(becomes, desired.handler)):
        return [
            Fault(
                what,
                where,
                f"it would change {', '.join(lost[:5])} as well",
                "report this as a bug of the role, with both files in that folder",
            )
        ]
    return []


def _desired_table(
    files: list[Table], plugin: str, desired: RuntimeSettings, effective: Table, *, replacing: bool
) -> Table:
    """Table of the plugin for the drop-in. files: other files, in containerd's order. effective: the configuration that containerd has read."""
    tables = [_plugin(parsed, plugin) for parsed in files if plugin in parsed.get("plugins", {})]
    merged: Table = {}
    for one in tables[-1:] if replacing else tables:
        _merge(merged, one)
    known, chosen = _runtimes(merged), merged.get("containerd", {}).get("default_runtime_name", "")
    model = (
        known.get(chosen if chosen != desired.handler else "runc")
        or known.get("runc")
        or {"runtime_type": "io.containerd.runc.v2"}
    )
    runtime = copy.deepcopy(model)
    runtime.setdefault("options", {})["BinaryName"] = desired.binary
    table = copy.deepcopy(merged) if replacing else {}
    section = table.setdefault("containerd", {})
    if desired.default:
        section["default_runtime_name"] = desired.handler
    elif chosen == desired.handler:
        section["default_runtime_name"] = "runc"
    if replacing and not known and (built_in := _runtimes(_plugin(effective, plugin)).get("runc")):
        # containerd 1.x has runc by default only if no file has a runtime.
        section["runtimes"] = {"runc": built_in}
    section.setdefault("runtimes", {})[desired.handler] = runtime
    # In versions without this key CDI is always enabled (2.4), or not supported (1.6).
    if any("enable_cdi" in _plugin(effective, name) for name in _PLUGINS):
        table["enable_cdi"] = desired.cdi
    return table


def _stage(made: Rendered, main: str, order: list[str], drop_in: str, config: str) -> None:
    without = [path for path in order if path != DROP_IN]
    staged = [_STAGED_DROP_IN if path == DROP_IN else path for path in order]
    made.staged = [
        Content(_STAGED_DROP_IN, drop_in, "0600"),
        Content(BEFORE, toml.with_imports(main, without, config), "0600"),
        Content(AFTER, toml.with_imports(main, staged, config), "0600"),
    ]
    made.checks = [
        Check(f"containerd_{name}", ("containerd", "-c", path, "config", "dump"))
        for name, path in (("before", BEFORE), ("after", AFTER))
    ]


def _order(host: Host, parsed: Table, config: str) -> list[str]:
    """Files that the main one imports, in containerd's order, including the drop-in if a pattern matches it."""
    found: list[str] = []
    for pattern in parsed.get("imports", []):
        absolute = posixpath.normpath(posixpath.join(posixpath.dirname(config), pattern))
        if "*" in absolute:
            known = {path for path in (*host.imports, DROP_IN) if path == DROP_IN or path in host.files}
            found += sorted(path for path in known if _matches(path, absolute))
        else:
            found.append(absolute)
    return list(dict.fromkeys(found))


def _matches(path: str, pattern: str) -> bool:
    """Like Go's filepath.Glob: a star matches within a folder."""
    parts, desired = path.split("/"), pattern.split("/")
    return len(parts) == len(desired) and all(map(fnmatch.fnmatchcase, parts, desired))


def _others(host: Host) -> list[str]:
    return [path for path in host.imports if path != DROP_IN and path in host.files]


def _hidden(path: str) -> Fault:
    why, next_step = (
        f"it is read after {DROP_IN} and replaces its table of the same plugin",
        "rename it so that it sorts before 99-hwaccel-gpu.toml",
    )
    return Fault("another drop-in of containerd overrides that of the role", path, why, next_step)


def _plugin(parsed: c.Mapping[str, t.Any], name: str) -> Table:
    return t.cast(Table, parsed.get("plugins", {}).get(name, {}))


def _runtimes(table: c.Mapping[str, t.Any]) -> Table:
    return t.cast(Table, table.get("containerd", {}).get("runtimes", {}))


def _merge(into: Table, other: c.Mapping[str, t.Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


def _has_secrets(value: t.Any) -> bool:
    if isinstance(value, dict):
        return any(key in _SECRET_KEYS or _has_secrets(entry) for key, entry in value.items())
    return isinstance(value, list) and any(map(_has_secrets, value))


def _without_ours(parsed: Table, handler: str) -> Table:
    kept = copy.deepcopy(parsed)
    kept.pop("imports", None)
    for name in _PLUGINS:
        table = _plugin(kept, name)
        table.pop("enable_cdi", None)
        table.get("containerd", {}).pop("default_runtime_name", None)
        _runtimes(table).pop(handler, None)
    return kept


def _differences(was: c.Mapping[str, t.Any], becomes: c.Mapping[str, t.Any], where: str = "") -> list[str]:
    found: list[str] = []
    for key in sorted(was.keys() | becomes.keys()):
        one, other, path = was.get(key), becomes.get(key), f"{where}.{key}".lstrip(".")
        if isinstance(one, dict) and isinstance(other, dict):
            found += _differences(one, other, path)
        elif one != other:
            found.append(path)
    return found


def _warning(line: str) -> str:
    """A warning without its time and its file."""
    return line.partition("msg=")[2].replace(AFTER, "").replace(BEFORE, "")
