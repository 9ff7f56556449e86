# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Between AnsibleModule and the operations: parameters in, result out, and the one place that calls exit_json and fail_json."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import time
import traceback
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable, printable_data
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.spec import CLUSTER_SPEC, WAITING_SPEC

#: A parameter longer than this is named in `invocation` and in the system log, not shown: manifests would double every result,
#: and can hold Secrets.
_LONGEST_SHOWN = 400
#: Never shown, however short: they hold other people's text (manifests, a whole kubeconfig).
_NEVER_SHOWN = frozenset({"definition", "kubeconfig", "patches", "texts", "wait_resume", "workloads"})


@dataclasses.dataclass(frozen=True)
class Context:
    """What an operation knows of the run that it is part of."""

    check_mode: bool
    diff: bool
    #: time.monotonic() at which the operation returns `pending`; None where it runs to the end.
    deadline: float | None
    #: What the previous slice returned as `pending`, {} at first.
    resume: dict[str, t.Any]
    warn: c.Callable[[str], None]
    #: The client of the connection options, built on the first call and kept.
    client: c.Callable[[], Client]
    #: The process that runs the slices, as `_manifest_set.holder.this_process` tells it, "" where there are none.
    task: str = ""


Operation = c.Callable[[dict[str, t.Any], Context], Outcome]


class _Module(AnsibleModule):
    """AnsibleModule that takes an empty string for an unset option and keeps manifests out of the system log."""

    def _load_params(self) -> None:
        super()._load_params()
        # A survey question that was left empty arrives as "".
        self.params: dict[str, t.Any] = {
            name: value for name, value in self.params.items() if name.startswith("_ansible") or value != ""
        }

    def _log_invocation(self) -> None:
        full, self.params = self.params, shown_parameters(self.params)
        try:
            super()._log_invocation()
        finally:
            self.params = full


def run_module(
    argument_spec: dict[str, t.Any],
    operation: Operation,
    *,
    cluster: bool = True,
    waits: bool = False,
    **module_options: t.Any,
) -> None:
    """Run one operation as an Ansible module. Options of the module win over shared ones of the same name."""
    shared = (CLUSTER_SPEC if cluster else {}) | (WAITING_SPEC if waits else {})
    module = _Module(argument_spec=shared | argument_spec, **module_options)
    started = time.monotonic()
    outcome, crash = _attempt(module, operation, started)
    result = _result(module, outcome)
    failure = outcome.failure
    if failure is None:
        module.exit_json(**result)
        return
    if crash and getattr(module, "_verbosity", 0) >= 3:
        # Not as `exception`: newer cores show that one only where tracebacks are switched on.
        result["traceback"] = printable(crash).splitlines()
    # A gate returns faults of its own, by node; its message tells the others.
    result.setdefault("faults", [fault.as_dict() for fault in failure.faults])
    module.fail_json(msg=str(failure), **result)


def shown_parameters(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Parameters as they may be shown: long ones and those that hold manifests or credentials by their size only."""
    return {name: _shown(name, value) for name, value in params.items()}


def _shown(name: str, value: t.Any) -> t.Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if (
        name == "kubeconfig"
        and isinstance(value, str)
        and "\n" not in value
        and len(value) <= _LONGEST_SHOWN
        and not value.lstrip().startswith("{")
    ):
        return value
    if name not in _NEVER_SHOWN and len(str(value)) <= _LONGEST_SHOWN:
        return value
    if isinstance(value, (list, dict)):
        return f"({len(value)} {'entries' if len(value) != 1 else 'entry'}, not shown)"
    return f"({len(str(value))} characters, not shown)"


def _attempt(module: AnsibleModule, operation: Operation, started: float) -> tuple[Outcome, str]:
    """The operation's outcome, whatever happens, and the traceback where it is our bug.

    The caller reports it outside of any `except`: inside one, AnsibleModule adds the traceback by itself.
    """
    try:
        return _plain_outcome(operation(dict(module.params), _context(module, started))), ""
    except HwaccelError as error:
        return Outcome(failure=error), ""
    except Exception as error:  # the last resort: what arrives here is a bug
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())[:200]
        failure = HwaccelError(
            f"this is a bug in hwaccel.gpu: {type(error).__name__}{': ' + text if text else ''}",
            f"{where.filename.rpartition('/plugins/')[2]}:{where.lineno}",
            next_step="run again with -vvv and report what is shown",
        )
        return Outcome(failure=failure), "".join(traceback.format_exception(error))


def _context(module: AnsibleModule, started: float) -> Context:
    made: list[Client] = []
    resume = module.params.get("wait_resume") or {}

    def client() -> Client:
        if not made:
            # Not at the top: a module without a cluster does not pay for the HTTP layer.
            from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect

            # What resumes has met the server, which may be away for a minute now.
            made.append(
                connect(module.params, check_mode=module.check_mode, met=bool(resume), hide=module.no_log_values.update)
            )
        return made[0]

    length = module.params.get("wait_slice")
    return Context(
        check_mode=module.check_mode,
        diff=bool(getattr(module, "_diff", False)),
        deadline=None if length is None else started + length,
        resume=resume,
        warn=lambda text: module.warn(printable(text)),
        client=client,
        task=module.params.get("wait_task") or "",
    )


def _result(module: AnsibleModule, outcome: Outcome) -> dict[str, t.Any]:
    for warning in outcome.warnings:
        module.warn(printable(warning))
    result: dict[str, t.Any] = dict(outcome.values)
    result["changed"] = outcome.changed
    if outcome.diff is not None and getattr(module, "_diff", False):
        result["diff"] = outcome.diff
    if outcome.pending is not None and outcome.failure is None:
        result["pending"] = outcome.pending
    if outcome.progress:
        result["progress"] = outcome.progress
    result["invocation"] = {"module_args": shown_parameters(module.params)}
    return result


def _plain_outcome(outcome: Outcome) -> Outcome:
    """Through JSON and back: what AnsibleModule cannot write (a set, a date) would end in its traceback.

    And printable, but for what the next slice resumes from, which nobody sees and which is to come back as it was.
    """
    for field in ("values", "diff", "pending", "progress"):
        plain = json.loads(json.dumps(getattr(outcome, field), default=_plain))
        setattr(outcome, field, plain if field == "pending" else printable_data(plain))
    return outcome


def _plain(value: t.Any) -> t.Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, c.Mapping):
        return dict(value)
    return str(value)
