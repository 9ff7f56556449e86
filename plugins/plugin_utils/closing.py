# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The block of lines that ends a run on a cluster, from its summary. Pure."""

from __future__ import annotations

import collections
import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import hints

Row = dict[str, t.Any]
#: Maximum number of lines of a section. The summary has all of them.
MOST = 20
#: Up to this number changed objects are listed, and above it counted by set: the first run creates some fifty.
_LISTED = 10
_QUIET = ("unchanged", "kept")
_LOG, _NEXT = "; log: ", "; next: "
#: What a closing block can end.
PLAYBOOKS = ("site", "preflight", "validate", "status", "teardown")


def of_sets(results: c.Iterable[c.Mapping[str, t.Any]]) -> Row:
    """What manifest_set changed, corrected and left alone, from its results for several sets: {changes, drift, foreign_fields}."""
    changes: list[Row] = []
    drift: list[Row] = []
    foreign: list[Row] = []
    for result in results:
        changes += [
            {key: row.get(key) or "" for key in ("action", "kind", "namespace", "name", "reason")}
            for row in result.get("objects") or ()
            if row.get("action") not in _QUIET
        ]
        drift += result.get("reclaimed") or ()
        foreign += result.get("foreign_fields") or ()
    return {"changes": changes, "drift": drift, "foreign_fields": foreign}


def sentence(gate: str, fault: c.Mapping[str, t.Any]) -> str:
    """A node with its reason, the most relevant line of its log and the next step."""
    where = f"{fault.get('node')} (pool {fault.get('pool')}) {fault.get('state')} at gate {gate}, {fault.get('link')}"
    log = hints.telling(str(fault.get("log_tail") or ""))
    text = f"{where}: {fault.get('reason')}"
    text += f"{_LOG}{log}" if log else ""
    return text + (f"{_NEXT}{fault.get('next_step')}" if fault.get("next_step") else "")


def verdict(summary: c.Mapping[str, t.Any], check: bool = False, playbook: str = "site") -> str:
    """The result of the run in one line. check: nothing was written."""
    if problems := summary.get("problems") or ():
        return f"{count(len(problems), 'problem')} found; nothing was changed"
    steps = len(summary.get("machine_steps") or ())
    if playbook == "preflight":
        planned = f"; site would take {count(steps, 'step')} on machines" if steps else ""
        return f"No problems found; nothing was changed{planned}"
    changes, drift = summary.get("changes") or (), summary.get("drift") or ()
    would = "would be " if check else ""
    if playbook == "teardown":
        removed = f"{count(len(changes), 'object')} {would}removed" if changes else f"nothing {would}removed"
        return f"{_nodes(summary, check)}; {removed}" if summary.get("stopped") else removed.capitalize()
    taken = [f"{count(steps, 'step')} on machines {would}taken"] if steps else []
    if check and steps and not summary.get("pools") and not summary.get("stopped"):
        return f"There is no node yet; {taken[0]}"
    parts = [
        "Healthy" if playbook == "status" and not _wrong(summary, playbook) else _nodes(summary, check),
        *taken,
        *([f"{count(len(changes), 'object')} {would}changed"] if changes else []),
        *([f"drift of {count(len(drift), 'field')} {would}corrected"] if drift else []),
    ]
    if len(parts) == 1:
        parts.append(f"nothing {would}changed")
    return "; ".join(parts)


def _nodes(summary: c.Mapping[str, t.Any], check: bool) -> str:
    nodes = sum(pool.get("nodes") or 0 for pool in summary.get("pools") or ())
    lost = summary.get("machine_faults") or ()
    failed, waiting = len(summary.get("failed_nodes") or ()), (summary.get("not_passed") or 0) if check else 0
    if summary.get("stopped"):
        return "The run stopped before its end"
    if failed:
        return f"{failed} of {count(nodes, 'node')} failed"
    if lost:
        return f"{have(len(lost), 'machine')} failed"
    if waiting:
        return f"{waiting} of {count(nodes, 'node')} {'has' if waiting == 1 else 'have'} not passed the gates yet"
    return f"All {count(nodes, 'node')} passed the gates" if nodes != 1 else "The node passed the gates"


def failure(summary: c.Mapping[str, t.Any], playbook: str = "site") -> str:
    """The message with which the run fails, empty if it succeeded. The lines above it have the reasons."""
    if problems := summary.get("problems") or ():
        return f"{count(len(problems), 'problem')}, see above. Nothing was changed."
    ends = _wrong(summary, playbook)
    step = (
        "ansible-playbook hwaccel.gpu.site, or what is written above"
        if playbook == "status"
        else "correct what is reported above, and run the playbook again"
    )
    return f"{', and '.join(ends)}. Next: {step}." if ends else ""


