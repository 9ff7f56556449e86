# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ServiceAccounts for programs outside the cluster, and their tokens."""

from __future__ import annotations

import base64
import json
import pathlib
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Request
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until


def endpoint(kubeconfig: str) -> tuple[str, bytes]:
    """URL of the API server, and its certificate authority as PEM."""
    cluster: dict[str, t.Any] = yaml.safe_load(pathlib.Path(kubeconfig).read_text(encoding="utf-8"))["clusters"][0][
        "cluster"
    ]
    return cluster["server"], base64.b64decode(cluster["certificate-authority-data"])


def bearer(client: Client, namespace: str, name: str, seconds: int = 600) -> str:
    """A new ServiceAccount's token, by the API server's TokenRequest."""
    accounts = client.resource("v1", "ServiceAccount")
    client.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}, accounts
    )
    return token(client, namespace, name, {"expirationSeconds": seconds})


def token(client: Client, namespace: str, name: str, spec: dict[str, t.Any]) -> str:
    """A token of an existing ServiceAccount, by the API server's TokenRequest (authentication.k8s.io/v1)."""
    path = client.resource("v1", "ServiceAccount").path(namespace, name, "token")
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}).encode()
    request = Request("POST", path, "requesting a token", body=body, content_type="application/json")
    return str(client._transport.call(request).body["status"]["token"])


def token_of_pod(client: Client, pod: dict[str, t.Any]) -> str:
    """A token as the kubelet projects it into the pod, and as an attacker of its node has it: bound to the pod, and thereby to its node."""
    metadata = pod["metadata"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    return token(
        client,
        metadata["namespace"],
        pod["spec"]["serviceAccountName"],
        {"expirationSeconds": 3607, "boundObjectRef": bound},
    )


def await_right(
    client: Client, verb: str, resource: Resource, namespace: str = "", *, subresource: str = "", allowed: bool = True
) -> None:
    """Waits until a role that was just written is effective, because the authorizer of the API server observes roles by a watch."""
    what = f"{verb} {resource.plural}/{subresource} to be {'allowed' if allowed else 'refused'}"
    until(lambda: client.allowed(verb, resource, namespace, subresource=subresource) is allowed, what)


def bind_cluster_admin(client: Client, namespace: str, name: str) -> None:
    """Bind a ServiceAccount to cluster-admin."""
    group = "rbac.authorization.k8s.io"
    client.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{namespace}-{name}"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
        client.resource(f"{group}/v1", "ClusterRoleBinding"),
    )
