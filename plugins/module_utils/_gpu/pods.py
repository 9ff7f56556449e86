# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods reduced to what a gate reads: their part in the chain, and the state of each container.

Read from container statuses, never from the status that kubectl prints (which is `Unknown` after a reboot).
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import re
import sys
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names

VALIDATOR, DRIVER, TOOLKIT, PLUGIN, OTHER = "validator", "driver", "toolkit", "plugin", "other"
#: Parts of Node Feature Discovery, by the names of its programs.
NFD_WORKER, NFD_MASTER, NFD_GC = "nfd-worker", "nfd-master", "nfd-gc"
#: DCGM's exporter of metrics.
EXPORTER = "exporter"
#: GPU feature discovery, which labels nodes with the properties of their GPUs.
DISCOVERY = "gpu-feature-discovery"

#: Steps of the validator, in order, by the names that the GPU Operator gives its init containers.
DRIVER_STEP, TOOLKIT_STEP, CUDA_STEP = "driver-validation", "toolkit-validation", "cuda-validation"
#: Images by the basename of their repository, regardless of mirror, tag or digest. Red Hat's NFD is `ose-node-feature-discovery-rhel9`.
NFD_IMAGE = re.compile(r"node-feature-discovery|^nfd-(master|worker|gc|topology-updater)$")
_BY_IMAGE = (
    (re.compile(r"^(k8s|nvidia|nvidia-gpu)-device-plugin$"), PLUGIN),
    (re.compile(r"^container-toolkit$"), TOOLKIT),
    (re.compile(r"^dcgm-exporter$"), EXPORTER),
    (re.compile(r"^(vgpu-guest-driver$|nvidia-(gpu-)?driver|nvidia-gpu-driver-container)"), DRIVER),
)
#: Images that install a driver and exit: GKE's DaemonSets run them as init containers before a pause container, or before the device plugin
#: (GoogleCloudPlatform/container-engine-accelerators 068b15a, nvidia-driver-installer/cos/daemonset-preloaded-latest.yaml).
INSTALLER_IMAGE = re.compile(r"^(cos|gke)-nvidia-installer|^(nvidia|gpu)-driver-installer")
#: Programs in the device plugin's image that are not device plugins.
_NOT_PLUGIN = re.compile(r"config-manager|mps-control-daemon")
_LONGEST_MESSAGE = 400
#: The kubelet's message while it waits before it restarts a crashed container (pkg/kubelet/kuberuntime/kuberuntime_manager.go, doBackOff).
_BACK_OFF = re.compile(r"back-off (?:(\d+)m)?(\d+)s restarting failed container")
#: The year of startedAt of a container that could not be started.
_NEVER_STARTED = 1970


@dataclasses.dataclass(frozen=True)
class ContainerFacts:
    """state: waiting, running or terminated ("" if the kubelet has not reported it yet)."""

    name: str
    state: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int = 0
    restarts: int = 0
    ready: bool = False
    #: Whether its startup probe has passed, or it has none.
    started: bool = False
    #: How the previous run ended, if there was one.
    last_exit: int | None = None
    last_reason: str = ""
    #: When the last completed run ended, in the kubelet's format. (If it could not be started, startedAt is 1970.)
    ended: str = ""
    #: Seconds that this run took, if it failed and both times are known; else 0.
    lasted: float = 0.0
    #: Seconds of the kubelet's back-off before it restarts the container, 0 if there is none.
    back_off: int = 0

    @property
    def succeeded(self) -> bool:
        return self.state == "terminated" and self.exit_code == 0


@dataclasses.dataclass(frozen=True)
class PodFacts:
    namespace: str
    name: str
    uid: str
    node: str
    role: str
    created: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    ready: bool = False
    #: When that last changed, in the kubelet's format.
    ready_changed: str = ""
    deleting: bool = False
    #: Why the scheduler cannot place it, "" if it could.
    unschedulable: str = ""
    #: False if the kubelet reports that the pod sandbox (network, runtime handler) does not exist.
    sandbox: bool = True
    inits: tuple[ContainerFacts, ...] = ()
    containers: tuple[ContainerFacts, ...] = ()
    #: Image of the first container: the version that runs.
    image: str = ""
    owner: str = ""
    #: Whether this collection created it, according to its label.
    ours: bool = False
    #: The driver version from the collection's label, because the tag of a precompiled image only has the branch.
    driver_version: str = ""

    def init(self, name: str) -> ContainerFacts | None:
        return next((container for container in self.inits if container.name == name), None)

    @property
    def preference(self) -> tuple[bool, str]:
        """Of two pods with the same part on one node, the greater one counts: a running one before a terminating one, then the newer one."""
        return not self.deleting, self.created


