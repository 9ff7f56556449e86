# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the configuration that a cluster keeps for its machines has to become, and what of it cannot change any more. Pure.

kubeadm keeps it in ConfigMaps of kube-system, from which its upgrades write what machines run; to change a cluster is to change these first
(https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/). As `kubectl apply` does it, what was set before and is not any more is
removed, and what others have set stays.
"""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import re
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import plain_yaml
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.documents import (
    CLUSTER,
    ENCRYPTION_ARGUMENT,
    KUBELET,
    PROXY,
    merged,
)

Document = c.Mapping[str, t.Any]
#: ConfigMap and key of each kind (cmd/kubeadm/app/constants/constants.go).
_MAPS = {
    CLUSTER: ("kubeadm-config", "ClusterConfiguration"),
    KUBELET: ("kubelet-config", "kubelet"),
    PROXY: ("kube-proxy", "config.conf"),
}
#: Of a ConfigMap whose contents kube-proxy has not loaded yet.
_PENDING = "hwaccel.gpu/pending"
#: What a cluster is made with, by its path in ClusterConfiguration: how messages name it, and the variable that sets it.
_FIXED = {
    "networking.podSubnet": ("network of pods", "cluster_kubeadm_pod_network"),
    "networking.serviceSubnet": ("network of Services", "cluster_kubeadm_service_network"),
    "networking.dnsDomain": ("DNS domain", "cluster_kubeadm_dns_domain"),
    "controlPlaneEndpoint": ("endpoint", "hwaccel_api_endpoint"),
    "clusterName": ("name", "cluster_kubeadm_configuration"),
    "certificatesDir": ("folder of certificates", "cluster_kubeadm_configuration"),
    # Another folder is an empty datastore.
    "etcd.local.dataDir": ("folder of etcd", "cluster_kubeadm_configuration"),
    "etcd.external.endpoints": ("external etcd", "cluster_kubeadm_configuration"),
}
#: Those which kubeadm sets itself, so that leaving them out changes nothing.
_DEFAULTED = {"clusterName", "certificatesDir", "etcd.local.dataDir"}
_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|ms|s|m|h))+")
_ABSENT = object()
_ENCRYPTS = {"name": ENCRYPTION_ARGUMENT, "value": places.ENCRYPTION}


@dataclasses.dataclass(frozen=True)
class Change:
    """maps: ConfigMaps to write, each with name, key, text, version (that was read) and restarts. why: what changes, for messages. faults: what cannot."""

    maps: tuple[dict[str, t.Any], ...] = ()
    why: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        return {"known": True, "maps": list(self.maps)}


def change(observed: c.Mapping[str, t.Any], applied: Document, wanted: c.Mapping[str, Document]) -> Change:
    """observed: ConfigMaps by their names, as `member.py observe` prints them. applied, wanted: by kind, as documents.components returns them."""
    maps, why, faults = [], [], []
    for kind, (name, key) in _MAPS.items():
        found = observed.get(name)
        if found is None or kind not in wanted:
            faults += _proxy(found, wanted) if kind == PROXY else []
            continue
        old = yaml.safe_load(found["data"].get(key, "")) or {}
        faults += [*_fixed(old, wanted[kind]), *_decrypted(old, wanted[kind])] if kind == CLUSTER else []
        before = applied.get(kind, {})
        to_be = _with_others(old, before, wanted[kind]) if kind == CLUSTER else wanted[kind]
        new = _merged(old, before, to_be)
        differing = (before and before != wanted[kind]) or not _same(old, to_be)
        paths = list(_paths(old, new)) if differing else []
        pending = _PENDING in found["annotations"]
        if paths or pending:
            text = plain_yaml.text([new]) if paths else found["data"][key]
            maps.append(
                {"name": name, "key": key, "text": text, "version": found["version"], "restarts": kind == PROXY}
            )
            why.append(f"{kind} ({', '.join(paths)})" if paths else "kube-proxy has not loaded its configuration")
    return Change(tuple(maps), tuple(why), tuple(faults))


def _fixed(old: Document, wanted: Document) -> list[Fault]:
    faults = []
    for path, (what, variable) in _FIXED.items():
        is_now, to_be = _at(old, path), _at(wanted, path)
        if is_now == to_be or (to_be is None and path in _DEFAULTED):
            continue
        runs, is_set = _shown(is_now), _shown(to_be)
        why = f"it is {runs}, and {is_set} is set"
        next_step = f"set {variable} to what the cluster has, or make another cluster"
        faults.append(Fault(f"the {what} of a cluster cannot be changed", variable, why, next_step))
    return faults


def _decrypted(old: Document, wanted: Document) -> list[Fault]:
    """API servers without the keys could read no Secret any more."""
    if _ENCRYPTS not in _arguments(old) or _ENCRYPTS in _arguments(wanted):
        return []
    where = "cluster_kubeadm_secrets_encryption"
    why = "API servers without their keys could read none of them"
    return [Fault("Secrets of the cluster are encrypted, and would not be any more", where, why, f"set {where}: true")]


def _arguments(document: Document) -> list[t.Any]:
    return list(_at(document, "apiServer.extraArgs") or ())


def _with_others(old: Document, before: Document, wanted: Document) -> Document:
    """Lists replace one another. If a user gives no arguments, those of others stay beside that of the role."""
    if _arguments(wanted) != [_ENCRYPTS]:
        return wanted
    others = [one for one in _arguments(old) if one != _ENCRYPTS and one not in _arguments(before)]
    return merged(wanted, {"apiServer": {"extraArgs": [*others, _ENCRYPTS]}})


def _proxy(found: t.Any, wanted: c.Mapping[str, Document]) -> list[Fault]:
    """kube-proxy is installed and left out at the beginning only."""
    if (found is not None) == (PROXY in wanted):
        return []
    where = "cluster_kubeadm_proxy_mode"
    if found is None:
        next_step = "set it to none, or run `kubeadm init phase addon kube-proxy` on a server first"
        return [Fault("the cluster has no kube-proxy", where, f"{where} wants one", next_step)]
    next_step = "delete the DaemonSet and the ConfigMap kube-proxy of kube-system once the network plugin replaces it, or set the mode that runs"
    return [Fault("the cluster has a kube-proxy", where, f"{where} is none", next_step)]


def _at(document: t.Any, path: str) -> t.Any:
    for key in path.split("."):
        document = document.get(key) if isinstance(document, c.Mapping) else None
    return document or None


def _shown(value: t.Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "none")


def _merged(old: t.Any, before: t.Any, wanted: Document) -> dict[str, t.Any]:
    """before: what was set when old was written."""
    new = dict(copy.deepcopy(old)) if isinstance(old, c.Mapping) else {}
    before = before if isinstance(before, c.Mapping) else {}
    for key in before.keys() - wanted.keys():
        new.pop(key, None)
    for key, value in wanted.items():
        if isinstance(value, c.Mapping):
            new[key] = _merged(new.get(key), before.get(key), value)
        elif key not in new or not _same(new[key], value):
            new[key] = copy.deepcopy(value)
    return new


def _same(old: t.Any, wanted: t.Any) -> bool:
    """Whether old has all that is wanted. kubeadm writes durations in another form, and leaves out what is empty."""
    if isinstance(wanted, c.Mapping):
        found = old if isinstance(old, c.Mapping) else {}
        return all(_same(found.get(key, _ABSENT), value) for key, value in wanted.items())
    if old is _ABSENT:
        return not wanted
    return bool(old == wanted) or (_nanoseconds(old) is not None and _nanoseconds(old) == _nanoseconds(wanted))


def _nanoseconds(text: t.Any) -> float | None:
    """Of a duration of Go (https://pkg.go.dev/time#ParseDuration)."""
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        return None
    parts = re.findall(r"([0-9.]+)(ns|us|ms|s|m|h)", text)
    return sum(float(number) * _NANOSECONDS[unit] for number, unit in parts)


def _paths(old: t.Any, new: t.Any, place: str = "") -> c.Iterator[str]:
    if isinstance(old, c.Mapping) and isinstance(new, c.Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from _paths(old.get(key), new.get(key), f"{place}.{key}" if place else key)
    elif old != new:
        yield place
