# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a link of the chain waits for: the step of the validator that has not ended, and the pod that this step waits for."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import trouble
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import ContainerFacts, PodFacts, Pods
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.verdicts import (
    CUDA,
    DRIVER,
    FAILED,
    GRACE,
    TOOLKIT,
    WAITING,
    Expectation,
    Verdict,
)


def unfinished(link: str, step: ContainerFacts, validator: PodFacts, pods: Pods, expectation: Expectation) -> Verdict:
    """The verdict on a waiting step. The step determines the link, but the cause is often the pod that it waits for."""
    found = trouble.of_pod(validator, expectation.excused)
    # Without a pod sandbox no step has started: its RuntimeClass needs the toolkit.
    held = below(link if validator.sandbox else CUDA, pods, expectation)
    if held is not None and (found is None or found.state != "failed" or held.state == FAILED):
        return held
    if found is not None:
        return troubled(link, found, validator)
    if step.state == "running":
        doing = {
            DRIVER: "the validator is checking the driver",
            TOOLKIT: "the validator is checking the toolkit",
            CUDA: "the CUDA sample is running on every GPU",
        }[link]
        return Verdict(WAITING, link, doing, "check the validator's log", pod=validator, container=step.name)
    if expectation.excused.get(step.name):
        reason = f"container {step.name} crashed while the driver or the toolkit was not ready, and is retried"
        return Verdict(
            WAITING,
            link,
            reason,
            "the kubelet retries it within five minutes",
            pod=validator,
            container=step.name,
            brief="retried",
        )
    return Verdict(
        WAITING,
        link,
        f"the validator pod is starting ({step.reason or validator.phase or 'no status yet'})",
        "",
        pod=validator,
    )


def below(link: str, pods: Pods, expectation: Expectation) -> Verdict | None:
    """The verdict on what the step at `link` waits for, None if that is ready."""
    driver_pod = pods.get(parts.DRIVER)
    # Other deployments run the driver in a pod, or leave it to the host.
    if (not expectation.host_driver or (expectation.existing and driver_pod is not None)) and (
        held := driver_holds(driver_pod)
    ) is not None:
        return held
    if link == DRIVER:
        return None
    toolkit = pods.get(parts.TOOLKIT)
    # A toolkit on the host (K3s, DGX OS) has no pod, so the validator's own step shows the cause.
    if toolkit is None or toolkit.ready:
        return None
    if found := trouble.of_pod(toolkit):
        return troubled(TOOLKIT, found, toolkit)
    for container in toolkit.inits:
        if container.state == "running":
            # The driver container is ready, but its files are not visible from another container.
            reason = f"the toolkit waits in {container.name}: the driver's files are not visible there"
            next_step = "check its log, and the mount propagation of /run/nvidia: Bidirectional in the driver container, and / shared on the host"
            return Verdict(WAITING, TOOLKIT, reason, next_step, pod=toolkit, container=container.name)
    return Verdict(
        WAITING,
        TOOLKIT,
        "the toolkit is configuring the container runtime",
        "check its log",
        pod=toolkit,
        container=first(toolkit),
    )


def driver_holds(pod: PodFacts | None) -> Verdict | None:
    if pod is None or pod.deleting:
        next_step = "check which kernels have a driver DaemonSet: there may be no image for this one"
        return Verdict(WAITING, DRIVER, "no driver pod is on the node", next_step, GRACE)
    if pod.ready:
        return None
    if found := trouble.of_pod(pod):
        return troubled(DRIVER, found, pod)
    for container in pod.inits:
        if container.state == "running":
            return Verdict(
                WAITING,
                DRIVER,
                "the driver manager is preparing the node for the driver",
                "check its log",
                pod=pod,
                container=container.name,
            )
    main = next((container for container in pod.containers if container.state == "running"), None)
    if main is None:
        waits = next(
            (
                container.reason
                for container in (*pod.inits, *pod.containers)
                if container.state == "waiting" and container.reason
            ),
            pod.phase,
        )
        return Verdict(WAITING, DRIVER, f"the driver pod is starting ({waits or 'no status yet'})", "", pod=pod)
    doing = "compiling or loading" if not main.started else "loaded before, its probe fails now"
    return Verdict(
        WAITING,
        DRIVER,
        f"the driver is {doing}{run_of(main)}",
        "check the driver's log",
        pod=pod,
        container=main.name,
        brief=doing,
    )


def troubled(link: str, found: trouble.Trouble, pod: PodFacts) -> Verdict:
    state = FAILED if found.state == "failed" else WAITING
    return Verdict(
        state, link, found.reason, found.next_step, 0.0 if state == FAILED else GRACE, pod, found.container, found.brief
    )


def again(pod: PodFacts) -> str:
    """A container runs briefly between two back-offs. The report on the pod must not depend on that."""
    return "".join(run_of(container) for container in (*pod.inits, *pod.containers) if container.state == "running")


def run_of(container: ContainerFacts) -> str:
    """ ", run 3" of a container that was restarted, and how the previous run ended if it crashed."""
    crashed = container.last_exit and container.last_reason not in trouble.LOST
    ended = (
        f"; in the previous run, container {container.name} ended with exit code {container.last_exit}"
        if crashed
        else ""
    )
    return f", run {container.restarts + 1}{ended}" if container.restarts else ""


def first(pod: PodFacts) -> str:
    return pod.containers[0].name if pod.containers else ""
