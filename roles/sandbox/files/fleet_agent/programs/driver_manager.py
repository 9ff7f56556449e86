# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's init container: NVIDIA/k8s-driver-manager v0.12.0, cmd/driver-manager/main.go (uninstallDriver): order, labels, messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fleet_agent.cluster.api import MERGE, ApiError, Unreachable
from fleet_agent.loop import Process, Sleep
from fleet_agent.programs.driver import STATE_FILE, unload

#: Labels nvidia.com/gpu.deploy.* that it writes at every start. A missing label is added with an empty value.
OPERANDS = (
    "operator-validator",
    "container-toolkit",
    "device-plugin",
    "gpu-feature-discovery",
    "dcgm-exporter",
    "dcgm",
    "nvsm",
    "sandbox-validator",
    "sandbox-device-plugin",
    "vgpu-device-manager",
    "dra-validator",
    "dcgm-dra",
    "dcgm-exporter-dra",
)
#: Disabled last, and only waited for if the node has the label.
KUBELET_PLUGIN = "dra-driver"
#: Only written if the node has them.
OPTIONAL = ("mig-manager", "client")
#: Pods in its own namespace that must be gone before modules are unloaded, by their label app.
CLIENTS = (
    "nvidia-operator-validator",
    "nvidia-container-toolkit-daemonset",
    "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery",
    "nvidia-dcgm-exporter",
    "nvidia-dcgm",
    "nvidia-dcgm-exporter-dra",
    "nvidia-dcgm-dra",
)
#: Label for clients of others.
CLIENT = "nvidia.com/gpu.deploy.client"
#: Settings that let it evict pods: GPU pods, and then all.
EVICTIONS = ("enable-gpu-pod-eviction", "enable-auto-drain")
#: Annotation of nodes on which the GPU Operator upgrades drivers.
POLICY = "nvidia.com/gpu-driver-upgrade-enabled"
PAUSED = "paused-for-driver-upgrade"
GRACE = 300.0
#: The field manager of its writes: the base name of the program, as in client-go.
MANAGER = "driver-manager"


class Failed(Exception):
    """The manager fails with this error, and restores labels."""


def manager(proc: Any) -> Process:
    """driver-manager uninstall_driver: clients leave, modules are unloaded, clients may come back."""
    settings = proc.settings
    command = next(iter(settings.words), "")
    if command == "preflight_check":
        proc.say('level=info msg="Performing preflight checks"\nlevel=info msg="Preflight checks completed"')
        return 0
    if command not in settings.table.commands:
        # urfave/cli v2.27: without a command it shows its help and succeeds.
        proc.say(
            f"No help topic for '{command}'" if command else "NAME:\n   driver-manager - The NVIDIA Driver Manager"
        )
        return 3 if command else 0
    try:
        return (yield from _uninstall_driver(proc, settings["node-name"]))
    except (ApiError, Unreachable) as error:
        proc.say(settings.table.error.format(message=f"Failed to uninstall nvidia driver components: {error}"))
        return 1


def _uninstall_driver(proc: Any, node: str) -> Process:
    if proc.host.spec.host_driver:
        proc.say(
            'level=info msg="NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver on the node"'
        )
        yield from _label(proc, node, {"driver": "pre-installed"})
        return 1
    item = yield from proc.request("GET", f"/api/v1/nodes/{node}")
    labels, notes = item["metadata"].get("labels") or {}, item["metadata"].get("annotations") or {}
    before = {name: labels.get(f"nvidia.com/gpu.deploy.{name}", "") for name in (*OPERANDS, KUBELET_PLUGIN, *OPTIONAL)}
    # The operator's upgrade policy evicts and drains itself.
    drains = [name for name in EVICTIONS if proc.settings[name] and notes.get(POLICY) != "true"]
    if "nvidia" not in proc.host.modules:
        proc.say('level=info msg="No NVIDIA driver loaded, skipping eviction of GPU clients and workloads"')
        yield from _evict_plugin(proc, node, before)
        proc.host.unmount("/run/nvidia/driver")
        yield from _uncordon(proc, node, drains)
        yield from _reschedule(proc, node, before)
        return 0
    try:
        yield from _evict(proc, node, before)
        if _is_current(proc):
            proc.say(
                'level=info msg="The NVIDIA driver is already loaded with the desired version and configuration, skipping the uninstallation"'
            )
            yield from _evict_plugin(proc, node, before)
        else:
            yield from _evict_workloads(proc, node, drains)
            yield from _claims_released(proc, node, before)
            yield from _evict_plugin(proc, node, before)
            if not unload(proc) and not (yield from _drained(proc, node, drains)):
                raise Failed("failed to uninstall nvidia driver components: failed to unload driver")
            yield from _uncordon(proc, node, drains)
        proc.host.unmount("/run/nvidia/driver")
    except Failed as error:
        proc.say('level=info msg="Performing cleanup on failure"')
        yield from _uncordon(proc, node, drains)
        yield from _reschedule(proc, node, before)
        proc.say(f'level=fatal msg="{error}"')
        return 1
    yield from _reschedule(proc, node, before)
    return 0


