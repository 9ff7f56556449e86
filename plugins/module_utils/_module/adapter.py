# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connects AnsibleModule and the operations: parameters in, result out. The only module that calls exit_json and fail_json."""

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

#: A longer parameter is named in `invocation` and in the system log, but not shown, because manifests would double every result
#: and can contain Secrets.
_LONGEST_SHOWN = 400
#: Never shown, even if short, because they contain manifests, inputs of an installation or a whole kubeconfig. Most have no no_log, which would replace each
#: of their texts and numbers wherever it occurs in the result, such as in a checksum.
_NEVER_SHOWN = frozenset(
    {"definition", "files", "kubeconfig", "made", "other_connection", "patches", "texts", "wait_resume", "workloads"}
)


@dataclasses.dataclass(frozen=True)
class Context:
    """The context of the run for an operation."""

    check_mode: bool
    diff: bool
    #: time.monotonic() at which the operation returns `pending`; None if it runs to the end.
    deadline: float | None
    #: The `pending` of the previous slice, {} in the first one.
    resume: dict[str, t.Any]
    warn: c.Callable[[str], None]
    #: The client for the connection options, created on the first call and kept.
    client: c.Callable[[], Client]
    #: The process that runs the slices, from `_manifest_set.holder.this_process`, "" without slices.
    task: str = ""


Operation = c.Callable[[dict[str, t.Any], Context], Outcome]


class _Module(AnsibleModule):
    """AnsibleModule that treats an empty string as an unset option and does not log manifests."""

    def _load_params(self) -> None:
        super()._load_params()
        # A survey question without an answer has the value "".
        self.params: dict[str, t.Any] = {
            name: value for name, value in self.params.items() if name.startswith("_ansible") or value != ""
        }
        # If a suboption has a wrong type, AnsibleModule fails before it has collected these itself, and would show them in `invocation`.
        self.no_log_values.update(_secrets(self.argument_spec, self.params))

    def fail_json(self, msg: str, **result: t.Any) -> None:
        # If an option is invalid, AnsibleModule fails by itself, with all options as they are.
        result.setdefault("invocation", {"module_args": shown_parameters(self.params)})
        super().fail_json(msg, **result)

    def _log_invocation(self) -> None:
        full, self.params = self.params, shown_parameters(self.params)
        try:
            super()._log_invocation()
        finally:
            self.params = full


def _secrets(spec: c.Mapping[str, t.Any], values: c.Mapping[str, t.Any]) -> c.Iterator[str]:
    """Texts of options with no_log, whether the other options are valid or not."""
    for name, options in spec.items():
        value = values.get(name)
        if options.get("no_log") and isinstance(value, str) and value:
            yield value
        elif isinstance(value, c.Mapping):
            yield from _secrets(options.get("options") or {}, value)


def run_module(
    argument_spec: dict[str, t.Any],
    operation: Operation,
    *,
    cluster: bool = True,
    waits: bool = False,
    **module_options: t.Any,
) -> None:
    """Run one operation as an Ansible module. Options of the module take precedence over shared ones of the same name."""
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
        # It is not returned as `exception`, because newer versions of ansible-core only show that if tracebacks are enabled.
        result["traceback"] = printable(crash).splitlines()
    # A gate returns its own faults, by node. Its message has the others.
    result.setdefault("faults", [fault.as_dict() for fault in failure.faults])
    module.fail_json(msg=str(failure), **result)


def shown_parameters(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Parameters that may be shown. Of long ones and those with manifests or credentials, only the size is shown."""
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
    """The operation's outcome in any case, and the traceback if there is a bug.

    The caller reports it outside of any `except`: inside one, AnsibleModule adds the traceback itself.
    """
    try:
        return _plain_outcome(operation(dict(module.params), _context(module, started))), ""
    except HwaccelError as error:
        return Outcome(failure=error), ""
    except Exception as error:  # Any other exception is a bug, and is reported as one.
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())[:200]
        failure = HwaccelError(
            f"this is a bug in hwaccel.gpu: {type(error).__name__}{': ' + text if text else ''}",
            f"{where.filename.rpartition('/plugins/')[2]}:{where.lineno}",
            next_step="run again with -vvv and report the output",
        )
        return Outcome(failure=failure), "".join(traceback.format_exception(error))


def _context(module: AnsibleModule, started: float) -> Context:
    made: list[Client] = []
    resume = module.params.get("wait_resume") or {}

    def client() -> Client:
        if not made:
            # Imported here, so that modules that do not connect to a cluster do not load the HTTP layer.
            from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect

            # A resumed slice has reached the server before, which may then be unavailable for up to a minute.
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
    """Converts to JSON and back, because values that AnsibleModule cannot serialize (a set, a date) would cause a traceback.

    The result is made printable, except for the state of the next slice, which is not shown and must not change.
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
