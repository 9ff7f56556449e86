# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the API server with the identity of the simulated component that sends them."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from fleet_agent.cluster.connections import BROKEN, Connections

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
#: Content type of writes whose answer is not needed, which is the smallest one.
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class ApiError(Exception):
    """An error of the API server. `message` is its text, so that logs are those of a real client."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


class Unreachable(Exception):
    """No answer from the API server after all attempts."""


@dataclasses.dataclass(frozen=True)
class Identity:
    """Identity of a request: user, groups, and the pod and node of a bound service account token."""

    user: str
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()

    def headers(self) -> list[tuple[str, str]]:
        headers = [("Impersonate-User", self.user)] if self.user else []
        headers += [("Impersonate-Group", group) for group in self.groups]
        return headers + [("Impersonate-Extra-" + urllib.parse.quote(key, safe=""), value) for key, value in self.extra]


AGENT = Identity("")


def node_identity(name: str) -> Identity:
    return Identity(f"system:node:{name}", ("system:nodes", "system:authenticated"))


def service_account_identity(namespace: str, account: str, pod: tuple[str, str], node: tuple[str, str]) -> Identity:
    """pod and node are (name, uid)."""
    extra = (
        ("authentication.kubernetes.io/node-name", node[0]),
        ("authentication.kubernetes.io/node-uid", node[1]),
        ("authentication.kubernetes.io/pod-name", pod[0]),
        ("authentication.kubernetes.io/pod-uid", pod[1]),
    )
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return Identity(f"system:serviceaccount:{namespace}:{account}", groups, tuple((k, v) for k, v in extra if v))


def _material(entry: dict[str, Any], key: str, folder: str) -> str | None:
    """A file path of a credential that is a path or inline data in a kubeconfig."""
    if entry.get(key):
        return str(entry[key])
    if not entry.get(key + "-data"):
        return None
    path = os.path.join(folder, key)
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
        stream.write(base64.b64decode(entry[key + "-data"]))
    return path


class Api:
    """One API server from a kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        with open(kubeconfig, encoding="utf-8") as stream:
            config = yaml.safe_load(stream)
        context = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == context["cluster"])
        user = next(u["user"] for u in config["users"] if u["name"] == context["user"])
        server = str(cluster["server"]).rstrip("/")
        self._prefix = urllib.parse.urlsplit(server).path
        with tempfile.TemporaryDirectory() as folder:
            certificate = _material(user, "client-certificate", folder)
            authority = _material(cluster, "certificate-authority", folder)
            trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if authority:
                trust.load_verify_locations(authority)
            if certificate:
                trust.load_cert_chain(certificate, _material(user, "client-key", folder))
        self._own = [("Authorization", "Bearer " + user["token"])] if user.get("token") else []
        self._connections = Connections(server, trust, str(cluster.get("tls-server-name") or ""))

    def close(self) -> None:
        self._connections.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        identity: Identity = AGENT,
        content_type: str = "application/json",
        query: dict[str, Any] | None = None,
        tries: int = 8,
        accept: str = "application/json",
    ) -> dict[str, Any]:
        """One request. It is retried after connection errors and temporary refusals."""
        headers = [*identity.headers(), ("Accept", accept), ("Content-Type", content_type), *self._own]
        target = self._prefix + path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = json.dumps(body, separators=(",", ":")).encode() if body is not None else b""
        pause = 0.1
        for attempt in range(tries):
            try:
                answer = self._connections.request(method, target, headers, data)
            except BROKEN as error:
                if attempt == tries - 1:
                    raise Unreachable(str(error)) from error
            else:
                if answer.status < 400:
                    return dict(json.loads(answer.data)) if answer.data else {}
                if answer.status not in (429, 500, 502, 503, 504) or attempt == tries - 1:
                    raise _refusal(answer.status, answer.data, method, path)
            time.sleep(pause)
            pause = min(pause * 2, 3.0)
        raise Unreachable(target)

    def watch(
        self,
        path: str,
        version: str,
        identity: Identity = AGENT,
        query: dict[str, Any] | None = None,
        accept: str = "application/json",
    ) -> Iterator[dict[str, Any]]:
        headers = [*identity.headers(), ("Accept", accept), *self._own]
        parameters = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": "300",
            **(query or {}),
        }
        with self._connections.stream(self._prefix + path + "?" + urllib.parse.urlencode(parameters), headers) as (
            status,
            parts,
        ):
            if status >= 400:
                raise _refusal(status, b"".join(parts), "GET", path)
            rest = b""
            for part in parts:
                lines = (rest + part).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if line.strip():
                        yield json.loads(line)


