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
PAUSED = "paused-for-driver-upgrade"
GRACE = 300.0
#: The field manager of its writes: the base name of the program, as in client-go.
MANAGER = "driver-manager"


class Failed(Exception):
    """The manager fails with this error, and restores labels."""


def manager(proc: Any) -> Process:
    """driver-manager uninstall_driver: clients leave, modules are unloaded, clients may come back."""
    command = next((word for word in proc.argv[1:] if not word.startswith("-")), "")
    if command != "uninstall_driver":
        # urfave/cli v2.27: without a command it shows its help and succeeds.
        proc.say(
            f"No help topic for '{command}'" if command else "NAME:\n   k8s-driver-manager - A new cli application"
        )
        return 3 if command else 0
    node = proc.env.get("NODE_NAME", "")
    if not node:
        proc.say('level=fatal msg="NODE_NAME environment variable must be set"')
        return 1
    try:
        return (yield from _uninstall_driver(proc, node))
    except (ApiError, Unreachable) as error:
        proc.say(f'level=error msg="Failed to uninstall nvidia driver components: {error}"')
        return 1


def _uninstall_driver(proc: Any, node: str) -> Process:
    if proc.host.spec.host_driver:
        proc.say(
            'level=info msg="NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver on the node"'
        )
        yield from _label(proc, node, {"driver": "pre-installed"})
        return 1
    labels = (yield from proc.request("GET", f"/api/v1/nodes/{node}"))["metadata"].get("labels") or {}
    before = {name: labels.get(f"nvidia.com/gpu.deploy.{name}", "") for name in (*OPERANDS, KUBELET_PLUGIN, *OPTIONAL)}
    if "nvidia" not in proc.host.modules:
        proc.say('level=info msg="No NVIDIA driver loaded, skipping eviction of GPU clients and workloads"')
        yield from _evict_plugin(proc, node, before)
        proc.host.unmount("/run/nvidia/driver")
        yield from _reschedule(proc, node, before)
        return 0
    try:
        yield from _evict(proc, node, before)
        stored = proc.host.read(STATE_FILE) or ""
        if proc.env.get("DRIVER_CONFIG_DIGEST") and stored.strip() == proc.env["DRIVER_CONFIG_DIGEST"]:
            proc.say(
                'level=info msg="The NVIDIA driver is already loaded with the desired version and configuration, skipping the uninstallation"'
            )
            yield from _evict_plugin(proc, node, before)
        else:
            yield from _claims_released(proc, node, before)
            yield from _evict_plugin(proc, node, before)
            if not unload(proc):
                raise Failed("failed to uninstall nvidia driver components: failed to unload driver")
        proc.host.unmount("/run/nvidia/driver")
    except Failed as error:
        proc.say('level=info msg="Performing cleanup on failure"')
        yield from _reschedule(proc, node, before)
        proc.say(f'level=fatal msg="{error}"')
        return 1
    yield from _reschedule(proc, node, before)
    return 0


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
    namespace = proc.env.get("OPERATOR_NAMESPACE") or "gpu-operator"
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