#: Pods by their part.
Pods = c.Mapping[str, PodFacts]


def reduce_pod(pod: c.Mapping[str, t.Any]) -> PodFacts:
    """The facts of one Pod; unexpected or missing fields give empty facts, never an error."""
    metadata, spec, status = _map(pod.get("metadata")), _map(pod.get("spec")), _map(pod.get("status"))
    conditions = {str(item.get("type")): item for item in _dicts(status.get("conditions"))}
    scheduled = conditions.get("PodScheduled", {})
    containers = _dicts(spec.get("containers"))
    return PodFacts(
        namespace=_same(metadata.get("namespace")),
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        node=_same(spec.get("nodeName") or _desired_node(spec)),
        role=_part(pod),
        created=str(metadata.get("creationTimestamp") or ""),
        phase=_same(status.get("phase")),
        reason=_same(status.get("reason")),
        message=_short(status.get("message")),
        ready=conditions.get("Ready", {}).get("status") == "True",
        ready_changed=_same(conditions.get("Ready", {}).get("lastTransitionTime")),
        deleting=bool(metadata.get("deletionTimestamp")),
        unschedulable=_short(scheduled.get("message") or scheduled.get("reason"))
        if scheduled.get("status") == "False"
        else "",
        sandbox=conditions.get("PodReadyToStartContainers", {}).get("status") != "False",
        inits=_statuses(spec.get("initContainers"), status.get("initContainerStatuses")),
        containers=_statuses(spec.get("containers"), status.get("containerStatuses")),
        image=_same(containers[0].get("image")) if containers else "",
        owner=_same(_controller(pod).get("name")),
        ours=_map(metadata.get("labels")).get(names.MANAGED_BY_LABEL) == names.MANAGER,
        driver_version=_same(_map(metadata.get("labels")).get(names.DESIRED_DRIVER_VERSION_LABEL)),
    )


def role_of(pod: c.Mapping[str, t.Any]) -> str:
    """The part in the chain of a pod, or of a DaemonSet's template, by the programs that it runs. This works for other deployments as well.

    `stays` tells whether the pod is permanent, because the GPU Operator runs steps of its validator a second time in separate pods.
    """
    spec = _map(pod.get("spec"))
    for container in _dicts(spec.get("containers")):
        if (part := program_of(container)) != OTHER:
            return part
    inits = _dicts(spec.get("initContainers"))
    if any(INSTALLER_IMAGE.search(image_base(str(item.get("image") or ""))) for item in inits):
        return DRIVER
    # Images are checked first, because NVIDIA's toolkit pod validates the driver in an init container of the same name.
    return VALIDATOR if {item.get("name") for item in inits} & {DRIVER_STEP, CUDA_STEP} else OTHER


def program_of(container: c.Mapping[str, t.Any], owner: str = "") -> str:
    """The part of one container. owner: name of the workload, if it is known."""
    image, name = str(container.get("image") or ""), str(container.get("name") or "")
    base = image_base(image)
    words = " ".join(str(word) for field in ("command", "args") for word in container.get(field) or ())
    if NFD_IMAGE.search(base):
        return next((program for program in (NFD_WORKER, NFD_MASTER, NFD_GC) if program in f"{words} {base}"), OTHER)
    # Many storage drivers have an image named "driver", so "nvidia" must occur as well.
    if base == "driver":
        return DRIVER if "nvidia" in f"{image} {owner} {name} {words}".lower() else OTHER
    part = (
        DRIVER
        if INSTALLER_IMAGE.search(base)
        else next((part for pattern, part in _BY_IMAGE if pattern.search(base)), OTHER)
    )
    if part != PLUGIN:
        return part
    # GPU feature discovery ships in the device plugin's image.
    if "gpu-feature-discovery" in words or "feature-discovery" in name:
        return DISCOVERY
    return OTHER if _NOT_PLUGIN.search(f"{name} {words}") else PLUGIN


