# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a machine did not become a node, from what kubeadm has printed and what the journal of its kubelet and container runtime has. Pure.

Messages are those of Kubernetes 1.36.4, containerd 2 and runc 1.5; each cause names the file that has them.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: Longest line in a message.
_LONGEST = 400
#: A bootstrap token. kubeadm prints none where it is asked not to, but other programs may.
_TOKEN = re.compile(r"\b([a-z0-9]{6})\.[a-z0-9]{16}\b")
#: Header of klog, and the fields that containerd's lines begin with.
_HEADERS = re.compile(r'^(?:[IWEF]\d{4} [\d:.]+\s+\d+ [\w.-]+:\d+\] |time="[^"]*" level=\w+ (?:msg=)?)')
_ERRORS = re.compile(r"^(?:error|\[ERROR \w|[EF]\d{4} |Error:|.*\blevel=(?:error|fatal)\b)")
#: Of kubeadm itself, and not of a library that goes on: a runtime without RuntimeConfig is an error of the CRI's client, and kubeadm only warns of it
#: (cmd/kubeadm/app/preflight/checks.go, app/util/error.go; pkg/remote_runtime.go of k8s.io/cri-client).
_OF_KUBEADM = re.compile(r"^(?:error\b|\[ERROR \w|Error:)")
#: kubeadm asks the kubelet whether it is healthy. That it is not is no cause (cmd/kubeadm/app/util/apiclient/wait.go).
_OF_KUBELET = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):\d+/(?:healthz|livez|readyz)")
#: Each kubelet tries all runtimes that it knows, and tells of those that a machine has not (container/plugin.go of cAdvisor).
_OF_CADVISOR = re.compile(r"Registration of the \S+ container factory failed")
#: A kubelet is restarted until kubeadm has written its configuration.
_AWAITS_KUBEADM = "open /var/lib/kubelet/config.yaml: no such file"


@dataclasses.dataclass(frozen=True)
class _Cause:
    """lines: those that show it. why: in words. next_step: what ends it."""

    lines: re.Pattern[str]
    why: str
    next_step: str


#: Those that others may be a result of, or whose lines have words of others, come first.
_CAUSES = (
    # cmd/kubeadm/app/cmd/phases/join/kubelet.go
    _Cause(
        re.compile(r'a Node with name ".*" and status "Ready" already exists in the cluster'),
        "another machine has its name, and its node is Ready",
        "give the machine a name of its own by hwaccel_node_name, or delete the node if its machine is gone",
    ),
    # cmd/kubeadm/app/preflight/checks.go; net.OpError of the kubelet's servers (pkg/kubelet/server/server.go)
    _Cause(
        re.compile(r"Port \d+ is in use|bind: address already in use"),
        "a port that it needs is in use",
        "find the process with `ss --listening --tcp --processes`, and stop it, or give it another port",
    ),
    # pkg/kubelet/cm/container_manager_linux.go
    _Cause(
        re.compile(r"running with swap on is not supported"),
        "swap is on",
        "run swapoff --all and remove it from /etc/fstab, or set failSwapOn: false and memorySwap",
    ),
    # pkg/kubelet/apis/config/validation/validation_linux.go
    _Cause(
        re.compile(r"kubelet is configured to not run on a host using cgroup v1"),
        "the machine has cgroup version 1",
        "boot with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false in its configuration",
    ),
    # libcontainer/specconv/spec_linux.go of runc
    _Cause(
        re.compile(r"expected cgroupsPath to be of format \W*slice:prefix:name"),
        "kubelet and container runtime have different cgroup drivers",
        "set SystemdCgroup of containerd and cluster_kubeadm_cgroup_driver to the same driver, and restart containerd",
    ),
    # inotify_init1(2) in pkg/kubelet/config/file_linux.go, cadvisor and fsnotify
    _Cause(
        re.compile(r"too many open files"),
        "the limit of inotify instances, or of open files, is reached",
        "set fs.inotify.max_user_instances to 8192 in /etc/sysctl.d, and run sysctl --system",
    ),
    # cmd/kubeadm/app/preflight/checks.go, cmd/kubeadm/app/util/runtime/runtime.go, k8s.io/cri-client/pkg/remote_runtime.go, grpc's transport
    _Cause(
        re.compile(
            r"could not connect to the container runtime|container runtime is not running|validate CRI v1 (?:runtime|image) API"
            r"|found multiple CRI endpoints on the host|container runtime condition \S+ is not true|container runtime is down"
            r"|dial unix \S+: connect: (?:no such file or directory|connection refused)"
        ),
        "the container runtime does not answer at its socket",
        "start it and read its log (journalctl --unit containerd), or correct cluster_kubeadm_runtime_socket",
    ),
    # PullImage in cmd/kubeadm/app/util/runtime/runtime.go; internal/cri/server/{images/image_pull,podsandbox/sandbox_run}.go of containerd
    _Cause(
        re.compile(
            r"failed to pull image|failed to pull and unpack image|failed to get sandbox image|\b(?:ErrImagePull|ImagePullBackOff)\b"
        ),
        "an image cannot be pulled",
        "correct cluster_kubeadm_image_repository or cluster_kubeadm_pause_image, or give the image by cluster_kubeadm_images",
    ),
    # cmd/kubeadm/app/util/etcd/etcd.go; api/v3rpc/rpctypes/error.go of etcd
    _Cause(
        re.compile(
            r"can only promote a learner member which is in sync with leader|too many learner members in cluster|etcd member \S+ is not started"
        ),
        "its member of etcd does not catch up with the leader, and so does not vote yet",
        "compare disks and network between the servers, and wait until a learner that is left is a voter or was removed (etcdctl member list)",
    ),
    # cmd/kubeadm/app/discovery/token/token.go
    _Cause(
        re.compile(
            r"is invalid for this cluster or it has expired|could not find a JWS signature|failed to verify JWS signature"
        ),
        "the cluster does not know the bootstrap token, or it has expired",
        "run again, which creates another one; if that does not help, read the log of kube-controller-manager, which signs with it, and compare clocks",
    ),
    # crypto/x509/verify.go of Go
    _Cause(
        re.compile(r"certificate has expired or is not yet valid"),
        "a certificate is not valid at the time of one of the machines",
        "compare the clock with those of the servers (timedatectl), and start chronyd or systemd-timesyncd, and renew a certificate that has expired",
    ),
    # HostnameError in crypto/x509/verify.go of Go
    _Cause(
        re.compile(
            r"cannot validate certificate for \S+ because|certificate is valid for .+, not|certificate is not valid for any names"
        ),
        "what answers has no certificate for the endpoint",
        "correct hwaccel_api_endpoint, or a proxy that takes the traffic, or add the name to cluster_kubeadm_names",
    ),
    # cmd/kubeadm/app/util/pubkeypin/pubkeypin.go; crypto/x509/verify.go of Go
    _Cause(
        re.compile(r"none of the public keys \S+ are pinned|certificate signed by unknown authority"),
        "what answers has a certificate of another authority than the cluster's",
        "correct hwaccel_api_endpoint, or the members of its load balancer, or a proxy that takes the traffic",
    ),
)
#: Of requests to the endpoint only: a server's own API server, and etcd, do not answer until they are started.
#: getClusterInfo in cmd/kubeadm/app/discovery/token/token.go; package net of Go; urllib of Python.
_UNREACHABLE = _Cause(
    re.compile(
        r"connection refused|connection reset by peer|i/o timeout|timed out|no such host|no route to host|network is unreachable|operation not permitted"
        r"|context deadline exceeded|Client\.Timeout|TLS handshake timeout|proxyconnect|Name or service not known",
        re.IGNORECASE,
    ),
    "it does not reach the API server",
    "ask it from the machine (curl --insecure https://{endpoint}/readyz), and correct the name, the route, a firewall, a proxy or the load balancer",
)


