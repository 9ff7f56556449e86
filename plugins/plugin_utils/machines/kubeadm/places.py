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

#: The kubelet of a member until it is its turn to be upgraded, and what is kept of a turn until it has ended.
STAGED, TURN = f"{FOLDER}/kubelet", f"{FOLDER}/turn.json"

KUBERNETES = "/etc/kubernetes"
AUTHORITY = f"{KUBERNETES}/pki/ca.crt"
ADMIN, KUBELET_CONF = f"{KUBERNETES}/admin.conf", f"{KUBERNETES}/kubelet.conf"
#: Only there until the kubelet has its own certificate.
BOOTSTRAP = f"{KUBERNETES}/bootstrap-kubelet.conf"
API_SERVER, ETCD = f"{KUBERNETES}/manifests/kube-apiserver.yaml", f"{KUBERNETES}/manifests/etcd.yaml"
#: Static pods that have the version of Kubernetes.
CONTROL_PLANE = {
    name: f"{KUBERNETES}/manifests/{name}.yaml"
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
}
DATA = "/var/lib/etcd/member"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
#: Certificates of a server, which expire together: those of its kubelet renew themselves.
CERTIFICATES = tuple(
    f"{KUBERNETES}/pki/{name}.crt"
    for name in ("apiserver", "apiserver-kubelet-client", "front-proxy-client", "etcd/server", "etcd/peer")
)

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
