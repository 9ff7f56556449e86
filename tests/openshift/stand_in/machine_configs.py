# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server of machine configs answers to a request, as machine-config-operator's (pkg/server; section 5 of behaviours.yml): functions over plain data."""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import json
import posixpath
import typing as t
import urllib.parse

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import specifications
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.specifications import (
    Inexpressible,
    Obj,
    Spec,
    Unsupported,
)

BOOTSTRAP, CLUSTER = "bootstrap", "cluster"
KUBECONFIG, KUBELET_CA = "/etc/kubernetes/kubeconfig", "/etc/kubernetes/kubelet-ca.crt"
ANNOTATIONS = "/etc/machine-config-daemon/node-annotations.json"
CONTENT, ENCAPSULATED = "/etc/mcs-machine-config-content.json", "/etc/ignition-machine-config-encapsulated.json"
CONFIGS = "/config/"
_ANNOTATION = "machineconfiguration.openshift.io"
#: Pools of the machines that an installation begins with.
_FIRST = ("master", "arbiter")


class Refused(Exception):
    """A pool that is not served, as on the bootstrap machine; the text is the reason."""


@dataclasses.dataclass(frozen=True)
class Pool:
    """A MachineConfigPool: names of machine configs in its status and its spec, and how many machines have that of the spec."""

    status: str
    spec: str
    updated: int = 0


@dataclasses.dataclass(frozen=True)
class Served:
    """What the server has. mode: BOOTSTRAP or CLUSTER.

    machine_configs: objects by name. kubeconfigs: the bootstrap identity by mode, which is a certificate at first, and a token in the cluster.
    kubelet_ca: PEM, kubeAPIServerServingCAData of the ControllerConfig.
    """

    mode: str
    pools: c.Mapping[str, Pool]
    machine_configs: c.Mapping[str, Obj]
    kubeconfigs: c.Mapping[str, str]
    kubelet_ca: str

    @classmethod
    def of(cls, given: Obj) -> Served:
        """Of JSON, as written() makes it."""
        return cls(**given | {"pools": {name: Pool(**pool) for name, pool in given["pools"].items()}})

    def written(self) -> Obj:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer without a body has the length 0."""

    status: int
    body: bytes = b""
    #: For its log.
    reason: str = ""


def answer(served: Served, method: str, path: str, accept: str) -> Answer:
    """accept: the header, "" if there is none. To HEAD the answer is that of GET, whose body is not sent."""
    if method not in ("GET", "HEAD"):
        return Answer(405)
    if path == "/healthz":
        return Answer(200)
    if not path.startswith(CONFIGS):
        return Answer(404)
    try:
        spec = specifications.asked(accept)
    except Unsupported:
        return Answer(400, reason=f"unsupported Ignition version in Accept header: {accept}")
    try:
        found = config(served, posixpath.basename(path.rstrip("/")), spec)
    except (Refused, Inexpressible) as error:
        return Answer(500, reason=f"couldn't get config: {error}")
    if found is None:
        return Answer(404)
    return Answer(200, json.dumps(found, separators=(",", ":")).encode())


def config(served: Served, pool: str, spec: Spec) -> Obj | None:
    """The config of a pool with all that is added to it, None if the bootstrap machine does not have it. Raises Refused, Inexpressible."""
    name = _name_of(served, pool)
    if name is None:
        return None
    if name not in served.machine_configs:
        raise Refused(f"could not fetch config {name}")
    machine_config = specifications.without_kernel_arguments(served.machine_configs[name], spec)
    found: Obj = copy.deepcopy(machine_config["spec"]["config"])
    files = found.setdefault("storage", {}).setdefault("files", [])
    _add_authority(files, served.kubelet_ca)
    # What is encapsulated is of the newest specification while bootstrapping, since there nobody asks what machines can read.
    encapsulated = specifications.NEWEST if served.mode == BOOTSTRAP else spec
    files += [
        _file(ANNOTATIONS, json.dumps(_annotations(name), separators=(",", ":"))),
        _file(KUBECONFIG, served.kubeconfigs[served.mode]),
        _file(CONTENT, json.dumps(machine_config, indent=4)),
        _file(ENCAPSULATED, json.dumps(_without_config(machine_config, encapsulated), separators=(",", ":"))),
    ]
    return specifications.converted(found, spec)


def _name_of(served: Served, pool: str) -> str | None:
    if served.mode == BOOTSTRAP:
        if pool not in _FIRST:
            raise Refused(f'refusing to serve bootstrap configuration to pool "{pool}"')
        return served.pools[pool].status if pool in served.pools else None
    if pool not in served.pools:
        raise Refused(f'could not fetch pool. err: machineconfigpool "{pool}" not found')
    found = served.pools[pool]
    return found.spec if found.updated else found.status


def _annotations(name: str) -> Obj:
    keys = ("currentConfig", "desiredConfig", "firstPivotConfig")
    return {f"{_ANNOTATION}/{key}": name for key in keys} | {f"{_ANNOTATION}/state": "Done"}


def _without_config(machine_config: Obj, spec: Spec) -> Obj:
    empty = {"ignition": {"version": specifications.text(spec)}}
    return machine_config | {"spec": machine_config["spec"] | {"config": empty}}


def _add_authority(files: list[t.Any], kubelet_ca: str) -> None:
    present = next((file for file in files if file["path"] == KUBELET_CA), None)
    if present:
        present["contents"]["source"] = _url(kubelet_ca)
    else:
        files.append(_file(KUBELET_CA, kubelet_ca))


def _file(path: str, content: str) -> Obj:
    return {"path": path, "overwrite": True, "contents": {"source": _url(content)}, "mode": 0o644}


def _url(content: str) -> str:
    return "data:," + urllib.parse.quote(content, safe="!~*'()")