def _part(pod: c.Mapping[str, t.Any]) -> str:
    part = role_of(pod)
    # These parts run in a Deployment, not on each node.
    return part if part in (NFD_MASTER, NFD_GC) or stays(pod) else OTHER


def stays(pod: c.Mapping[str, t.Any]) -> bool:
    """Whether it is a permanent pod of a DaemonSet. Pods without a controller, pods of Jobs and completed pods only perform a task.

    `nvidia-cuda-validator-*` are of that kind: created by the running validator, owned by the ClusterPolicy, Completed until the validator's next run,
    and equal in all other respects (NVIDIA/gpu-operator v26.7.0, cmd/nvidia-validator/main.go, runWorkload). A DaemonSet's pod that has completed is replaced
    (Kubernetes 1.36, pkg/controller/daemon/daemon_controller.go 891).
    """
    owner = _controller(pod)
    return owner.get("kind") == "DaemonSet" and _map(pod.get("status")).get("phase") != "Succeeded"


def _controller(pod: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    owners = _dicts(_map(pod.get("metadata")).get("ownerReferences"))
    return next((owner for owner in owners if owner.get("controller") is True), owners[0] if owners else {})


def image_base(image: str) -> str:
    """ "driver" of "registry:5000/mirror/nvidia/driver:580-x@sha256:…"."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def image_tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def image_kernel(image: str) -> str:
    """The kernel of a precompiled driver, whose tag is BRANCH-KERNEL-OS; "" for an image that builds for any kernel."""
    branch, *rest = image_tag(image).split("-")
    return "-".join(rest[:-1]) if branch.isdigit() else ""


def _statuses(specs: t.Any, statuses: t.Any) -> tuple[ContainerFacts, ...]:
    """Containers in the order of the spec, because the kubelet's statuses can be incomplete."""
    by_name = {str(item.get("name")): item for item in _dicts(statuses)}
    return tuple(
        _container(str(item.get("name") or ""), by_name.get(str(item.get("name")), {})) for item in _dicts(specs)
    )


def _container(name: str, status: dict[str, t.Any]) -> ContainerFacts:
    state = _map(status.get("state"))
    kind = next((kind for kind in ("running", "terminated", "waiting") if kind in state), "")
    detail = _map(state.get(kind))
    last = _map(_map(status.get("lastState")).get("terminated"))
    # During a back-off the kubelet reports only that. The reason is in the state of the previous run.
    ended = detail if kind == "terminated" else last
    message = last.get("message") if detail.get("reason") == "CrashLoopBackOff" else detail.get("message")
    return ContainerFacts(
        name=_same(name),
        state=kind,
        reason=_same(detail.get("reason")),
        message=_short(message),
        exit_code=_number(detail.get("exitCode")),
        restarts=_number(status.get("restartCount")),
        ready=status.get("ready") is True,
        started=status.get("started") is True,
        last_exit=_number(last.get("exitCode")) if last else None,
        last_reason=_same(last.get("reason")),
        ended=_same(ended.get("finishedAt")),
        lasted=_seconds(ended) if _number(ended.get("exitCode")) else 0.0,
        back_off=_back_off(detail.get("message")),
    )


def _back_off(message: t.Any) -> int:
    found = _BACK_OFF.match(str(message or ""))
    return int(found.group(1) or 0) * 60 + int(found.group(2)) if found else 0


def _seconds(run: c.Mapping[str, t.Any]) -> float:
    try:
        began, ended = (datetime.datetime.fromisoformat(str(run.get(name))) for name in ("startedAt", "finishedAt"))
    except ValueError:
        return 0.0
    return (ended - began).total_seconds() if began.year > _NEVER_STARTED else 0.0


def _desired_node(spec: c.Mapping[str, t.Any]) -> str:
    """The node for which the DaemonSet controller created a pod that is not scheduled yet."""
    affinity = _map(
        _map(_map(spec.get("affinity")).get("nodeAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution")
    )
    for term in _dicts(affinity.get("nodeSelectorTerms")):
        for field in _dicts(term.get("matchFields")):
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def _map(value: t.Any) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: t.Any) -> list[dict[str, t.Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(value: t.Any) -> int:
    return value if isinstance(value, int) else 0


def _short(value: t.Any) -> str:
    return " ".join(str(value or "").split())[:_LONGEST_MESSAGE]


def _same(value: t.Any) -> str:
    """One string object for what repeats across a fleet."""
    return sys.intern(str(value)) if value else ""
