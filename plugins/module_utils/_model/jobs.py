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

#: Label of the Jobs and pods of one run, by which they are found and deleted.
RUN_LABEL = "hwaccel.gpu/run"
#: Seconds after which Kubernetes' TTL controller deletes a finished Job and its pods if the run was killed.
TTL = 300
#: Seconds in addition to all timeouts of the run, after which Kubernetes ends a Job whose run was killed.
AFTER_THE_RUN = 60
#: Job names become label values of at most 63 characters, and the suffix has eleven.
_LONGEST_PREFIX = 52


def job_of(
    workload: str, definition: c.Mapping[str, t.Any], run: str, namespace: str, longest: float
) -> dict[str, t.Any]:
    """The Job for a Pod or Job manifest, with a name that is unique to this run.

    A Pod becomes the template of a Job: the cluster itself only ends and deletes Jobs if the run is killed.
    longest: maximum seconds of the run. Raises HwaccelError if it is not a Pod or Job, or can never end.
    """
    kind, metadata = definition.get("kind"), definition.get("metadata") or {}
    if (definition.get("apiVersion"), kind) not in (("v1", "Pod"), ("batch/v1", "Job")):
        raise HwaccelError(
            f"workload {workload} is neither a Pod (v1) nor a Job (batch/v1)",
            "workloads[].definition",
            f"it is {kind or 'without kind'} ({definition.get('apiVersion') or 'without apiVersion'})",
            "use one of these two",
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
            "set it to Never or OnFailure",
        )


def _label(metadata: dict[str, t.Any], run: str) -> None:
    metadata["labels"] = {**(metadata.get("labels") or {}), RUN_LABEL: run}
