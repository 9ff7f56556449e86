# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nfd-worker and nfd-gc of node-feature-discovery v0.19.0 (pkg/nfd-worker/nfd-worker.go, pkg/nfd-gc)."""

from __future__ import annotations

import math
from typing import Any

import yaml

from fleet_agent.cluster.api import ApiError, Unreachable
from fleet_agent.loop import Park, Poll, Process, Sleep
from fleet_agent.programs import flags, nfd_features, yamltext
from fleet_agent.programs.kept import Kept

GROUP = "/apis/nfd.k8s-sigs.io/v1alpha1"
TOPOLOGIES = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
NODE_NAME = "nfd.node.kubernetes.io/node-name"


class Failed(Exception):
    """The worker fails with this error."""


def read_config(proc: Any, flag: str) -> dict[str, Any]:
    """The file, then -options on top of it."""
    path = proc.settings["config"]
    config: dict[str, Any] = {}
    if proc.view.is_file(path):
        try:
            config = yamltext.load(proc.view.read(path)) or {}
        except yaml.YAMLError as error:
            raise Failed(f"failed to parse config file: {error}") from error
    else:
        proc.say(f'I {flag}] "config file not found, using defaults" path="{path}"')
    try:
        return _merged(config, yaml.safe_load(proc.settings["options"]) or {})
    except yaml.YAMLError as error:
        raise Failed(f"failed to parse -options: {error}") from error


def _merged(config: Any, more: Any) -> dict[str, Any]:
    if not isinstance(config, dict) or not isinstance(more, dict):
        raise Failed(
            "failed to parse config file: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal into Go value"
        )
    both = {key: _merged(config[key], more[key]) for key in config.keys() & more.keys() if isinstance(more[key], dict)}
    return {**config, **more, **both}


def setting(proc: Any, config: dict[str, Any], name: str) -> Any:
    """A flag that the configuration file has as well: the flag if it is set (applyConfigOverrides)."""
    value = config.get(proc.settings.table.by_name[name].field)
    if proc.settings.given(name) or value is None:
        return proc.settings[name]
    return tuple(map(str, value)) if isinstance(value, list) else value


def serve(proc: Any) -> None:
    """Each program of NFD has one port for its health and metrics (flag port in cmd/*/main.go of v0.19.0)."""
    proc.container.serve(proc.settings["port"], "/healthz", "/metrics")


def worker(proc: Any) -> Process:
    node = proc.settings.variable("NODE_NAME")
    proc.say(f'I nfd-worker.go] "Node Feature Discovery Worker" version="{proc.container.image.tag}" nodeName="{node}"')
    try:
        # Read once, like the owners: a changed file requires a restart.
        config = read_config(proc, "nfd-worker.go")
        core = config.get("core") or {}
        # The real one serves after its first discovery. Here the requests of that take the API server's time, which the scale of probes does not shorten.
        serve(proc)
        owners = yield from _owners(proc, core, node)
        kept, once = Kept(proc), proc.settings["oneshot"]
        while True:
            yield Sleep(proc.clock.delay("pci_discovery"))
            features = nfd_features.discover(proc.view, proc.host.spec, setting(proc, core, "feature-sources"))
            # Every /sys has this folder, even without PCI devices, in which case the other one is missing.
            if "pci.device" in features["instances"] and not proc.view.is_folder("/host-sys/devices"):
                message = "failed to detect PCI devices: open /host-sys/bus/pci/devices: no such file or directory"
                proc.say(f'E nfd-worker.go] "feature discovery failed" err="{message}" source="pci"')
            found = nfd_features.labels(features, config, setting(proc, core, "label-sources"))
            if not setting(proc, core, "no-publish"):
                published = nfd_features.without(features, setting(proc, core, "no-publish-features"))
                yield from _publish(proc, kept, {"features": published, "labels": found}, owners)
            if once:
                return 0
            pause = _sleep_interval(core)
            yield from _until_next(proc, max(pause, proc.kubelet.agent.polite(proc)))
    except (Failed, ApiError, Unreachable) as error:
        proc.say(f'E main.go] "error while running" err="{error}"')
        return 1


