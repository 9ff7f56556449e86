# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a machine did not become a node, from what its installer has printed and what the journal of its units has. Pure.

Messages are those of Kubernetes 1.36.4, containerd 2, runc 1.5, etcd 3.6 and Go; each cause names the file that has them.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: Longest line in a message.
_LONGEST = 400
#: A bootstrap token. Installers print none where they are asked not to, but other programs may.
_TOKEN = re.compile(r"\b([a-z0-9]{6})\.[a-z0-9]{16}\b")
#: Header of klog, and the fields that lines of logrus begin with.
_HEADERS = re.compile(r'^(?:[IWEF]\d{4} [\d:.]+\s+\d+ [\w.-]+:\d+\] |time="[^"]*" level=\w+ (?:msg=)?)')
_ERRORS = re.compile(r"^(?:error|\[ERROR \w|[EF]\d{4} |Error:|.*\blevel=(?:error|fatal)\b)")
#: Each kubelet tries all runtimes that it knows, and logs those that a machine has not (container/plugin.go of cAdvisor).
_OF_CADVISOR = re.compile(r"Registration of the \S+ container factory failed")


@dataclasses.dataclass(frozen=True)
class Cause:
    """lines: those that show it. why: in words. next_step: what ends it, with the fields {role} and {endpoint}.

    of_endpoint: whether only a line counts that is of a request to the endpoint. over: lines after which it no longer holds. detail: lines that say more of it.
    """

    lines: re.Pattern[str]
    why: str
    next_step: str
    of_endpoint: bool = False
    over: re.Pattern[str] | None = None
    detail: re.Pattern[str] | None = None

    def also(self, lines: str) -> Cause:
        """The same cause, which other lines of an installer show as well."""
        return dataclasses.replace(self, lines=re.compile(f"{self.lines.pattern}|{lines}", self.lines.flags))


@dataclasses.dataclass(frozen=True)
class Installer:
    """role: its name, with which its variables begin. causes: those that others may be a result of, or whose lines have words of others, come first.

    errors: how lines begin with which it reports its own errors. left_out: lines that show no cause, whatever they say. awaited: errors that pass by
    themselves. next_step: what to read if no cause is known. endpoint: lines of requests to the endpoint that do not name it.
    ends: lines with which its program ends. If it has such lines, one journal has all of its components, of which many log errors while they start:
    what ended the program then counts before its errors, and these before all else. shown: what lines have in their place when they are reported.
    """

    role: str
    causes: tuple[Cause, ...]
    errors: re.Pattern[str]
    next_step: str
    left_out: re.Pattern[str]
    awaited: re.Pattern[str] | None = None
    endpoint: re.Pattern[str] | None = None
    ends: re.Pattern[str] | None = None
    shown: tuple[tuple[re.Pattern[str], str], ...] = ()


