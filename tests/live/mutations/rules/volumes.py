# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes: who makes a host path, who only reads, and who sees what others mount beneath it."""

from __future__ import annotations

import collections
import collections.abc as c
import re

from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests, Workload

#: A file system that is empty after a reboot.
_VOLATILE = re.compile(r"^(/var)?/run/(nvidia|mellanox|cdi)|^/run/nvidia")
_KUBELET = "/var/lib/kubelet/"
_RUN, _DRIVER_ROOT = "/run/nvidia", "/run/nvidia/driver"
_GATES = "/run/nvidia/validations"


def paths(found: Manifests) -> c.Iterator[Finding]:
    """Whichever pod comes first makes a host path: if one makes it, all do, and what a reboot empties is made again."""
    types = collections.defaultdict[str, set[str]](set)
    for _one, _place, volume in _hosts(found):
        types[volume["hostPath"]["path"]].add(volume["hostPath"].get("type") or "")
    for one, place, volume in _hosts(found):
        path, kind = volume["hostPath"]["path"], volume["hostPath"].get("type") or ""
        at = f"{one.where}spec.volumes[{place}].hostPath.type: of {path}"
        if len(types[path]) > 1 and "DirectoryOrCreate" in types[path]:
            yield f"{at} the pods want {sorted(types[path])}, so it depends on their order what is there"
        if _VOLATILE.match(path) and kind != "DirectoryOrCreate":
            yield f"{at} is {kind!r}, and not DirectoryOrCreate: after a reboot there is none"
        if path.startswith(_KUBELET) and kind != "Directory":
            yield f"{at} is {kind!r}, and not Directory: where the kubelet has another folder, the pod would start with an empty one"


def _hosts(found: Manifests) -> c.Iterator[tuple[Workload, int, Obj]]:
    for one in found.workloads:
        for place, volume in enumerate(one.spec.get("volumes") or ()):
            if volume.get("hostPath"):
                yield one, place, volume


def used(found: Manifests) -> c.Iterator[Finding]:
    """Every volume has a source and is mounted, and what a pod does not have it does not mount."""
    for one in found.workloads:
        mounted = {
            mount.get("name") for _at, container in one.containers() for mount in container.get("volumeMounts") or ()
        }
        for place, volume in enumerate(one.spec.get("volumes") or ()):
            at = f"{one.where}spec.volumes[{place}]"
            if not set(volume) - {"name"}:
                yield f"{at} {volume.get('name')} has no source, so it is an empty folder"
            config = (volume.get("configMap") or {}).get("name")
            if config and (one.namespace, config) not in found.names("ConfigMap"):
                yield f"{at}.configMap.name: there is no ConfigMap {config}"
            if volume.get("name") not in mounted:
                yield f"{at}.name: no container mounts {volume.get('name')}"


def read_only(found: Manifests) -> c.Iterator[Finding]:
    """Nobody writes configuration; of a folder that the containers of a pod share, one writes and the others read."""
    for one in found.workloads:
        writers = collections.Counter[str]()
        for at, container in one.containers():
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                volume = one.volume(mount["name"])
                if "configMap" in volume and not mount.get("subPath") and not mount.get("readOnly"):
                    yield f"{at}.volumeMounts[{index}].readOnly is not true for {mount.get('mountPath')}, which is configuration"
                if "emptyDir" in volume and not mount.get("readOnly"):
                    writers[mount["name"]] += 1
        for name, count in writers.items():
            if count > 1:
                yield f"{one.where}spec: {count} containers may write {name}, since volumeMounts have no readOnly"


def shared(found: Manifests) -> c.Iterator[Finding]:
    """An empty folder is for what containers of a pod hand over: at least two mount it, at the same path."""
    for one in found.workloads:
        for place, volume in enumerate(one.spec.get("volumes") or ()):
            paths = [
                mount["mountPath"]
                for _at, container in one.containers()
                for mount in container.get("volumeMounts") or ()
                if mount["name"] == volume["name"]
            ]
            if "emptyDir" in volume and (len(paths) < 2 or len(set(paths)) > 1):
                yield f"{one.where}spec.volumes[{place}]: volumeMounts of {volume['name']} are not two at the same mountPath, but {paths}"


def propagation(found: Manifests) -> c.Iterator[Finding]:
    """Where a pod mounts something for others, it is Bidirectional; whoever has a path around or beneath sees it later, or has to start again."""
    mounts = list(_mounts(found))
    seen = {
        id(one)
        for one, at, mount, path, _container in mounts
        if path == _RUN and ".containers[" in at and mount.get("mountPropagation") == "Bidirectional"
    }
    for one in found.workloads:
        if one.name == "nvidia-driver" and id(one) not in seen:
            yield f"{one.where}spec: no volumeMounts have {_RUN} with mountPropagation Bidirectional, so nobody sees the driver's root"
    for one, at, mount, path, container in mounts:
        how, beneath = mount.get("mountPropagation"), path in ("/", _GATES) or _within(path, _DRIVER_ROOT)
        if beneath and not how and one.name != "nvidia-driver":
            yield f"{at}.mountPropagation: of {path} is None, so what is mounted there later is not seen"
        if how == "Bidirectional" and (path in ("/", _DRIVER_ROOT) or not _mounts_there(container)):
            yield f"{at}.mountPropagation: of {path} is Bidirectional, and {container['name']} mounts nothing there for others"


def _mounts_there(container: Obj) -> bool:
    """Driver, its manager, and NVIDIA's validator."""
    return bool(re.search(r"/(driver|k8s-driver-manager|gpu-operator):", str(container.get("image"))))


def _within(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def _mounts(found: Manifests) -> c.Iterator[tuple[Workload, str, Obj, str, Obj]]:
    """Workload, field, mount, host path and container."""
    for one in found.workloads:
        for at, container in one.containers():
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                path = (one.volume(mount["name"]).get("hostPath") or {}).get("path")
                if path:
                    yield one, f"{at}.volumeMounts[{index}]", mount, path, container
