# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of an installation that is not needed any more: it is moved to a backup beside it, with all keys of the cluster."""

from __future__ import annotations

import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import places
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.observed import Folder
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record


def run(path: pathlib.Path, infrastructure: str, *, check_mode: bool = False) -> Outcome:
    """infrastructure: infrastructureName of the cluster that answers, "" if none does. Raises HwaccelError before anything is moved."""
    if not _there(*_observed(path, infrastructure)):
        return _outcome(path, present=False)
    if check_mode:
        return _outcome(path, present=True)
    with places.locked(path):
        # Another run may have moved it since.
        if not _there(*_observed(path, infrastructure)):
            return _outcome(path, present=False)
        places.clear(path)
        return _outcome(path, present=True, backup=places.back_up(path))


def _observed(path: pathlib.Path, infrastructure: str) -> tuple[Folder, Record | None]:
    folder, record = places.observe(path), places.record_of(path)
    own = folder.infrastructure or (record.infrastructure if record else "")
    if infrastructure and own and infrastructure != own:
        why = f"its infrastructureName is {infrastructure}, and infraID of the folder is {own}"
        next_step = "correct the records of api in DNS and the load balancer; the cluster of the folder has to answer, or nobody"
        raise HwaccelError("another cluster answers, and nothing was moved", str(path), why, next_step)
    if folder.others and not folder.of_installation and record is None:
        why = f"openshift-install has written nothing in it, and it has {folder.others[0]}"
        raise HwaccelError("the folder is not that of an installation", str(path), why, "correct the path")
    return folder, record


def _there(folder: Folder, record: Record | None) -> bool:
    return bool(not folder.empty or record is not None or folder.staging)


def _outcome(path: pathlib.Path, *, present: bool, backup: str = "") -> Outcome:
    values: dict[str, t.Any] = {"path": str(path), "present": present, "backup": backup}
    return Outcome(present, values)