def verdict(host: str, endpoint: str, output: str, journal: str = "") -> Fault:
    """The verdict on a machine. output: of kubeadm, or why its node is not healthy, which the cause is taken from if it has one. journal: lines since the
    step began, oldest first. endpoint: host and port, empty where it need not be reached. A line is shown without its header, and shortened.
    """
    told, logged = _lines(output), _lines(journal)
    what = f"{host} did not become a healthy node"
    for lines in (told, logged):
        for cause in (*_CAUSES, _UNREACHABLE):
            if line := next((line for line in lines if _shows(line, cause, endpoint)), ""):
                return Fault(what, "", f"{cause.why} ({_shown(line)})", cause.next_step.format(endpoint=endpoint))
    line = next(
        (line for wanted in (_OF_KUBEADM, _ERRORS) for line in told if wanted.search(line)), next(iter(told), "")
    )
    own = next((line for line in reversed(logged) if _ERRORS.search(line) and _AWAITS_KUBEADM not in line), "")
    why = "; ".join(_shown(one) for one in (line, own) if one) or "nothing was printed"
    return Fault(what, "", why, "read the logs there (journalctl --unit kubelet --unit containerd), and run again")


def output(result: c.Mapping[str, object]) -> str:
    """What kubeadm has printed, errors first, from a result of Ansible, which has only a message if kubeadm did not end."""
    printed = [str(result.get(name) or "") for name in ("stderr", "stdout")]
    return "\n".join(filter(None, printed)) or str(result.get("msg") or "")


def _shows(line: str, cause: _Cause, endpoint: str) -> bool:
    if cause is _UNREACHABLE and not (endpoint and (endpoint.rpartition(":")[0] in line or "cluster-info" in line)):
        return False
    return bool(cause.lines.search(line)) and not (_OF_KUBELET.search(line) or _OF_CADVISOR.search(line))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _shown(line: str) -> str:
    """Without the header of a log, without the secret of a token, and not longer than a message may be."""
    text = _TOKEN.sub(r"\1.…", _HEADERS.sub("", line)).strip().rstrip(".")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