def _sleep_interval(core: dict[str, Any]) -> float:
    """Seconds; without end for zero and less (infiniteTicker)."""
    try:
        pause = flags.duration(str(core.get("sleepInterval") or "60s"))
    except flags.Invalid as error:
        raise Failed(f"failed to parse config file: error unmarshaling JSON: while decoding JSON: {error}") from error
    return max(pause, 1.0) if pause > 0 else math.inf


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
    """setOwnerReference: in the order of ownerRefSourceOrder, whatever the order of the setting."""
    if setting(proc, core, "no-owner-refs"):
        return []
    sources = setting(proc, core, "owner-refs")
    if refusal := proc.settings.refusal("owner-refs", sources):
        raise Failed(f"failed to parse config file: error unmarshaling JSON: while decoding JSON: {refusal}")
    found = []
    if "node" in sources:
        if not node:
            raise Failed("cannot resolve Node owner reference: NODE_NAME not specified")
        try:
            item = yield from proc.request("GET", f"/api/v1/nodes/{node}")
        except ApiError as error:
            raise Failed(f'cannot resolve Node owner reference "{node}": {error}') from error
        found.append({"apiVersion": "v1", "kind": "Node", "name": node, "uid": item["metadata"]["uid"]})
    pod = {key: proc.settings.variable(f"POD_{key.upper()}") for key in ("name", "uid")}
    if "pod" in sources and all(pod.values()):
        found.append({"apiVersion": "v1", "kind": "Pod", **pod})
    if "ds" in sources:
        owner = yield from _daemon_set(proc)
        found += [owner] if owner else []
    return found


def _daemon_set(proc: Any) -> Process:
    name = proc.settings.variable("POD_NAME")
    if not name:
        return None
    try:
        item = yield from proc.request("GET", f"/api/v1/namespaces/{_namespace(proc)}/pods/{name}")
    except ApiError as error:
        raise Failed(f'cannot get worker Pod "{name}" to resolve DaemonSet owner reference: {error}') from error
    owner = next((o for o in item["metadata"].get("ownerReferences") or [] if o["kind"] == "DaemonSet"), None)
    return {k: owner[k] for k in ("apiVersion", "kind", "name", "uid")} if owner else None


def _namespace(proc: Any) -> str:
    """GetKubernetesNamespace in pkg/utils/kubernetes.go: of the ServiceAccount, if its token is mounted."""
    path = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
    return str(
        proc.view.read(path).strip() if proc.view.is_file(path) else proc.settings.variable("KUBERNETES_NAMESPACE")
    )


def _publish(proc: Any, kept: Kept, spec: dict[str, Any], owners: list[dict[str, Any]]) -> Process:
    content = (spec, owners)
    if kept.holds(content):
        return
    node = proc.settings.variable("NODE_NAME")
    if not node:
        raise Failed("failed to get NodeFeature object: resource name may not be empty")
    base = f"{GROUP}/namespaces/{_namespace(proc)}/nodefeatures"
    annotations = {"nfd.node.kubernetes.io/worker.version": proc.container.image.tag}
    if proc.settings.variable("POD_UID"):
        annotations["nfd.node.kubernetes.io/worker.pod-uid"] = proc.settings.variable("POD_UID")
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


def topology_updater(proc: Any) -> Process:
    """It looks at its settings, and does nothing else here."""
    if not proc.settings["kubelet-config-uri"] and not proc.settings.variable("NODE_ADDRESS"):
        proc.say(
            "unable to determine the default kubelet config endpoint 'https://${NODE_ADDRESS}:10250/configz' due to empty NODE_ADDRESS environment"
        )
        return 1
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
    try:
        proc.watch("/api/v1/nodes", on_node, accept=proc.kubelet.agent.METADATA, on_error=on_error)
    except Unreachable as error:
        proc.say(f'E main.go] "failed to initialize nfd garbage collector instance" err="{error}"')
        return 1
    interval = proc.settings["gc-interval"]
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
