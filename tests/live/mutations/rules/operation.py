# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How pods are started, updated and ended, and which GPUs they are given."""

from __future__ import annotations

import collections.abc as c
import posixpath
import re

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import updates
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests
from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent import manifests

_TAGGED = re.compile(r"^[a-z0-9.-]+\.[a-z]+/[a-z0-9/._-]+:[A-Za-z0-9_][A-Za-z0-9._-]*$")
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
#: Folder of the files by which pods tell each other how far a node is.
_GATES = re.compile(r"/run/nvidia/validations/(\.?[-a-z]+)")
_WHO_ENDS = ("nvidia-driver", "nvidia-validator")


def pulled(found: Manifests) -> c.Iterator[Finding]:
    """An agent starts again without its registry: its image has a registry and a tag that stays, and is pulled only if the node has none."""
    for one in found.workloads:
        for at, container in one.containers():
            image = str(container.get("image"))
            if not _TAGGED.match(image) or image.endswith(":latest"):
                yield f"{at}.image {image} has no registry or no tag that stays"
            policy = container.get("imagePullPolicy")
            if one.item["kind"] != "Pod" and policy != "IfNotPresent":
                yield f"{at}.imagePullPolicy is {policy!r}, and not IfNotPresent whatever the tag: without its registry a node does not start"


def updated(found: Manifests) -> c.Iterator[Finding]:
    """Updates replace as many pods at once as the collection's rule says (plugin_utils/objects/updates.py); a driver is replaced by its role alone."""
    for one in found.workloads:
        if one.item["kind"] != "DaemonSet":
            continue
        strategy = one.item["spec"].get("updateStrategy") or {}
        wanted: Obj = {"type": "OnDelete" if one.name == "nvidia-driver" else "RollingUpdate"}
        updates.limit({**one.item, "spec": {**one.item["spec"], "updateStrategy": wanted}})
        if strategy != wanted:
            yield f"DaemonSet {one.name}: spec.updateStrategy is {strategy}, and {wanted} by the rule for updates (type, rollingUpdate, maxUnavailable)"


def ranked(found: Manifests) -> c.Iterator[Finding]:
    """What a node's GPUs depend on is not evicted for user pods."""
    for one in found.workloads:
        if (
            one.item["kind"] == "DaemonSet"
            and one.role != "feature_discovery"
            and one.spec.get("priorityClassName") != "system-node-critical"
        ):
            yield f"{one.where}spec.priorityClassName is not system-node-critical, so a full node evicts what gives it GPUs"


def handlers(found: Manifests) -> c.Iterator[Finding]:
    """Every runtime class of a pod exists, and has the handler that the toolkit is told to write."""
    told = {
        variable["value"]
        for one in found.workloads
        for _at, container in one.containers()
        for variable in container.get("env") or ()
        if variable["name"].endswith("_RUNTIME_CLASS")
    }
    classes = {item["metadata"]["name"]: item.get("handler") for item in found.of("RuntimeClass")}
    for one in found.workloads:
        name = one.spec.get("runtimeClassName")
        if name and name not in classes:
            yield f'{one.where}spec.runtimeClassName: there is no RuntimeClass "{name}"'
        if not name and any(_visible(container) == "all" for _at, container in one.containers()):
            yield f"{one.where}spec.runtimeClassName is missing, and a container wants GPUs of NVIDIA's runtime"
    for name, handler in classes.items():
        if handler not in told:
            yield f"RuntimeClass {name}: handler {handler} is not what the toolkit writes, {sorted(told)}"


def _visible(container: Obj) -> str:
    return next((str(one.get("value")) for one in container.get("env") or () if one.get("name") == _VISIBLE), "")


def once(found: Manifests) -> c.Iterator[Finding]:
    """A pod that computes once is not restarted: a second attempt that succeeds would hide that the first has failed. It has the runtime that gives GPUs."""
    for one in found.workloads:
        if one.item["kind"] != "Pod":
            continue
        if one.spec.get("restartPolicy") != "Never":
            yield f"{one.where}spec.restartPolicy is {one.spec.get('restartPolicy')}, and not Never"
        if not one.spec.get("runtimeClassName"):
            yield f"{one.where}spec.runtimeClassName is missing: a board gives its GPU by the runtime alone"


