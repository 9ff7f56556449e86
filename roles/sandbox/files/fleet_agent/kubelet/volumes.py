# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes and environment of a pod, resolved as by kubelet."""

from __future__ import annotations

import re
from typing import Any

from fleet_agent.machine.hostfs import Host
from fleet_agent.machine.view import VolumeMount, key_path


class MountFailure(Exception):
    """A volume that cannot be set up yet; the string is kubelet's event message."""


class ConfigFailure(Exception):
    """CreateContainerConfigError."""

    reason = "CreateContainerConfigError"


class CreateFailure(ConfigFailure):
    """The container runtime cannot create the container."""

    reason = "CreateContainerError"


#: A file system in which nobody makes folders.
_NO_FOLDERS = "/sys/"


class Store:
    """ConfigMaps and Secrets by (kind, namespace, name); filled by watches, used by all nodes."""

    def __init__(self) -> None:
        self.data: dict[tuple[str, str, str], dict[str, str]] = {}

    def get(self, kind: str, namespace: str, name: str) -> dict[str, str] | None:
        return self.data.get((kind, namespace, name))


class Volumes:
    """The volumes of one pod: files of ConfigMaps and Secrets are one dictionary each, refreshed in place when they change."""

    def __init__(self, pod: Any, host: Host, store: Store) -> None:
        self.pod, self.host, self.store = pod, host, store
        self.files: dict[str, dict[str, str]] = {}
        self.hosts: dict[str, str] = {}
        self.missing: dict[str, str] = {}  # Paths that the runtime has to make, and cannot.
        self.sources: list[tuple[str, str, dict[str, Any], dict[str, str]]] = []

    def set_up(self) -> None:
        for volume in self.pod.spec.get("volumes") or []:
            self._one(volume)

    def _one(self, volume: dict[str, Any]) -> None:
        name = volume["name"]
        if "hostPath" in volume:
            self.hosts[name] = self._host_path(name, volume["hostPath"])
            return
        files = self.files.setdefault(name, {})
        for kind, key in (("configMap", "name"), ("secret", "secretName")):
            if kind in volume:
                self._object(name, kind.lower(), volume[kind].get(key, ""), volume[kind], files)
        for source in (volume.get("projected") or {}).get("sources") or []:
            for kind in ("configMap", "secret"):
                if kind in source:
                    self._object(name, kind.lower(), source[kind].get("name", ""), source[kind], files)
            if "serviceAccountToken" in source:
                files["/" + source["serviceAccountToken"].get("path", "token")] = "simulated"
            for item in (source.get("downwardAPI") or {}).get("items") or []:
                if "fieldRef" in item:
                    files["/" + item["path"]] = _field(self.pod, item["fieldRef"]["fieldPath"])

    def _object(self, volume: str, kind: str, name: str, source: dict[str, Any], files: dict[str, str]) -> None:
        namespace = self.pod.namespace
        if kind == "configmap" and name == "kube-root-ca.crt":
            files["/ca.crt"] = "simulated"
            return
        data = self.store.get(kind, namespace, name)
        if data is None:
            if source.get("optional"):
                return
            raise MountFailure(f'MountVolume.SetUp failed for volume "{volume}" : {kind} "{name}" not found')
        missing = [i["key"] for i in source.get("items") or [] if i["key"] not in data]
        if missing and not source.get("optional"):
            raise MountFailure(
                f'MountVolume.SetUp failed for volume "{volume}" : references non-existent {kind.replace("map", "")} key: {missing[0]}'
            )
        files.update(key_path(source.get("items"), data))
        self.sources.append((kind, name, source, files))

    def refresh(self, kind: str, name: str, data: dict[str, str]) -> None:
        for held_kind, held_name, source, files in self.sources:
            if (held_kind, held_name) == (kind, name):
                files.clear()
                files.update(key_path(source.get("items"), data))

    def _host_path(self, volume: str, source: dict[str, Any]) -> str:
        path, kind = source["path"].rstrip("/") or "/", source.get("type") or ""
        file, folder = self.host.read(path) is not None, self.host.is_folder(path)
        fault = {
            "Directory": not folder and "is not a directory",
            "File": not file and "is not a file",
            "Socket": not file and "is not a socket",
            "CharDevice": not file and "is not a character device",
        }.get(kind)
        if fault:
            raise MountFailure(
                f'MountVolume.SetUp failed for volume "{volume}" : hostPath type check failed: {path} {fault}'
            )
        if not file and not folder:
            if path.startswith(_NO_FOLDERS):
                if kind:
                    raise MountFailure(
                        f'MountVolume.SetUp failed for volume "{volume}" : mkdir {path}: operation not permitted'
                    )
                self.missing[volume] = path
            elif kind == "FileOrCreate":
                self.host.write(path, "")
            else:
                self.host.make_folder(
                    path
                )  # DirectoryOrCreate; without a type the runtime makes the source of a bind mount
        return path

    def creatable(self, spec: dict[str, Any]) -> None:
        """Raises CreateFailure with containerd's message (v2.4.2, withMounts in internal/cri/opts/spec_linux_opts.go)."""
        for mount in spec.get("volumeMounts") or []:
            if path := self.missing.get(mount["name"]):
                container_id = self.pod.kubelet.clock.hexadecimal(64)
                raise CreateFailure(
                    f'failed to generate container "{container_id}" spec: failed to generate spec: failed to mkdir "{path}": '
                    f"mkdir {path}: operation not permitted"
                )

    def mounts(self, spec: dict[str, Any]) -> list[VolumeMount]:
        result = []
        for mount in spec.get("volumeMounts") or []:
            name, sub = mount["volume" if "volume" in mount else "name"], mount.get("subPath") or ""
            common: dict[str, Any] = {
                "path": mount["mountPath"].rstrip("/") or "/",
                "read_only": bool(mount.get("readOnly")),
                "propagation": mount.get("mountPropagation") or "None",
            }
            if name in self.hosts:
                source = self.hosts[name].rstrip("/") + ("/" + sub if sub else "")
                result.append(VolumeMount(kind="host", source=source or "/", store={}, **common))
            else:
                result.append(
                    VolumeMount(
                        kind="pod", source="/" + sub if sub else "", store=self.files.setdefault(name, {}), **common
                    )
                )
        return result


