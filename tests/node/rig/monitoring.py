# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Prometheus beside the cluster needs of it: rights, the endpoints of Services, and the states of nodes and pods.

Debian builds its Prometheus without the discovery of Kubernetes, and has no kube-state-metrics. Discovery and States take their places: they ask the same
API and say the same.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import json
import os
import pathlib
import re
import threading
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD

_SERVICE = Resource("", "v1", "Service", "services", True)
_SLICE = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", True)
_RBAC = "rbac.authorization.k8s.io"
#: Seconds between two looks.
_PERIOD = 0.5

Rules = c.Sequence[c.Mapping[str, t.Any]]


@contextlib.contextmanager
def granted(client: Client, user: str, rules: Rules, namespace: str) -> c.Iterator[None]:
    """These rights for a user in a namespace."""
    role, binding = (
        Resource(_RBAC, "v1", "Role", "roles", True),
        Resource(_RBAC, "v1", "RoleBinding", "rolebindings", True),
    )
    metadata = {"name": f"rig-{user}", "namespace": namespace}
    made = (
        (role, {"rules": list(rules)}),
        (
            binding,
            {
                "roleRef": {"kind": "Role", "name": metadata["name"], "apiGroup": _RBAC},
                "subjects": [{"kind": "User", "name": user, "apiGroup": _RBAC}],
            },
        ),
    )
    with contextlib.ExitStack() as stack:
        for resource, content in made:
            client.create(
                {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}, resource
            )
            stack.callback(client.delete, resource, metadata["name"], namespace)
        yield


class Repeated:
    """Looks once when its context begins, where errors are raised, and again and again until it ends."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> t.Self:
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        raise NotImplementedError

    def _repeat(self) -> None:
        while not self._stop.wait(_PERIOD):
            # On a busy machine a server answers late; then what was seen before still holds.
            with contextlib.suppress(HwaccelError):
                self.look()


class States(Repeated):
    """pages["/states"]: what kube-state-metrics (c92fe0c5, internal/store) writes of nodes and pods, as far as our rules ask for it."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self.pages: dict[str, str] = {}

    def look(self) -> None:
        nodes = [line for node in self._client.list(NODE).items for line in _of_node(node)]
        self.pages["/states"] = "\n".join(
            [*nodes, *(line for pod in self._client.list(POD).items for line in _states_of_pod(pod)), ""]
        )


def _metric(name: str, labels: c.Mapping[str, str], value: int = 1) -> str:
    return f"{name}{{{','.join(f'{key}={json.dumps(label)}' for key, label in labels.items())}}} {value}"


def _of_node(node: dict[str, t.Any]) -> c.Iterator[str]:
    name, status = {"node": node["metadata"]["name"]}, node.get("status", {})
    yield _metric("kube_node_info", name | {"kernel_version": status.get("nodeInfo", {}).get("kernelVersion", "")})
    for taint in node["spec"].get("taints") or ():
        yield _metric(
            "kube_node_spec_taint",
            name | {"key": taint["key"], "value": taint.get("value", ""), "effect": taint["effect"]},
        )
    for kind in ("capacity", "allocatable"):
        extended = {resource: amount for resource, amount in status.get(kind, {}).items() if "/" in resource}
        for resource, amount in extended.items():
            yield _metric(
                f"kube_node_status_{kind}",
                name | {"resource": re.sub(r"[^a-zA-Z0-9_]", "_", resource), "unit": "integer"},
                int(amount),
            )


def _states_of_pod(pod: dict[str, t.Any]) -> c.Iterator[str]:
    metadata = pod["metadata"]
    name = {"namespace": metadata["namespace"], "pod": metadata["name"], "uid": metadata["uid"]}
    (owner,) = [one for one in metadata.get("ownerReferences", ()) if one.get("controller")] or [{}]
    created = {"created_by_kind": owner.get("kind", ""), "created_by_name": owner.get("name", "")}
    yield _metric("kube_pod_info", name | {"node": pod["spec"].get("nodeName", "")} | created)
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "Ready":
            for value in ("true", "false", "unknown"):
                yield _metric(
                    "kube_pod_status_ready", name | {"condition": value}, int(condition["status"].lower() == value)
                )


class Discovery(Repeated):
    """Keeps a file of targets for Prometheus's discovery by files: those that its discovery of Kubernetes would find, as they change.

    It has the rights of its own user. configuration: an entry of kubernetes_sd_configs.
    """

    def __init__(self, kubeconfig: str, user: str, configuration: c.Mapping[str, t.Any], file: pathlib.Path) -> None:
        super().__init__()
        assert configuration["role"] == "endpointslice", (
            f"of the roles only that of EndpointSlices is played here: {configuration}"
        )
        self._client = connect({"kubeconfig": kubeconfig, "impersonate_user": user})
        self._namespaces, self._file = configuration["namespaces"]["names"], file

    def look(self) -> None:
        found = [group for namespace in self._namespaces for group in target_groups(self._client, namespace)]
        text = json.dumps(found)
        if not self._file.exists() or self._file.read_text(encoding="utf-8") != text:
            made = self._file.with_suffix(".new")
            made.write_text(text, encoding="utf-8")
            os.replace(made, self._file)


def target_groups(client: Client, namespace: str) -> list[dict[str, t.Any]]:
    """As prometheus/prometheus d15adb9, discovery/kubernetes/endpointslice.go, finds them; of its labels those that do not tell of slices alone."""
    pods = {pod["metadata"]["name"]: pod for pod in client.list(POD, namespace).items}
    services = {service["metadata"]["name"] for service in client.list(_SERVICE, namespace).items}
    found = []
    for one in client.list(_SLICE, namespace).items:
        service = one["metadata"]["labels"]["kubernetes.io/service-name"]
        for endpoint in one["endpoints"] or ():
            for port in one["ports"] or ():
                labels = {
                    "namespace": namespace,
                    "endpointslice_port_name": port["name"],
                    **({"service_name": service} if service in services else {}),
                }
                labels |= _of_pod(pods.get(endpoint.get("targetRef", {}).get("name", "")), port["port"])
                addresses = [f"{address}:{port['port']}" for address in endpoint["addresses"]]
                found.append(
                    {
                        "targets": addresses,
                        "labels": {f"__meta_kubernetes_{name}": value for name, value in labels.items()},
                    }
                )
    return sorted(found, key=json.dumps)


def _of_pod(pod: dict[str, t.Any] | None, port: int) -> dict[str, str]:
    if pod is None:
        return {}
    found = {
        "pod_name": pod["metadata"]["name"],
        "pod_node_name": pod["spec"]["nodeName"],
        "pod_ip": pod["status"].get("podIP", ""),
    }
    for container in pod["spec"]["containers"]:
        if any(one["containerPort"] == port for one in container.get("ports", ())):
            found["pod_container_name"] = container["name"]
    return found
