# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a machine did not become a node, from what systemd has reported and what the journal of K3s has. Pure.

Messages are those of K3s 1.36; each cause names the file and the function that have them. One process is server, etcd, kubelet and the parent of containerd.
"""

from __future__ import annotations

import dataclasses
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import verdict as shared

#: An agent gets its configuration from a server before it starts containerd (Run in pkg/agent/containerd/containerd.go) and the kubelet (startKubelet in
#: pkg/daemons/agent/agent.go). What it has waited for until then is no cause any more.
_CONFIGURED = re.compile(r"\bRunning (?:containerd|kubelet) ")
#: A server, in addition, has what it needs of others before its API server (apiServer in pkg/daemons/control/server.go).
_JOINED = re.compile(rf"{_CONFIGURED.pattern}|\bRunning kube-apiserver ")

_CAUSES = (
    # getNodeNamedCrt in pkg/agent/config/config.go, for what pkg/nodepassword/validate.go refuses. It is logged as information, again and again.
    shared.Cause(
        re.compile(r"Node password rejected, duplicate hostname"),
        "another machine has its name, or it had it before and has lost its password",
        "give the machine a name of its own by hwaccel_node_name, or delete the node and the Secret NAME.node-password.k3s in kube-system "
        "if its machine is gone or was installed again",
        over=_CONFIGURED,
    ),
    # join in pkg/etcd/etcd.go
    shared.Cause(
        re.compile(r"duplicate node name found, please use a unique name for this node"),
        "etcd has a member of its name already",
        "give the machine a name of its own by hwaccel_node_name, or delete the node if its machine is gone, "
        "and remove the member if it stays (etcdctl member list)",
    ),
    # StartETCD in pkg/executor/embed/etcd/etcd.go, removePeer in pkg/etcd/etcd.go; etcdserver/api/rafthttp/util.go of etcd
    shared.Cause(
        re.compile(
            r"(?:server|node|member) has been (?:permanently )?(?:removed|deleted) from (?:the )?cluster|data-dir used by this member must be removed"
        ),
        "it was a member of etcd and was removed from it, and still has its data",
        "if it is to join again, move /var/lib/rancher/k3s/server/db away, and run again",
        # Register in pkg/etcd/etcd.go: K3s moves the data away itself where it knows whom to join.
        over=re.compile(r"tombstone file has been detected, removing data dir to rejoin the cluster"),
    ),
    # getBootstrapKeyFromStorage in pkg/cluster/storage.go
    shared.Cause(
        re.compile(r"bootstrap data already found and encrypted with different token"),
        "its token is not the one with which the data of the cluster is encrypted",
        "compare its token with that of the other servers (/var/lib/rancher/k3s/server/token); "
        "if the data is of an earlier installation, remove that first",
    ),
    # ReconcileBootstrapData in pkg/cluster/bootstrap.go
    shared.Cause(
        re.compile(r"newer than datastore and could cause a cluster outage"),
        "files of another installation are newer than those of the cluster",
        "move the files in the line away, and run again: K3s recreates them from the data of the cluster",
    ),
    # compareConfig in pkg/cluster/bootstrap.go, which warns of each value first
    shared.Cause(
        re.compile(r"critical configuration value mismatch"),
        "its configuration differs from that of the other servers where all must have the same",
        "set the value to that of the other servers (/etc/rancher/k3s/config.yaml), and run again",
        detail=re.compile(r"critical configuration mismatched: [\w.\[\]-]+"),
    ),
    # validateCAHash in pkg/clientaccess/token.go
    shared.Cause(
        re.compile(r"token CA hash does not match the Cluster CA certificate hash"),
        "its token is of a cluster with another authority than what answers",
        "compare its token with that of the servers (/var/lib/rancher/k3s/server/token), and correct hwaccel_api_endpoint or the members of its load balancer",
        over=_JOINED,
    ),
    # SetupContainerdConfig in pkg/agent/containerd/config_linux.go
    shared.Cause(
        re.compile(r"default runtime \S+ was not found"),
        "the runtime that is to be its default is not installed",
        "install the runtime (the role node_runtime installs NVIDIA's), or correct default-runtime in its configuration",
    ),
    # ChooseHostInterface in k8s.io/apimachinery/pkg/util/net/interface.go, for GetHostnameAndIPs of pkg/util/net.go
    shared.Cause(
        re.compile(r"no default routes found|unable to select an IP from default routes"),
        "it has no default route from which K3s learns its address",
        "add a default route, to a dummy interface if there is no gateway, or set node-ip in its configuration",
    ),
    # validateCgroupsV1 and validateCgroupsV2 in pkg/cgroups/cgroups_linux.go. Of version 1 it can do without cpuset.
    shared.Cause(
        re.compile(r"[Ff]ailed to find memory cgroup|failed to find \w+ cgroup \(v2\)"),
        "a controller of cgroups that K3s needs is not enabled",
        "add cgroup_enable=memory and cgroup_memory=1 to the kernel's command line, and boot; in a container, delegate the controller of the line to it",
    ),
    # applyContainerdOSSpecificConfig in pkg/agent/config/config_linux.go
    shared.Cause(
        re.compile(r"snapshotter cannot be enabled for"),
        "the file system of /var/lib/rancher does not do for the snapshotter",
        "use ext4, or xfs with ftype=1, for /var/lib/rancher, or set snapshotter to native or fuse-overlayfs in its configuration",
    ),
    # Of urfave/cli and spf13/pflag, which main in cmd/server/main.go and the kubelet end with; readConfigFile in pkg/configfilearg/parser.go
    shared.Cause(
        re.compile(
            r"flag provided but not defined|unknown (?:shorthand )?flag: |strict decoding error: unknown field|yaml: (?:line \d|unmarshal errors)"
            r"|invalid (?:boolean )?value .{1,80} for flag -|invalid argument .{1,80} for .{0,4}--"
        ),
        "its configuration has an option or a value that this version does not know",
        "correct /etc/rancher/k3s/config.yaml and its parts, and compare them with `k3s server --help` and with the options of the component",
    ),
    # validateNetworkConfig in pkg/agent/config/config.go; etcdserver/{bootstrap,version/downgrade}.go of etcd
    shared.Cause(
        re.compile(
            r"incompatible down-level server detected|incompatible with current running cluster|server version is lower than determined cluster version"
        ),
        "its version of K3s does not fit to that of the servers",
        "install the version that the servers have, or upgrade the servers first",
    ),
    # setupKernelTunables in pkg/kubelet/cm/container_manager_linux.go of Kubernetes
    shared.Cause(
        re.compile(r"invalid kernel flag: "),
        "its kernel has other settings than those that protect-kernel-defaults wants",
        "run again, which loads them; if they are others after a boot, find the file of /etc/sysctl.d that sets them, and remove it there",
    ),
    shared.PORT,
    shared.SWAP,
    shared.CGROUP_1,
    # K3s sets both itself.
    dataclasses.replace(
        shared.CGROUP_DRIVERS,
        next_step="remove cgroup-driver from kubelet-arg, and SystemdCgroup from the template of containerd's configuration: K3s sets both",
    ),
    shared.INOTIFY,
    # Run in pkg/agent/containerd/containerd.go. Each start waits for it: WaitForService in pkg/agent/cri/cri.go.
    dataclasses.replace(
        shared.RUNTIME.also(r"containerd exited: "),
        next_step="read /var/lib/rancher/k3s/agent/containerd/containerd.log, and correct the template of containerd's configuration, "
        "or container-runtime-endpoint in that of K3s",
        over=re.compile(r"[\w-]+ is now running"),
    ),
    dataclasses.replace(
        shared.IMAGE,
        next_step="correct {role}_registries, {role}_system_default_registry or {role}_pause_image, or give the image by {role}_images",
    ),
    # Start and Test in pkg/etcd/etcd.go, of which each start logs some as information until Embedded.ETCD in pkg/executor/embed/embed.go has what it waits for.
    dataclasses.replace(
        shared.LEARNER.also(
            r"this server has not yet been promoted from learner to voting member|Waiting for other members to finish joining etcd cluster"
        ),
        over=re.compile(r"Connection to etcd is ready|etcd data store connection OK"),
    ),
    # doAuth in pkg/server/auth/auth.go, which readBody in pkg/clientaccess/token.go returns; parseToken in it, and NormalizeToken in pkg/util/token.go;
    # shouldBootstrapLoad in pkg/cluster/bootstrap.go; Run in pkg/cli/agent/agent.go
    shared.Cause(
        re.compile(
            r"/v1-k3s/[\w.-]+: 40[13] |\bnot authorized\b|(?:cluster data|configuration from server): forbidden"
            r"|invalid token (?:format|CA hash length)|token must not be empty|token is required|failed to normalize token"
        ),
        "the servers do not accept its token, or it has none",
        "compare its token with that of the servers (/var/lib/rancher/k3s/server/token, of agents also agent-token), and run again",
        over=_JOINED,
    ),
    # startStorage in pkg/cluster/cluster.go, Listen in pkg/endpoint/endpoint.go of Kine; Bootstrap in pkg/cluster/bootstrap.go
    shared.Cause(
        re.compile(
            r"creating storage endpoint|no bootstrap data found in datastore|failed to reconcile with local datastore|Failed to reconcile with temporary etcd"
        ),
        "it cannot use its datastore, or the datastore was not completely created",
        "correct datastore-endpoint and its certificates, and ask the datastore from the machine; "
        "a server that has not served yet can move /var/lib/rancher/k3s/server/db away, and join again",
    ),
    dataclasses.replace(shared.EXPIRED, over=_JOINED),
    dataclasses.replace(shared.OTHER_NAMES, over=_JOINED),
    dataclasses.replace(shared.OTHER_AUTHORITY, over=_JOINED),
    # The balancer of an agent closes connections that it has no server for (pkg/agent/loadbalancer).
    dataclasses.replace(shared.UNREACHABLE.also(r": EOF\b"), over=_JOINED),
)
#: What a server answers to others, whose token may be wrong, and to itself until it has started: SendError in pkg/util/apierrors.go, doAuth in
#: pkg/server/auth/auth.go, net/http of Go, embed/config_logging.go of etcd.
_ANSWERS = re.compile(
    r"Sending HTTP\S* \d+ response to|Failed to authenticate request from|TLS handshake error from|rejected connection on \w+ endpoint"
)
_K3S = shared.Installer(
    "cluster_k3s",
    _CAUSES,
    errors=re.compile(r"\blevel=error\b"),
    next_step="read the log there (journalctl --unit k3s --unit k3s-agent), and run again",
    left_out=_ANSWERS,
    awaited=_ANSWERS,
    # logrus.Fatal, RequestShutdown with an error (SetupSignalContext in pkg/signals/signals.go), a panic of Go, and what zap of etcd ends with
    ends=re.compile(r'\blevel=fatal\b|Shutdown request received: |^panic: |^\{"level":"(?:fatal|panic)"'),
    shown=(
        # A message of logrus is quoted as a whole, and quotes what it quotes.
        (re.compile(r'^"(.*)"(?= *(?:;|$))'), r"\1"),
        (re.compile(r'\\+"'), '"'),
        # FormatToken in pkg/clientaccess/token.go, and a token without its hash where one can be recognized
        (re.compile(r"\b(K10[\w<>-]*::(?:[\w<>-]+:)?)[^\s\"']+"), r"\1…"),
        (re.compile(r"(--?(?:agent-)?token[= ](?!is required)|_TOKEN=|\"token\": ?)[\"']?[^\s\"',]+"), r"\1…"),
        # Of datastores
        (re.compile(r"(://[^\s:/@]*):\S+@"), r"\1:…@"),
        (re.compile(r"([\w.-]+):(?!//)[^\s\"']+@(?=(?:tcp|unix)\()"), r"\1:…@"),
    ),
)
output = shared.output


def verdict(host: str, endpoint: str, output: str, journal: str = "") -> Fault:
    """The verdict on a machine. output: of starting the unit, or why its node is not healthy. journal: of the units k3s and k3s-agent since the step
    began, oldest first: what ended K3s first counts most. endpoint: host and port, empty where it need not be reached. A line is shown without its header,
    shortened, and without secrets.
    """
    return shared.verdict(_K3S, host, endpoint, output, journal)