def given(found: Manifests) -> c.Iterator[Finding]:
    """A container of NVIDIA's images says which GPUs its runtime gives it, since the images say all: all, or with void the runtime leaves it alone."""
    for one in found.workloads:
        for at, container in one.containers():
            if not str(container.get("image")).startswith("nvcr.io/") or one.item["kind"] == "Pod":
                continue
            if _visible(container) not in ("all", "void"):
                yield f"{at}.env: {_VISIBLE} is neither all nor void, so the image decides which GPUs the container has"
            capabilities = [
                one["value"] for one in container.get("env") or () if one["name"] == "NVIDIA_DRIVER_CAPABILITIES"
            ]
            if capabilities and capabilities != ["compute,utility"]:
                yield f"{at}.env: NVIDIA_DRIVER_CAPABILITIES are {capabilities}, and programs that ask NVML or run CUDA need compute,utility"


def switched(found: Manifests) -> c.Iterator[Finding]:
    """A variable that says yes or no says it in a word that every program reads."""
    for one in found.workloads:
        for at, container in one.containers():
            for index, variable in enumerate(container.get("env") or ()):
                if "value" in variable and variable.get("value") == "":
                    yield f"{at}.env[{index}].value: {variable['name']} is empty, which a program takes for unset"
                if set(variable) == {"name"}:
                    yield f"{at}.env[{index}]: {variable['name']} has no value"


def ended(found: Manifests) -> c.Iterator[Finding]:
    """When what opens a node for GPUs ends, it has the time to close it, and does it with commands that exist and files that others look at."""
    texts = [_text(item) for item in found.by_role["driver"] if item.get("kind") in ("ConfigMap", "DaemonSet")]
    for one in found.workloads:
        if one.name in _WHO_ENDS and one.spec.get("terminationGracePeriodSeconds", 30) != 30:
            yield f"{one.where}spec.terminationGracePeriodSeconds is not the 30 of the kubelet"
        for at, container in one.containers():
            command = ((container.get("lifecycle") or {}).get("preStop") or {}).get("exec", {}).get("command")
            if command is None and container["name"] == "nvidia-driver-ctr":
                yield f"{at}.lifecycle.preStop is missing: a driver that ends leaves the node open"
            if command is None:
                continue
            if command[:2] != ["sh", "-c"] or len(command) != 3 or not command[2].startswith("rm -f "):
                yield f"{at}.lifecycle.preStop.exec.command {command[:2]} does not remove files by a shell"
            for word in command[-1].split()[2:]:
                if not _GATES.fullmatch(word) or sum(_names(text, posixpath.basename(word)) for text in texts) < 2:
                    yield f"{at}.lifecycle.preStop.exec.command removes {word}, which nobody looks at"


def _text(item: Obj) -> str:
    data = item.get("data")
    return "\n".join(map(str, data.values())) if isinstance(data, dict) else str(item.get("spec"))


def _names(text: str, name: str) -> bool:
    # To look for the plain text first is much faster.
    return name in text and bool(re.search(rf"(?<![-.\w]){re.escape(name)}(?![-.\w])", text))


def patient(found: Manifests) -> c.Iterator[Finding]:
    """A probe that runs nvidia-smi has the half minute that nvidia-smi may take on a busy node with many GPUs; the kubelet's default is a second."""
    files = {name: text for item in found.of("ConfigMap") for name, text in (item.get("data") or {}).items()}
    for one in found.workloads:
        for at, container in one.containers():
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                command = ((container.get(kind) or {}).get("exec") or {}).get("command") or [""]
                asks = "nvidia-smi" in str(files.get(posixpath.basename(command[-1])))
                if asks and container[kind].get("timeoutSeconds", 1) < 30:
                    yield f"{at}.{kind}.timeoutSeconds is {container[kind].get('timeoutSeconds', 1)}, and the probe runs nvidia-smi"


