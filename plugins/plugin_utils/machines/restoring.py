# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What teardown of a host role does on a machine, for tasks_from: restore, act and remove of the role machine. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import posixpath
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import firewall, record, services
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host


def beside(drop_ins: c.Iterable[str]) -> tuple[str, ...]:
    """Patterns of the files that lie beside these drop-ins of systemd, by which `restored` knows whether their folders can go."""
    return tuple(f"{posixpath.dirname(path)}/*" for path in drop_ins)


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
    """What teardown does, in plain data, for a role that points services to its own files. Raises HwaccelError for a damaged record.

    drop_ins: by unit, what points it to the role's files. configurations: by unit, a file that goes after its drop-in, and tells of it where a run was cut off
    between. removed: folders of the role. absent: more files of the role. stops: whether services are stopped
    before anything else.

    firewall: openings that are closed. record: with the services that have still to be given back, which is written before the first file goes, empty where
    the machine has it already: a run that is cut off before they are is made up for by the next. stops: units that are stopped first. files, contents,
    folders, absent: as files.written documents them. actions: services that become what they were, as services.Action. packages: those that the role has
    installed. removed: folders that go in the end.
    """
    kept = record.read(host, role) or record.Record()
    left = configurations or {}
    pointed = [
        unit
        for unit, path in drop_ins.items()
        if path in host.files or left.get(unit) in host.files or unit in kept.due
    ]
    actions = services.given_back(host, pointed, kept)
    begun = dataclasses.replace(kept, due=tuple(action.unit for action in actions))
    return {
        "messages": [],
        "firewall": firewall.changes(host.firewalls, (), kept.openings),
        "record": record.changed(host, role, begun) if actions else "",
        "stops": [action.unit for action in actions] if stops else [],
        "files": [],
        "contents": {},
        "folders": [],
        "absent": [*_pointers(host, (drop_ins[unit] for unit in pointed)), *absent],
        "reload_units": bool(actions),
        "actions": [action.as_dict() for action in actions],
        "packages": list(kept.packages),
        "removed": [*removed, record.folder(role)],
    }


def _pointers(host: Host, drop_ins: c.Iterable[str]) -> c.Iterator[str]:
    """Their folders, which packages do not know; the drop-ins alone where somebody has put something beside them."""
    for path in drop_ins:
        folder = posixpath.dirname(path)
        alone = all(other == path or posixpath.dirname(other) != folder for other in host.files)
        if path in host.files:
            yield folder if alone else path
