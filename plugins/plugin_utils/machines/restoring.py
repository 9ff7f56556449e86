# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Teardown of a host role on a machine, for tasks_from: restore, act and remove of the role machine. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import posixpath
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import firewall, record, services
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host


def beside(drop_ins: c.Iterable[str]) -> tuple[str, ...]:
    """Patterns of the files in the folders of these systemd drop-ins. `restored` removes a folder only if it has no other file."""
    return tuple(f"{posixpath.dirname(path)}/*" for path in drop_ins)


def pointed(host: Host, drop_ins: c.Mapping[str, str], configurations: c.Mapping[str, str]) -> list[str]:
    """Units that read the role's files, by their drop-ins or by the configurations, which are removed after the drop-ins."""
    return [unit for unit, path in drop_ins.items() if path in host.files or configurations.get(unit) in host.files]


def restored(
    host: Host,
    role: str,
    drop_ins: c.Mapping[str, str],
    *,
    configurations: c.Mapping[str, str] | None = None,
    removed: c.Sequence[str],
    absent: c.Sequence[str] = (),
    stops: bool = False,
) -> dict[str, t.Any]:
    """What teardown does, in plain data, for a role whose drop-ins point services to its own files. Raises HwaccelError for a damaged record.

    drop_ins: by unit. configurations: by unit, a file that is removed after its drop-in, so that it still identifies the unit after an interruption.
    removed: folders of the role. absent: more files of the role. stops: whether services are stopped first.

    firewall: openings that are closed. record: with the services that have to be restored, written before the first file is removed, so that the next run
    completes an interrupted one; empty if the machine has it already. stops: units that are stopped first. files, contents, folders, absent: see
    files.written. actions: services that are restored, as services.Action. packages: installed by the role. removed: folders that are removed last.
    """
    kept = record.read(host, role) or record.Record()
    ours = pointed(host, drop_ins, configurations or {})
    units = [unit for unit in drop_ins if unit in ours or unit in kept.due]
    actions = services.given_back(host, units, kept)
    begun = dataclasses.replace(kept, due=tuple(action.unit for action in actions))
    return {
        "messages": [],
        "firewall": firewall.changes(host.firewalls, (), kept.openings),
        "record": record.changed(host, role, begun) if actions else "",
        "stops": [action.unit for action in actions] if stops else [],
        "files": [],
        "contents": {},
        "folders": [],
        "absent": [*_pointers(host, (drop_ins[unit] for unit in units)), *absent],
        "reload_units": bool(actions),
        "actions": [action.as_dict() for action in actions],
        "packages": list(kept.packages),
        "removed": [*removed, record.folder(role)],
    }


def _pointers(host: Host, drop_ins: c.Iterable[str]) -> c.Iterator[str]:
    """The folders of drop-ins, because no package owns them; only the drop-in if its folder has other files."""
    for path in drop_ins:
        folder = posixpath.dirname(path)
        alone = all(other == path or posixpath.dirname(other) != folder for other in host.files)
        if path in host.files:
            yield folder if alone else path
