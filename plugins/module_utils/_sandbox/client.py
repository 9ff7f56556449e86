# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests that starting a sandbox needs: health, kwok's permissions, and the state of nodes.

It uses the sandbox's certificates, retries nothing, and is used for sandboxes only.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import pathlib
import ssl
import typing as t
import urllib.parse

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import KWOK_RULES, SIMULATED

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_NEXT = "check logs/kube-apiserver.log in the sandbox's state folder; to start over, use state: absent and then started"


@dataclasses.dataclass(frozen=True)
class ObservedNode:
    """The state of a node that is compared with the fleet.

    ready: Ready, and without the taint that the control plane removes shortly after. simulated: created by a fleet agent.
    """

    ready: bool
    kernel: str
    os_image: str
    boot_id: str
    simulated: bool = True


#: Prefix of the taints of the node lifecycle controller (k8s.io/api/core/v1, well_known_taints.go).
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _tainted(node: dict[str, t.Any]) -> bool:
    return any(taint["key"] in _TAINTS for taint in node["spec"].get("taints") or [])


def _answer(status: int, body: bytes) -> str:
    return f"{status}: {body[:300].decode('utf-8', errors='replace')}"


class ControlPlane:
    """Answers of the servers of one sandbox."""

    def __init__(self, pki: pathlib.Path, ports: t.Mapping[str, int]) -> None:
        self._ports = ports
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")

    def healthy(self, component: str, timeout: float = 5.0) -> str:
        """Why the component is not ready, "" if it is."""
        path = "/healthz" if component == "kube-controller-manager" else "/readyz"
        try:
            status, body = self._request("GET", path, port=self._ports[component], timeout=timeout)
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        return (
            ""
            if status == 200
            else f"{path} returns {status}: " + " ".join(body.decode("utf-8", errors="replace").split())[:300]
        )

    def missing_basics(self) -> str:
        """A missing object that controllers create shortly after the start and that pods and kwok need; "" if there is none."""
        for path in ("/api/v1/namespaces/kube-node-lease", "/api/v1/namespaces/default/serviceaccounts/default"):
            status, _body = self._request("GET", path)
            if status != 200:
                return path
        return ""

    def grant_kwok(self) -> bool:
        """Creates kwok's role. True if something was written."""
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "hwaccel-sandbox-kwok"},
            "rules": KWOK_RULES,
        }
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "hwaccel-sandbox-kwok"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "hwaccel-sandbox-kwok"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "hwaccel-kwok"}],
        }
        written = [
            self._ensure("clusterroles", role, "rules"),
            self._ensure("clusterrolebindings", binding, "subjects"),
        ]
        return any(written)

    def node_count(self) -> int:
        """The number of nodes, from a list of one node."""
        page = self._json("/api/v1/nodes?limit=1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)

    def nodes(self) -> dict[str, ObservedNode]:
        """Every node, read in pages."""
        nodes: dict[str, ObservedNode] = {}
        token = ""
        while True:
            page = self._json("/api/v1/nodes?limit=500" + (f"&continue={urllib.parse.quote(token)}" if token else ""))
            for node in page["items"]:
                status = node.get("status", {})
                ready = any(
                    one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or []
                ) and not _tainted(node)
                info = status.get("nodeInfo", {})
                system = (info.get("kernelVersion", ""), info.get("osImage", ""), info.get("bootID", ""))
                key, _equals, value = SIMULATED.partition("=")
                simulated = (node["metadata"].get("annotations") or {}).get(key) == value
                nodes[node["metadata"]["name"]] = ObservedNode(ready, *system, simulated)
            token = page["metadata"].get("continue", "")
            if not token:
                return nodes

    def version(self) -> str:
        return str(self._json("/version")["gitVersion"])

    def _ensure(self, resource: str, desired: dict[str, t.Any], field: str) -> bool:
        path = f"{_RBAC}/{resource}"
        name = desired["metadata"]["name"]
        status, body = self._request("GET", f"{path}/{name}")
        if status == 200 and json.loads(body).get(field) == desired[field]:
            return False
        method, target = ("PUT", f"{path}/{name}") if status == 200 else ("POST", path)
        status, body = self._request(method, target, desired)
        if status not in (200, 201, 409):
            raise HwaccelError("kwok's role cannot be created", target, _answer(status, body), _NEXT)
        return True

    def _json(self, path: str) -> t.Any:
        status, body = self._request("GET", path, timeout=60)
        if status != 200:
            raise HwaccelError("the sandbox's API server does not answer", path, _answer(status, body), _NEXT)
        return json.loads(body)

    def _request(
        self, method: str, path: str, body: t.Any = None, *, port: int = 0, timeout: float = 10.0
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port or self._ports["kube-apiserver"], timeout=timeout, context=self._tls
        )
        try:
            headers = {"Content-Type": "application/json", "User-Agent": "hwaccel-sandbox"}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
