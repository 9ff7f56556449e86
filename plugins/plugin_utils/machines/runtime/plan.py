# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of the role node_runtime for one machine, from its observed state."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import oneline, record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content, written
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import Record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import (
    cdi,
    containerd,
    engines,
    originals,
    prerequisites,
    programs,
    toml,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import Rendered, RuntimeSettings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.services import Action

TOOLKIT_CONFIG = "/etc/nvidia-container-runtime/config.toml"
#: In the order of their dependencies. Both package families have these names.
PACKAGES = (
    "libnvidia-container1",
    "libnvidia-container-tools",
    "nvidia-container-toolkit-base",
    "nvidia-container-toolkit",
)
AUTO = "auto"
#: When the node is drained before restarts. Other values mean: if these end pods.
ALWAYS, NEVER = "always", "never"
_BOOLEAN = "container_use_devices"
#: Repository files, which always belong to the role.
REPOSITORY_FILES = (
    "/etc/apt/sources.list.d/hwaccel-gpu.list",
    "/etc/apt/auth.conf.d/hwaccel-gpu.conf",
    "/etc/apt/keyrings/hwaccel-gpu.asc",
    "/etc/yum.repos.d/hwaccel-gpu.repo",
    "/etc/pki/rpm-gpg/RPM-GPG-KEY-hwaccel-gpu",
)
Settings = c.Mapping[str, t.Any]


def plan(host: Host, settings: Settings) -> dict[str, t.Any]:
    """The plan, in plain data. settings: the role's variables by their names without node_runtime_.

    provider: hwaccel, container, existing, or none without a GPU. files, contents, folders, absent: as files.written documents them.
    changes: paths whose texts differ. staged: texts by path for checks; checks: commands that validate them, each with name and argv.
    actions: for services that do not run with the files on disk, as services.Action.
    drain: why the node is drained before these, empty if it is not; releases: whether this run or an earlier one may have drained the node.
    toolkit: whether it is installed (install), with which manager and names of packages. programs: those that are installed instead, as programs.missing
    documents them. cdi: how the specification is generated, or empty.
    ahead: whether all this is done before the cluster brings the container engine. selinux: whether container_use_devices is enabled.
    originals: paths to copy before the first change.
    record: text for teardown, empty if the machine has it already.
    """
    faults = [*oneline.faults("node_runtime", settings, ("repository_key",)), *_credential_faults(settings)]
    lacking = prerequisites.faults(host, float(settings["min_disk_gib"]), settings["skipped_checks"])
    made = Rendered()
    try:
        kept = record.read(host, originals.ROLE) or Record()
        who, why, against = engines.provider(host, settings, kept)
        made.messages.append(_whose(who, why))
        # Without a GPU they do not matter, and in site only if this role provides the runtime.
        minds = who != engines.NONE and (who == engines.HWACCEL or not settings.get("optional"))
        faults += [*(lacking if minds else []), *against]
        if who == engines.HWACCEL and not against:
            return _ours(host, settings, kept, made, faults)
    except HwaccelError as error:
        return _result(host, engines.HWACCEL, made, list(dict.fromkeys([*faults, *lacking, *error.faults])))
    return _result(host, who, made, faults)


def _credential_faults(settings: Settings) -> list[Fault]:
    """Problems of credentials: apt splits its file at blanks (apt_auth.conf(5))."""
    why, next_step = "apt would read the text after it as separate words", "remove it"
    names = [
        name
        for name in ("repository_url", "repository_username", "repository_password")
        if set(str(settings.get(name) or "")) & set(' "')
    ]
    return [Fault("a text has a blank or a quote", f"node_runtime_{name}", why, next_step) for name in names]


def _ours(host: Host, settings: Settings, kept: Record, made: Rendered, faults: list[Fault]) -> dict[str, t.Any]:
    restarts = _rendered(host, settings, made, faults)
    made.absent = [path for path in made.absent if path in host.files]
    made.contents += _toolkit_config(host, settings, kept)
    described = settings["cdi"] and cdi.can(host)
    if described and cdi.refreshed_by(host) == cdi.OURS:
        made.contents += cdi.units(host)
    toolkit = _toolkit(host, settings, faults)
    drained = _drained(host, settings, restarts)
    made.messages += _messages(host, settings, toolkit, restarts, drained["drain"])
    faults += made.faults
    selinux = bool(settings["selinux"]) and host.selinux and host.fact(_BOOLEAN).endswith("off")
    new = originals.recorded(kept, host, made.contents)
    new = dataclasses.replace(new, files=programs.recorded(new, host, toolkit["programs"]))
    if toolkit["names"] and toolkit["install"] and not host.fact("package"):
        new = dataclasses.replace(new, packages=PACKAGES)
    if selinux:
        new = dataclasses.replace(new, settings={_BOOLEAN: "off", **new.settings})
    added = [path for path in new.files if path not in kept.files and path in host.files]
    changes = [one.path for one in made.contents if host.text(one.path) != one.text or one.path not in host.files]
    return {
        **_result(host, engines.HWACCEL, made, faults),
        **drained,
        "actions": [restart.action.as_dict() for restart in restarts],
        "toolkit": toolkit,
        "programs": toolkit["programs"],
        "ahead": engines.coming(host, settings) is not None,
        "selinux": selinux,
        "originals": [path for path in added if new.files[path].existed],
        "record": record.changed(host, originals.ROLE, new),
        "cdi": _described(host) if described else {},
        "changes": changes + made.absent,
    }


def _rendered(host: Host, settings: Settings, made: Rendered, faults: list[Fault]) -> list[Restart]:
    """Adds the files of all engines of the machine, and returns the necessary restarts."""
    desired = _desired(host, settings)
    found, messages, missing = engines.engines(host, settings)
    made.messages += messages
    faults += missing
    restarts = []
    for engine in found:
        try:
            one = engines.render(host, engine, settings, desired)
        except HwaccelError as error:
            faults += error.faults
            continue
        for field in ("contents", "absent", "staged", "checks", "messages", "faults"):
            getattr(made, field).extend(getattr(one, field))
        if why := engines.stale(host, engine, one):
            restarts.append(Restart.of(host, engine, why))
    return restarts


def checked(host: Host, settings: Settings, results: c.Mapping[str, Command]) -> dict[str, t.Any]:
    """Problems that the services' own checkers and nvidia-ctk report in staged files. results: by the name of the check."""
    desired = _desired(host, settings)
    faults: list[Fault] = []
    messages: list[str] = []
    for name, done in results.items():
        if name == "containerd_after":
            faults += containerd.staged_faults(results["containerd_before"], done, desired)
        elif name == "cdi_generate":
            found, messages = cdi.judged(host, done, results.get("cdi_list", Command(0, "")))
            faults += found
        elif name in ("docker", "crio") and done.status:
            what, next_step = (
                f"{name} does not accept its new configuration, nothing was changed",
                "correct what it reports; the role only adds its runtime",
            )
            faults.append(Fault(what, "", (done.error or done.output).strip()[-300:], next_step))
    return {"faults": [fault.as_dict() for fault in faults], "messages": messages}


def restored(host: Host, settings: Settings) -> dict[str, t.Any]:
    """What teardown does, in the form of plan, with more keys. Raises HwaccelError for a damaged record.

    packages: installed by the role. record: with the services that have to be restarted, so that a later run restarts them if this one is interrupted;
    empty if the machine has it already; restarted: the same after the restarts. settings: original values of other settings. stops: units that are stopped.
    removed: folders and files that are removed last.
    """
    kept = record.read(host, originals.ROLE) or Record()
    contents, absent, messages = originals.restored(kept, host, settings["containerd_config"], settings["handler"])
    # The specification, if units of the role have generated it.
    made = Rendered(contents=contents, absent=[*absent, *programs.restored(kept, host)], messages=messages)
    made.absent += [cdi.SPEC] * (cdi.OURS in str(absent))
    touched = {one.path for one in contents if one.text != host.text(one.path)} | set(absent)
    restarts = []
    for engine in engines.ENGINES:
        unit = engines.service(host, engine)
        # A teardown that was interrupted between files and restarts has no files left to restore.
        if (
            unit
            and host.unit(unit).active
            and (unit in kept.due or any(_belongs(path, engine.name, settings) for path in touched))
        ):
            restarts.append(Restart.of(host, engine, "its configuration is restored"))
    begun = dataclasses.replace(kept, due=tuple(one.action.unit for one in restarts))
    return {
        **_result(host, "", made, []),
        **_drained(host, settings, restarts),
        "firewall": [],
        "actions": [one.action.as_dict() for one in restarts],
        "record": record.changed(host, originals.ROLE, begun) if restarts else "",
        "restarted": dataclasses.replace(kept, due=()).as_text(),
        "packages": list(kept.packages) if host.fact("package") else [],
        "settings": dict(kept.settings),
        "stops": [path.rpartition("/")[2] for path in absent if path.endswith((".path", ".service"))],
        "removed": [*REPOSITORY_FILES, originals.FOLDER],
    }


@dataclasses.dataclass(frozen=True)
class Restart:
    """A restart of an engine. ends_pods: whether it ends the containers of the engine."""

    action: Action
    ends_pods: bool

    @classmethod
    def of(cls, host: Host, engine: engines.Engine, why: str) -> Restart:
        action = Action(engines.service(host, engine), "restarted", why, enabled=None, health=engine.health)
        return cls(action, engines.ends_pods(host, engine))


def _drained(host: Host, settings: Settings, restarts: c.Sequence[Restart]) -> dict[str, t.Any]:
    """drain: why the node is drained before these restarts, empty if it is not. releases: whether this run or an earlier one may have drained it."""
    # There is no node before its cluster brings the container engine.
    if settings["drain"] == NEVER or engines.coming(host, settings):
        return {"drain": "", "releases": False}
    if settings["drain"] == ALWAYS:
        return {"drain": "node_runtime_drain says so" if restarts else "", "releases": True}
    ending = [one.action.unit for one in restarts if one.ends_pods]
    # Independent of the present setting, because the restart may have changed it.
    there = any(engine.name == "docker" and engines.service(host, engine) for engine in engines.ENGINES)
    return {"drain": f"a restart of {', '.join(ending)} ends its containers" if ending else "", "releases": there}


def _desired(host: Host, settings: Settings) -> RuntimeSettings:
    return RuntimeSettings(
        settings["default_runtime"],
        settings["cdi"],
        programs.path(programs.RUNTIME)
        if programs.used(settings)
        else host.fact("runtime_binary") or RuntimeSettings.binary,
        settings["handler"],
    )


def _belongs(path: str, engine: str, settings: Settings) -> bool:
    return f"/{engine}/" in path or (engine == "containerd" and path == settings["containerd_config"])


def _whose(who: str, why: str) -> str:
    names = {
        engines.HWACCEL: "this role provides it",
        engines.CONTAINER: "the toolkit's container provides it",
        engines.EXISTING: "an existing installation provides it",
    }
    rest = "" if who == engines.HWACCEL else "; nothing is changed"
    return f"NVIDIA's container runtime: {names.get(who, 'it is not needed')} ({why}){rest}"


def _described(host: Host) -> dict[str, t.Any]:
    unit = cdi.refreshed_by(host)
    return {
        "spec": cdi.SPEC,
        "staged": cdi.STAGED,
        "generate": list(cdi.generate(host, cdi.STAGED)),
        "list": list(cdi.list_staged()),
        "unit": unit,
        "there": host.unit(unit).loaded,
    }


def _toolkit(host: Host, settings: Settings, faults: list[Fault]) -> dict[str, t.Any]:
    """Whether it is installed, and how."""
    if programs.used(settings):
        faults += programs.faults(host, settings)
        found = programs.missing(host, settings)
        return {"install": bool(found), "manager": "", "names": [], "programs": found}
    source, version, package = settings["toolkit_source"], str(settings["toolkit_version"]), host.fact("package")
    manager = next(
        (name.removesuffix("-get") for name in ("apt-get", "dnf") if name in host.fact("managers").split()), ""
    )
    right = bool(package) and (not version or package == version or package.startswith(f"{version}-"))
    if not source:
        if not host.fact("runtime_binary"):
            next_step = "set node_runtime_toolkit_source to repository, archive or programs, or install nvidia-container-toolkit yourself"
            faults.append(
                Fault("NVIDIA's container toolkit is not installed", "node_runtime_toolkit_source", "", next_step)
            )
        return {"install": False, "manager": manager, "names": [], "programs": []}
    for requested, needed in (("repository", "repository_key"), ("archive", "archive")):
        if source == requested and not settings[needed]:
            next_step = f"set node_runtime_{needed}"
            what = f"the toolkit cannot be installed: node_runtime_toolkit_source is {requested}"
            faults.append(Fault(what, f"node_runtime_{needed}", "it is not set", next_step))
    if not right and not manager:
        next_step = "set node_runtime_toolkit_source to programs"
        faults.append(
            Fault("packages cannot be installed on this machine", "", "it has neither apt-get nor dnf", next_step)
        )
    pin = {"apt": "={}-*", "dnf": "-{}"}.get(manager, "").format(version) if version else ""
    return {"install": not right, "manager": manager, "names": [name + pin for name in PACKAGES], "programs": []}


def _toolkit_config(host: Host, settings: Settings, kept: Record) -> list[Content]:
    """Mode of the runtime, which is its package's default otherwise. Written if the mode is set, or was set before."""
    if settings["mode"] == AUTO and TOOLKIT_CONFIG not in kept.files:
        return []
    text = toml.with_value(
        host.text(TOOLKIT_CONFIG), "nvidia-container-runtime", "mode", settings["mode"], TOOLKIT_CONFIG
    )
    return [Content.instead_of(host.files.get(TOOLKIT_CONFIG), TOOLKIT_CONFIG, text, sensitive=False)]


def _messages(
    host: Host, settings: Settings, toolkit: Settings, restarts: c.Sequence[Restart], drain: str
) -> list[str]:
    messages = []
    version, package = settings["toolkit_version"], host.fact("package")
    if toolkit["programs"]:
        messages.append(f"the programs of NVIDIA's container toolkit are installed in {programs.FOLDER}")
    elif toolkit["install"]:
        messages.append(
            f"nvidia-container-toolkit {version or '(newest)'} is installed by {toolkit['manager']}"
            + (f" in place of {package}" if package else "")
        )
    messages += [f"{one.action.unit} is restarted: {one.action.why}" for one in restarts]
    messages += [f"the node is drained before: {drain}"] * bool(drain)
    if settings["cdi"] and not cdi.can(host):
        messages.append(
            "no CDI specification is generated: the host has no working driver, and for a driver in a container the toolkit's container generates it"
        )
    if host.fact("apparmor") == "Y":
        messages.append("AppArmor is enabled: its default profile allows containers to use their devices")
    if host.fact("denials"):
        messages.append(f"SELinux has denied access to a container today: {host.fact('denials').splitlines()[0][:160]}")
    return messages


def _result(host: Host, who: str, made: Rendered, faults: list[Fault]) -> dict[str, t.Any]:
    return {
        "provider": who,
        "messages": made.messages,
        "faults": [fault.as_dict() for fault in faults],
        **written(host, made.contents, made.absent),
        "stops": [],
        "reload_units": False,
        "staged": {one.path: one.text for one in made.staged},
        "checks": [check.as_dict() for check in made.checks],
        "actions": [],
        "toolkit": {"install": False},
        "programs": [],
        "ahead": False,
        "selinux": False,
        "originals": [],
        "record": "",
        "cdi": {},
        "changes": [],
        "drain": "",
        "releases": False,
    }