def lasting(found: Manifests) -> c.Iterator[Finding]:
    """Probes give as long as what they wait for takes.

    A driver is compiled within twenty minutes, and a proof waits until a job of a day has left its GPU. What offers GPUs lets go of them when the gate
    has been closed for three minutes, as docs/drivers.md says; an exporter has two. A probe of readiness may fail once by chance.
    """
    for one in found.workloads:
        for at, container in one.containers():
            start, alive = container.get("startupProbe"), container.get("livenessProbe")
            least = 1200 if one.name == "nvidia-driver" else 86400
            if start and one.role != "feature_discovery" and _seconds(start) < least:
                yield f"{at}.startupProbe: periodSeconds times failureThreshold is {_seconds(start)}, less than {least} seconds"
            if alive and "exec" in alive and _seconds(alive) != 180:
                yield f"{at}.livenessProbe: periodSeconds times failureThreshold is {_seconds(alive)}, and not three minutes"
            if alive and one.role == "monitoring" and _seconds(alive) < 120:
                yield f"{at}.livenessProbe: periodSeconds times failureThreshold is {_seconds(alive)}, less than 120 seconds"
            if container.get("readinessProbe", {}).get("failureThreshold", 3) < 2:
                yield f"{at}.readinessProbe.failureThreshold is 1: one failure by chance takes the node's GPUs away"


def _seconds(probe: Obj) -> int:
    """How long a container has to fail, with the kubelet's defaults (kubernetes v1.36.4, SetDefaults_Probe)."""
    return int(probe.get("periodSeconds", 10)) * int(probe.get("failureThreshold", 3))


def linked(found: Manifests) -> c.Iterator[Finding]:
    """Pods of a role treat variables of Services alike: a program that reads none is given none, whichever of its pods it is."""
    for role in found.by_role:
        pods = [one for one in found.workloads if one.role == role]
        if len({one.spec.get("enableServiceLinks", True) for one in pods}) > 1:
            for one in pods:
                yield f"{one.where}spec.enableServiceLinks is {one.spec.get('enableServiceLinks')}, and not the same in all pods of {role}"


def single(found: Manifests) -> c.Iterator[Finding]:
    """A controller that takes no Lease is one pod. The number is written: an apply without it leaves a Deployment at the scale that somebody gave it.

    One that writes nodes is ended before its successor starts, or two would write the same labels.
    """
    writers = {account for account, rights in _rights(found).items() if ("patch", "", "nodes") in rights}
    for one in found.workloads:
        if one.item["kind"] != "Deployment":
            continue
        if one.item["spec"].get("replicas") != 1:
            yield f"Deployment {one.name}: spec.replicas is {one.item['spec'].get('replicas')}, and the program elects no leader"
        strategy = (one.item["spec"].get("strategy") or {}).get("type")
        if one.spec.get("serviceAccountName") in writers and strategy != "Recreate":
            yield f"Deployment {one.name}: spec.strategy.type is {strategy}, and not Recreate: two would write the same nodes"


def _rights(found: Manifests) -> dict[str, set[manifests.Request]]:
    known = manifests.Manifests(found.all)
    return {item["metadata"]["name"]: known.granted(item["metadata"]["name"]) for item in found.of("ServiceAccount")}


def digests(found: Manifests) -> c.Iterator[Finding]:
    """Both containers of a driver's pod know the same configuration: the manager unloads a driver of another one."""
    for one in found.workloads:
        if one.name != "nvidia-driver":
            continue
        values = [
            variable.get("value")
            for _at, container in one.containers()
            for variable in container.get("env") or ()
            if variable.get("name") == "DRIVER_CONFIG_DIGEST"
        ]
        if len(values) != 2 or values[0] != values[1]:
            yield f"{one.where}spec: DRIVER_CONFIG_DIGEST is not the same in both containers, {values}"
