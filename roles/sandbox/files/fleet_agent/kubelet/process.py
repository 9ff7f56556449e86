# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process inside a container: its environment, and how a command line becomes a simulated program."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Callable
from typing import Any

from fleet_agent.cluster.api import Identity, Informer, Unreachable, service_account_identity
from fleet_agent.kubelet.volumes import expand
from fleet_agent.loop import Call, Park, Process
from fleet_agent.programs import registry, tables
from fleet_agent.shell import scripts

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
SHELLS = ("sh", "bash", "ash", "dash")
#: EACCES, as programs in Go write it.
_DENIED = "permission denied"


@dataclasses.dataclass
class Proc:
    """The environment of a program."""

    container: Any
    argv: list[str]
    env: dict[str, str]
    out: Callable[[str], None]
    stdin: str = ""
    #: Flags and variables of a program that has a table.
    settings: Any = None

    @property
    def view(self) -> Any:
        return self.container.view

    @property
    def pod(self) -> Any:
        return self.container.pod

    @property
    def kubelet(self) -> Any:
        return self.container.pod.kubelet

    @property
    def host(self) -> Any:
        return self.container.pod.kubelet.host

    @property
    def clock(self) -> Any:
        return self.container.pod.kubelet.clock

    @property
    def privileged(self) -> bool:
        """Capabilities of a privileged container only have an effect for root, not for other users (capabilities(7), execve)."""
        return bool(self.view.privileged and self.view.uid == 0)

    def image_has(self, name: str) -> bool:
        """Whether the image has a program of that name, in addition to those of its shell."""
        return registry.find(self.container.image, name) is not None

    def say(self, line: str) -> None:
        self.out(line + "\n")

    @property
    def identity(self) -> Identity:
        pod = self.pod
        return service_account_identity(
            pod.namespace, pod.account, (pod.name, pod.uid), (pod.kubelet.name, pod.kubelet.uid)
        )

    def _have_token(self) -> None:
        """Raises Unreachable as client-go's InClusterConfig does, where the pod has no token of its ServiceAccount."""
        if not self.view.is_file(TOKEN):
            raise Unreachable(f"open {TOKEN}: no such file or directory")

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> Process:
        """A request with this pod's service account; raises ApiError if the server refuses it."""
        tables.confirm(self.settings, tables.request_of(method, path))
        self._have_token()
        identity = self.identity
        return (yield Call(lambda: self.kubelet.api.request(method, path, body, identity=identity, **options)))

    def watch(self, path: str, on_event: Callable[[str, dict[str, Any]], None], **options: Any) -> None:
        """Lists and watches with this pod's service account, until the container ends."""
        _verb, group, resource = tables.request_of("GET", path)
        tables.confirm(self.settings, ("list", group, resource), ("watch", group, resource))
        self._have_token()
        informer = Informer(self.kubelet.api, path, on_event, self.identity, **options)
        informer.start()
        self.container.beside.append(informer.stop)


def command_line(container: Any) -> list[str]:
    """command and args with $(NAME) expanded; the image's entry point where no command is given."""
    words = list(container.spec.get("command") or []) or list(registry.entry_point(container.image))
    arguments = container.spec.get("args")
    if arguments is None and not container.spec.get("command"):
        arguments = registry.default_arguments(container.image)
    return [expand(word, container.env) for word in [*words, *(arguments or [])]]


def executable_fault(container: Any, argv: list[str]) -> str:
    """The runtime's message when the command cannot be started at all."""
    if not container.image.family or not argv:
        return "" if argv or not container.image.family else "no command specified"
    name = posixpath.basename(argv[0])
    if registry.find(container.image, name) or (name in SHELLS and registry.shell_in(container.image)):
        return ""
    is_file = container.view.is_file(argv[0])
    if (is_file and _may_execute(container, argv[0])) or (registry.shell_in(container.image) and scripts.is_tool(name)):
        return ""
    if is_file:
        what = f'exec: "{argv[0]}": {_DENIED}'
    elif "/" in argv[0]:
        what = f'exec: "{argv[0]}": stat {argv[0]}: no such file or directory'
    else:
        what = f'exec: "{argv[0]}": executable file not found in $PATH'
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
        f"unable to start container process: error during container init: {what}"
    )


def _may_execute(container: Any, path: str) -> bool:
    """A file of a ConfigMap or Secret has the mode of its volume, which is 0644 by default (SetDefaults_ConfigMapVolumeSource of kubernetes v1.36.4)."""
    beneath = [
        mount
        for mount in container.spec.get("volumeMounts") or []
        if f"{path}/".startswith(mount["mountPath"].rstrip("/") + "/")
    ]
    name = max(beneath, key=lambda mount: len(mount["mountPath"]))["name"] if beneath else ""
    volume: dict[str, Any] = next((one for one in container.pod.spec.get("volumes") or [] if one["name"] == name), {})
    source = volume.get("configMap") or volume.get("secret")
    return source is None or bool((source.get("defaultMode") or 0o644) & 0o111)


def main(container: Any) -> Process:
    """The container's first process; returns its exit code."""
    argv = command_line(container)
    label = posixpath.basename(argv[0]) if argv else container.image.basename
    container.write_log(f"[sandbox] simulated {label} on node {container.pod.kubelet.name}\n")
    proc = Proc(container, argv, dict(container.env), container.write_log)
    if not argv:
        yield Park()
        return 0
    return (yield from execute(proc, first=True))


def execute(proc: Proc, first: bool = False) -> Process:
    """Run argv of `proc`. Unknown programs of unknown images just run. In known images they do not exist."""
    name = posixpath.basename(proc.argv[0])
    if name in SHELLS and registry.shell_in(proc.container.image):
        if first:
            proc.container.ignores_term = not proc.pod.spec.get("hostPID")
        return (yield from scripts.run_shell(proc, execute))
    program = registry.find(proc.container.image, name)
    if program:
        if first:
            proc.container.ignores_term = False
        return (yield from tables.checked(name, program)(proc))
    if "/" in proc.argv[0] and proc.view.is_file(proc.argv[0]):
        if not _may_execute(proc.container, proc.argv[0]):
            proc.say(f'exec: "{proc.argv[0]}": {_DENIED}')
            return 126
        return (yield from scripts.run_file(proc, proc.argv[0], execute))
    if first and not proc.container.image.family:
        yield Park()
        return 0
    return (yield from scripts.run_words(proc, execute))


def run_probe(container: Any, command: list[str], out: Callable[[str], None]) -> Process:
    """exec into a running container (probes, preStop)."""
    return (yield from execute(Proc(container, [expand(w, container.env) for w in command], dict(container.env), out)))
