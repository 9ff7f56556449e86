# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where K3s and the role keep things on a machine.

Sources: https://docs.k3s.io/installation/configuration, https://docs.k3s.io/cli/token, and pkg/daemons/control/deps/deps.go of K3s 1.36.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import AGENT, SERVER

ROLE = "cluster_k3s"
FOLDER = record.folder(ROLE)
RECORD = record.path(ROLE)
#: A file for each archive of images that was copied, with its checksum as its text.
COPIED = f"{FOLDER}/copied"
#: The program of a member until it is its turn to be upgraded, and what is kept of a turn until it has ended.
STAGED, TURN = f"{FOLDER}/k3s", f"{FOLDER}/turn.json"
#: Kept while the data of a server are moved from SQLite to etcd, and the copy that was taken before.
MIGRATION, COPY = f"{FOLDER}/migration.json", f"{FOLDER}/datastore"
#: The cluster whose removal was confirmed, as it may not answer any more when a run continues it.
TEARDOWN = f"{FOLDER}/teardown"
#: While the certificate authorities of the cluster are being replaced.
ROTATION = f"{FOLDER}/rotation"

SETTINGS = "/etc/rancher/k3s"
#: What the role sets, and how the machine has come to its cluster, which only an initialization and a join write.
CONFIGURATION = f"{SETTINGS}/config.yaml.d/50-hwaccel-gpu.yaml"
ENTRY = f"{SETTINGS}/config.yaml.d/55-hwaccel-gpu-cluster.yaml"
#: Those of others. The drop-ins of this folder override it, in the order of their names.
FOREIGN_CONFIGURATION = f"{SETTINGS}/config.yaml"
REGISTRIES = f"{SETTINGS}/registries.yaml"
#: With which the machine has come to its cluster; and, on servers, that of agents.
TOKEN, AGENT_TOKEN = f"{SETTINGS}/token", f"{SETTINGS}/agent-token"
ADMIN = f"{SETTINGS}/k3s.yaml"
#: Drop-ins of the role.
OURS = (CONFIGURATION, ENTRY)

PROGRAM = "/usr/local/bin/k3s"
UNITS = {SERVER: "k3s", AGENT: "k3s-agent"}
#: What the script that installs K3s leaves beside it.
SCRIPTS = tuple(f"/usr/local/bin/{name}.sh" for name in ("k3s-uninstall", "k3s-agent-uninstall", "k3s-killall"))
LINKS = tuple(f"/usr/local/bin/{name}" for name in ("kubectl", "crictl", "ctr"))
SYSCTL = "/etc/sysctl.d/90-hwaccel-gpu-k3s.conf"
#: Of cluster_k3s_hardening: settings of the kernel, and on servers what the API server reads. They are not in K3s' folder, of which a reset removes all.
HARDENED = "/etc/sysctl.d/90-hwaccel-gpu-k3s-hardening.conf"
ADMISSION, AUDIT = f"{SETTINGS}/hardening-admission.yaml", f"{SETTINGS}/hardening-audit.yaml"

DATA = "/var/lib/rancher/k3s"
#: Archives of images, which K3s imports.
IMAGES = f"{DATA}/agent/images"
#: Of any kubelet.
KUBELET = "/var/lib/kubelet"
#: The token of servers, which K3s writes itself.
OWN_TOKEN = f"{DATA}/server/token"
#: And that of agents.
OWN_AGENT_TOKEN = f"{DATA}/server/agent-token"
#: On servers, and on all machines.
SERVER_AUTHORITY, AUTHORITY = f"{DATA}/server/tls/server-ca.crt", f"{DATA}/agent/server-ca.crt"
NODE_CERTIFICATE = f"{DATA}/agent/client-kubelet.crt"
#: Of each node, which K3s asks a server for at a start (pkg/agent/config/config.go).
NODE_CERTIFICATES = (NODE_CERTIFICATE, f"{DATA}/agent/serving-kubelet.crt")
ETCD, SQLITE = f"{DATA}/server/db/etcd/member", f"{DATA}/server/db/state.db"
#: Certificates of a server that K3s issues again at a start (pkg/daemons/control/deps/deps.go).
CERTIFICATES = tuple(
    f"{DATA}/server/tls/{name}.crt"
    for name in (
        "client-admin",
        "client-controller",
        "client-kube-apiserver",
        "client-scheduler",
        "serving-kube-apiserver",
        "etcd/client",
        "etcd/peer-server-client",
        "etcd/server-client",
    )
)
#: Units of what cannot run beside it, and what it is.
FOREIGN = {
    "rke2-server": "RKE2",
    "rke2-agent": "RKE2",
    "k0scontroller": "k0s",
    "k0sworker": "k0s",
    "snap.microk8s.daemon-kubelite": "MicroK8s",
}


def unit(role: str) -> str:
    """Path of the file of a role's unit."""
    return f"/etc/systemd/system/{UNITS[role]}.service"
