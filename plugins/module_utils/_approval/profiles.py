# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who files a node's first request, by the way in which machines join a cluster. Pure data.

Profiles differ only in who files client requests. Serving requests are filed by the node itself everywhere.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re

#: k8s.io/api, certificates/v1: KubeAPIServerClientKubeletSignerName, KubeletServingSignerName.
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
#: Short names of the signers in options, results and messages.
KINDS = {"client": CLIENT, "serving": SERVING}
NODE_PREFIX, NODES, AUTHENTICATED = "system:node:", "system:nodes", "system:authenticated"

#: bootstrap-kubelet's token of kubeadm: its id has six characters (k8s.io/cluster-bootstrap, token/api/types.go: BootstrapTokenPattern).
_BOOTSTRAP_TOKEN = r"system:bootstrap:[a-z0-9]{6}"
_BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"


@dataclasses.dataclass(frozen=True)
class JoinProfile:
    """username: a regular expression for the whole name, "" if no client request is expected. groups: exactly these.

    machines: whether the cluster may have Machine objects. authority: namespace, name and key of the ConfigMap with the CA of serving certificates.
    """

    name: str
    username: str = ""
    groups: frozenset[str] = frozenset()
    machines: bool = False
    authority: tuple[str, str, str] = ("kube-system", "kube-root-ca.crt", "ca.crt")

    def is_requestor(self, username: str, groups: c.Collection[str]) -> bool:
        """Whether a client request is filed by the bootstrap identity."""
        return bool(self.username) and bool(re.fullmatch(self.username, username)) and set(groups) == self.groups


#: openshift: machine-config-operator, manifests/machineconfigserver; its CA is that of cluster-machine-approver (pkg/controller/controller.go).
#: kubeadm: cmd/kubeadm/app/apis/bootstraptoken/v1, default group; the token authenticator adds system:bootstrappers.
#: k3s: its server signs client certificates of kubelets itself, without a request.
PROFILES = {
    "openshift": JoinProfile(
        "openshift",
        re.escape(_BOOTSTRAPPER),
        frozenset(
            ("system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", AUTHENTICATED)
        ),
        machines=True,
        authority=("openshift-config-managed", "csr-controller-ca", "ca-bundle.crt"),
    ),
    "kubeadm": JoinProfile(
        "kubeadm",
        _BOOTSTRAP_TOKEN,
        frozenset(("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", AUTHENTICATED)),
    ),
    "k3s": JoinProfile("k3s"),
}


def custom(username: str, groups: c.Iterable[str]) -> JoinProfile:
    """A profile with another bootstrap identity. system:authenticated is a group of every identity."""
    return JoinProfile("custom", re.escape(username), frozenset((*groups, AUTHENTICATED)) if username else frozenset())
