# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nfd-worker and nfd-gc of node-feature-discovery v0.19.0 (pkg/nfd-worker/nfd-worker.go, pkg/nfd-gc)."""

from __future__ import annotations

from typing import Any

import yaml

from fleet_agent.cluster.api import ApiError, Informer, Unreachable
from fleet_agent.loop import Park, Poll, Process, Sleep
from fleet_agent.programs import nfd_features, yamltext
from fleet_agent.programs.kept import Kept
from fleet_agent.shell.tools import seconds

GROUP = "/apis/nfd.k8s-sigs.io/v1alpha1"
TOPOLOGIES = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
NODE_NAME = "nfd.node.kubernetes.io/node-name"
CONFIG = "/etc/kubernetes/node-feature-discovery/nfd-worker.conf"


class Failed(Exception):
    """The worker fails with this error."""


def read_config(proc: Any, flag: str, default: str) -> dict[str, Any]:
    path = proc.option("config") or default
    if not proc.view.is_file(path):
        proc.say(f'I {flag}] "config file not found" path="{path}"')
        return {}
    try:
        config = yamltext.load(proc.view.read(path)) or {}
    except yaml.YAMLError as error:
        raise Failed(f"failed to parse config file: {error}") from error
    overrides = proc.option("options")
    if overrides:
        config.update(yaml.safe_load(overrides) or {})
    return config if isinstance(config, dict) else {}


def _sources(proc: Any, core: dict[str, Any], flag: str, key: str) -> list[str]:
    given = proc.option(flag)
    return given.split(",") if given else [str(s) for s in core.get(key) or ["all"]]


def serve(proc: Any) -> None:
    """Each program of NFD has one port for its health and metrics (flag port in cmd/*/main.go of v0.19.0)."""
    proc.container.serve(int(proc.option("port") or 8080), "/healthz", "/metrics")


def worker(proc: Any) -> Process:
    node = proc.env.get("NODE_NAME", "")
    proc.say(f'I nfd-worker.go] "Node Feature Discovery Worker" version="{proc.container.image.tag}" nodeName="{node}"')
    try:
        if not node:
            raise Failed("NODE_NAME environment variable not set")
        config = read_config(
            proc, "nfd-worker.go", CONFIG
        )  # Read once, like the owners: a changed file requires a restart.
        core = config.get("core") or {}
        serve(proc)
        owners = yield from _owners(proc, core, node)
        kept = Kept(proc)
        while True:
            yield Sleep(proc.clock.delay("pci_discovery"))
            features = nfd_features.discover(
                proc.view, proc.host.spec, _sources(proc, core, "feature-sources", "featureSources")
            )
            # Every /sys has this folder, even without PCI devices, in which case the other one is missing.
            if "pci.device" in features["instances"] and not proc.view.is_folder("/host-sys/devices"):
                message = "failed to detect PCI devices: open /host-sys/bus/pci/devices: no such file or directory"
                proc.say(f'E nfd-worker.go] "feature discovery failed" err="{message}" source="pci"')
            found = nfd_features.labels(features, config, _sources(proc, core, "label-sources", "labelSources"))
            if not core.get("noPublish") and proc.option("no-publish") != "true":
                yield from _publish(proc, kept, {"features": features, "labels": found}, owners)
            if proc.option("oneshot") == "true":
                return 0
            pause = seconds(str(core.get("sleepInterval") or "60s")) or 60.0
            yield from _until_next(proc, max(pause, proc.kubelet.agent.polite(proc)))
    except (Failed, ApiError, Unreachable) as error:
        proc.say(f'E main.go] "error while running" err="{error}"')
        return 1


def _until_next(proc: Any, pause: float) -> Process:
    """The next cycle, or earlier when a file in features.d changes (source/local watches them)."""
    before, waited = nfd_features.local_labels(proc.view), 0.0
    while waited < pause:
        step = min(pause - waited, max(pause / 4, 1.0))
        yield Sleep(step)
        waited += step
        if nfd_features.local_labels(proc.view) != before:
            return


def _owners(proc: Any, core: dict[str, Any], node: str) -> Process:
    if core.get("noOwnerRefs") or proc.option("no-owner-refs") == "true":
        return []
    found = []
    owner_refs = core.get("ownerRefs")
    for source in ["pod", "ds"] if owner_refs is None else owner_refs:
        if source == "node":
            try:
                item = yield from proc.request("GET", f"/api/v1/nodes/{node}")
            except ApiError as error:
                raise Failed(f'cannot resolve Node owner reference "{node}": {error}') from error
            found.append({"apiVersion": "v1", "kind": "Node", "name": node, "uid": item["metadata"]["uid"]})
        elif source == "pod":
            if proc.env.get("POD_NAME") and proc.env.get("POD_UID"):
                found.append(
                    {"apiVersion": "v1", "kind": "Pod", "name": proc.env["POD_NAME"], "uid": proc.env["POD_UID"]}
                )
        elif source == "ds":
            owner = yield from _daemon_set(proc)
            found += [owner] if owner else []
        else:
            raise Failed(f'invalid owner reference source "{source}"')
    return found


def _daemon_set(proc: Any) -> Process:
    name = proc.env.get("POD_NAME")
    if not name:
        return None
    try:
        item = yield from proc.request("GET", f"/api/v1/namespaces/{_namespace(proc)}/pods/{name}")
    except ApiError as error:
        proc.say(f'E nfd-worker.go] "failed to get pod to resolve DaemonSet owner reference" err="{error}"')
        return None
    owner = next((o for o in item["metadata"].get("ownerReferences") or [] if o["kind"] == "DaemonSet"), None)
    return {k: owner[k] for k in ("apiVersion", "kind", "name", "uid")} if owner else None