def _field(pod: Any, path: str) -> str:
    simple = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": pod.kubelet.name,
        "spec.serviceAccountName": pod.account,
        "status.hostIP": pod.host_ip,
        "status.podIP": pod.pod_ip,
    }
    if path in simple:
        return str(simple[path])
    match = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    return str((pod.labels if match[1] == "labels" else pod.annotations).get(match[2], "")) if match else ""


def environment(pod: Any, spec: dict[str, Any], store: Store) -> dict[str, str]:
    """Environment of a container; raises ConfigFailure for what is missing."""
    result = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOSTNAME": pod.kubelet.name if pod.spec.get("hostNetwork") else pod.name,
        "KUBERNETES_SERVICE_HOST": "10.96.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    for source in spec.get("envFrom") or []:
        for kind, key in (("configmap", "configMapRef"), ("secret", "secretRef")):
            if key in source:
                data = store.get(kind, pod.namespace, source[key]["name"])
                if data is None and not source[key].get("optional"):
                    raise ConfigFailure(f'{kind} "{source[key]["name"]}" not found')
                result.update({source.get("prefix", "") + k: v for k, v in (data or {}).items()})
    for entry in spec.get("env") or []:
        value = _value(pod, entry, store, spec)
        if value is not None:
            result[entry["name"]] = expand(value, result)
    return result


def _value(pod: Any, entry: dict[str, Any], store: Store, spec: dict[str, Any]) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return str(entry.get("value") or "")
    if "fieldRef" in source:
        return _field(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return str(
            ((spec.get("resources") or {}).get("limits") or {}).get(
                source["resourceFieldRef"]["resource"].split(".")[-1], "0"
            )
        )
    for kind, key in (("configmap", "configMapKeyRef"), ("secret", "secretKeyRef")):
        if key in source:
            reference = source[key]
            data = store.get(kind, pod.namespace, reference["name"])
            if data is not None and reference["key"] in data:
                return data[reference["key"]]
            if reference.get("optional"):
                return None
            if data is None:
                raise ConfigFailure(f'{kind} "{reference["name"]}" not found')
            what = "ConfigMap" if kind == "configmap" else "Secret"
            raise ConfigFailure(f"couldn't find key {reference['key']} in {what} {pod.namespace}/{reference['name']}")
    return None


def expand(text: str, env: dict[str, str]) -> str:
    """$(NAME) as kubelet expands it; $$ is an escaped dollar sign, an unknown name is not changed."""
    return re.sub(
        r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", lambda m: "$" if m[0] == "$$" else env.get(m[1], m[0]), text
    )