# net.OpError of Go, of the kubelet's servers (pkg/kubelet/server/server.go) and of others
PORT = Cause(
    re.compile(r"bind: address already in use"),
    "a port that it needs is in use",
    "find the process with `ss --listening --tcp --processes`, and stop it, or give it another port",
)
# pkg/kubelet/cm/container_manager_linux.go
SWAP = Cause(
    re.compile(r"running with swap on is not supported"),
    "swap is on",
    "run swapoff --all and remove it from /etc/fstab, or set failSwapOn: false and memorySwap",
)
# pkg/kubelet/apis/config/validation/validation_linux.go
CGROUP_1 = Cause(
    re.compile(r"kubelet is configured to not run on a host using cgroup v1"),
    "the machine has cgroup version 1",
    "boot with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false in its configuration",
)
# libcontainer/specconv/spec_linux.go of runc
CGROUP_DRIVERS = Cause(
    re.compile(r"expected cgroupsPath to be of format \W*slice:prefix:name"),
    "kubelet and container runtime have different cgroup drivers",
    "set SystemdCgroup of containerd and {role}_cgroup_driver to the same driver, and restart containerd",
)
# inotify_init1(2) in pkg/kubelet/config/file_linux.go, cadvisor and fsnotify
INOTIFY = Cause(
    re.compile(r"too many open files"),
    "the limit of inotify instances, or of open files, is reached",
    "set fs.inotify.max_user_instances to 8192 in /etc/sysctl.d, and run sysctl --system",
)
# k8s.io/cri-client/pkg/remote_runtime.go, pkg/kubelet/runtime.go, grpc's transport
RUNTIME = Cause(
    re.compile(
        r"validate CRI v1 (?:runtime|image) API|container runtime is down"
        r"|dial unix \S+: connect: (?:no such file or directory|connection refused)"
    ),
    "the container runtime does not answer at its socket",
    "start it and read its log (journalctl --unit containerd), or correct {role}_runtime_socket",
)
# internal/cri/server/{images/image_pull,podsandbox/sandbox_run}.go of containerd, pkg/kubelet/images/types.go
IMAGE = Cause(
    re.compile(r"failed to pull and unpack image|failed to get sandbox image|\b(?:ErrImagePull|ImagePullBackOff)\b"),
    "an image cannot be pulled",
    "correct {role}_image_repository or {role}_pause_image, or give the image by {role}_images",
)
# api/v3rpc/rpctypes/error.go of etcd
LEARNER = Cause(
    re.compile(r"can only promote a learner member which is in sync with leader|too many learner members in cluster"),
    "its member of etcd does not catch up with the leader, and so does not vote yet",
    "compare disks and network between the servers, and wait until a learner that is left is a voter or was removed (etcdctl member list)",
)
# crypto/x509/verify.go of Go
EXPIRED = Cause(
    re.compile(r"certificate has expired or is not yet valid"),
    "a certificate is not valid at the time of one of the machines",
    "compare the clock with those of the servers (timedatectl), and start chronyd or systemd-timesyncd, and renew a certificate that has expired",
)
# HostnameError in crypto/x509/verify.go of Go
OTHER_NAMES = Cause(
    re.compile(
        r"cannot validate certificate for \S+ because|certificate is valid for .+, not|certificate is not valid for any names"
    ),
    "what answers has no certificate for the endpoint",
    "correct hwaccel_api_endpoint, or a proxy that takes the traffic, or add the name to {role}_names",
)
# crypto/x509/verify.go of Go
OTHER_AUTHORITY = Cause(
    re.compile(r"certificate signed by unknown authority"),
    "what answers has a certificate of another authority than the cluster's",
    "correct hwaccel_api_endpoint, or the members of its load balancer, or a proxy that takes the traffic",
)
#: Of requests to the endpoint only: a server's own API server, and etcd, do not answer until they are started.
#: Package net of Go; urllib of Python.
UNREACHABLE = Cause(
    re.compile(
        r"connection refused|connection reset by peer|i/o timeout|timed out|no such host|no route to host|network is unreachable|operation not permitted"
        r"|context deadline exceeded|Client\.Timeout|TLS handshake timeout|proxyconnect|Name or service not known",
        re.IGNORECASE,
    ),
    "it does not reach the API server",
    "ask it from the machine (curl --insecure https://{endpoint}/readyz), and correct the name, the route, a firewall, a proxy or the load balancer",
    of_endpoint=True,
)


def verdict(installer: Installer, host: str, endpoint: str, output: str, journal: str) -> Fault:
    """The verdict on a machine. output: of the installer's program, or why its node is not healthy. journal: lines since the step began, oldest first.
    endpoint: host and port, empty where it need not be reached. A line is shown without its header, and shortened.
    """
    told, logged = _lines(output), _lines(journal)
    what = f"{host} did not become a healthy node"
    for among, lines, causes in _order(installer, told, logged):
        for cause in causes:
            if line := next((line for line in lines if _shows(installer, cause, endpoint, among, line)), None):
                why = f"{cause.why} ({_shown(installer, '; '.join((line.text, *_details(cause, among))))})"
                return Fault(what, "", why, cause.next_step.format(role=installer.role, endpoint=endpoint))
    errors = (_told_error(installer, told), _logged_error(installer, logged))
    why = "; ".join(_shown(installer, one) for one in errors if one) or "nothing was printed"
    return Fault(what, "", why, installer.next_step)


