# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module sandbox without Ansible: from its options to a sandbox in the desired state, in slices."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import importlib.util
import os
import pathlib
import sys
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import sandbox
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import Components
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import Layout, cache_folder, layout, read_json
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.process import PROC
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.resolver import WAYS, ComponentRequest, look, resolve
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.supervisor import Run, Steps, has_agent


@dataclasses.dataclass(frozen=True)
class Settings:
    """The module's options. Ansible has validated their types."""

    state: str
    layout: Layout
    components: str = ""
    #: Folder with control_plane and fleet_agent, as the role ships it.
    sources: pathlib.Path | None = None
    releases: list[dict[str, t.Any]] | None = None
    ways: tuple[str, ...] = WAYS
    ask: sandbox.FleetAsk = dataclasses.field(default_factory=sandbox.FleetAsk)
    wait_timeout: float | None = None


def settings_of(params: dict[str, t.Any]) -> Settings:
    """Settings of the module's parameters; an unset option is None or missing."""
    declared = params.get("fleet")
    if params.get("fleet_file"):
        declared = read_fleet_file(pathlib.Path(params["fleet_file"]))
    return Settings(
        state=params["state"],
        layout=layout(params["name"], params.get("state_dir")),
        components=params.get("components") or "",
        sources=pathlib.Path(params["sources"]) if params.get("sources") else None,
        releases=params.get("releases"),
        ways=tuple(params["component_sources"]),
        ask=sandbox.FleetAsk(declared, params.get("faults"), params.get("reboot")),
        wait_timeout=params.get("wait_timeout"),
    )