def _is_current(proc: Any) -> bool:
    """shouldSkipUninstall."""
    digest, stored = proc.settings.variable("DRIVER_CONFIG_DIGEST"), proc.host.read(STATE_FILE) or ""
    return bool(digest and stored.strip() == digest and not proc.settings["force-reinstall"])


def _evict_workloads(proc: Any, node: str, drains: list[str]) -> Process:
    """CordonNode and DeleteOrEvictPods of GPU pods. A node that cannot be cordoned ends the manager without a cleanup."""
    if EVICTIONS[0] not in drains:
        return
    try:
        yield from _cordon(proc, node, True)
    except ApiError as error:
        raise ApiError(error.code, error.reason, f"failed to cordon node: {error}") from error
    if not (yield from _pods_evicted(proc, node, _uses_gpu)) and not (yield from _drained(proc, node, drains)):
        raise Failed("cannot proceed until all GPU pods are drained from the node")


def _drained(proc: Any, node: str, drains: list[str]) -> Process:
    """DrainNode, after which the modules can be unloaded or not."""
    if EVICTIONS[1] not in drains:
        return False
    proc.say('level=info msg="Unable to cleanup driver modules, attempting again with node drain..."')
    if any(_by_daemon_set(pod) for pod in (yield from _pods_of(proc, node, "drain node"))):
        # DrainNode in internal/kubernetes/client.go does not set IgnoreAllDaemonSets, as DeleteOrEvictPods does.
        proc.say(
            'level=error msg="failed to drain node: cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"'
        )
        return False
    return (yield from _pods_evicted(proc, node, lambda _pod: True)) and unload(proc)


def _pods_evicted(proc: Any, node: str, concerns: Callable[[dict[str, Any]], bool]) -> Process:
    """Whether all of these pods are gone. Pods of DaemonSets remain; of those without a controller only --drain-use-force evicts."""
    pods = [pod for pod in (yield from _pods_of(proc, node, "drain node")) if concerns(pod) and not _by_daemon_set(pod)]
    if not proc.settings["drain-use-force"] and any(not pod["metadata"].get("ownerReferences") for pod in pods):
        proc.say('level=error msg="Cannot delete all GPU pods"')
        return False
    for pod in pods:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["metadata"]["name"]}}
        try:
            yield from proc.request("POST", f"{path}/eviction", body)
        except ApiError as error:
            if error.code != 404:
                proc.say(f'level=error msg="failed to delete all GPU pods: {error}"')
                return False
    names, waited = {pod["metadata"]["uid"] for pod in pods}, 0.0
    while names & {pod["metadata"]["uid"] for pod in (yield from _pods_of(proc, node, "drain node"))}:
        if waited >= GRACE:
            return False
        yield Sleep(5)
        waited += 5
    return True


def _uses_gpu(pod: dict[str, Any]) -> bool:
    """podUsesGPU, by resources."""
    limits = [(one.get("resources") or {}).get("limits") or {} for one in pod["spec"].get("containers") or ()]
    return any(name.startswith(("nvidia.com/gpu", "nvidia.com/mig-")) for limit in limits for name in limit)


def _uncordon(proc: Any, node: str, drains: list[str]) -> Process:
    """Errors are warnings. A node that is not cordoned is not written (RunCordonOrUncordon)."""
    if not drains:
        return
    try:
        if (yield from proc.request("GET", f"/api/v1/nodes/{node}"))["spec"].get("unschedulable"):
            yield from _cordon(proc, node, False)
    except (ApiError, Unreachable) as error:
        proc.say(f'level=warning msg="Failed to uncordon node: {error}"')


def _cordon(proc: Any, node: str, cordoned: bool) -> Process:
    yield from proc.request(
        "PATCH",
        f"/api/v1/nodes/{node}",
        {"spec": {"unschedulable": cordoned or None}},
        query={"fieldManager": MANAGER},
        content_type=MERGE,
    )


def _evict(proc: Any, node: str, before: dict[str, str]) -> Process:
    proc.say(
        'level=info msg="Shutting down all GPU clients on the current node by disabling their component-specific nodeSelector labels"'
    )
    yield from _label(
        proc, node, _written({name: value for name, value in before.items() if name != KUBELET_PLUGIN}, _paused)
    )
    for app in CLIENTS:
        proc.say(f'level=info msg="Waiting for {app} to shutdown"')
        yield from _gone(proc, node, app)
    if before["client"]:
        proc.say(f'level=info msg="Waiting for any daemon set pods with nodeSelector key {CLIENT} to terminate"')
        yield from _others_gone(proc, node)


