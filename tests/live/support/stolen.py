# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes that a stolen token is allowed, as dry runs on the API server: admission judges these like other writes, and nothing is stored."""

from __future__ import annotations

import base64
import collections.abc as c
import copy
import json
import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Request
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import endpoint, token, token_of_pod

FEATURES = Resource("nfd.k8s-sigs.io", "v1alpha1", "NodeFeature", "nodefeatures", True)
NODE = Resource("", "v1", "Node", "nodes", False)
NODE_NAME = "nfd.node.kubernetes.io/node-name"
#: Names of the NodeFeatures of a node, by the ServiceAccount of the agent.
NAMED = {"nfd-worker": "{}", "gpu-feature-discovery": "nvidia-features-for-{}"}
ALLOWED, DENIED = "allowed", "denied"


class Thief:
    """Clients with tokens of the pods on one node. `widen` allows their accounts all writes of NodeFeatures, so that only admission refuses any."""

    def __init__(self, kubeconfig: str, namespace: str, folder: pathlib.Path) -> None:
        self._client, self._namespace, self._kubeconfig = connect({"kubeconfig": kubeconfig}), namespace, kubeconfig
        self._authority = folder / "ca.crt"
        self._authority.write_bytes(endpoint(kubeconfig)[1])

    def on(self, node: str, account: str) -> Client:
        """A client with the token in the account's pod on a node."""
        pods = self._client.list(
            self._client.resource("v1", "Pod"), self._namespace, field_selector=f"spec.nodeName={node}"
        ).items
        (pod,) = [one for one in pods if one["spec"]["serviceAccountName"] == account]
        stolen = token_of_pod(self._client, pod)
        claims = json.loads(base64.urlsafe_b64decode(stolen.split(".")[1] + "=="))
        assert claims["kubernetes.io"]["node"]["name"] == node
        return self._with(stolen)

    def of_no_node(self, account: str) -> Client:
        """A client with a token as in a Secret of the type service-account-token: bound to no pod and no node."""
        return self._with(token(self._client, self._namespace, account, {"expirationSeconds": 600}))

    def _with(self, bearer: str) -> Client:
        return connect(
            {
                "host": endpoint(self._kubeconfig)[0],
                "ca_cert": str(self._authority),
                "api_key": bearer,
                "kubeconfig": "/dev/null",
            }
        )

    def feature(self, account: str, node: str) -> dict[str, t.Any]:
        """The NodeFeature that the account's pod on a node has written."""
        return self._client.get(FEATURES, NAMED[account].format(node), self._namespace)

    def widen(self) -> c.Callable[[], None]:
        """Creates roles with every verb for the accounts, and returns the function that deletes them."""
        group = "rbac.authorization.k8s.io"
        metadata = {"name": "stolen", "namespace": self._namespace}
        rule = {"apiGroups": [FEATURES.group], "resources": [FEATURES.plural], "verbs": ["*"]}
        role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
        subjects = [{"kind": "ServiceAccount", "name": name, "namespace": self._namespace} for name in NAMED]
        ref = {"apiGroup": group, "kind": "Role", "name": metadata["name"]}
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": ref,
            "subjects": subjects,
        }
        created = [(one, self._client.resource(f"{group}/v1", one["kind"])) for one in (role, binding)]
        for one, resource in created:
            self._client.create(copy.deepcopy(one), resource)

        def restore() -> None:
            for one, resource in created:
                self._client.delete(resource, one["metadata"]["name"], self._namespace)

        return restore


def outcome(policy: str, write: c.Callable[[], t.Any]) -> str:
    """`allowed`, `denied` if this policy denies the write, otherwise the message of the server."""
    try:
        write()
    except ApiError as refused:
        return DENIED if f"ValidatingAdmissionPolicy '{policy}'" in str(refused) else str(refused)
    return ALLOWED


def writes(client: Client, feature: dict[str, t.Any], node: str) -> dict[str, c.Callable[[], t.Any]]:
    """Each kind of write to NodeFeatures of a node. feature: the present one."""
    name, namespace = feature["metadata"]["name"], feature["metadata"]["namespace"]
    labeled = {
        "apiVersion": feature["apiVersion"],
        "kind": feature["kind"],
        "spec": {"labels": {"feature.node.kubernetes.io/mine": "true"}},
    }

    def body(**metadata: t.Any) -> dict[str, t.Any]:
        return labeled | {"metadata": {"namespace": namespace, "labels": {NODE_NAME: node}} | metadata}

    def collection() -> None:
        body = json.dumps({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}).encode()
        query = (
            ("dryRun", "All"),
            ("labelSelector", f"{NODE_NAME}={node}"),
            ("fieldSelector", f"metadata.name={name}"),
        )
        path = FEATURES.path(namespace)
        client._transport.call(
            Request("DELETE", path, "deleting NodeFeatures", query, body=body, content_type="application/json")
        )

    return {
        "patch": lambda: client.patch(
            FEATURES, name, namespace, {"spec": {"labels": {"feature.node.kubernetes.io/mine": "true"}}}, dry_run=True
        ),
        "apply": lambda: client.apply(body(name=name), FEATURES, field_manager="thief", force=True, dry_run=True),
        "replace": lambda: client.replace(feature | {"spec": labeled["spec"]}, FEATURES, dry_run=True),
        "delete": lambda: client.delete(FEATURES, name, namespace, dry_run=True),
        "delete a collection": collection,
        "create": lambda: client.create(body(name="another"), FEATURES, dry_run=True),
        "create with a generated name": lambda: client.create(body(generateName=f"{name}-"), FEATURES, dry_run=True),
    }
