# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Job that runs a workload. Pure."""

from __future__ import annotations

import collections.abc as c
import copy
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import digest

#: On Jobs and pods of one run: by it they are found, and taken away.
RUN_LABEL = "hwaccel.gpu/run"
#: Seconds that a finished Job whose run was killed stays, before Kubernetes' TTL controller takes it and its pods away.
TTL = 300
#: Seconds beyond all time limits of the run, after which Kubernetes ends a Job that nobody watches any more.
AFTER_THE_RUN = 60
#: Job names end up in a label, which holds 63 characters, and the suffix takes eleven.
_LONGEST_PREFIX = 52


def job_of(
    workload: str, definition: c.Mapping[str, t.Any], run: str, namespace: str, longest: float
) -> dict[str, t.Any]:
    """The Job for a Pod or Job manifest, with a name of this run's own.

    A Pod becomes the template of a Job: only Jobs are ended and removed by the cluster itself where the run is killed.
    longest: seconds that the run gives it at most. Raises HwaccelError where it is no Pod or Job, or can never end.
    """
    kind, metadata = definition.get("kind"), definition.get("metadata") or {}
    if (definition.get("apiVersion"), kind) not in (("v1", "Pod"), ("batch/v1", "Job")):
        raise HwaccelError(
            f"workload {workload} is neither a Pod (v1) nor a Job (batch/v1)",
            "workloads[].definition",
            f"it is {kind or 'without kind'} ({definition.get('apiVersion') or 'without apiVersion'})",
            "give one of these two",
        )
    prefix = str(metadata.get("name") or metadata.get("generateName") or workload)[:_LONGEST_PREFIX].rstrip("-.")
    own = {key: copy.deepcopy(metadata[key]) for key in ("labels", "annotations") if metadata.get(key)}
    if kind == "Pod":
        spec: dict[str, t.Any] = {
            "backoffLimit": 0,
            "template": {"metadata": copy.deepcopy(own), "spec": {"restartPolicy": "Never"} | _spec(definition)},
        }
    else:
        spec = _spec(definition)
        spec.setdefault("template", {})
    _ends(workload, spec["template"])
    spec.setdefault("ttlSecondsAfterFinished", TTL)
    spec.setdefault("activeDeadlineSeconds", int(longest) + AFTER_THE_RUN)
    _label(own, run)
    _label(spec["template"].setdefault("metadata", {}), run)
    place = {"name": f"{prefix}-{digest([run, workload])[:10]}", "namespace": metadata.get("namespace") or namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": own | place, "spec": spec}


def _spec(definition: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return copy.deepcopy(dict(definition.get("spec") or {}))


def _ends(workload: str, template: c.Mapping[str, t.Any]) -> None:
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in ("Never", "OnFailure"):
        raise HwaccelError(
            f"workload {workload} can never end",
            "workloads[].definition",
            f"its pods have restartPolicy {policy or 'Always, the default'}",
            "set Never or OnFailure",
        )


def _label(metadata: dict[str, t.Any], run: str) -> None:
    metadata["labels"] = {**(metadata.get("labels") or {}), RUN_LABEL: run}
