# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a run on each machine, and the block of lines that ends the run. Pure."""

from __future__ import annotations

import collections
import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import table
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.closing import MOST, count, have, indented

#: States of a machine. begun: the run has begun and not ended there, which is the case while it runs; if it is still so at the end, the machine is lost.
BEGUN, DONE, REFUSED, FAILED = "begun", "done", "problems", "failed"
#: States that a machine has in the summary only; the second is that of one without an outcome.
LOST, NOT_BEGUN = "lost", "not begun"
#: The state of a machine that a phase of site leaves as it is, because an earlier one has failed.
HELD = "held"
_LOST = "the connection to the machine was lost during the run. Next: verify that it is on and reachable, and run again, which completes what was begun"
#: What a run has done on machines that it succeeded on, by its entry.
_VERBS = {
    "bundle": "listed",
    "main": "configured",
    "preflight": "checked",
    "teardown": "restored",
    "restore": "configured",
    "rotate_ca": "configured",
    "rotate_token": "configured",
    "rotate_encryption_keys": "configured",
    "migrate_datastore": "configured",
}
Row = dict[str, t.Any]
_Rows = c.Mapping[str, Row]


def begun(batch: c.Iterable[str]) -> Row:
    """The outcome of a machine whose batch begins."""
    return {"state": BEGUN, "batch": list(batch)}


def ended(state: str, batch: c.Iterable[str], reasons: c.Iterable[str] = (), changes: c.Iterable[str] = ()) -> Row:
    """The outcome of a machine. reasons: problems or the failure. changes: of a machine that failed, those that were planned."""
    return {"state": state, "batch": list(batch), "reasons": list(reasons), "changes": list(changes)}


def of_boot(own: c.Mapping[str, t.Any], batch: c.Iterable[str], plan: c.Mapping[str, t.Any]) -> Row:
    """The outcome of a machine from the one that the role machine_boot keeps. plan: whose steps it has taken."""
    text = [str(own["text"])]
    if own["failed"]:
        return ended(FAILED, batch, text)
    return ended(DONE, batch, changes=text if plan.get("steps") else [])


def stopped(name: str, outcomes: _Rows) -> bool:
    """Whether the run stops before this machine, because all machines of an earlier batch have failed. outcomes: of machines that have one.

    Ansible itself stops then, but it cannot know of failures that are only reported at the end.
    """
    batches = {tuple(one["batch"]) for one in outcomes.values() if name not in one["batch"]}
    return any(all(outcomes.get(other, {}).get("state") != DONE for other in batch) for batch in batches)


def before(name: str, order: c.Sequence[str], of: c.Callable[[str], Row]) -> Row:
    """Outcomes by machine of the last batch before the one of a machine, for `stopped`: after a batch of which all failed, no later one does anything.

    order: of the machines of a play; one that is not in it has none before it. of: the outcome of one, empty if it has none. To read those of all machines for
    each of them would take the square of their number.
    """
    for other in reversed(order[: order.index(name)] if name in order else ()):
        one = of(other)
        if one and name not in one["batch"]:
            return {each: found for each in one["batch"] if each in order and (found := of(each))}
    return {}


def summarized(outcome: c.Mapping[str, t.Any] | None) -> Row:
    """The outcome in the summary: succeeded, state, reasons, changes, and report, which only machine_boot has. None: the run has not begun there."""
    found = outcome or {"state": NOT_BEGUN}
    # The role machine_boot has outcomes of its own.
    state = found.get("state") or (FAILED if found["failed"] else DONE)
    report = str(found.get("text") or "")
    reasons = [_LOST] if state == BEGUN else list(found.get("reasons") or ())
    return {
        "succeeded": state == DONE,
        "state": LOST if state == BEGUN else state,
        "reasons": [report] if report and state == FAILED else reasons,
        "changes": list(found.get("changes") or ()),
        "report": report if state == DONE else "",
    }


def with_problems(summaries: _Rows, problems: c.Sequence[str]) -> dict[str, Row]:
    """The summaries with problems that were found of several machines at once, before any of them was changed."""
    found: dict[str, list[str]] = {name: [] for name in summaries}
    for text in problems:
        named = [name for name in summaries if text.startswith(f"machine {name}:")]
        for name in named or summaries:
            found[name].append(text)
    return {
        name: {**one, "succeeded": False, "state": REFUSED, "reasons": [*one["reasons"], *found[name]]}
        if found[name]
        else one
        for name, one in summaries.items()
    }


def unreachable(name: str, why: str, any_more: bool = False) -> str:
    """why: Ansible's message. any_more: it was reached earlier in this run."""
    told = why.strip().rstrip(".") or "no reason is known"
    return f"{name} cannot be reached{' any more' if any_more else ''}: {told}. Next: verify that it is on and that Ansible can connect to it, and run again"


