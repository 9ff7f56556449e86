# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on machines that did not become nodes, from messages that kubeadm, kubelet, containerd and runc have in their sources."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.verdict import output, verdict

_WAIT = "error execution phase kubelet-start: The HTTP call equal to 'curl -sSL http://127.0.0.1:10248/healthz' returned error: Get "
_WAIT += '"http://127.0.0.1:10248/healthz": dial tcp 127.0.0.1:10248: connect: connection refused\n'
_COULD_NOT = "error: error execution phase preflight: couldn't validate the identity of the API Server: "
#: What kubeadm prints, what the journal has, and words of the cause.
CASES = {
    "token": (
        _COULD_NOT + 'could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"',
        "",
        "bootstrap token",
    ),
    "expired token": (
        'token id "abcdef" is invalid for this cluster or it has expired. Use "kubeadm token create" on the control-plane node',
        "",
        "bootstrap token",
    ),
    "other authority": (
        _COULD_NOT
        + 'cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "sha256:0a" are pinned',
        "",
        "another authority",
    ),
    "no address": (
        _COULD_NOT
        + 'failed to request the cluster-info ConfigMap: Get "https://10.0.0.1:6443": tls: failed to verify certificate: '
        "x509: cannot validate certificate for 10.0.0.1 because it doesn't contain any IP SANs",
        "",
        "no certificate for the endpoint",
    ),
    "other names": (
        _COULD_NOT
        + 'failed to request the cluster-info ConfigMap: Get "https://api.example.com:6443/api": tls: failed to verify certificate: '
        "x509: certificate is valid for cp1, kubernetes, not api.example.com",
        "",
        "no certificate for the endpoint",
    ),
    "unknown authority": (
        _COULD_NOT
        + 'failed to request the cluster-info ConfigMap: Get "https://api.example.com:6443/api": tls: failed to verify certificate: '
        "x509: certificate signed by unknown authority",
        "",
        "another authority",
    ),
    "time": (
        'Get "https://api.example.com:6443/api": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: '
        "current time 2020-01-01T00:00:00Z is before 2026-11-27T00:00:00Z",
        "",
        "not valid at the time",
    ),
    "port": (
        "[preflight] Some fatal errors occurred:\n\t[ERROR Port-10250]: Port 10250 is in use",
        "",
        "port that it needs is in use",
    ),
    "kubelet's port": (
        _WAIT,
        'E1127 22:05:49.000000    77 server.go:209] "Failed to listen and serve" err="listen tcp 0.0.0.0:10250: bind: address already in use"',
        "port that it needs is in use",
    ),
    "refused": (
        _COULD_NOT
        + 'failed to request the cluster-info ConfigMap: Get "https://api.example.com:6443/api/v1": dial tcp 10.0.0.5:6443: connect: connection refused',
        "",
        "does not reach the API server",
    ),
    "timeout": (
        "failed to request the cluster-info ConfigMap: client rate limiter Wait returned an error: context deadline exceeded",
        "",
        "API server",
    ),
    "name": (
        'Get "https://api.example.com:6443/api": dial tcp: lookup api.example.com on 10.0.0.2:53: no such host',
        "",
        "API server",
    ),
    "cgroup 1": (
        _WAIT,
        'E1127 22:05:49.000000  77 run.go:72] "command failed" err="failed to validate kubelet configuration, error: kubelet is configured to not run on a '
        'host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release"',
        "cgroup version 1",
    ),
    "cgroup driver": (
        _WAIT,
        'E1127 22:05:49.000000  77 pod_workers.go:1] "Error syncing pod" err="runc create failed: expected cgroupsPath to be of format '
        r'\"slice:prefix:name\" for systemd cgroups, got \"/kubepods/pod1\" instead"',
        "different cgroup drivers",
    ),
    "swap": (
        _WAIT,
        'E1127 22:05:49.000000  77 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported, please disable swap"',
        "swap is on",
    ),
    "no runtime": (
        "\t[ERROR CRI]: could not connect to the container runtime: failed to create new CRI runtime service: validate service connection: "
        'validate CRI v1 runtime API for endpoint "unix:///run/containerd/containerd.sock": rpc error: code = Unavailable desc = connection error: '
        'desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: no such file or directory"',
        "",
        "container runtime does not answer",
    ),
    "taken name": (
        'error execution phase kubelet-start: a Node with name "w1" and status "Ready" already exists in the cluster. You must delete the existing Node',
        "",
        "another machine has its name",
    ),
    "image": (
        "\t[ERROR ImagePull]: failed to pull image registry.k8s.io/kube-proxy:v1.36.4: failed to do request: x509: certificate signed by unknown authority",
        "",
        "an image cannot be pulled",
    ),
    "pause image": (
        _WAIT,
        'time="2026-11-27T22:05:49Z" level=error msg="RunPodSandbox for &PodSandboxMetadata{} failed, error" error="failed to get sandbox image '
        r'\"registry.k8s.io/pause:3.10.2\": dial tcp: lookup registry.k8s.io: no such host"',
        "an image cannot be pulled",
    ),
    "inotify": (
        _WAIT,
        'E1127 22:05:49.000000  77 kubelet.go:1] "Failed to start cAdvisor" err="inotify_init: too many open files"',
        "inotify",
    ),
    "learner": (
        "error execution phase etcd-join: error creating local etcd static pod manifest file: etcdserver: can only promote a learner member which is in "
        "sync with leader",
        "",
        "does not vote yet",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_cause_is_told_with_its_line_and_a_next_step(name: str) -> None:
    printed, journal, words = CASES[name]
    fault = verdict(
        "w1",
        "api.example.com:6443" if "api." in printed else "10.0.0.5:6443",
        printed,
        f"I1127 22:05:48.0 77 a.go:1] started\n{journal}",
    )
    assert fault.what == "w1 did not become a healthy node"
    assert words in fault.why, fault.why
    assert fault.next_step and "{" not in fault.next_step
    assert "E1127" not in fault.why and "level=" not in fault.why


def test_what_kubeadm_has_printed_goes_before_the_journal() -> None:
    journal = (
        'E1127 22:05:49.0 77 a.go:1] "Unable to register" err="dial tcp 10.0.0.5:6443: connect: connection refused"'
    )
    assert "Port 10250 is in use" in verdict("w1", "a:6443", CASES["port"][0], journal).why


def test_without_a_known_cause_the_first_error_and_the_last_of_the_journal_are_shown() -> None:
    printed = "[preflight] Running pre-flight checks\nerror execution phase kubelet-start: something new\nTo see the stack trace run with --v=5"
    journal = "E1127 22:05:49.0 77 a.go:1] first\nE1127 22:05:50.0 77 a.go:1] last\nI1127 22:05:50.0 77 a.go:1] fine"
    fault = verdict("w1", "a:6443", printed, journal)
    assert fault.why == "error execution phase kubelet-start: something new; last"
    assert verdict("w1", "a:6443", "").why == "nothing was printed"


def test_an_error_of_a_library_is_not_shown_in_place_of_that_of_kubeadm() -> None:
    library = 'E1128 12:33:01.000000    77 remote_runtime.go:751] "RuntimeConfig from runtime service failed" err="rpc error: code = Unimplemented"'
    printed = f"{library}\n[preflight] Some fatal errors occurred:\n\t[ERROR ExternalEtcdVersion]: couldn't parse it"
    waiting = (
        'E1128 12:33:02.0 77 run.go:72] "command failed" err="failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, '
        'error: open /var/lib/kubelet/config.yaml: no such file or directory"'
    )
    assert verdict("cp1", "", printed, waiting).why == "[ERROR ExternalEtcdVersion]: couldn't parse it"


def test_a_runtime_that_the_machine_does_not_have_is_not_the_cause() -> None:
    """Of a kubelet whose containerd started no sandbox."""
    tried = (
        'I1128 19:44:01.0 77 factory.go:219] Registration of the crio container factory failed: Get "http://%2Fvar%2Frun%2Fcrio%2Fcrio.sock/info": '
        "dial unix /var/run/crio/crio.sock: connect: no such file or directory"
    )
    logged = 'E1128 19:44:02.0 77 pod_workers.go:1] "Error syncing pod, skipping" err="failed to create pod sandbox"'
    fault = verdict("cp1", "", _WAIT, f"{tried}\n{logged}")
    assert "does not answer" not in fault.why and "failed to create pod sandbox" in fault.why


def test_a_kubelet_that_is_not_healthy_is_not_the_cause() -> None:
    fault = verdict("w1", "a:6443", _WAIT)
    assert "does not reach" not in fault.why and "10248" in fault.why


def test_tokens_and_long_lines_are_not_shown_as_a_whole() -> None:
    fault = verdict("w1", "a:6443", f"error: abcdef.0123456789abcdef was refused {'x' * 1000}")
    assert "0123456789abcdef" not in str(fault) and len(fault.why) <= 400


def test_only_the_endpoint_has_to_be_reached() -> None:
    own = "the API server at https://10.0.0.11:6443: <urlopen error [Errno 111] Connection refused>"
    etcd = 'E1127 22:05:49.0 77 a.go:1] "dial tcp 10.0.0.12:2379: connect: connection refused"'
    assert "does not reach" not in verdict("cp2", "10.0.0.5:6443", own, etcd).why
    told = "the API server at https://10.0.0.5:6443: <urlopen error timed out>"
    assert "does not reach the API server" in verdict("w1", "10.0.0.5:6443", told).why
    assert "does not reach" not in verdict("cp1", "", told).why


def test_what_kubeadm_has_printed_is_read_from_a_result() -> None:
    assert (
        output({"stderr": "error: it", "stdout": "[preflight]", "msg": "non-zero return code"})
        == "error: it\n[preflight]"
    )
    assert output({"unreachable": True, "msg": "no route"}) == "no route"
    assert output({}) == ""