def output(result: c.Mapping[str, object]) -> str:
    """What a program has printed, errors first, from a result of Ansible, which has only a message if the program did not end."""
    printed = [str(result.get(name) or "") for name in ("stderr", "stdout")]
    return "\n".join(filter(None, printed)) or str(result.get("msg") or "")


@dataclasses.dataclass(frozen=True)
class _Line:
    """number: its place among those with which it was read."""

    number: int
    text: str


_Step = tuple[list[_Line], list[_Line], tuple[Cause, ...]]


def _order(installer: Installer, told: list[_Line], logged: list[_Line]) -> c.Iterator[_Step]:
    """What is looked at one after the other: all lines that were read together, those of them that are looked at, and the causes that they may show."""
    if installer.ends is None:
        yield told, told, installer.causes
        yield logged, logged, installer.causes
        return
    among = [*logged, *(_Line(len(logged) + line.number, line.text) for line in told)]
    # A program that could ask the endpoint later on has failed because of what came then.
    last = tuple(cause for cause in installer.causes if cause.of_endpoint)
    first = tuple(cause for cause in installer.causes if not cause.of_endpoint)
    ended = [line for line in among if installer.ends.search(line.text)]
    errors = [line for line in among if line not in ended and installer.errors.search(line.text)]
    rest = [line for line in among if line not in ended and line not in errors]
    # It is started again and again, and what ends it later can be a result of what ended it first.
    for line in ended:
        yield among, [line], first
    yield among, ended, last
    for causes in (first, last):
        yield among, errors, causes
        yield among, rest, causes


def _shows(installer: Installer, cause: Cause, endpoint: str, among: list[_Line], line: _Line) -> bool:
    if not cause.lines.search(line.text) or installer.left_out.search(line.text) or _OF_CADVISOR.search(line.text):
        return False
    if cause.over and any(cause.over.search(later.text) for later in among[line.number + 1 :]):
        return False
    return not cause.of_endpoint or _is_of_endpoint(installer, endpoint, line.text)


def _is_of_endpoint(installer: Installer, endpoint: str, line: str) -> bool:
    unnamed = installer.endpoint is not None and bool(installer.endpoint.search(line))
    return bool(endpoint) and (endpoint.rpartition(":")[0] in line or unnamed)


def _details(cause: Cause, among: list[_Line]) -> list[str]:
    """Each is repeated with each start of a program, with another time."""
    if cause.detail is None:
        return []
    found = [match[0] for line in among if (match := cause.detail.search(line.text))]
    return list(dict.fromkeys(found))


def _told_error(installer: Installer, told: list[_Line]) -> str:
    found = (line.text for wanted in (installer.errors, _ERRORS) for line in told if wanted.search(line.text))
    return next(found, told[0].text if told else "")


def _logged_error(installer: Installer, logged: list[_Line]) -> str:
    """With what the program ended first, and otherwise the last error."""
    texts = [line.text for line in logged if not (installer.awaited and installer.awaited.search(line.text))]
    if installer.ends is None:
        return next((text for text in reversed(texts) if _ERRORS.search(text)), "")
    ended = (text for text in texts if installer.ends.search(text))
    errors = (text for wanted in (installer.errors, _ERRORS) for text in reversed(texts) if wanted.search(text))
    return next(ended, next(errors, ""))


def _lines(text: str) -> list[_Line]:
    kept = [line.strip() for line in text.splitlines() if line.strip()]
    return [_Line(number, line) for number, line in enumerate(kept)]


def _shown(installer: Installer, line: str) -> str:
    """Without the header of a log, without the secret of a token, and not longer than a message may be."""
    text = _HEADERS.sub("", line)
    for pattern, replacement in (*installer.shown, (_TOKEN, r"\1.…")):
        text = pattern.sub(replacement, text)
    text = text.strip().rstrip(".")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
