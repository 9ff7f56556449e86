# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds a link of the chain: the step of the validator that has not ended, and the pod that it waits for."""

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
    """The step names the link, but the cause is often the pod that it waits for."""
    found = trouble.of_pod(validator, expectation.excused)
    # Without a sandbox no step has begun: its RuntimeClass is the toolkit's work.
    held = below(link if validator.sandbox else CUDA, pods, expectation)
    if held is not None and (found is None or found.state != "failed" or held.state == FAILED):
        return held
    if found is not None:
        return troubled(link, found, validator)
    if step.state == "running":
        doing = {
            DRIVER: "the validator checks the driver",
            TOOLKIT: "the validator checks the toolkit",
            CUDA: "the proof runs on every GPU",
        }[link]
        return Verdict(WAITING, link, doing, "see the validator's log", pod=validator, container=step.name)
    if expectation.excused.get(step.name):
        reason = f"container {step.name} crashed while the driver or the toolkit was not ready, and is tried again"
        return Verdict(
            WAITING,
            link,
            reason,
            "the kubelet tries it within five minutes",
            pod=validator,
            container=step.name,
            brief="tried again",
        )
    return Verdict(
        WAITING,
        link,
        f"the validator pod starts ({step.reason or validator.phase or 'no status yet'})",
        "",
        pod=validator,
    )


def below(link: str, pods: Pods, expectation: Expectation) -> Verdict | None:
    """What the step at `link` waits for, unless that is well."""
    driver_pod = pods.get(parts.DRIVER)
    # Other deployers bring the driver in a pod, or leave it to the host.
    if (not expectation.host_driver or (expectation.existing and driver_pod is not None)) and (
        held := driver_holds(driver_pod)
    ) is not None:
        return held
    if link == DRIVER:
        return None
    toolkit = pods.get(parts.TOOLKIT)
    # A toolkit on the host (K3s, DGX OS) has no pod: then the validator's own step says what is wrong.
    if toolkit is None or toolkit.ready:
        return None
    if found := trouble.of_pod(toolkit):
        return troubled(TOOLKIT, found, toolkit)
    for container in toolkit.inits:
        if container.state == "running":
            # The driver container says that all is well, and from another container the driver is not to be seen.
            reason = f"the toolkit waits in {container.name}: the driver's files are not to be seen from it"
            next_step = "see its log, and the mount propagation of /run/nvidia: Bidirectional in the driver container, and / shared on the host"
            return Verdict(WAITING, TOOLKIT, reason, next_step, pod=toolkit, container=container.name)
    return Verdict(
        WAITING,
        TOOLKIT,
        "the toolkit configures the container runtime",
        "see its log",
        pod=toolkit,
        container=first(toolkit),
    )


def driver_holds(pod: PodFacts | None) -> Verdict | None:
    if pod is None or pod.deleting:
        next_step = "see which kernels have a driver DaemonSet: no image may exist for this one"
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
                "the driver manager makes room for the driver",
                "see its log",
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
        return Verdict(WAITING, DRIVER, f"the driver pod starts ({waits or 'no status yet'})", "", pod=pod)
    doing = "compiling or loading" if not main.started else "loaded once, its probe fails now"
    return Verdict(
        WAITING,
        DRIVER,
        f"the driver is {doing}{run_of(main)}",
        "see the driver's log",
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
    """Between two back-offs a container runs for a moment: what is reported of the pod does not depend on that."""
    return "".join(run_of(container) for container in (*pod.inits, *pod.containers) if container.state == "running")


def run_of(container: ContainerFacts) -> str:
    """ ", run 3" of one that runs again, and how the run before ended where that was a crash."""
    crashed = container.last_exit and container.last_reason not in trouble.LOST
    ended = (
        f"; in the run before, container {container.name} ended with exit code {container.last_exit}" if crashed else ""
    )
    return f", run {container.restarts + 1}{ended}" if container.restarts else ""


def first(pod: PodFacts) -> str:
    return pod.containers[0].name if pod.containers else ""
