# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One container of a simulated pod: image, start, program, exit and restart with back-off, as by kubelet and runtime."""

from __future__ import annotations

import collections
import sys
import traceback
from collections.abc import Callable
from typing import Any

from fleet_agent.clock import timestamp
from fleet_agent.kubelet import probes, process, runtime
from fleet_agent.kubelet.volumes import ConfigFailure, environment
from fleet_agent.loop import Killed, Process, Signal, Sleep, Task, Terminated
from fleet_agent.machine import images
from fleet_agent.machine.view import View

LOG_LINES = 400
#: 128 and the number of SIGKILL.
_KILLED = 137


class Container:
    """State of one container; `status.container_status` turns it into what the API shows."""

    def __init__(self, pod: Any, spec: dict[str, Any], init: bool) -> None:
        self.pod, self.spec, self.is_init = pod, spec, init
        self.name: str = spec["name"]
        self.sidecar = init and spec.get("restartPolicy") == "Always"
        self.image = images.parse(spec["image"])
        self.image_name = images.qualified(self.image) if self.image else spec["image"]
        self.image_id = self.image.image_id if self.image else ""
        self.runtime = pod.kubelet.host.spec.container_runtime.split(":", maxsplit=1)[0]
        self.state: dict[str, Any] = {
            "waiting": {"reason": "PodInitializing" if pod.spec.get("initContainers") else "ContainerCreating"}
        }
        self.last_state: dict[str, Any] = {}
        self.ready = self.started = self.finished = False
        self.restarts = 0
        self.container_id = ""
        self.log: collections.deque[str] = collections.deque(maxlen=LOG_LINES)
        self.previous_log: collections.deque[str] | None = None
        self._healthy = True
        self.serves: dict[
            int, tuple[str, ...]
        ] = {}  # Ports on which its program listens, with the paths that it serves.
        self.page: Callable[[], str] | None = None  # What its program serves under /metrics, where that is simulated.
        self.hangups = 0  # SIGHUPs received
        self.ignores_term = False  # PID 1 without a handler does not receive SIGTERM.
        self.devices: dict[str, list[str]] = {}  # resource -> device ids that kubelet allocated
        self.gpus: list[int] = []  # Indices of GPUs that the container can open.
        self.driver_injected = False  # Driver libraries and nvidia-smi are injected by the nvidia runtime or CDI.
        #: Actions of its process when it exits or gets a signal.
        self.at_exit: list[Callable[[], None]] = []
        #: Ends additional threads and tasks of the process in any case.
        self.beside: list[Callable[[], None]] = []
        self.task: Task | None = None
        self.view: View | None = None
        self.env: dict[str, str] = {}
        self._probes: list[Task] = []
        self._partial = ""
        self._backoff = 0.0
        self._failed_pulls = 0

    # -- called by the pod worker

    def supervise(self) -> Process:
        """Runs and restarts it as needed. Returns the last exit code."""
        kubelet = self.pod.kubelet
        while True:
            yield from self._have_image()
            yield from self._have_config()
            yield Sleep(kubelet.clock.delay("container_start"))
            code = yield from self._run_once()
            if not self._again(code):
                return code
            self._backoff = min(
                max(self._backoff * 2, kubelet.clock.delay("restart_backoff")),
                kubelet.clock.delay("restart_backoff_max"),
            )
            if self.restarts or code != 0:
                self._wait_state(
                    "CrashLoopBackOff",
                    f"back-off {int(self._backoff)}s restarting failed container={self.name} "
                    f"pod={self.pod.name}_{self.pod.namespace}({self.pod.uid})",
                    keep=True,
                )
                if self.restarts == 1:
                    kubelet.event(
                        self.pod, "BackOff", f"Back-off restarting failed container {self.name} in pod {self.pod.name}"
                    )
                yield Sleep(self._backoff if self.restarts else self._backoff / 10)
            self.restarts += 1

    def _again(self, code: int) -> bool:
        if self.pod.stopping:
            return False
        if self.sidecar:
            return True
        policy = self.spec.get("restartPolicy") or self.pod.restart_policy
        if self.is_init:
            return code != 0 and policy != "Never"
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    # -- before the start

    def _wait_state(self, reason: str, message: str = "", keep: bool = False) -> None:
        waiting = {"reason": reason, **({"message": message} if message else {})}
        if "terminated" in self.state and keep:
            self.last_state = self.state
        if self.state.get("waiting") != waiting:
            self.state = {"waiting": waiting}
            self.pod.changed()

    def _have_image(self) -> Process:
        kubelet, image = self.pod.kubelet, self.image
        delay = 10.0
        while True:
            if image is None:
                self._wait_state(
                    "InvalidImageName",
                    f'Failed to apply default image tag "{self.spec["image"]}": couldn\'t parse image name '
                    f'"{self.spec["image"]}": invalid reference format',
                    keep=True,
                )
                yield Sleep(60)
                continue
            message = yield from runtime.pull(kubelet, image, self.spec.get("imagePullPolicy") or "IfNotPresent")
            if not message:
                return
            self._wait_state("ErrImagePull", message, keep=True)
            if not self._failed_pulls:
                kubelet.event(self.pod, "Failed", f'Failed to pull image "{self.spec["image"]}": {message}')
            self._failed_pulls += 1
            yield Sleep(1.5)
            self._wait_state(
                "ImagePullBackOff", f'Back-off pulling image "{self.spec["image"]}": ErrImagePull: {message}', keep=True
            )
            yield Sleep(delay)
            delay = min(delay * 2, 300)

    def _have_config(self) -> Process:
        while True:
            try:
                self.env = {
                    **(images.environment(self.image) if self.image else {}),
                    **environment(self.pod, self.spec, self.pod.kubelet.store),
                }
                self.pod.volumes.creatable(self.spec)
                return
            except ConfigFailure as failure:
                self._wait_state(failure.reason, str(failure), keep=True)
                self.pod.kubelet.event(self.pod, "Failed", f"Error: {failure}")
            yield Sleep(10)

    @property
    def healthy(self) -> bool:
        """The result of an http probe of the program. Settled probes are repeated when it changes."""
        return self._healthy

    @healthy.setter
    def healthy(self, healthy: bool) -> None:
        if healthy != self._healthy:
            self._healthy = healthy
            self.pod.kubelet.host.changed()

    def serve(self, port: int, *paths: str) -> None:
        """Its program listens from now on."""
        self.serves[port] = paths
        self.pod.kubelet.host.changed()

    # -- the run

    def _run_once(self) -> Process:
        pod, kubelet = self.pod, self.pod.kubelet
        if self.log:
            self.previous_log = self.log
        self.log = collections.deque(maxlen=LOG_LINES)
        self.container_id = kubelet.clock.hexadecimal(64)
        self.healthy, self.ignores_term, self.at_exit, self.serves, self.page = True, False, [], {}, None
        privileged = bool((self.spec.get("securityContext") or {}).get("privileged"))
        self.view = View(kubelet.host, pod.volumes.mounts(self.spec), privileged, self._uid())
        if "terminated" in self.state:
            self.last_state = self.state
        begun = timestamp()
        error = runtime.prepare(self)
        if error:
            return self._ended(128, "StartError", begun, error)
        self.state = {"running": {"startedAt": begun}}
        self.started = not self.spec.get("startupProbe")
        self.ready = self.started and not self.spec.get("readinessProbe")
        pod.changed()
        self._probes = probes.start(self)
        try:
            code = yield from (self._starve() if self.starves else process.main(self))
        except Killed:
            code = _KILLED
        except Terminated:
            code = 143
        except (
            Exception
        ) as error:  # A bug of the simulation fails this container, and is reported in its log and the agent's.
            traceback.print_exc(limit=-4, file=sys.stderr)
            self.write_log(f"[sandbox] the simulation itself failed here: {error!r}\n")
            code = 70
        reason = "OOMKilled" if code == _KILLED and self.starves else "Error"
        return self._ended(code, "Completed" if code == 0 else reason, begun, "")

    @property
    def starves(self) -> bool:
        return bool(self.pod.kubelet.agent.faults.out_of_memory(self.pod.kubelet.host.spec, self.name))

    def _starve(self) -> Process:
        """It allocates memory until the kernel kills it, without a message in its log."""
        yield Sleep(self.pod.kubelet.clock.jitter(2))
        return _KILLED

    def _uid(self) -> int:
        """The user of the container, else of the pod, else of the image."""
        for context in (self.spec.get("securityContext"), self.pod.spec.get("securityContext")):
            if context and context.get("runAsUser") is not None:
                return int(context["runAsUser"])
        return images.user(self.image) if self.image else 0

    def _ended(self, code: int, reason: str, begun: str, message: str) -> int:
        if self._partial:
            self.write_log("\n")
        for task in self._probes:
            task.cancel()
        self._probes = []
        self._end_beside()
        for action in self.at_exit:
            action()
        self.at_exit = []
        self.pod.kubelet.host.released(self.container_id)
        self.state = {
            "terminated": {
                "exitCode": code,
                "reason": reason,
                "startedAt": begun,
                "finishedAt": timestamp(),
                "containerID": f"{self.runtime}://{self.container_id}",
                **({"message": message} if message else {}),
            }
        }
        self.ready = self.is_init and code == 0 and not self.sidecar
        self.started = False
        self.finished = self.is_init and code == 0
        self.pod.changed()
        return code

    def _end_beside(self) -> None:
        for end in self.beside:
            end()
        self.beside = []

    def write_log(self, text: str) -> None:
        """A program's output, of which only complete lines are logged."""
        *lines, self._partial = (self._partial + text).split("\n")
        now = timestamp() if lines else ""
        for line in lines:
            self.log.append(f"{now} {line}")

    def signal(self, signal: Signal) -> None:
        if (
            self.task
            and not self.task.done
            and "running" in self.state
            and not (isinstance(signal, Terminated) and self.ignores_term)
        ):
            self.task.interrupt(signal)

    def stopped_by_force(self) -> None:
        """The pod is gone from the API, so its processes are killed without a message."""
        self._ended(137, "Error", timestamp(), "")

    def power_cut(self) -> None:
        """The machine lost power: no handler of the container runs, and kubelet finds it gone afterwards."""
        if self.task:
            self.task.cancel()
        for task in self._probes:
            task.cancel()
        self._end_beside()
        self._probes, self.at_exit = [], []
        self._failed_pulls, self._backoff = 0, 0.0
        if "running" in self.state or ("terminated" not in self.state and self.container_id):
            running = self.state.get("running", {})
            self.state = {
                "terminated": {
                    "exitCode": 255,
                    "reason": "Unknown",
                    "startedAt": running.get("startedAt", timestamp()),
                    "finishedAt": timestamp(),
                    "containerID": f"{self.runtime}://{self.container_id}",
                }
            }
        self.ready = self.started = self.finished = False
