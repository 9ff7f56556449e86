# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on machines that did not become nodes, from messages that K3s and what it contains have in their sources."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.verdict import output, verdict

_ENDPOINT = "api.example.com:6443"
_HASH, _OTHER = "0a" * 32, "1b" * 32
_PASSWORD = "d5f0c3e9a7b1428896"
_FAILED = 'Unable to start service k3s: Job for k3s.service failed because the control process exited with error code.\nSee "journalctl -xeu k3s.service".'
_BOOTSTRAP = "Error: preparing server: failed to bootstrap cluster data: "
_TOKEN = f"{_BOOTSTRAP}failed to check if bootstrap data has been initialized: failed to validate token: "


def entry(level: str, text: str) -> str:
    """As the formatter of logrus quotes it."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'time="2026-11-27T22:05:49Z" level={level} msg="{quoted}"'


def stopped(text: str) -> str:
    return entry("error", f"Shutdown request received: {text}")


def waiting(text: str) -> str:
    return entry("info", f"Waiting to retrieve agent configuration; server is not ready: {text}")


#: What a server logs in each start, though all is well.
NORMAL = "\n".join(
    (
        entry("info", "Starting k3s v1.36.4+k3s1 (0123abcd)"),
        entry(
            "warning",
            "Cluster CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash.",
        ),
        waiting("https://127.0.0.1:6443/v1-k3s/readyz: 500 Internal Server Error"),
        entry("error", "Sending HTTP/2.0 503 response to 127.0.0.1:49326: runtime core not ready"),
        "http: TLS handshake error from 10.0.0.21:41234: remote error: tls: bad certificate",
        entry("info", "Running kube-apiserver --advertise-port=6443 --secure-port=6444"),
        entry(
            "info",
            "Failed to test etcd connection: this server has not yet been promoted from learner to voting member",
        ),
        entry("info", "Connection to etcd is ready"),
        entry("info", "Running containerd -c /var/lib/rancher/k3s/agent/etc/containerd/config.toml"),
        entry(
            "info",
            'Waiting for containerd startup: rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: '
            'dial unix /run/k3s/containerd/containerd.sock: connect: no such file or directory"',
        ),
        entry("info", "containerd is now running"),
        entry("info", "Running kubelet --cgroup-driver=systemd"),
        'I1127 22:05:51.0 77 factory.go:219] Registration of the crio container factory failed: Get "http://%2Fvar%2Frun%2Fcrio%2Fcrio.sock/info": '
        "dial unix /var/run/crio/crio.sock: connect: no such file or directory",
        'E1127 22:05:51.000000      77 eviction_manager.go:282] "Eviction manager: failed to get summary stats" err="node \\"s1\\" not found"',
    )
)
#: What the journal has, and words of the cause.
CASES = {
    "hash": (
        entry(
            "error",
            f"Failed to validate connection to cluster at https://{_ENDPOINT}: token CA hash does not match the Cluster CA certificate hash: "
            f"{_HASH} != {_OTHER}",
        ),
        "cluster with another authority",
    ),
    "wrong token of an agent": (
        waiting("failed to retrieve configuration from server: not authorized"),
        "do not accept its token",
    ),
    "wrong token of an older agent": (
        waiting("failed to retrieve configuration from server: https://127.0.0.1:6444/v1-k3s/config: 401 Unauthorized"),
        "do not accept its token",
    ),
    "wrong token of a server": (entry("fatal", f"{_BOOTSTRAP}not authorized"), "do not accept its token"),
    "token of agents for a server": (entry("fatal", f"{_BOOTSTRAP}forbidden"), "do not accept its token"),
    "malformed token": (entry("fatal", f"{_TOKEN}invalid token CA hash length"), "do not accept its token"),
    "no token of a server": (
        entry(
            "fatal",
            f"{_BOOTSTRAP}failed to check if bootstrap data has been initialized: token is required to join a cluster",
        ),
        "or it has none",
    ),
    "no token of an agent": (entry("fatal", "Error: --token is required"), "or it has none"),
    "different token": (
        entry(
            "fatal",
            f"{_BOOTSTRAP}failed to reconcile with local datastore: bootstrap data already found and encrypted with different token",
        ),
        "the data of the cluster is encrypted",
    ),
    "different token, later": (
        stopped("failed to save bootstrap data: bootstrap data already found and encrypted with different token"),
        "the data of the cluster is encrypted",
    ),
    "older files": (
        entry(
            "fatal",
            "/var/lib/rancher/k3s/server/cred/passwd newer than datastore and could cause a cluster outage. Remove the file(s) from disk and "
            "restart to be recreated from datastore.",
        ),
        "files of another installation",
    ),
    "mismatch": (
        entry("warning", "critical configuration mismatched: cluster-cidr")
        + "\n"
        + entry(
            "fatal",
            f"{_BOOTSTRAP}failed to validate server configuration: critical configuration value mismatch between servers",
        ),
        "between servers; critical configuration mismatched: cluster-cidr)",
    ),
    "taken name": (
        waiting(
            "Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry, "
            "try enabling a unique node name with the --with-node-id flag"
        ),
        "another machine has its name",
    ),
    "taken name of a member": (
        stopped('"etcd cluster join failed: duplicate node name found, please use a unique name for this node"'),
        "etcd has a member of its name",
    ),
    "removed": (
        entry("fatal", "Error: failed to start cluster: this server has been removed from the cluster"),
        "was removed from it",
    ),
    "removed, of etcd": (
        '{"level":"warn","ts":"2026-11-27T22:05:49.715Z","caller":"etcdserver/server.go:1211","msg":"server error",'
        '"error":"the member has been permanently removed from the cluster"}',
        "was removed from it",
    ),
    "learners": (
        entry(
            "info",
            "Waiting for other members to finish joining etcd cluster: etcdserver: too many learner members in cluster",
        )
        + "\n"
        + stopped('"failed to wait for API server to become ready: context deadline exceeded"'),
        "does not vote yet",
    ),
    "learner": (
        entry("info", "Connection to etcd is ready")
        + "\n"
        + entry(
            "info",
            "Failed to test etcd connection: this server has not yet been promoted from learner to voting member",
        ),
        "does not vote yet",
    ),
    "default runtime": (
        stopped('"failed to start container runtime: default runtime nvidia was not found"'),
        "runtime that is to be its default",
    ),
    "default route": (
        entry(
            "fatal",
            'Error: failed to get node name and addresses: no default routes found in "/proc/net/route" or "/proc/net/ipv6_route"',
        ),
        "no default route",
    ),
    "memory": (entry("fatal", "Error: failed to find memory cgroup (v2)"), "controller of cgroups"),
    "memory of version 1": (
        entry(
            "error",
            'Failed to find memory cgroup, you may need to add "cgroup_memory=1 cgroup_enable=memory" to your linux cmdline '
            "(/boot/cmdline.txt on a Raspberry Pi)",
        ),
        "controller of cgroups",
    ),
    "snapshotter": (
        waiting(
            '"overlayfs" snapshotter cannot be enabled for "/var/lib/rancher/k3s/agent/containerd", try using "fuse-overlayfs" or "native": '
            "failed to mount overlay: invalid argument"
        ),
        "does not do for the snapshotter",
    ),
    "option": (entry("fatal", "Error: flag provided but not defined: -no-such-option"), "an option or a value"),
    "option of the kubelet": (
        stopped('"kubelet exited: failed to parse kubelet flag: unknown flag: --no-such-option"'),
        "an option or a value",
    ),
    "value": (
        entry("fatal", 'Error: invalid value "x" for flag -https-listen-port: parse error'),
        "an option or a value",
    ),
    "file": (entry("fatal", "yaml: line 3: mapping values are not allowed in this context"), "an option or a value"),
    "newer agent": (
        waiting(
            "incompatible down-level server detected; servers must be upgraded to at least v1.36.4+k3s1, or restarted with --disable-network-policy"
        ),
        "version of K3s does not fit",
    ),
    "older server": (
        '{"level":"panic","ts":"2026-11-27T22:05:49.715Z","caller":"version/downgrade.go:49",'
        '"msg":"invalid downgrade; server version is lower than determined cluster version","current-server-version":"3.5.21"}',
        "version of K3s does not fit",
    ),
    "datastore": (
        entry(
            "fatal",
            f"{_BOOTSTRAP}creating storage endpoint: building kine: dial tcp 10.0.0.30:5432: connect: connection refused",
        ),
        "cannot use its datastore",
    ),
    "unfinished datastore": (
        entry(
            "fatal",
            f"{_BOOTSTRAP}failed to reconcile with local datastore: no bootstrap data found in datastore - check server token value and verify "
            "datastore integrity",
        ),
        "cannot use its datastore",
    ),
    "containerd": (stopped("containerd exited: exit status 1"), "container runtime does not answer"),
    "port": (
        entry(
            "fatal",
            "Error: preparing server: failed to start supervisor listener: listen tcp 0.0.0.0:6443: bind: address already in use",
        ),
        "port that it needs is in use",
    ),
    "kernel": (
        'E1127 22:05:51.000000      77 kubelet.go:1800] "Failed to start ContainerManager" '
        'err="[invalid kernel flag: kernel/panic, expected value: 10, actual value: 0]"',
        "its kernel has other settings",
    ),
    "cgroup 1": (
        stopped(
            '"kubelet exited: failed to validate kubelet configuration, error: kubelet is configured to not run on a host using cgroup v1"'
        ),
        "cgroup version 1",
    ),
    "image": (
        'E1127 22:05:49.0 77 pod_workers.go:1] "Error syncing pod" err="failed to pull and unpack image: unexpected status from HEAD request to '
        'https://registry.example.com/v2/rancher/mirrored-pause/manifests/3.6: 401 Unauthorized"',
        "an image cannot be pulled",
    ),
    "unknown authority": (
        entry(
            "fatal",
            f'{_TOKEN}CA cert validation failed: Get "https://{_ENDPOINT}/cacerts": tls: failed to verify certificate: x509: certificate signed '
            "by unknown authority",
        ),
        "certificate of another authority",
    ),
    "refused": (
        entry(
            "fatal",
            f'{_TOKEN}failed to get CA certs: Get "https://{_ENDPOINT}/cacerts": dial tcp 10.0.0.5:6443: connect: connection refused',
        ),
        "does not reach the API server",
    ),
    "closed by its own balancer": (
        entry(
            "error",
            f'Failed to validate connection to cluster at https://{_ENDPOINT}: failed to get CA certs: Get "https://127.0.0.1:6444/cacerts": EOF',
        ),
        "does not reach the API server",
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("before", ["", NORMAL])
def test_a_cause_is_reported_with_its_line_and_a_next_step(name: str, before: str) -> None:
    journal, words = CASES[name]
    fault = verdict("s1", _ENDPOINT, _FAILED, f"{before}\n{journal}")
    assert fault.what == "s1 did not become a healthy node"
    assert words in fault.why, fault.why
    assert fault.next_step and "{" not in fault.next_step
    assert "cluster_kubeadm" not in fault.next_step
    assert "level=" not in fault.why and '\\"' not in fault.why and "E1127" not in fault.why


def test_a_normal_start_has_no_cause() -> None:
    fault = verdict("s1", _ENDPOINT, "its node is not Ready", NORMAL)
    assert fault.why.startswith("its node is not Ready; ") and "Sending HTTP" not in fault.why
    assert fault.next_step == "read the log there (journalctl --unit k3s --unit k3s-agent), and run again"


def test_what_ended_k3s_first_counts_before_what_it_logs_as_errors() -> None:
    noise = entry("error", "Failed to start: listen tcp 0.0.0.0:10250: bind: address already in use")
    ended = entry("fatal", "Error: failed to find memory cgroup (v2)")
    later = CASES["older files"][0]
    journal = "\n".join((noise, entry("fatal", "Error: something new"), ended, later))
    assert "failed to find memory cgroup" in verdict("s1", _ENDPOINT, _FAILED, journal).why


def test_errors_count_before_what_is_only_waited_for() -> None:
    journal = f"{CASES['taken name'][0]}\n{CASES['hash'][0]}"
    assert "token CA hash" in verdict("w1", _ENDPOINT, "", journal).why


@pytest.mark.parametrize("name", ["wrong token of a server", "taken name", "containerd"])
def test_an_endpoint_that_answered_later_is_not_the_cause(name: str) -> None:
    journal = f"{CASES['closed by its own balancer'][0]}\n{CASES[name][0]}"
    assert CASES[name][1] in verdict("s1", _ENDPOINT, "", journal).why
    fatal = f"{CASES['refused'][0]}\n{CASES['different token'][0]}"
    assert "encrypted" in verdict("s1", _ENDPOINT, "", fatal).why


@pytest.mark.parametrize(
    "name",
    ["hash", "taken name", "wrong token of an agent", "closed by its own balancer", "refused", "unknown authority"],
)
def test_what_is_over_is_not_the_cause(name: str) -> None:
    journal, words = CASES[name]
    fault = verdict("s1", _ENDPOINT, "its node is not Ready", f"{journal}\n{NORMAL}")
    assert words not in fault.why and "its node is not Ready" in fault.why


def test_a_server_that_rejoins_by_itself_was_not_removed_for_good() -> None:
    rejoined = entry("info", "tombstone file has been detected, removing data dir to rejoin the cluster")
    fault = verdict("s1", _ENDPOINT, "its node is not Ready", f"{CASES['removed, of etcd'][0]}\n{rejoined}")
    assert "was removed" not in fault.why


@pytest.mark.parametrize(
    "line",
    [
        entry("error", "Sending HTTP/2.0 401 response to 10.0.0.21:41234: not authorized"),
        entry("error", "Failed to authenticate request from 10.0.0.21:41234: invalid username/password combination"),
        "http: TLS handshake error from 10.0.0.21:41234: remote error: tls: unknown certificate: certificate signed by unknown authority",
    ],
)
def test_what_a_server_answers_to_others_is_not_the_cause(line: str) -> None:
    journal = f"{entry('error', 'something new')}\n{line}"
    assert verdict("s1", _ENDPOINT, "", journal).why == "something new"


def test_without_a_known_cause_what_ended_it_first_is_shown() -> None:
    journal = "\n".join(
        (entry("error", "first"), entry("fatal", 'Error: something "new"'), stopped("leaderelection lost"))
    )
    fault = verdict("s1", _ENDPOINT, _FAILED, journal)
    assert fault.why == f'{_FAILED.splitlines()[0].removesuffix(".")}; Error: something "new"'
    assert verdict("s1", _ENDPOINT, "").why == "nothing was printed"


def test_what_has_ended_it_goes_before_why_its_node_is_not_healthy() -> None:
    told = f"the API server at https://{_ENDPOINT}: <urlopen error timed out>"
    assert "does not reach the API server" in verdict("w1", _ENDPOINT, told).why
    assert "cgroup" in verdict("w1", _ENDPOINT, told, CASES["memory"][0]).why


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"token K10{_HASH}::server:{_PASSWORD} was refused", f"K10{_HASH}::server:… was refused"),
        (f"token K10{_HASH}::node:{_PASSWORD}", "::node:…"),
        (f"token K10{_HASH}::abcdef.0123456789abcdef", "::…"),
        ("token abcdef.0123456789abcdef", "abcdef.…"),
        (f"running k3s agent --token {_PASSWORD} --server https://x", "--token … --server"),
        (f"running k3s server --agent-token={_PASSWORD}", "--agent-token=…"),
        (f"K3S_TOKEN={_PASSWORD} is set", "K3S_TOKEN=… is set"),
        (f'request {{"token":"{_PASSWORD}"}}', '"token":…'),
        (f"cannot parse postgres://k3s:{_PASSWORD}@db.example.com:5432/k3s", "postgres://k3s:…@db.example.com"),
        (f"cannot parse mysql://k3s:{_PASSWORD}@tcp(db.example.com:3306)/k3s", "k3s:…@tcp("),
        (f"cannot use k3s:{_PASSWORD}@tcp(db.example.com:3306)/k3s", "k3s:…@tcp("),
    ],
)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    for printed, journal in ((text, ""), ("", entry("fatal", text)), (text, entry("error", text))):
        fault = verdict("s1", _ENDPOINT, printed, journal)
        assert shown in fault.why, fault.why
        assert _PASSWORD not in str(fault) and "0123456789abcdef" not in str(fault)


def test_what_makes_a_token_invalid_is_shown() -> None:
    text = "failed to normalize token; must be in format K10<CA-HASH>::<USERNAME>:<PASSWORD> or <PASSWORD>"
    assert "must be in format" in verdict("s1", _ENDPOINT, "", entry("fatal", text)).why
    assert "--token is required" in verdict("w1", _ENDPOINT, "", CASES["no token of an agent"][0]).why
    assert "failed to get CA certs" in verdict("s1", _ENDPOINT, "", CASES["refused"][0]).why


def test_long_lines_are_shortened() -> None:
    assert len(verdict("s1", _ENDPOINT, "", entry("fatal", "x" * 1000)).why) <= 400


def test_what_was_printed_is_read_from_a_result() -> None:
    assert output({"msg": _FAILED}) == _FAILED