def _others_gone(proc: Any, node: str) -> Process:
    """WaitForPodsWithNodeSelector: in all namespaces, pods of DaemonSets whose node selector has the label."""
    waited = 0.0
    while any(
        CLIENT in (pod["spec"].get("nodeSelector") or {}) and _by_daemon_set(pod)
        for pod in (yield from _pods_of(proc, node, "list pods"))
    ):
        if waited >= GRACE:
            proc.say('level=error msg="Failed to wait for GPU client pods to terminate: context deadline exceeded"')
            raise Failed("failed to evict GPU operator components: context deadline exceeded")
        yield Sleep(5)
        waited += 5


def _claims_released(proc: Any, node: str, before: dict[str, str]) -> Process:
    """GetGPUResourceClaimHolders: pods of all namespaces that hold a claim which NVIDIA's DRA driver has allocated."""
    holders = []
    for pod in (
        (yield from _pods_of(proc, node, "check for GPU resource claim holders")) if before[KUBELET_PLUGIN] else ()
    ):
        namespace = pod["metadata"]["namespace"]
        for name in _claims(pod) if pod["status"].get("phase") not in ("Succeeded", "Failed") else ():
            if (yield from _is_gpu_claim(proc, namespace, name)):
                holders.append(f"{namespace}/{pod['metadata']['name']}")
    if holders:
        raise Failed(
            f"cannot drain the DRA kubelet-plugin: pod(s) still hold GPU resource claims: {', '.join(holders)}"
        )


def _pods_of(proc: Any, node: str, to: str) -> Process:
    try:
        return (yield from proc.request("GET", "/api/v1/pods", query={"fieldSelector": f"spec.nodeName={node}"})).get(
            "items"
        ) or []
    except ApiError as error:
        raise Failed(f"failed to {to}: failed to list pods on node {node}: {error}") from error


def _by_daemon_set(pod: dict[str, Any]) -> bool:
    return any(
        owner.get("controller") and owner["kind"] == "DaemonSet"
        for owner in pod["metadata"].get("ownerReferences") or []
    )


def _claims(pod: dict[str, Any]) -> list[str]:
    made = {one["name"]: one.get("resourceClaimName") for one in pod["status"].get("resourceClaimStatuses") or []}
    named = [one.get("resourceClaimName") or made.get(one["name"]) for one in pod["spec"].get("resourceClaims") or []]
    return [name for name in named if name]


def _is_gpu_claim(proc: Any, namespace: str, name: str) -> Process:
    try:
        claim = yield from proc.request("GET", f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}")
    except ApiError as error:
        if error.code == 404:
            return False
        raise Failed(
            f"failed to check for GPU resource claim holders: failed to get ResourceClaim {namespace}/{name}: {error}"
        ) from error
    devices = ((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}
    return any(one.get("driver") == "gpu.nvidia.com" for one in devices.get("results") or [])


def _evict_plugin(proc: Any, node: str, before: dict[str, str]) -> Process:
    """evictKubeletPlugin: last, because it releases the claims of the others."""
    if before[KUBELET_PLUGIN]:
        yield from _label(proc, node, {KUBELET_PLUGIN: _paused(before[KUBELET_PLUGIN])})
        yield from _gone(proc, node, "nvidia-dra-driver-kubelet-plugin")


def _gone(proc: Any, node: str, app: str) -> Process:
    namespace = proc.settings["operator-namespace"]
    query = {"labelSelector": f"app={app}", "fieldSelector": f"spec.nodeName={node}"}
    waited = 0.0
    while (yield from proc.request("GET", f"/api/v1/namespaces/{namespace}/pods", query=query)).get("items"):
        if waited >= GRACE:
            proc.say(f'level=error msg="Failed to wait for {app} to shutdown: context deadline exceeded"')
            raise Failed("failed to evict GPU operator components: context deadline exceeded")
        yield Sleep(5)
        waited += 5


def _reschedule(proc: Any, node: str, before: dict[str, str]) -> Process:
    proc.say(
        'level=info msg="Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels"'
    )
    yield from _label(proc, node, _written(before, _resumed))


def _written(before: dict[str, str], change: Callable[[str], str]) -> dict[str, str]:
    return {name: change(value) for name, value in before.items() if value or name not in OPTIONAL}


def _label(proc: Any, node: str, switches: dict[str, str]) -> Process:
    labels = {f"nvidia.com/gpu.deploy.{name}": value for name, value in switches.items()}
    yield from proc.request(
        "PATCH",
        f"/api/v1/nodes/{node}",
        {"metadata": {"labels": labels}},
        query={"fieldManager": MANAGER},
        content_type=MERGE,
    )


def _paused(value: str) -> str:
    if value in ("", "false") or PAUSED in value:
        return value
    return PAUSED if value == "true" else f"{value}_{PAUSED}"


def _resumed(value: str) -> str:
    return "true" if value == PAUSED else re.sub(f"{PAUSED}_?", "", value).strip("_")
