# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates of an installation: which, by whom, for how long (section 1 of behaviours.yml), and the bundles that machines trust."""

from __future__ import annotations

import dataclasses
import datetime

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.certificates import (
    Key,
    Keys,
    Pair,
    Signer,
    Subject,
    issue,
)

DAY, YEAR, TEN_YEARS = "day", "year", "ten years"
LIVES = {
    DAY: datetime.timedelta(days=1),
    YEAR: datetime.timedelta(days=365),
    TEN_YEARS: datetime.timedelta(days=3650),
}
#: A day with the feature gate ShortCertRotation.
SHORT = datetime.timedelta(hours=2)

BOOTSTRAPPER = Subject(
    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
    ("system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts"),
)
_API = Subject("system:kube-apiserver", ("kube-master",))
_PROXY = Subject("system:kube-apiserver-proxy", ("kube-master",))
_ADMIN = Subject("system:admin", ("system:masters",))
SERVICE_NAMES = tuple(
    f"{name}{end}"
    for name in ("kubernetes", "openshift")
    for end in ("", ".default", ".default.svc", ".default.svc.cluster.local")
)


@dataclasses.dataclass(frozen=True)
class Certificate:
    """type: its key in the state file. names: of what the server is asked by, as a key of names_of. chain: its file has the signer's, too."""

    type: str
    subject: Subject
    life: str
    signer: str = ""
    uses: tuple[str, ...] = ()
    names: str = ""
    chain: bool = False


def _authority(type_: str, name: str, life: str, unit: str = "openshift") -> Certificate:
    return Certificate(type_, Subject(name, units=(unit,)), life)


def _server(type_: str, names: str, signer: str) -> Certificate:
    return Certificate(type_, _API, DAY, signer, ("server",), names, chain=True)


#: By the name of their file, signers first.
CERTIFICATES = {
    "root-ca": _authority("RootCA", "root-ca", TEN_YEARS),
    "admin-kubeconfig-signer": _authority("AdminKubeConfigSignerCertKey", "admin-kubeconfig-signer", TEN_YEARS),
    "kubelet-bootstrap-kubeconfig-signer": _authority(
        "KubeletBootstrapCertSigner", "kubelet-bootstrap-kubeconfig-signer", TEN_YEARS
    ),
    "kube-apiserver-localhost-signer": _authority(
        "KubeAPIServerLocalhostSignerCertKey", "kube-apiserver-localhost-signer", TEN_YEARS
    ),
    "kube-apiserver-service-network-signer": _authority(
        "KubeAPIServerServiceNetworkSignerCertKey", "kube-apiserver-service-network-signer", TEN_YEARS
    ),
    "kube-apiserver-lb-signer": _authority("KubeAPIServerLBSignerCertKey", "kube-apiserver-lb-signer", TEN_YEARS),
    "kube-apiserver-to-kubelet-signer": _authority(
        "KubeAPIServerToKubeletSignerCertKey", "kube-apiserver-to-kubelet-signer", YEAR
    ),
    "kube-control-plane-signer": _authority("KubeControlPlaneSignerCertKey", "kube-control-plane-signer", YEAR),
    "kubelet-signer": _authority("KubeletCSRSignerCertKey", "kubelet-signer", DAY),
    "aggregator-signer": _authority("AggregatorSignerCertKey", "aggregator-signer", DAY),
    "aggregator-ca": _authority("AggregatorCA", "aggregator", DAY, "bootkube"),
    "aggregator-client": Certificate("AggregatorClientCertKey", _PROXY, DAY, "aggregator-signer", ("client",)),
    "apiserver-proxy": Certificate("APIServerProxyCertKey", _PROXY, DAY, "aggregator-ca", ("client",)),
    "kube-apiserver-lb-server": _server("KubeAPIServerExternalLBServerCertKey", "api", "kube-apiserver-lb-signer"),
    "kube-apiserver-internal-lb-server": _server(
        "KubeAPIServerInternalLBServerCertKey", "api-int", "kube-apiserver-lb-signer"
    ),
    "kube-apiserver-localhost-server": _server(
        "KubeAPIServerLocalhostServerCertKey", "localhost", "kube-apiserver-localhost-signer"
    ),
    "kube-apiserver-service-network-server": _server(
        "KubeAPIServerServiceNetworkServerCertKey", "service", "kube-apiserver-service-network-signer"
    ),
    "kube-apiserver-to-kubelet-client": Certificate(
        "KubeAPIServerToKubeletClientCertKey", _API, YEAR, "kube-apiserver-to-kubelet-signer", ("client",)
    ),
    "kube-control-plane-kube-controller-manager-client": Certificate(
        "KubeControlPlaneKubeControllerManagerClientCertKey", _ADMIN, YEAR, "kube-control-plane-signer", ("client",)
    ),
    "kube-control-plane-kube-scheduler-client": Certificate(
        "KubeControlPlaneKubeSchedulerClientCertKey", _ADMIN, YEAR, "kube-control-plane-signer", ("client",)
    ),
    "kubelet-client": Certificate(
        "KubeletClientCertKey", BOOTSTRAPPER, TEN_YEARS, "kubelet-bootstrap-kubeconfig-signer", ("client",)
    ),
    "machine-config-server": Certificate(
        "MCSCertKey", Subject("system:machine-config-server"), TEN_YEARS, "root-ca", ("server",), "api-int"
    ),
    "journal-gatewayd": Certificate(
        "JournalCertKey", Subject("journal-gatewayd"), TEN_YEARS, "root-ca", ("client", "server")
    ),
    "admin-kubeconfig-client": Certificate(
        "AdminKubeConfigClientCertKey", _ADMIN, TEN_YEARS, "admin-kubeconfig-signer", ("client",)
    ),
}
#: They are not in bootstrap.ign, where the certificates that they signed are.
KEPT_BACK = ("admin-kubeconfig-signer", "kubelet-bootstrap-kubeconfig-signer", "admin-kubeconfig-client")
#: Keys that are not there either, so that their number is that of real files: root-ca's signs no more, the kubelet's is in its kubeconfig.
KEYS_KEPT_BACK = (*KEPT_BACK, "root-ca", "kubelet-client")
#: What no other run has, also with a folder of keys: a certificate of one installation is never one of another.
OWN = ("root-ca", "kubelet-signer")

