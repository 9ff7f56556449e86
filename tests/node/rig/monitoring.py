# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of a Prometheus outside of the cluster: rights, the endpoints of Services, and the states of nodes and pods.

Debian's Prometheus has no service discovery of Kubernetes, and there is no package of kube-state-metrics. Discovery and States replace them: they use
the same API and return the same data.
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
#: Seconds between two observations.
_PERIOD = 0.5

Rules = c.Sequence[c.Mapping[str, t.Any]]


@contextlib.contextmanager
def granted(client: Client, user: str, rules: Rules, namespace: str) -> c.Iterator[None]:
    """A user has these rights in a namespace during the context."""
    role, binding = (
        Resource(_RBAC, "v1", "Role", "roles", True),
        Resource(_RBAC, "v1", "RoleBinding", "rolebindings", True),
    )
    metadata = {"name": f"rig-{user}", "namespace": namespace}
    objects = (
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
        for resource, content in objects:
            client.create(
                {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}, resource
            )
            stack.callback(client.delete, resource, metadata["name"], namespace)
        yield


class Repeated:
    """Observes once at the start of its context, where errors are raised, and then periodically until its end."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> t.Self:
        self.observe()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def observe(self) -> None:
        raise NotImplementedError

    def _repeat(self) -> None:
        while not self._stop.wait(_PERIOD):
            # On a busy machine a server may respond late. The previous observation is used until then.
            with contextlib.suppress(HwaccelError):
                self.observe()


class States(Repeated):
    """pages["/states"]: those metrics of kube-state-metrics (c92fe0c5, internal/store) about nodes and pods that our rules use."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self.pages: dict[str, str] = {}

    def observe(self) -> None:
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
    """Writes a file for Prometheus's file-based discovery, with the same targets as its discovery of Kubernetes, whenever they change.

    user: the identity of its requests. configuration: an entry of kubernetes_sd_configs.
    """

    def __init__(self, kubeconfig: str, user: str, configuration: c.Mapping[str, t.Any], file: pathlib.Path) -> None:
        super().__init__()
        assert configuration["role"] == "endpointslice", f"only the role endpointslice is implemented: {configuration}"
        self._client = connect({"kubeconfig": kubeconfig, "impersonate_user": user})
        self._namespaces, self._file = configuration["namespaces"]["names"], file

    def observe(self) -> None:
        groups = [group for namespace in self._namespaces for group in target_groups(self._client, namespace)]
        text = json.dumps(groups)
        if not self._file.exists() or self._file.read_text(encoding="utf-8") != text:
            new = self._file.with_suffix(".new")
            new.write_text(text, encoding="utf-8")
            os.replace(new, self._file)


def target_groups(client: Client, namespace: str) -> list[dict[str, t.Any]]:
    """The same targets as those of prometheus/prometheus d15adb9, discovery/kubernetes/endpointslice.go, without labels of the slices themselves."""
    pods = {pod["metadata"]["name"]: pod for pod in client.list(POD, namespace).items}
    services = {service["metadata"]["name"] for service in client.list(_SERVICE, namespace).items}
    groups = []
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
                groups.append(
                    {
                        "targets": addresses,
                        "labels": {f"__meta_kubernetes_{name}": value for name, value in labels.items()},
                    }
                )
    return sorted(groups, key=json.dumps)


def _of_pod(pod: dict[str, t.Any] | None, port: int) -> dict[str, str]:
    if pod is None:
        return {}
    labels = {
        "pod_name": pod["metadata"]["name"],
        "pod_node_name": pod["spec"]["nodeName"],
        "pod_ip": pod["status"].get("podIP", ""),
    }
    for container in pod["spec"]["containers"]:
        if any(one["containerPort"] == port for one in container.get("ports", ())):
            labels["pod_container_name"] = container["name"]
    return labels
