# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs and their pods: Job controller, scheduler and kubelet in one, controlled by a test."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import JOB, POD
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time

COMPLETE: Obj = {"conditions": [{"type": "Complete", "status": "True"}]}
_SUFFIX = "-x"


class JobCluster(NodeCluster):
    """`created`: all Jobs that clients have created. A subclass defines the status of a Job and its pod, which is written before each list of either."""

    def __init__(self, *objects: Obj) -> None:
        super().__init__(objects)
        self.time: Time = Time()
        self.created: list[Obj] = []
        self._began: dict[str, float] = {}
        self.on("create", self._note, kind="Job", after=True)

    @property
    def jobs(self) -> dict[str, Obj]:
        """Existing Jobs by name, in the order of their creation; Jobs of other clients come first."""
        found = {obj["metadata"]["name"]: obj for obj in self.all_of("Job")}
        ours = [name for name in self._began if name in found]
        return {name: found[name] for name in (*sorted(found.keys() - set(ours)), *ours)}

    def age(self, name: str) -> float:
        """Seconds since a Job was created."""
        return self.time.now - self._began[name]

    def job_status(self, name: str, job: Obj) -> Obj:
        """The current status of a Job."""
        raise NotImplementedError

    def pod_status(self, name: str, job: Obj) -> tuple[str, Obj]:
        """The node of its pod ("" if it is not scheduled), and the current status of the pod."""
        raise NotImplementedError

    def schedule(self) -> None:
        """Called before each list of Jobs."""

    def settle(self, resource: Resource) -> None:
        """Write the status of all Jobs, and create their pods."""
        if resource == JOB:
            self.schedule()
        if resource in (JOB, POD):
            for name, job in self.jobs.items():
                self.show(job | {"status": self.job_status(name, job)})
                self.show(self.pod(name, job))

    def pod(self, name: str, job: Obj) -> Obj:
        """A pod like the Job controller creates it: with the labels of the Job's template, and owned by the Job."""
        node, status = self.pod_status(name, job)
        template = job["spec"]["template"]
        metadata = {
            "name": f"{name}{_SUFFIX}",
            "namespace": job["metadata"]["namespace"],
            "uid": f"pod-{job['metadata']['uid']}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": (template.get("metadata") or {}).get("labels") or {},
            "ownerReferences": [{"kind": "Job", "name": name, "uid": job["metadata"]["uid"]}],
        }
        spec = template["spec"] | ({"nodeName": node} if node else {})
        return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    def job_of(self, pod: str) -> Obj | None:
        """The Job that owns a pod of this name."""
        return self.jobs.get(pod.removesuffix(_SUFFIX))

    def end(self, request: Request) -> None:
        """The garbage collector deletes the pods of a Job as well."""
        super().end(request)
        pod = POD.plural, request.namespace, f"{request.name}{_SUFFIX}"
        if request.resource == JOB and pod in self.objects:
            self.drop(pod)

    def _note(self, request: Request) -> None:
        self._began.pop(request.name, None)
        self._began[request.name] = self.time.now
        self.created.append(request.body)


def node_of(job: Obj) -> str:
    """The only node that its pod can run on."""
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    (name,) = field["values"]
    return str(name)


def unschedulable(message: str) -> Obj:
    """The status of a pod that cannot be scheduled."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def container_status(state: str, **details: t.Any) -> Obj:
    """The status of the only container of a pod."""
    return {"containerStatuses": [{"name": "cuda", "state": {state: details}}]}
