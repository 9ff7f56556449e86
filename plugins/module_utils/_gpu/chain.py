# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chain on a node, judged from plain facts: which link it has reached, and why it has not passed the next one.

hardware seen → driver → toolkit → cuda → plugin → schedulable.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import (
    holds,
    names,
    resources,
    schedulable,
    trouble,
    verdicts,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.driver_matrix import label_value
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import PodFacts, Pods
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.verdicts import GRACE, Expectation, Verdict

PASSED, WAITING, FAILED, UNKNOWN = verdicts.STATES
HARDWARE, DRIVER, TOOLKIT, CUDA, PLUGIN, SCHEDULABLE = verdicts.LINKS
#: Gates in the order in which a run passes them.
GATES = ("features", "driver", "devices")

#: The kubelet reports a registered plugin's devices within five seconds (measured on a real node); a device that is missing then will not appear.
SETTLE = 20.0
#: A server with eight GPUs and a terabyte of memory takes about ten minutes from its reboot to a kubelet that reports.
REBOOT = 900.0
#: A node that became NotReady this often during one gate is not just rebooting, nor is the toolkit restarting its runtime.
FLAPS = 3

_STEPS = ((parts.DRIVER_STEP, DRIVER), (parts.TOOLKIT_STEP, TOOLKIT), (parts.CUDA_STEP, CUDA))


def judge(gate: str, node: NodeFacts, pods: Pods, expectation: Expectation) -> Verdict:
    """The node's verdict at one gate."""
    if not node.uid:
        next_step = "let the node join, or remove it from the pool's nodes"
        return Verdict(WAITING, HARDWARE, "the cluster has no such node", next_step, brief="not in the cluster")
    if expectation.absences >= FLAPS:
        reason = f"the node became NotReady {expectation.absences} times since this gate began"
        return Verdict(
            FAILED,
            HARDWARE,
            reason,
            "check the logs of its kubelet and container runtime, and its network path to the API server",
        )
    if gate == "features":
        return features(node, pods, expectation)
    if not node.ready:
        return _not_ready(node)
    return (
        _naming_kernels(driver(node, pods, expectation), node) if gate == "driver" else devices(node, pods, expectation)
    )


def excused(pods: Pods, expectation: Expectation) -> dict[str, int]:
    """Crashes of the validator's steps, by step, that do not count because what the step checks was not ready. Those in wanted still count.

    After a reboot, or while a driver is reloaded, steps run before the driver is ready. The kubelet repeats them after up to five minutes.
    """
    validator = pods.get(parts.VALIDATOR)
    if validator is None:
        return {}
    needed = [pod for role in (parts.DRIVER, parts.TOOLKIT) if (pod := pods.get(role)) is not None]
    lacking = not all(pod.ready and not pod.deleting for pod in needed) or (
        not expectation.host_driver and parts.DRIVER not in pods
    )
    since = max((pod.ready_changed for pod in needed), default="")
    found = dict(expectation.excused)
    for step in validator.inits:
        if step.ended and (lacking or step.ended <= since) and trouble.crashes(step):
            found[step.name] = trouble.crashes(step)
    return found


def features(node: NodeFacts, pods: Pods, expectation: Expectation) -> Verdict:
    """NFD's labels of the node are current: the kernel label is nodeInfo's kernel, and declared GPUs are detected."""
    lacking = _features_lacking(node, expectation)
    if not lacking:
        return Verdict(PASSED, HARDWARE)
    if not node.ready:
        return _not_ready(node)
    worker = pods.get(parts.NFD_WORKER)
    if worker is None:
        return Verdict(WAITING, HARDWARE, f"{lacking}, and no NFD worker runs there", _MISSING_NEXT, GRACE)
    if found := trouble.of_pod(worker):
        return holds.troubled(HARDWARE, found, worker)
    if not worker.ready:
        return Verdict(WAITING, HARDWARE, "the NFD worker is starting", "check its log", pod=worker)
    if expectation.gpu_declared and not node.gpu_present and node.nfd_kernel == node.kernel:
        next_step = (
            "correct the pool's declaration, check the GPU in the machine (power, seating, passthrough), "
            "or make sure that NFD labels PCI devices by vendor (deviceLabelFields, labelWhiteList) and mounts the host's /sys"
        )
        return Verdict(WAITING, HARDWARE, lacking, next_step, GRACE, worker, holds.first(worker))
    # The worker reports its features, so nfd-master must be missing or failing.
    return Verdict(
        WAITING,
        HARDWARE,
        lacking,
        "check that nfd-master is running, and its log",
        pod=worker,
        brief="no NFD labels yet",
        observer=True,
    )


_MISSING_NEXT = "check the DaemonSet's node selector, tolerations and events"


def _features_lacking(node: NodeFacts, expectation: Expectation) -> str:
    if label_value(node.kernel) == node.kernel:
        if not node.nfd_kernel:
            return "NFD has not labeled the node"
        if node.nfd_kernel != node.kernel:
            return f"NFD's label still says kernel {node.nfd_kernel}, the node runs {node.kernel}"
    elif not node.nfd_labeled:
        # A kernel whose name is not a valid label value never gets that label. Any other label of NFD shows that it has run.
        return "NFD has not labeled the node"
    if expectation.gpu_declared and not node.gpu_present:
        return "the pool declares GPUs, and NFD detects none on the PCI bus"
    return ""


def driver(node: NodeFacts, pods: Pods, expectation: Expectation) -> Verdict:
    """The node's validator pod: steps driver, toolkit and cuda are completed, and its readiness probe still confirms them."""
    validator = pods.get(parts.VALIDATOR)
    if validator is None or validator.deleting:
        return _without_validator(node, pods, expectation)
    for name, link in _STEPS:
        step = validator.init(name)
        if step is not None and not step.succeeded:
            return holds.unfinished(link, step, validator, pods, expectation)
    if _has_proven(validator):
        return _without_runtime(pods) or Verdict(PASSED, CUDA)
    if found := trouble.of_pod(validator):
        return holds.troubled(CUDA, found, validator)
    held = holds.below(DRIVER, pods, expectation)
    if held is not None:
        return held
    main = holds.first(validator)
    if any(container.state == "running" for container in validator.containers):
        reason = "the steps are completed, but the readiness probe currently does not confirm driver and devices"
        return Verdict(WAITING, DRIVER, reason, "check the driver pod of this node", GRACE, validator, main)
    return Verdict(WAITING, CUDA, "the validator is starting", "", pod=validator)


def _has_proven(validator: PodFacts) -> bool:
    """Whether driver, toolkit and cuda passed. The GPU Operator's validator then waits for the device plugin in a further step, and is not ready before."""
    if validator.ready:
        return True
    steps = [step for step in validator.inits if step.name not in dict(_STEPS)]
    return (
        bool(steps)
        and not all(step.succeeded for step in steps)
        and all(step.succeeded for step in validator.inits if step not in steps)
    )


def _without_runtime(pods: Pods) -> Verdict | None:
    """If the toolkit ends, its runtime is removed. The kubelet then cannot start the validator's probe, and a probe without a result leaves a pod ready."""
    toolkit = pods.get(parts.TOOLKIT)
    if toolkit is None or toolkit.ready:
        return None
    found = trouble.of_pod(toolkit)
    return holds.troubled(TOOLKIT, found, toolkit) if found else None


def devices(node: NodeFacts, pods: Pods, expectation: Expectation) -> Verdict:
    """Allocatable resources are the expected ones: the scheduler can allocate every GPU, and no unexpected one."""
    offered = schedulable.observed(node)
    plugin = pods.get(parts.PLUGIN)
    if node.mig_state in ("pending", "rebooting"):
        return Verdict(
            WAITING,
            PLUGIN,
            f"the MIG manager is changing the GPUs ({node.mig_state})",
            "check the MIG manager's log",
            brief="MIG is changing",
        )
    lacking = resources.missing(expectation.expected, offered) if expectation.expected else {}
    if expectation.expected or resources.total(offered):
        extra = {
            name: count
            for name, count in resources.surplus(expectation.expected, offered).items()
            if expectation.expected and count
        }
        if not lacking and not extra:
            return _unproven(node, offered, pods) or Verdict(PASSED, SCHEDULABLE)
    else:
        extra = {}
    driver_pod = pods.get(parts.DRIVER)
    if not resources.total(offered) and driver_pod is not None and (found := trouble.of_pod(driver_pod)):
        # Without a driver no plugin registers devices, and an error of the plugin would hide the cause.
        return holds.troubled(DRIVER, found, driver_pod)
    if plugin is None:
        return _without_plugin(node, pods, offered, expectation)
    if found := trouble.of_pod(plugin):
        return holds.troubled(PLUGIN, found, plugin)
    if not plugin.ready:
        return _plugin_waits(plugin, pods)
    numbers = (
        f"{resources.describe(offered)} allocatable, {resources.describe(expectation.expected)} expected"
        if expectation.expected
        else "no GPU is allocatable"
    )
    if not resources.total(offered):
        numbers += holds.again(plugin)
    if extra and not lacking:
        next_step = "correct the pool's declared count, or the device plugin's configuration"
    else:
        next_step = "check the plugin's log for an unhealthy GPU, and nvidia-smi on the node; correct the declared count if it is wrong"
    return Verdict(WAITING, SCHEDULABLE, numbers, next_step, SETTLE, plugin, _plugin_container(plugin))


def _unproven(node: NodeFacts, offered: c.Mapping[str, int], pods: Pods) -> Verdict | None:
    """GPUs are allocatable, but their proof or the labels with their product are missing."""
    validator, discovery = pods.get(parts.VALIDATOR), pods.get(parts.DISCOVERY)
    if validator is not None and not _has_proven(validator):
        reason = f"{resources.describe(offered)} allocatable without a proof: this node's validator has not passed"
        next_step = (
            "check that the device plugin waits for the proof in an init container, and check the validator's log"
        )
        return Verdict(WAITING, CUDA, reason, next_step, GRACE, validator, _unfinished_step(validator))
    if discovery is not None and (found := trouble.of_pod(discovery)):
        return holds.troubled(PLUGIN, found, discovery)
    # GPU feature discovery does not support integrated GPUs.
    if discovery is not None and node.nfd_labeled and not node.tegra and not node.gpu.known:
        reason = f"GPU feature discovery has not labeled the node with its GPU product{holds.again(discovery)}"
        # Its container may be running while nfd-master does not turn its features into labels.
        next_step = f"check its log and that of nfd-master; without {names.GPU_PRODUCT_LABEL} no pod can select a GPU"
        return Verdict(
            WAITING,
            PLUGIN,
            reason,
            next_step,
            pod=discovery,
            container=holds.first(discovery),
            brief="no GPU labels yet",
            observer=True,
        )
    return None


def _not_ready(node: NodeFacts) -> Verdict:
    reason = f"the node is not Ready: {node.not_ready}"
    return Verdict(
        WAITING,
        HARDWARE,
        reason,
        "repair the kubelet of this node",
        REBOOT,
        brief="node not Ready",
        since=node.ready_changed,
    )


def _without_validator(node: NodeFacts, pods: Pods, expectation: Expectation) -> Verdict:
    if expectation.existing:
        return _of_others(node, pods)
    held = pods.get(parts.DRIVER)
    if held is not None and (found := trouble.of_pod(held)):
        return holds.troubled(DRIVER, found, held)
    return Verdict(WAITING, DRIVER, "no validator pod is on the node", _missing_next(node, "operator-validator"), GRACE)


def _of_others(node: NodeFacts, pods: Pods) -> Verdict:
    """Other deployments may have no validator. Their plugin registers what the driver reports, and until then their pods show the cause."""
    driver_pod, plugin = pods.get(parts.DRIVER), pods.get(parts.PLUGIN)
    if driver_pod is not None and (held := holds.driver_holds(driver_pod)) is not None:
        return held
    if resources.total(schedulable.observed(node)):
        return Verdict(PASSED, PLUGIN)
    if (held := _without_runtime(pods)) is not None:
        return held
    if plugin is None:
        reason = "no GPU is allocatable, and neither a validator nor a device plugin is on the node"
        return Verdict(WAITING, PLUGIN, reason, _missing_next(node, "operator-validator", "device-plugin"), GRACE)
    if found := trouble.of_pod(plugin):
        return holds.troubled(PLUGIN, found, plugin)
    if not plugin.ready:
        return _plugin_waits(plugin, pods)
    return Verdict(
        WAITING,
        PLUGIN,
        f"no GPU is allocatable{holds.again(plugin)}",
        "check the plugin's log",
        GRACE,
        plugin,
        _plugin_container(plugin),
    )


def _missing_next(node: NodeFacts, *components: str) -> str:
    """components: those whose labels may disable the missing pod."""
    switches = [
        switch
        for component in components
        if (switch := f"{names.VENDOR}gpu.deploy.{component}") in node.switched_off.split()
    ]
    return f"the node's label {switches[0]}=false disables it: remove that label" if switches else _MISSING_NEXT


def _naming_kernels(verdict: Verdict, node: NodeFacts) -> Verdict:
    """Adds the kernel of a precompiled driver's image, because its log only names the running kernel."""
    pod, troubled = verdict.pod, verdict.state == FAILED or verdict.grace
    kernel = parts.image_kernel(pod.image) if pod is not None and pod.role == parts.DRIVER and troubled else ""
    if not kernel or kernel == node.kernel:
        return verdict
    return dataclasses.replace(
        verdict, reason=f"{verdict.reason}; its image is for kernel {kernel}, the node runs {node.kernel}"
    )


def _plugin_waits(plugin: PodFacts, pods: Pods) -> Verdict:
    """An init container of the plugin waits for the proof, so the validator pod shows the progress."""
    waiting = next((container for container in plugin.inits if not container.succeeded), None)
    validator = pods.get(parts.VALIDATOR)
    if waiting is not None and waiting.state == "running" and validator is not None and not validator.ready:
        reason = f"the plugin waits in {waiting.name}: this node's validator has not passed"
        return Verdict(
            WAITING, CUDA, reason, "pass the driver gate first", GRACE, validator, _unfinished_step(validator)
        )
    if waiting is not None and waiting.state == "running":
        reason = f"the plugin waits in {waiting.name}"
        next_step = "check its log, and that it has the mounts of the pods that write what it waits for"
        return Verdict(WAITING, PLUGIN, reason, next_step, pod=plugin, container=waiting.name)
    container = waiting.name if waiting is not None else holds.first(plugin)
    return Verdict(
        WAITING,
        PLUGIN,
        f"the device plugin is starting{holds.again(plugin)}",
        "check its log",
        pod=plugin,
        container=container,
    )


def _without_plugin(node: NodeFacts, pods: Pods, offered: c.Mapping[str, int], expectation: Expectation) -> Verdict:
    numbers = (
        f"{resources.describe(offered)} allocatable, {resources.describe(expectation.expected)} expected; "
        if expectation.expected
        else ""
    )
    if resources.total(offered):
        # A plugin in another namespace serves the node.
        next_step = "correct the pool's declared count, or check the plugin that serves this node"
        return Verdict(
            WAITING, SCHEDULABLE, f"{numbers}no device plugin pod of this namespace is on the node", next_step, GRACE
        )
    return Verdict(
        WAITING, PLUGIN, f"{numbers}no device plugin pod is on the node", _missing_next(node, "device-plugin"), GRACE
    )


def _plugin_container(pod: PodFacts) -> str:
    """The plugin itself, not the configuration manager in the same pod."""
    return next((container.name for container in pod.containers if "plugin" in container.name), holds.first(pod))


def _unfinished_step(pod: PodFacts) -> str:
    return next((container.name for container in pod.inits if not container.succeeded), holds.first(pod))
