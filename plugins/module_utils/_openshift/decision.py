# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens with the files of an installation: one row of the decision table for what was observed. Pure.

A second set of files means another set of certificate authorities: machines that were installed with the first one never join those of the second. So files
are only created where there are none, or where somebody said so, and a machine that has the first ones prevents it unless it is named.

Rows are numbered as in docs/openshift-files.md. If several apply, the first of this order wins; those that fail are reported together:

- 14, another cluster; 16, an installed cluster does not answer; 15, files would be replaced that a machine has,
- 1, there are no files; 10, files without a record,
- 7, changed files; 8, files that are gone; 11, a clock that is wrong; 5 and 6, other inputs or another tool; 4 and 3, not enough time left,
- 13 and 12, an installed cluster, or a complete bootstrap; 9 and 2, the files are used again.

Row 17, what an interrupted run has left, applies in addition to any other.
"""

from __future__ import annotations

import dataclasses
import datetime

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import inputs
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import Clock, moment, span
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.observed import STATE_FILE, Observed
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record, Tool, path_of

CREATE, REUSE, ADOPT, REGENERATE, NOTHING, FAIL = "create", "reuse", "adopt", "regenerate", "nothing", "fail"

#: openshift-install documents that files are used within 12 h; after 16 h the first of a cluster's certificates are rotated.
MARGIN = datetime.timedelta(hours=12)
_BOOT = "boot all masters, and the bootstrap machine if there is one,"
_REGENERATE = "set regenerate: true for one run, which moves the folder away and creates the files again"
_ALL_NAMED = 20


@dataclasses.dataclass(frozen=True)
class Decision:
    """row: the number in the table, and with action REGENERATE that of the row which applies without `regenerate`.

    action: CREATE, run the tool in a new folder; REUSE, publish what is there; ADOPT, write a record for what is there; REGENERATE, move folder and record away
    and CREATE; NOTHING, neither publish nor create; FAIL. changed: for the result, also in check mode. message: what, where, why and what to do next.
    faults: with FAIL, all that apply, the one of the row first. notes: for warnings of the result. publishable: names of files that may be published.
    staging: folders of interrupted runs, which are removed first whatever the action is. unreachable: whether the state of the cluster is unknown.
    """

    row: int
    action: str
    changed: bool
    message: str
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    publishable: tuple[str, ...] = ()
    staging: tuple[str, ...] = ()
    unreachable: bool = False


def decide(observed: Observed) -> Decision:
    """The row that wins, without any effect: check mode reports the same one."""
    decision = _regenerated(observed) if observed.requested.regenerate else _unforced(observed)
    notes = decision.notes
    if observed.requested.regenerate_named and not observed.requested.regenerate:
        notes += ("regenerate_named has no effect without regenerate: true",)
    staging = observed.folder.staging
    if not staging:
        return dataclasses.replace(decision, notes=notes)
    # Row 17.
    notes += (f"an interrupted run has left {some(staging)}, which is removed",)
    return dataclasses.replace(decision, notes=notes, staging=staging, changed=True)


def margin(observed: Observed, clock: Clock) -> datetime.timedelta:
    """How long files have to be valid that are used again. Half the lifetime is less than 12 h with the feature gate ShortCertRotation."""
    given = observed.requested.margin
    return given if given is not None else min(MARGIN, clock.lifetime / 2)


def _unforced(observed: Observed) -> Decision:
    """Without `regenerate`."""
    folder, record, cluster = observed.folder, observed.record, observed.cluster
    if other := _other_cluster(observed):
        return _failed(14, [other])
    if record is not None and record.installed and not cluster.answers:
        return _unreachable(observed, record)
    if folder.empty:
        return _without_files(observed)
    if record is None:
        return _without_record(observed)
    return _recorded(observed, record)


def _regenerated(observed: Observed) -> Decision:
    """With `regenerate`: it replaces whatever there is, unless machines have it."""
    folder, record, cluster = observed.folder, observed.record, observed.cluster
    if other := _other_cluster(observed):
        return _failed(14, [other])
    named = set(observed.requested.regenerate_named)
    kept = [machine for machine in cluster.written if machine not in named]
    alive = cluster.answers or bool(record and record.installed)
    if kept or (alive and not named):
        return _failed(15, [_in_use(observed, kept)])
    unforced = _unforced(observed)
    if folder.empty:
        return _created(observed)
    if unforced.row == 10 and not folder.of_installation:
        return unforced
    told = Fault(
        "the files of the installation are created again",
        folder.path,
        "regenerate is true",
        f"find the previous ones in {folder.path}.bak-<time>; machines that have them need to be installed again",
    )
    return Decision(unforced.row, REGENERATE, True, str(told))


def _other_cluster(observed: Observed) -> Fault | None:
    """Row 14."""
    folder, record, cluster = observed.folder, observed.record, observed.cluster
    if not cluster.answers:
        return None
    what = f"another cluster answers as {cluster.name}"
    own = folder.infrastructure or (record.infrastructure if record else "")
    if not own and folder.empty and not cluster.complete:
        why = "there are no files of it, and new ones would be those of another cluster with the same name"
        next_step = (
            "set another name; to use this cluster, copy the folder of its installation here and set adopt: true; "
            "to replace it, power its machines off, or remove them from the load balancer"
        )
        return Fault(what, folder.path, why, next_step)
    if cluster.infrastructure and own and cluster.infrastructure != own:
        why = f"its infrastructureName is {cluster.infrastructure}, and infraID in metadata.json is {own}"
        next_step = "set another name or another folder, or correct the records of api and api-int in DNS"
        return Fault(what, folder.path, why, next_step)
    return None


def _in_use(observed: Observed, kept: list[str]) -> Fault:
    """Row 15."""
    folder, cluster = observed.folder, observed.cluster
    gone = " are gone and" if folder.empty and not observed.requested.regenerate else ""
    what = f"the files of the installation{gone} cannot be created again"
    if kept:
        shown, verb = some(kept, _ALL_NAMED), "has" if len(kept) == 1 else "have"
        why = f"{shown} {verb} been installed with the previous ones, and would never join machines with new ones"
        wanted = ", ".join(sorted(kept)[:_ALL_NAMED])
    else:
        state = "answers" if cluster.answers else "was installed, and does not answer"
        why = f"the cluster {cluster.name} {state}, so that its machines have the previous ones"
        wanted = "…"
    restore = "copy the folder back, or " if gone else ""
    next_step = f"{restore}set regenerate: true and regenerate_named: [{wanted}] for one run, if these machines are to be installed again and may lose all data"
    return Fault(what, folder.path, why, next_step)


def _unreachable(observed: Observed, record: Record) -> Decision:
    """Row 16."""
    told = Fault(
        "the cluster does not answer, and nothing is done",
        observed.cluster.name,
        f"it was installed (observed at {record.installed}), so that its files are not needed",
        "start its machines, and correct the load balancer and the records of api in DNS",
    )
    return Decision(16, NOTHING, False, str(told), notes=(str(told),), unreachable=True)


def _created(observed: Observed) -> Decision:
    told = Fault(
        "the files of the installation are created",
        observed.folder.path,
        "there are none yet",
        f"{_BOOT} before the first of their certificates expires: after one day, unless an agent installs machines",
    )
    return Decision(1, CREATE, True, str(told))


def _without_files(observed: Observed) -> Decision:
    """Row 1, if no machine has files that were there before."""
    cluster = observed.cluster
    if cluster.answers and cluster.complete:
        return _bootstrapped(observed)
    if cluster.answers or cluster.written:
        return _failed(15, [_in_use(observed, list(cluster.written))])
    return _created(observed)


def _without_record(observed: Observed) -> Decision:
    """Row 10, or row 8 if there is nothing that could be adopted."""
    folder, complete = observed.folder, observed.cluster.complete
    if not folder.checksums and folder.state and not complete:
        return _failed(8, [_only_state(observed)])
    if not observed.requested.adopt or not (folder.checksums or complete):
        names = some([*folder.checksums, *folder.others, *([STATE_FILE] if folder.state else [])])
        what, why = (
            "the folder has files of somebody else",
            f"it contains {names}, and has no record ({path_of(folder.path)})",
        )
        if folder.checksums or complete:
            next_step = "set adopt: true for one run if these are the files of this cluster, or set another folder"
        else:
            next_step = "set another folder, or move these files away: there is no ignition file that could be adopted"
        return _failed(10, [Fault(what, folder.path, why, next_step)])
    if folder.faults:
        return _failed(10, list(folder.faults))
    late = None if complete else _time(observed)
    if late:
        return _failed(late[0], [late[1]])
    told = Fault(
        "the files of the installation are adopted",
        folder.path,
        f"adopt is true; {_left(observed)}",
        "remove adopt: from now on they have a record, which is compared with the inputs of this run",
    )
    return Decision(10, ADOPT, True, str(told), (), _state_note(observed), _publishable(observed))


def _recorded(observed: Observed, record: Record) -> Decision:
    """Rows 2 to 9, and 11 to 13."""
    folder, complete = observed.folder, observed.cluster.complete
    failing = _changed_files(observed, record) or [(7, fault) for fault in folder.faults]
    if not complete and not folder.checksums and folder.state:
        failing = [(8, _only_state(observed))]
    late = None if complete else _time(observed)
    if late and late[0] == 11:
        failing.append(late)
    if not observed.cluster.installed:
        failing += _other_inputs(observed, record)
    if late and late[0] != 11:
        failing.append(late)
    if failing:
        return _failed(failing[0][0], [fault for _row, fault in failing])
    if complete:
        return _bootstrapped(observed)
    # Preflight asks without running it, too.
    uncompared = (
        ""
        if observed.requested.tool
        else "; without running openshift-install, it is not compared with the one that has created them"
    )
    told = Fault(
        "the files of the installation are used again",
        folder.path,
        f"their inputs are the same, and {_left(observed)}{uncompared}",
        f"{_BOOT} before that" if folder.clock else "",
    )
    row = 2 if folder.state else 9
    return Decision(row, REUSE, False, str(told), (), _state_note(observed), _publishable(observed))


def _bootstrapped(observed: Observed) -> Decision:
    """Row 13 or 12."""
    folder, cluster, record = observed.folder, observed.cluster, observed.record
    state = "is installed" if cluster.installed else "has completed its bootstrap"
    told = Fault(
        f"the files of the installation {'are gone, and are not needed' if folder.empty else 'stay as they are'}",
        folder.path,
        f"the cluster {cluster.name} {state}: files of masters and workers hold no certificate that expires before ten years",
        "delete the bootstrap file if it is still there, because it holds the keys of the cluster",
    )
    changed = inputs.differences(record.inputs, observed.requested.inputs) if record else ()
    if not changed:
        return Decision(12, REUSE, False, str(told), publishable=_publishable(observed))
    warning = Fault(
        "changed inputs are ignored",
        folder.path,
        f"install-config is not applied to a cluster that is installed: {inputs.named(changed)}",
        "change the cluster itself, or set these values back",
    )
    return Decision(13, REUSE, False, str(warning), notes=(str(warning),), publishable=_publishable(observed))


def _changed_files(observed: Observed, record: Record) -> list[tuple[int, Fault]]:
    """Row 7. After the bootstrap, files that were deleted are not missed."""
    folder = observed.folder
    found = []
    for name, checksum in sorted(record.checksums.items()):
        present = folder.checksums.get(name)
        if present == checksum or (present is None and observed.cluster.complete):
            continue
        why = "it is gone" if present is None else f"its SHA-256 is {present}, and {checksum} was recorded"
        next_step = f"restore it from a backup of {folder.path}, or {_REGENERATE}"
        found.append(
            (7, Fault(f"{name} is not the file that was created, and is not published", folder.path, why, next_step))
        )
    return found


def _only_state(observed: Observed) -> Fault:
    """Row 8."""
    why = f"the ignition files are gone, and from its {STATE_FILE} the tool would write the previous certificates again"
    return Fault("the folder has only the state of the tool", observed.folder.path, why, _REGENERATE)


def _other_inputs(observed: Observed, record: Record) -> list[tuple[int, Fault]]:
    """Rows 5 and 6."""
    path, requested = observed.folder.path, observed.requested
    found = []
    if changed := inputs.differences(record.inputs, requested.inputs):
        what = "the inputs differ from those that the files were created from"
        found.append((5, Fault(what, path, inputs.named(changed), f"set these values back, or {_REGENERATE}")))
    if requested.tool and (changed_tool := _other_tool(record.tool, requested.tool)):
        what = "openshift-install differs from the one that has created the files"
        found.append((6, Fault(what, path, changed_tool, f"use the previous one, or {_REGENERATE}")))
    return found


def _other_tool(before: Tool, after: Tool) -> str:
    """What differs, "" if they are the same."""
    return "; ".join(
        f"{field.name.replace('_', ' ')} {getattr(before, field.name)} is now {getattr(after, field.name)}"
        for field in dataclasses.fields(Tool)
        if getattr(before, field.name) != getattr(after, field.name)
    )


def _time(observed: Observed) -> tuple[int, Fault] | None:
    """Rows 11, 4 and 3."""
    clock, now, path = observed.folder.clock, observed.now, observed.folder.path
    if clock is None:
        return None
    if clock.not_before > now:
        why = f"{clock.starts} is valid from {moment(clock.not_before)}, and the clock of this host says {moment(now)}"
        next_step = f"compare the clock of this host with a time server (chronyc tracking) and correct it; if it is right, {_REGENERATE}"
        return 11, Fault("the files of the installation are not valid yet", path, why, next_step)
    left, needed = clock.not_after - now, margin(observed, clock)
    if left > needed:
        return None
    end = f"{clock.expires}, created {moment(clock.expires.not_before)},"
    if left <= datetime.timedelta():
        why = f"{end} expired at {moment(clock.not_after)}, {span(-left)} ago: machines and the tool itself would refuse them (x509)"
        return 4, Fault("the files of the installation have expired", path, why, _REGENERATE)
    why = f"{end} expires at {moment(clock.not_after)}, in {span(left)}, and less than {span(needed)} may not be enough for an installation"
    next_step = f"{_REGENERATE}, or set a smaller margin if all machines have booted already"
    return 3, Fault("the files of the installation expire soon", path, why, next_step)


def _left(observed: Observed) -> str:
    clock = observed.folder.clock
    if clock is None:
        return "they have no certificate that expires soon"
    return f"the first certificate, {clock.expires}, expires at {moment(clock.not_after)}, in {span(clock.not_after - observed.now)}"


def _state_note(observed: Observed) -> tuple[str, ...]:
    """Row 9."""
    if observed.folder.state or not observed.folder.checksums:
        return ()
    what = f"{STATE_FILE} is gone: openshift-install wait-for and gather do not work with this folder"
    return (str(Fault(what, observed.folder.path, "", "restore it from a backup, if these commands are needed")),)


def _publishable(observed: Observed) -> tuple[str, ...]:
    """What is in the folder and has not changed. Files that hold the keys of the cluster are not needed any more once the bootstrap is complete, and those of
    agents, whose workers boot them too, once the cluster is installed.
    """
    recorded = observed.record.checksums if observed.record else observed.folder.checksums
    names = sorted({*recorded} & {*observed.folder.checksums})
    done = (
        *(("bootstrap",) if observed.cluster.complete else ()),
        *(("boot-artifacts/",) if observed.cluster.installed else ()),
    )
    return tuple(name for name in names if not name.startswith(done))


def _failed(row: int, faults: list[Fault]) -> Decision:
    return Decision(row, FAIL, False, str(faults[0]), tuple(faults))