def _namespace(proc: Any) -> str:
    return str(proc.env.get("KUBERNETES_NAMESPACE") or proc.pod.namespace)


def _publish(proc: Any, kept: Kept, spec: dict[str, Any], owners: list[dict[str, Any]]) -> Process:
    content = (spec, owners)
    if kept.holds(content):
        return
    node = proc.env["NODE_NAME"]
    base = f"{GROUP}/namespaces/{_namespace(proc)}/nodefeatures"
    annotations = {"nfd.node.kubernetes.io/worker.version": proc.container.image.tag}
    if proc.env.get("POD_UID"):
        annotations["nfd.node.kubernetes.io/worker.pod-uid"] = proc.env["POD_UID"]
    body: dict[str, Any] = {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "spec": spec,
        "metadata": {"name": node, "annotations": annotations, "labels": {NODE_NAME: node}, "ownerReferences": owners},
    }
    try:
        old = yield from proc.request("GET", f"{base}/{node}")
    except ApiError as error:
        if error.code != 404:
            raise Failed(f"failed to get NodeFeature object: {error}") from error
        old = None
    try:
        if old is None:
            proc.say(f'I nfd-worker.go] "creating NodeFeature object" nodefeature="{_namespace(proc)}/{node}"')
            yield from proc.request("POST", base, body)
        elif (
            old.get("spec") != spec
            or old["metadata"].get("ownerReferences", []) != owners
            or old["metadata"].get("annotations") != annotations
        ):
            proc.say(f'I nfd-worker.go] "updating NodeFeature object" nodefeature="{_namespace(proc)}/{node}"')
            body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            yield from proc.request("PUT", f"{base}/{node}", body)
    except ApiError as error:
        raise Failed(f'failed to {"update" if old else "create"} NodeFeature object "{node}": {error}') from error
    kept.observed(content)


def topology_updater(_proc: Any) -> Process:
    yield Park()
    return 0


def gc(proc: Any) -> Process:
    """Deletes NodeFeature and topology objects of deleted nodes: at the start, when a Node is deleted, and at every interval."""
    proc.say('I nfd-gc.go] "Node Feature Discovery Garbage Collector"')
    nodes: set[str] = set()
    gone: list[str] = []
    task_host = proc.host

    def on_node(kind: str, item: dict[str, Any]) -> None:
        if kind == "DELETED":
            nodes.discard(item["metadata"]["name"])
            proc.kubelet.loop.post(_note, item["metadata"]["name"])
        elif kind != "SYNCED":
            nodes.add(item["metadata"]["name"])

    def _note(name: str) -> None:
        gone.append(name)
        task_host.changed()

    synced = False

    def on_error(error: Exception | None) -> None:
        # Its health endpoint returns "ok" even without permissions (Healthz in nfd-gc.go).
        nonlocal synced
        synced = synced or error is None
        if error:
            proc.out(f'E reflector.go] "Failed to watch" err="failed to list *v1.Node: {error}"\n')

    serve(proc)
    informer = Informer(
        proc.kubelet.api, "/api/v1/nodes", on_node, proc.identity, accept=proc.kubelet.agent.METADATA, on_error=on_error
    )
    informer.start()
    proc.container.beside.append(informer.stop)
    interval = seconds(proc.option("gc-interval") or "1h") or 3600.0
    waited = interval
    while True:
        while gone:
            yield from _forget(proc, gone.pop())
        if synced and waited >= interval:
            waited = 0.0
            yield from _collect(proc, nodes)
        yield Poll(2, proc.host) if waited < interval else Sleep(1)
        waited += 2


def _forget(proc: Any, node: str) -> Process:
    """deleteNodeHandler: objects of one node."""
    yield from _delete(proc, "NodeResourceTopology", f"{TOPOLOGIES}/{node}")
    for metadata in (yield from _listed(proc, f"{GROUP}/nodefeatures", {"labelSelector": f"{NODE_NAME}={node}"})):
        yield from _delete(
            proc, "NodeFeature", f"{GROUP}/namespaces/{metadata['namespace']}/nodefeatures/{metadata['name']}"
        )


def _collect(proc: Any, nodes: set[str]) -> Process:
    """garbageCollect: objects of nodes that do not exist."""
    for metadata in (yield from _listed(proc, f"{GROUP}/nodefeatures")):
        if (metadata.get("labels") or {}).get(NODE_NAME, "") not in nodes:
            yield from _delete(
                proc, "NodeFeature", f"{GROUP}/namespaces/{metadata['namespace']}/nodefeatures/{metadata['name']}"
            )
    for metadata in (yield from _listed(proc, TOPOLOGIES)):
        if metadata["name"] not in nodes:
            yield from _delete(proc, "NodeResourceTopology", f"{TOPOLOGIES}/{metadata['name']}")


def _listed(proc: Any, path: str, query: dict[str, str] | None = None) -> Process:
    """metadata of the objects; none if their kind does not exist."""
    try:
        return [item["metadata"] for item in (yield from proc.request("GET", path, query=query)).get("items") or []]
    except (ApiError, Unreachable) as error:
        if not (isinstance(error, ApiError) and error.code == 404):
            proc.say(f'E nfd-gc.go] "failed to list objects" err="{error}" resource="{path.rpartition("/")[2]}"')
        return []


def _delete(proc: Any, kind: str, path: str) -> Process:
    try:
        yield from proc.request("DELETE", path)
    except (ApiError, Unreachable) as error:
        if not (isinstance(error, ApiError) and error.code == 404):
            proc.say(f'E nfd-gc.go] "failed to delete {kind} object" err="{error}"')
    else:
        proc.say(f'I nfd-gc.go] "{kind} object has been deleted" object="{path.rpartition("/")[2]}"')