def _wrong(summary: c.Mapping[str, t.Any], playbook: str) -> list[str]:
    """Objects that would only change because of a new declaration are not wrong."""
    failed, waiting, drift = (summary.get(name) or () for name in ("failed_nodes", "not_passed", "drift"))
    found = ["the run has stopped"] if summary.get("stopped") else []
    if failed:
        found.append(f"{have(len(failed), 'node')} failed: {', '.join(failed)}")
    if lost := summary.get("machine_faults"):
        found.append(f"{have(len(lost), 'machine')} failed: {', '.join(lost)}")
    if playbook == "status" and waiting:
        found.append(f"{have(waiting, 'node')} not passed")
    if playbook == "status" and drift:
        found.append(f"{have(len(drift), 'field')} drifted")
    return found


def proofs(summary: c.Mapping[str, t.Any]) -> list[str]:
    """The oldest proof that a GPU of a node has computed."""
    found = [(pool["oldest_proof"], pool["pool"]) for pool in summary.get("pools") or () if pool.get("oldest_proof")]
    return [f"Oldest proof: {min(found)[0]}, in pool {min(found)[1]}"] if found else []


def sections(summary: c.Mapping[str, t.Any]) -> list[str]:
    """What was changed, drift, fields of others, nodes that are held, and last what failed, each with its reason and next step."""
    problems, failed = summary.get("problems") or (), summary.get("faults") or ()
    if problems:
        # All of them, and each in one line, as they are searched for.
        return ["", "Problems:", *(f"  {text}" for text in problems)]
    # The message of a gate continues with the nodes that failed there, which have a section of their own.
    stopped = [text.splitlines()[0] if failed and text else text for text in summary.get("stopped") or ()]
    found = {
        "Machines": [f"  {text}" for text in summary.get("machine_steps") or ()],
        "Changed": _changes([row for row in summary.get("changes") or () if row["action"] != "reclaimed"]),
        "Drift": [_field(row, "changed by") for row in summary.get("drift") or ()],
        "Fields of others, left as they are": [_field(row, "set by") for row in summary.get("foreign_fields") or ()],
        "Quarantine": [
            f"  {what} {', '.join(summary[key])}"
            for key, what in (("quarantined", "imposed on"), ("released", "lifted from"))
            if summary.get(key)
        ],
        "Held": [indented(text) for text in summary.get("held") or ()],
        "Machines that failed": [
            indented(f"{name}: {text}")
            for name, texts in (summary.get("machine_faults") or {}).items()
            for text in texts
        ],
        "Stopped": [indented(text) for text in stopped],
        "Failed": [indented(text) for text in failed],
    }
    lines: list[str] = []
    for title, rows in found.items():
        if rows:
            lines += ["", f"{title}:", *rows[:MOST], *([f"  and {len(rows) - MOST} more"] if len(rows) > MOST else [])]
    return "\n".join(lines).splitlines()


def _changes(rows: c.Sequence[Row]) -> list[str]:
    if len(rows) <= _LISTED:
        return [f"  {row['action']} {_object(row)}" + (f" ({row['reason']})" if row["reason"] else "") for row in rows]
    counted = collections.Counter((row["action"], row["kind"]) for row in rows)
    return [f"  {action} {count} x {kind}" for (action, kind), count in sorted(counted.items())]


def _field(row: Row, by: str) -> str:
    if not row.get("path"):
        return f"  {_object(row)}: it was deleted"
    # The API server does not record who removes a field.
    manager = f"{by} {row['manager']}" if row.get("manager") else "removed"
    return f"  {_object(row)}: {row['path']}, {manager}"


def _object(row: Row) -> str:
    return f"{row.get('kind')} {row['namespace'] + '/' if row.get('namespace') else ''}{row.get('name')}"


def indented(text: str) -> str:
    for mark, start in ((_LOG, "Log: "), (_NEXT, "Next: "), (". Next: ", "Next: "), (" Next: ", "Next: ")):
        text = text.replace(mark, f"\n{start}")
    return "  " + text.replace("\n", "\n    ")


def have(number: int, noun: str) -> str:
    return f"{count(number, noun)} {'has' if number == 1 else 'have'}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
