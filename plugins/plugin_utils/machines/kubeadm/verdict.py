# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a machine did not become a node, from what kubeadm has printed and what the journal of its kubelet and container runtime has. Pure.

Messages are those of kubeadm 1.36.4; each cause names the file that has them.
"""

from __future__ import annotations

import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import verdict as shared

_CAUSES = (
    # cmd/kubeadm/app/cmd/phases/join/kubelet.go
    shared.Cause(
        re.compile(r'a Node with name ".*" and status "Ready" already exists in the cluster'),
        "another machine has its name, and its node is Ready",
        "give the machine a name of its own by hwaccel_node_name, or delete the node if its machine is gone",
    ),
    # cmd/kubeadm/app/preflight/checks.go
    shared.PORT.also(r"Port \d+ is in use"),
    shared.SWAP,
    shared.CGROUP_1,
    shared.CGROUP_DRIVERS,
    shared.INOTIFY,
    # cmd/kubeadm/app/preflight/checks.go, cmd/kubeadm/app/util/runtime/runtime.go
    shared.RUNTIME.also(
        r"could not connect to the container runtime|container runtime is not running|found multiple CRI endpoints on the host"
        r"|container runtime condition \S+ is not true"
    ),
    # PullImage in cmd/kubeadm/app/util/runtime/runtime.go
    shared.IMAGE.also(r"failed to pull image"),
    # cmd/kubeadm/app/util/etcd/etcd.go
    shared.LEARNER.also(r"etcd member \S+ is not started"),
    # cmd/kubeadm/app/discovery/token/token.go
    shared.Cause(
        re.compile(
            r"is invalid for this cluster or it has expired|could not find a JWS signature|failed to verify JWS signature"
        ),
        "the cluster does not know the bootstrap token, or it has expired",
        "run again, which creates another one; if that does not help, read the log of kube-controller-manager, which signs with it, and compare clocks",
    ),
    shared.EXPIRED,
    shared.OTHER_NAMES,
    # cmd/kubeadm/app/util/pubkeypin/pubkeypin.go
    shared.OTHER_AUTHORITY.also(r"none of the public keys \S+ are pinned"),
    shared.UNREACHABLE,
)
_KUBEADM = shared.Installer(
    "cluster_kubeadm",
    _CAUSES,
    # Of kubeadm itself, and not of a library that goes on: a runtime without RuntimeConfig is an error of the CRI's client, and kubeadm only warns of it
    # (cmd/kubeadm/app/preflight/checks.go, app/util/error.go; pkg/remote_runtime.go of k8s.io/cri-client).
    errors=re.compile(r"^(?:error\b|\[ERROR \w|Error:)"),
    next_step="read the logs there (journalctl --unit kubelet --unit containerd), and run again",
    # kubeadm asks the kubelet whether it is healthy. That it is not is no cause (cmd/kubeadm/app/util/apiclient/wait.go).
    left_out=re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):\d+/(?:healthz|livez|readyz)"),
    # A kubelet is restarted until kubeadm has written its configuration.
    awaited=re.compile(r"open /var/lib/kubelet/config\.yaml: no such file"),
    # getClusterInfo in cmd/kubeadm/app/discovery/token/token.go
    endpoint=re.compile(r"cluster-info"),
)
output = shared.output


def verdict(host: str, endpoint: str, output: str, journal: str = "") -> Fault:
    """The verdict on a machine. output: of kubeadm, or why its node is not healthy, which the cause is taken from if it has one. journal: lines since the
    step began, oldest first. endpoint: host and port, empty where it need not be reached. A line is shown without its header, and shortened.
    """
    return shared.verdict(_KUBEADM, host, endpoint, output, journal)
