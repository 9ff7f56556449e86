# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an approver reads: requests of the two signers, Nodes, Machine objects, and the CA of serving certificates."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import KINDS, JoinProfile
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.renewal import Authorities
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.requests import SigningRequest, of_object, seconds
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import objects

Obj = dict[str, t.Any]

CSR = Resource("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", False)
#: No kind of its own: RBAC knows signers for the verb approve only.
SIGNER = Resource("certificates.k8s.io", "v1", "Signer", "signers", False)
NODE = Resource("", "v1", "Node", "nodes", False)
MACHINE = Resource("machine.openshift.io", "v1beta1", "Machine", "machines", True)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
MACHINES_NAMESPACE = "openshift-machine-api"
#: kubelet's default (k8s.io/kubernetes, pkg/cluster/ports: KubeletPort).
_KUBELET_PORT = 10250
_DNS_TYPES = ("InternalDNS", "Hostname")


class UnknownAuthority(HwaccelError):
    """The cluster does not say which CA signs serving certificates, as before its operators have started."""


@dataclasses.dataclass(frozen=True)
class ObservedNode:
    """A Node, reduced. address: where its kubelet is asked, "" if its status has none. waiting: why it is not Ready, "" if it is.

    created: seconds since 1970.
    """

    addresses: frozenset[str]
    address: str
    port: int
    waiting: str
    created: float


@dataclasses.dataclass(frozen=True)
class Requests:
    """Requests by name, and objects of pending ones, which a write needs. versions: resourceVersions of the lists, by signer."""

    requests: dict[str, SigningRequest]
    pending: dict[str, Obj]
    versions: dict[str, str]


def selector(kind: str) -> str:
    """Requests of other signers are neither read nor counted."""
    return f"spec.signerName={KINDS[kind]}"


def requests(client: Client, kinds: c.Iterable[str]) -> Requests:
    found = Requests({}, {}, {})
    for kind in sorted(kinds):
        for page in client.pages(CSR, field_selector=selector(kind)):
            found.versions[kind] = page.resource_version
            for obj in page.items:
                keep(found, obj)
    return found


def keep(found: Requests, obj: Obj) -> None:
    request = of_object(obj)
    found.requests[request.name] = request
    if request.pending:
        found.pending[request.name] = obj
    else:
        found.pending.pop(request.name, None)


def nodes(client: Client) -> tuple[dict[str, ObservedNode], str]:
    """Nodes by name, and the resourceVersion of their list."""
    found, version = {}, ""
    for page in client.pages(NODE):
        version = page.resource_version
        for obj in page.items:
            found[obj["metadata"]["name"]] = node(obj)
    return found, version


def node(obj: Obj) -> ObservedNode:
    status = obj.get("status") or {}
    addresses = [entry for entry in status.get("addresses") or () if entry.get("address")]
    internal = [str(entry["address"]) for entry in addresses if entry.get("type") == "InternalIP"]
    endpoint = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
    verdict = objects.node(obj)
    return ObservedNode(
        frozenset(str(entry["address"]) for entry in addresses),
        internal[0] if internal else "",
        endpoint or _KUBELET_PORT,
        "" if verdict.ready else verdict.reason,
        seconds(obj["metadata"].get("creationTimestamp") or ""),
    )


def machines(client: Client, profile: JoinProfile) -> frozenset[str]:
    """Names of nodes, existing or to come, that have a Machine object. Most clusters on bare metal have none, and no such kind."""
    if not profile.machines:
        return frozenset()
    names: set[str] = set()
    try:
        for page in client.pages(MACHINE, MACHINES_NAMESPACE):
            for obj in page.items:
                status = obj.get("status") or {}
                names.add(str((status.get("nodeRef") or {}).get("name") or ""))
                names |= {
                    str(entry.get("address") or "").lower().removesuffix(".")
                    for entry in status.get("addresses") or ()
                    if entry.get("type") in _DNS_TYPES
                }
    except NotFound:
        return frozenset()
    return frozenset(names - {""})


def authorities(client: Client, profile: JoinProfile) -> Authorities:
    """The CA that signs serving certificates, from the profile's ConfigMap."""
    namespace, name, key = profile.authority
    where = f"ConfigMap {namespace}/{name}"
    step = "set serving_ca to the certificate of the CA that signs serving certificates"
    try:
        text = str((client.get(CONFIG_MAP, name, namespace).get("data") or {}).get(key) or "")
    except NotFound:
        raise UnknownAuthority("the CA of serving certificates is unknown", where, "it does not exist", step) from None
    found = Authorities(text)
    if not found:
        raise UnknownAuthority("the CA of serving certificates is unknown", where, f"{key} has no certificate", step)
    return found