def read_fleet_file(path: pathlib.Path) -> t.Any:
    try:
        import yaml
    except ImportError as error:
        raise HwaccelError(
            "the Python package PyYAML is missing", "module sandbox", str(error), "install it: pip install PyYAML"
        ) from error
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise HwaccelError(
            "the fleet file cannot be read", str(path), error.strerror or str(error), "correct the path"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise HwaccelError(
            "the fleet file is not valid YAML", str(path), " ".join(str(error).split()), "correct it"
        ) from error
    return {} if data is None else data


def run(settings: Settings, *, check_mode: bool, deadline: float | None, resume: dict[str, t.Any]) -> Outcome:
    """One slice; `pending` of its outcome is the next one's `resume`."""
    if not (PROC / "self" / "stat").exists():
        raise HwaccelError(
            "a sandbox runs on Linux only",
            sys.platform,
            "its processes are identified by /proc",
            "run it on a Linux host",
        )
    if check_mode:
        return _predicted(settings)
    if settings.state == "started":
        return _started(settings, deadline, resume)
    work = Run()
    before = _shown(settings.layout)
    if settings.state == "stopped":
        sandbox.stop(settings.layout, work)
    else:
        sandbox.remove(settings.layout, work)
    return _outcome(settings, work, before)


def _started(settings: Settings, deadline: float | None, resume: dict[str, t.Any]) -> Outcome:
    work = Run(**resume.get("run", {}))
    before = resume.get("before", _shown(settings.layout))
    known: dict[str, t.Any] = dict(resume.get("components") or {})
    # A reboot is requested once, regardless of the number of slices.
    ask = dataclasses.replace(settings.ask, reboot=None) if resume.get("requested") else settings.ask
    requested = {"requested": bool(resume.get("requested"))}
    lines: list[str] = []

    def steps() -> Steps:
        if not known:
            known.update(dataclasses.asdict((yield from resolve(_request(settings)))))
        supervisor = sandbox.supervisor_for(
            settings.layout, Components(**known), settings.sources, sys.executable, work
        )
        limit = settings.wait_timeout or 120 + 0.3 * len(sandbox.plan_fleet(settings.layout, ask)[0]["nodes"])
        started = sandbox.start(supervisor, ask, limit)
        requested["requested"] = True
        yield from started

    try:
        # This is validated before the components are built, which takes minutes.
        _all_of(lambda: sandbox.plan_fleet(settings.layout, ask), lambda: _require_packages(settings))
        done = _take(steps(), lines, deadline)
    except HwaccelError as failure:
        outcome = _outcome(settings, work, before)
        outcome.failure, outcome.progress = failure, lines
        return outcome
    outcome = _outcome(settings, work, before, Components(**known) if known else None)
    outcome.progress = lines
    if not done:
        outcome.pending = {"run": dataclasses.asdict(work), "before": before, "components": known or None, **requested}
        outcome.diff = None
    elif not known["verified"]:
        outcome.warnings.append(
            f"the components in {known['folder']} have no SHA256SUMS in their folder and were used without verification"
        )
    return outcome


def _take(steps: c.Generator[str, None, None] | Steps, lines: list[str], deadline: float | None) -> bool:
    """Runs steps until they end (True) or the slice is over."""
    for line in steps:
        if line:
            lines.append(line)
        if deadline is not None and time.monotonic() > deadline:
            # Ends the step now, so that locks are not held until garbage collection.
            t.cast("c.Generator[str, None, None]", steps).close()
            return False
    return True


def _request(settings: Settings) -> ComponentRequest:
    sources = settings.sources / "control_plane" if settings.sources else None
    return ComponentRequest(
        cache_folder(), settings.components, sources, settings.releases, settings.ways, dict(os.environ)
    )


def _predicted(settings: Settings) -> Outcome:
    before = _shown(settings.layout)
    if settings.state != "started":
        return _outcome(settings, sandbox.predict_stop(settings.layout, absent=settings.state == "absent"), before)
    _fleet, _packages, components = _all_of(
        lambda: sandbox.plan_fleet(settings.layout, settings.ask),
        lambda: _require_packages(settings),
        lambda: look(_request(settings)),
    )
    nothing = Components("", "", True, {}, {})
    supervisor = sandbox.supervisor_for(settings.layout, components or nothing, settings.sources, sys.executable, Run())
    work = sandbox.predict_start(supervisor, settings.ask)
    if components is None:
        work.did("download or build the components")
    outcome = _outcome(settings, work, before, components)
    if settings.ask.declared is not None:
        after = sandbox.plan_fleet(settings.layout, settings.ask)[0]
        outcome.values |= {"pools": sandbox.count_by_pool(after), "nodes": len(after["nodes"])}
    return outcome


def _all_of(*checks: c.Callable[[], t.Any]) -> list[t.Any]:
    """The results of all checks, or one error with the faults of all that failed."""
    found: list[t.Any] = []
    errors: list[HwaccelError] = []
    for check in checks:
        try:
            found.append(check())
        except HwaccelError as error:
            errors.append(error)
    if len(errors) > 1:
        raise ManyFaults([fault for error in errors for fault in error.faults])
    if errors:
        raise errors[0]
    return found


def _require_packages(settings: Settings) -> None:
    """Checks the Python packages that certificates and the fleet agent need."""
    required = {} if settings.layout.pki.is_dir() else {"cryptography": "cryptography"}
    if has_agent(settings.sources):
        required |= {"urllib3": "urllib3", "yaml": "PyYAML"}
    missing = [package for module, package in required.items() if importlib.util.find_spec(module) is None]
    if missing:
        names = " ".join(missing)
        raise HwaccelError(
            f"the sandbox needs {names}",
            sys.executable,
            "this Python does not have it",
            f"install it there: pip install {names}",
        )


def _outcome(settings: Settings, work: Run, before: str, components: Components | None = None) -> Outcome:
    values = sandbox.describe(settings.layout, components) | {"actions": work.actions, "died": work.died}
    after = "absent\n" if settings.state == "absent" else _shown(settings.layout)
    name = f"sandbox {settings.layout.name}"
    diff = [
        {
            "before": before,
            "after": after if after != before else "".join(f"{line}\n" for line in work.actions),
            "before_header": name,
            "after_header": name,
        }
    ]
    return Outcome(work.changed, values, diff=diff if work.changed else None)


def _shown(where: Layout) -> str:
    """The sandbox in the format of a diff."""
    if not where.root.exists():
        return "absent\n"
    observed = sandbox.describe(where)
    lines = [f"runs: {row['component']}" for row in observed["processes"]]
    lines += [f"pool: {row['name']}, {row['nodes']} nodes, {row['gpus']} GPUs" for row in observed["pools"]]
    nodes = read_json(where.fleet).get("nodes", {})
    special = {name: node for name, node in nodes.items() if node["boot"] > 1 or node["faults"]}
    lines += [
        f"node {name}: boot {one['boot']}, kernel {one['kernel']}, faults {[fault['name'] for fault in one['faults']]}"
        for name, one in special.items()
    ]
    return "".join(f"{line}\n" for line in lines)
