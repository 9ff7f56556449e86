# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""K3s on a Docker that is there, instead of the containerd that it brings. Pure.

K3s runs cri-dockerd in between (pkg/agent/cridockerd/cridockerd.go), which knows one handler only, docker (RunPodSandbox in core/sandbox_run.go of
k3s-io/cri-dockerd v0.3.19-k3s5): a pod of any other RuntimeClass does not start. What such a pod gets is the default runtime of Docker.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import options, places

Settings = c.Mapping[str, t.Any]
DOCKER = "docker"
#: The component of K3s with RuntimeClasses for handlers of containerd (pkg/deploy/stage.go, manifests/runtimes.yaml).
_RUNTIMES = "runtimes"


def is_docker(settings: Settings) -> bool:
    return bool(settings["engine"] == DOCKER)


def disabled(settings: Settings) -> list[str]:
    """Components of K3s that have no use on this engine."""
    return [_RUNTIMES] if is_docker(settings) and _RUNTIMES not in settings["disable"] else []


def changed(host: Host, settings: Settings) -> list[Fault]:
    """Of a member, whose containers another engine would not know."""
    now = options.merged([], {}, [host.text(places.CONFIGURATION)]).get(DOCKER) == ["true"]
    if places.CONFIGURATION not in host.files or now == is_docker(settings):
        return []
    runs, wanted = ("Docker", "containerd") if now else ("containerd", "Docker")
    what, why = (
        f"the node runs on {runs}, and {wanted} is set",
        "its containers would be left to an engine that has no kubelet",
    )
    next_step = (
        f"set the one that it has; or take the machine out (hwaccel_retired), and let it join again with {wanted}"
    )
    return [Fault(what, "cluster_k3s_engine", why, next_step)]


def faults(host: Host, settings: Settings) -> list[Fault]:
    if not is_docker(settings) or host.unit(DOCKER).active:
        return []
    why = "unit docker is not active" if host.unit(DOCKER).loaded else "it is not installed"
    next_step = "install and start it, or set cluster_k3s_engine: containerd"
    return [Fault("Docker does not run", "cluster_k3s_engine", why, next_step)]
