# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where kubeadm, its packages and the role keep things on a machine.

Sources: https://kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details/ and cmd/kubeadm/app/constants of Kubernetes 1.36.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record

ROLE = "cluster_kubeadm"
FOLDER = record.folder(ROLE)
RECORD = record.path(ROLE)
#: A file for each archive of images that was imported, with its checksum as its text.
IMPORTED = f"{FOLDER}/imported"

#: Where network plugins call those of CNI, and a file for each archive of them that was unpacked there, as unpack.py writes it.
CNI_PLUGINS, UNPACKED = "/opt/cni/bin", f"{FOLDER}/unpacked"
#: There while a program is written.
UNPACKING = f"{CNI_PLUGINS}/hwaccel-gpu.new"

#: The kubelet of a member until it is its turn to be upgraded, and what is kept of a turn until it has ended.
STAGED, TURN = f"{FOLDER}/kubelet", f"{FOLDER}/turn.json"

#: Configuration with which kubeadm has made or changed the machine, by kind, as documents.components returns it.
CONFIGURATION = f"{FOLDER}/configuration.json"
SNAPSHOTS = f"{FOLDER}/snapshots"
#: The snapshot that this server has restored, or was to restore.
RESTORED = f"{FOLDER}/restore.json"
#: While certificate authorities are replaced: what is kept of it, and the one with which a server's kube-controller-manager signs then.
ROTATION, SIGNING = f"{FOLDER}/rotation", "/etc/kubernetes/pki/ca-signing.crt"
#: Fingerprint of the authority that was replaced last.
REPLACED = f"{FOLDER}/replaced-authority"
#: The cluster whose removal was confirmed, as it may not answer any more when a run continues it.
TEARDOWN = f"{FOLDER}/teardown"

#: Of one run, which removes it at its end.
SECRETS = "/run/hwaccel-gpu-kubeadm"

KUBERNETES = "/etc/kubernetes"
AUTHORITY = f"{KUBERNETES}/pki/ca.crt"
#: Absent where another program holds the authorities.
AUTHORITY_KEYS = (f"{KUBERNETES}/pki/ca.key", f"{KUBERNETES}/pki/front-proxy-ca.key")
ETCD_AUTHORITY_KEY = f"{KUBERNETES}/pki/etcd/ca.key"
ADMIN, KUBELET_CONF = f"{KUBERNETES}/admin.conf", f"{KUBERNETES}/kubelet.conf"
API_CERTIFICATE = f"{KUBERNETES}/pki/apiserver.crt"
#: Keys of Secrets. The API server has this folder mounted already, and `kubeadm reset` removes what is in it.
ENCRYPTION = f"{KUBERNETES}/pki/secrets-encryption.yaml"
#: Only there until the kubelet has its own certificate.
BOOTSTRAP = f"{KUBERNETES}/bootstrap-kubelet.conf"
#: Static pods of a server, with the files that each holds a certificate of.
STATIC_PODS = {
    "etcd": (f"{KUBERNETES}/pki/etcd/server.crt", f"{KUBERNETES}/pki/etcd/peer.crt"),
    "kube-apiserver": tuple(
        f"{KUBERNETES}/pki/{name}.crt"
        for name in ("apiserver", "apiserver-kubelet-client", "apiserver-etcd-client", "front-proxy-client")
    ),
    "kube-controller-manager": (f"{KUBERNETES}/controller-manager.conf",),
    "kube-scheduler": (f"{KUBERNETES}/scheduler.conf",),
}


def manifest(pod: str) -> str:
    return f"{KUBERNETES}/manifests/{pod}.yaml"


def moment(path: str) -> str:
    """Name of the fact of when the file was changed."""
    return f"changed {path}"


#: Static pods that have the version of Kubernetes.
CONTROL_PLANE = {pod: manifest(pod) for pod in STATIC_PODS if pod != "etcd"}
API_SERVER, ETCD = manifest("kube-apiserver"), manifest("etcd")
DATA = "/var/lib/etcd/member"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
KUBELET_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
#: Certificates of a server that can be read without a key. Those in kubeconfigs are renewed together with them, and the kubelet renews its own.
CERTIFICATES = (*STATIC_PODS["kube-apiserver"], *STATIC_PODS["etcd"])

PROGRAMS_FOLDER = "/usr/bin"
PROGRAMS = ("kubeadm", "kubelet")
UNIT, UNIT_DROP_IN = "/etc/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
SYSCTL, MODULES = "/etc/sysctl.d/90-hwaccel-gpu-kubernetes.conf", "/etc/modules-load.d/hwaccel-gpu-kubernetes.conf"
CONTAINERD = "/etc/containerd/config.toml"
#: Units of what cannot run beside it, and what it is.
FOREIGN = {
    "k3s": "K3s",
    "k3s-agent": "K3s",
    "rke2-server": "RKE2",
    "rke2-agent": "RKE2",
    "k0scontroller": "k0s",
    "k0sworker": "k0s",
    "snap.microk8s.daemon-kubelite": "MicroK8s",
}