def _refusal(status: int, data: bytes, method: str, path: str) -> ApiError:
    try:
        answer = json.loads(data)
        return ApiError(status, str(answer.get("reason", "")), str(answer.get("message", "")))
    except ValueError:
        message = (
            _not_served(method, path)
            if status == 404 and path.startswith(("/api/", "/apis/"))
            else data.decode(errors="replace")[:500]
        )
        return ApiError(status, "", message)


def _not_served(method: str, path: str) -> str:
    """client-go's message for the server's "404 page not found" (NewGenericServerResponse in apimachinery's pkg/api/errors)."""
    _root, *parts = path.strip("/").split("/")
    group, rest = ("", parts[1:]) if path.startswith("/api/") else (f".{parts[0]}", parts[2:])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return (
        f"the server could not find the requested resource ({' '.join([method.lower(), rest[0] + group, *rest[1:2]])})"
    )


class Informer(threading.Thread):
    """Lists once and watches forever. Passes every object to `on_event(type, object)` in this thread.

    on_error is called with every refusal (a missing permission or kind), and with None after recovery.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        on_event: Callable[[str, dict[str, Any]], None],
        identity: Identity = AGENT,
        query: dict[str, Any] | None = None,
        accept: str = "application/json",
        on_error: Callable[[Exception | None], None] | None = None,
    ) -> None:
        super().__init__(daemon=True, name="watch " + path)
        self._api, self._path, self._identity, self._query, self._accept = (
            api,
            path,
            identity,
            dict(query or {}),
            accept,
        )
        self._on_event = on_event
        self._on_error = on_error or (lambda _error: None)
        self._stopping = threading.Event()
        self._known: set[tuple[str, str]] = set()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        version, pause = "", 0.2
        while not self._stopping.is_set():
            try:
                if not version:
                    version = self._list()
                    self._on_error(None)
                for event in self._api.watch(
                    self._path, version, self._identity, self._query, self._accept.replace("MetadataList", "Metadata")
                ):
                    if self._stopping.is_set():
                        return
                    version = self._take(event, version)
                    if not version:
                        break
                pause = 0.2
                continue
            except ApiError as error:
                version = ""
                if error.code != 410:
                    self._on_error(error)
            except (Unreachable, *BROKEN):
                pass
            self._stopping.wait(pause)
            pause = min(pause * 2, 5.0)

    def _take(self, event: dict[str, Any], version: str) -> str:
        item = event["object"]
        if event["type"] == "ERROR":
            return ""
        version = item["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
            (self._known.discard if event["type"] == "DELETED" else self._known.add)(key)
            self._on_event(event["type"], item)
        return str(version)

    def _list(self) -> str:
        query: dict[str, Any] = {**self._query, "limit": 500}
        seen: set[tuple[str, str]] = set()
        while True:
            page = self._api.request("GET", self._path, identity=self._identity, query=query, accept=self._accept)
            for item in page.get("items") or []:
                seen.add((item["metadata"].get("namespace", ""), item["metadata"]["name"]))
                self._on_event("ADDED", item)
            if not page["metadata"].get("continue"):
                break
            query["continue"] = page["metadata"]["continue"]
        for namespace, name in self._known - seen:
            self._on_event("DELETED", {"metadata": {"namespace": namespace, "name": name}})
        self._known = seen
        self._on_event("SYNCED", {})
        return str(page["metadata"]["resourceVersion"])
