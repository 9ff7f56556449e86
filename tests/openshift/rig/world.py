# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a control plane one of OpenShift: its kinds, its bindings, and what the bootstrap machine's cluster-bootstrap creates.

furnish(client, disk) does all of it; the parts are for tests that have another API server.
"""

from __future__ import annotations

import collections.abc as c
import functools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support import prometheus
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.openshift.rig.definitions import ensure_definitions, read
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk

Obj = dict[str, t.Any]

BOOTSTRAPPER = ("openshift-machine-config-operator", "node-bootstrapper")
#: Kinds in which operators report.
INSTALLING = (
    "ClusterVersion.config.openshift.io",
    "ClusterOperator.config.openshift.io",
    "Infrastructure.config.openshift.io",
    "Etcd.operator.openshift.io",
    "MachineConfigPool.machineconfiguration.openshift.io",
)
#: Beside them, kinds of the installer's manifests, and by which pods are admitted.
KINDS = (
    *INSTALLING,
    *(f"{kind}.config.openshift.io" for kind in ("DNS", "FeatureGate", "Ingress", "Network", "Proxy", "Scheduler")),
    "MachineConfig.machineconfiguration.openshift.io",
    "SecurityContextConstraints.security.openshift.io",
)
_CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_GROUP = "rbac.authorization.k8s.io"
_MANAGER = "tests"
#: Those of the manifests, which cluster-version-operator creates.
_NAMESPACES = (BOOTSTRAPPER[0], "openshift-config", "openshift-config-managed", "openshift-machine-api")


def bound(name: str, role: str, *subjects: Obj) -> Obj:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }


def group(name: str) -> Obj:
    return {"kind": "Group", "apiGroup": _GROUP, "name": name}


#: machine-config-operator, manifests/machineconfigserver/csr-*.yaml, and the group of the cluster's administrators, which OpenShift's API server has.
BINDINGS: list[Obj] = [
    *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in _NAMESPACES),
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": BOOTSTRAPPER[1], "namespace": BOOTSTRAPPER[0]}},
    bound(
        "system-bootstrap-node-bootstrapper",
        "system:node-bootstrapper",
        {"kind": "ServiceAccount", "name": BOOTSTRAPPER[1], "namespace": BOOTSTRAPPER[0]},
    ),
    bound(
        "system-bootstrap-node-renewal",
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        group("system:nodes"),
    ),
    bound("cluster-admins", "cluster-admin", group("system:cluster-admins")),
]


def authority_map(pem: bytes) -> Obj:
    """Where OpenShift keeps the CA of serving certificates."""
    metadata = {"name": "csr-controller-ca", "namespace": "openshift-config-managed"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca-bundle.crt": pem.decode()}}


def put(client: Client, obj: Obj) -> None:
    """Applies an object, and its status if it has one."""
    resource = client.resource(obj["apiVersion"], obj["kind"])
    client.apply({key: value for key, value in obj.items() if key != "status"}, resource, field_manager=_MANAGER)
    if "status" in obj:
        put_status(client, obj)


def put_status(client: Client, obj: Obj) -> None:
    """Replaces the status of an object that exists. Not by a merge, which would leave out what is null and yet required."""
    resource, metadata = client.resource(obj["apiVersion"], obj["kind"]), obj["metadata"]
    patch = [{"op": "add", "path": "/status", "value": obj["status"]}]
    place = metadata["name"], metadata.get("namespace", "")
    client.patch(resource, *place, patch, patch_type="application/json-patch+json", subresource="status")


def define(client: Client, names: c.Iterable[str]) -> None:
    """Creates definitions of kinds, such as Etcd.operator.openshift.io, and waits until the API serves them."""
    definitions = read(ensure_definitions(lambda _text: None))
    wanted = list(names)
    for name in wanted:
        client.apply(definitions[name], _CRD, field_manager=_MANAGER)
    for name in wanted:
        spec = definitions[name]["spec"]
        version = next(one["name"] for one in spec["versions"] if one["storage"])
        until(functools.partial(_served, client, f"{spec['group']}/{version}", spec["names"]["kind"]), f"kind {name}")


def furnish(client: Client, disk: Disk) -> None:
    """Kinds, bindings, the CA of serving certificates, and the manifests of the bootstrap machine's disk.

    With them come ConfigMap kube-system/root-ca, ConfigMap and Secret machine-config-server-ca, Secrets kubeadmin and pull-secret, and Infrastructure cluster
    with the name of the installation.
    """
    define(client, KINDS)
    # Of the monitoring that every OpenShift has.
    for plural, kind in prometheus.KINDS.items():
        client.apply(prometheus.kind_of(plural, kind), _CRD, field_manager=_MANAGER)
    authority = authority_map(disk.tls("kubelet-serving-ca-bundle.crt").read_bytes())
    for obj in (*BINDINGS, authority, *disk.manifests()):
        put(client, obj)


def _served(client: Client, api_version: str, kind: str) -> bool:
    client.forget_discovery()
    try:
        client.resource(api_version, kind)
    except NotFound:
        return False
    return True