def reasons(task: str, result: c.Mapping[str, t.Any], hidden: bool) -> list[str]:
    """Why a task has failed, from its result. task: its name. hidden: whether it has no_log, in which case only its name is reported."""
    next_step = f"Next: correct what the task {task!r} reports above, and run again"
    if hidden:
        return [
            f"the task {task!r} failed, and its result is not shown because it may contain credentials. {next_step}"
        ]
    failed = [one for one in result.get("results") or () if isinstance(one, c.Mapping) and one.get("failed")]
    found = [text for one in failed or [result] for text in _texts(one)]
    told = [text if "Next: " in text else f"{text.rstrip('.')}. {next_step}" for text in found if text]
    return list(dict.fromkeys(told)) or [f"the task {task!r} failed. {next_step}"]


def _texts(result: c.Mapping[str, t.Any]) -> list[str]:
    message = result.get("msg") or ""
    texts = [str(text) for text in message] if isinstance(message, list) else [str(message)]
    said = str(result.get("stderr") or "").strip().splitlines()
    return [*texts[:-1], f"{texts[-1].rstrip('.')}: {said[-1]}"] if said and "Next: " not in texts[-1] else texts


def lines(summaries: _Rows, entry: str, check: bool) -> list[str]:
    """The result in one line, the table, what was changed, and last what failed, each with its reason and next step. entry: of the role."""
    predicts = check or entry == "preflight"
    failed = {name: one for name, one in summaries.items() if one["reasons"]}
    found = {
        "Reports": [f"  {one['report']}" for one in summaries.values() if one["report"]],
        "Would be changed" if predicts else "Changed": _changes(
            {name: one for name, one in summaries.items() if one["succeeded"]}
        ),
        "Planned, and perhaps done in part": _changes(
            {name: one for name, one in failed.items() if one["state"] != REFUSED}
        ),
        "Not begun": _not_begun([name for name, one in summaries.items() if one["state"] == NOT_BEGUN]),
        "Problems, nothing was changed": _reasons(
            {name: one for name, one in failed.items() if one["state"] == REFUSED}
        ),
        "Failed": _reasons({name: one for name, one in failed.items() if one["state"] != REFUSED}),
    }
    shown = [verdict(summaries, entry, check), "", *_table(summaries)]
    for title, rows in found.items():
        shown += ["", f"{title}:", *rows] if rows else []
    return "\n".join(shown).splitlines()


def verdict(summaries: _Rows, entry: str, check: bool) -> str:
    """The result of the run in one line."""
    good = [one for one in summaries.values() if one["succeeded"]]
    total, bad = len(summaries), len(summaries) - len(good)
    would = "would be " if check or entry == "preflight" else ""
    done = _VERBS.get(entry, entry)
    changing = [one for one in good if one["changes"]]
    changed = f"; {count(len(changing), 'machine')} {would}changed" if changing else f"; nothing {would}changed"
    # Reports of machine_boot say themselves what was done.
    changed = "" if any(one["report"] for one in good) else changed
    if not bad:
        whole = "The machine is" if total == 1 else f"All {total} machines are"
        whole = whole.rpartition(" ")[0] + " would be" if check and entry != "preflight" else whole
        return f"{whole} {done}{changed}"
    counts = collections.Counter(one["state"] for one in summaries.values() if not one["succeeded"])
    which = ", ".join(f"{number} {'with ' if state == REFUSED else ''}{state}" for state, number in counts.items())
    return f"{count(total, 'machine')}: {which}{changed}"


def failure(summaries: _Rows) -> str:
    """The message with which the run fails, empty if it succeeded. The lines above it have the reasons."""
    found = []
    for states, what in (((REFUSED,), "problems"), ((FAILED, LOST), "failed")):
        names = [name for name, one in summaries.items() if one["state"] in states]
        if names:
            found.append(f"{have(len(names), 'machine')} {what}: {_named(names)}")
    return f"{'; '.join(found)}. Next: correct what is reported above, and run the playbook again." if found else ""


def _table(summaries: _Rows) -> list[str]:
    """A row for each machine, those that failed first."""
    rows = sorted(summaries.items(), key=lambda one: one[1]["succeeded"])
    more = [f"and {len(rows) - MOST} more"] if len(rows) > MOST else []
    shown = [(name, one["state"], str(len(one["changes"]) or "")) for name, one in rows[:MOST]]
    return [*table(("machine", "result", "changes"), shown), *more]


def _changes(summaries: _Rows) -> list[str]:
    """Machines with the same changes are listed together."""
    return _together({name: one["changes"] for name, one in summaries.items()})


def _reasons(summaries: _Rows) -> list[str]:
    return _together(
        {
            name: [line[2:] for text in one["reasons"] for line in indented(text).splitlines()]
            for name, one in summaries.items()
        }
    )


def _together(found: c.Mapping[str, c.Sequence[str]]) -> list[str]:
    """Machines with the same texts together, as otherwise a fault of all machines would be repeated for each."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, texts in found.items():
        if texts:
            groups.setdefault(tuple(texts), []).append(name)
    rows: list[str] = []
    for texts, names in list(groups.items())[:MOST]:
        rows += [f"  {_named(names)}:", *(f"    {text.rstrip()}" for text in texts)]
    return rows + ([f"  and {len(groups) - MOST} more"] if len(groups) > MOST else [])


def _named(names: c.Sequence[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def _not_begun(names: c.Sequence[str]) -> list[str]:
    return [f"  {_named(names)}: all machines of an earlier batch failed"] if names else []
