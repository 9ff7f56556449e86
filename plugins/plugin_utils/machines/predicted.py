# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host role changes on a machine, one line each, from its plan. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some

#: Files of one folder up to this number are listed, and above it counted: a boot server has one or more for each machine.
_LISTED = 6
_Plan = c.Mapping[str, t.Any]


def predicted(plan: _Plan, *, absent: bool, restarts: bool = True) -> list[str]:
    """What a run does by this plan, without what it keeps for itself. plan: as machine_look documents it; roles have only some of the keys.

    Ports of firewalls are not among it: whether they are open already is not observed. absent: whether the plan is that of a teardown. restarts: whether the
    run restarts services.
    """
    changes = plan.get("files")
    written = [one["path"] for one in changes] if changes is not None else plan.get("changes") or ()
    toolkit = plan.get("toolkit") or {}
    packages = [*(plan.get("packages") or ()), *(toolkit["names"] if toolkit.get("install") else ())]
    return [
        *(plan.get("adopts") or ()),
        *(["remove the node"] if plan.get("resets") else []),
        *(f"{'remove' if absent else 'install'} the package {name}" for name in packages),
        *(f"hold the package {name}" for name in plan.get("held") or () if not absent),
        *(f"install {one['path']}" for one in plan.get("programs") or ()),
        *(f"import the images in {one['name']}" for one in plan.get("images") or ()),
        *(f"unpack {one['name']}" for one in plan.get("cni_plugins") or ()),
        *([f"load modules of the kernel: {', '.join(plan['modules'])}"] if plan.get("modules") else []),
        *(["load settings of the kernel"] if plan.get("kernel") else []),
        *(["restore settings of the kernel"] if plan.get("sysctls") else []),
        *(f"download {_marked(one)}" for one in plan.get("artifacts") or ()),
        *(f"copy {_marked(one)}" for name in ("loaders", "protected") for one in plan.get(name) or ()),
        *(f"drain {one['backend']}/{one['server']}" for one in plan.get("drains") or ()),
        *_counted("write", written),
        *_counted("restore", plan.get("restores") or ()),
        *_counted("remove", plan.get("absent") or ()),
        *(f"stop {unit}" for unit in plan.get("stops") or ()),
        *(f"{_VERBS[one['state']]} {one['unit']}" for one in plan.get("actions") or () if restarts),
        *(f"{'restart' if one['active'] else 'stop'} {one['unit']}" for one in plan.get("released") or ()),
    ]


def _marked(file: _Plan) -> str:
    return f"{file['path']} (assumed: this run makes it first)" if file.get("assumed") else str(file["path"])


#: Of a plan, what is done without a line in `predicted`.
_UNTOLD = ("firewall", "record", "record_after", "selinux")


def idle(plan: _Plan, lines: c.Sequence[str]) -> bool:
    """Whether a run does nothing by this plan, also for itself. lines: what predicted returns of it."""
    return not lines and not any(plan.get(key) for key in _UNTOLD)


#: States of the module systemd.
_VERBS = {"restarted": "restart", "reloaded": "reload", "started": "start", "stopped": "stop"}


def _counted(verb: str, paths: c.Iterable[str]) -> list[str]:
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _slash, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    lines: list[str] = []
    for folder, names in folders.items():
        if len(names) > _LISTED:
            lines.append(f"{verb} {len(names)} files in {folder}: {some(names)}")
        else:
            lines += [f"{verb} {folder}/{name}" for name in names]
    return lines