_API_SIGNERS = ("kube-apiserver-localhost-signer", "kube-apiserver-service-network-signer", "kube-apiserver-lb-signer")
#: Files of several authorities, by name: of their certificates.
BUNDLES = {
    "admin-kubeconfig-ca-bundle": ("admin-kubeconfig-signer",),
    "aggregator-ca-bundle": ("aggregator-signer",),
    "kube-apiserver-lb-ca-bundle": ("kube-apiserver-lb-signer",),
    "kube-apiserver-localhost-ca-bundle": ("kube-apiserver-localhost-signer",),
    "kube-apiserver-service-network-ca-bundle": ("kube-apiserver-service-network-signer",),
    "kube-apiserver-complete-server-ca-bundle": _API_SIGNERS,
    "kube-apiserver-complete-client-ca-bundle": (
        "admin-kubeconfig-signer",
        "kubelet-signer",
        "kube-control-plane-signer",
        "kube-apiserver-to-kubelet-signer",
        "kubelet-bootstrap-kubeconfig-signer",
    ),
    "kube-apiserver-to-kubelet-ca-bundle": ("kube-apiserver-to-kubelet-signer",),
    "kube-control-plane-ca-bundle": ("kube-control-plane-signer", *_API_SIGNERS),
    "kubelet-bootstrap-kubeconfig-ca-bundle": ("kubelet-bootstrap-kubeconfig-signer",),
    "kubelet-client-ca-bundle": ("kubelet-signer",),
    "kubelet-serving-ca-bundle": ("kubelet-signer",),
}


def names_of(domain: str, service_address: str) -> dict[str, tuple[str, ...]]:
    """Names of servers. domain: of the cluster. service_address: the first of the service network."""
    return {
        "": (),
        "api": (f"api.{domain}",),
        "api-int": (f"api-int.{domain}",),
        "localhost": ("localhost", "127.0.0.1", "::1"),
        "service": (*SERVICE_NAMES, service_address),
    }


def make(
    file: str,
    keys: Keys,
    now: datetime.datetime,
    short: bool,
    names: dict[str, tuple[str, ...]],
    signer: Pair | None,
) -> dict[str, bytes]:
    """Files of a certificate and its key. short: the feature gate ShortCertRotation is on. signer: the pair of the one that it names."""
    certificate = CERTIFICATES[file]
    end = now + (SHORT if short and certificate.life == DAY else LIVES[certificate.life])
    key = keys.take(own=file in OWN)
    by = Signer(CERTIFICATES[certificate.signer].subject, signer) if signer else None
    begin = signer.not_before() if signer else now
    made = issue(certificate.subject, key, begin, end, by, certificate.uses, names[certificate.names])
    chain = b"\n" + signer.certificate if signer and certificate.chain else b""
    return {f"tls/{file}.crt": made + chain, f"tls/{file}.key": key.pem()}


def pair(file: str, files: dict[str, bytes]) -> Pair:
    """The pair of a certificate that was made before."""
    return Pair(files[f"tls/{file}.crt"], Key.read(files[f"tls/{file}.key"]))
