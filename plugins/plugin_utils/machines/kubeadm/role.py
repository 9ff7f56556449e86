# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions for tasks of the role cluster_kubeadm: texts and plain data in, plain data out. Pure."""

from __future__ import annotations

import base64
import collections.abc as c
import json
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority, sources
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import Answer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.plan import Cluster
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import (
    configuration,
    documents,
    leaving,
    plan,
    verdict,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import request as asking

_Data = c.Mapping[str, t.Any]
_TRUSTED = "certificate-authority-data"
#: By the name of what kubeadm does with it.
_CONFIGURATIONS: dict[str, t.Callable[[_Data, _Data, _Data], str]] = {
    "init": documents.init,
    "join": documents.join,
    "names": documents.names,
    "upgrade": documents.upgrade,
    "reconfigure": documents.reconfigure,
    "applied": documents.applied,
}


def requested(settings: _Data) -> host.Request:
    """As request.request documents it."""
    return asking.request(settings)


def planned(printed: str, settings: _Data) -> dict[str, t.Any]:
    """As plan.plan documents it."""
    return plan.plan(host.read(printed), settings)


def restored(printed: str, settings: _Data) -> dict[str, t.Any]:
    """As leaving.restored documents it."""
    return leaving.restored(host.read(printed), settings)


def configured(settings: _Data, machine: _Data, secrets: _Data, what: str) -> str:
    """What is written on a machine, as the functions of documents with these names document it."""
    return _CONFIGURATIONS[what](settings, machine, secrets)


def wanted(settings: _Data, _read: None) -> dict[str, t.Any]:
    """Files on the controller that are to be read, as sources.wanted documents them."""
    return sources.wanted(settings)


def compared(settings: _Data, read: _Data) -> dict[str, t.Any]:
    """faults, and messages. read: what sources.py has printed."""
    found = sources.faults("cluster_kubeadm", settings, read)
    return {"faults": [fault.as_dict() for fault in found], "messages": []}


def answered(result: _Data) -> Answer:
    """What the endpoint has answered. result: of the module uri, for the ConfigMap cluster-info, which kubeadm lets everyone read.

    Without it, an endpoint answers too: an API server that is another one, or that has not been initialized completely.
    """
    if int(result.get("status", -1)) < 0:
        return Answer()
    try:
        config = yaml.safe_load(result["json"]["data"]["kubeconfig"])
        certificate = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode("ascii")
    except (KeyError, TypeError, ValueError, IndexError, yaml.YAMLError):
        return Answer(answers=True)
    return Answer(True, authority.fingerprint(certificate))


def told(settings: _Data, observed: str, plans: c.Iterable[_Data]) -> tuple[Cluster, dict[str, t.Any]]:
    """What a cluster tells of itself, and what its configuration has to become, as configuration.Change documents it.

    observed: what `member.py observe` prints. plans: of the machines, servers first.
    """
    found = json.loads(observed)
    records = (one["turn"]["applied"] for one in plans if one["turn"].get("applied"))
    applied: _Data = next(records, {})
    change = configuration.change(found["configuration"], applied, documents.components(settings))
    names = frozenset((*found["nodes"], *found["members"]))
    ready = frozenset(name for name, is_ready in found["nodes"].items() if is_ready)
    return Cluster(change.why, change.faults, names, ready), change.as_dict()


def connection(kubeconfig: str, endpoint: str, server_name: str = "", authorities: str = "") -> dict[str, t.Any]:
    """Options of a connection, from the text of an admin kubeconfig, which names the server on which it was written. endpoint: host and port.

    server_name: the name that is looked for in the server's certificate, that of the endpoint by default. authorities: certificates in PEM that are trusted
    too, before its own, as openshift-install adds those of a router (addRouterCAToClusterCA in cmd/openshift-install).
    """
    config = yaml.safe_load(kubeconfig)
    for one in config["clusters"]:
        one["cluster"]["server"] = f"https://{endpoint}"
        one["cluster"].pop("tls-server-name", None)
        if server_name:
            one["cluster"]["tls-server-name"] = server_name
        # Without certificates of its own it trusts those of the system, and would trust nothing else than these.
        if authorities and (own := one["cluster"].get(_TRUSTED)):
            trusted = authority.bundle(authorities, base64.b64decode(own).decode("ascii"))
            one["cluster"][_TRUSTED] = base64.b64encode(trusted.encode()).decode()
    return {"kubeconfig": config}


def judged(result: _Data, name: str, endpoint: str, journal: str) -> str:
    """As verdict.verdict documents it, as text. result: of kubeadm, or of what has asked for the node's health. name: of the machine."""
    return str(verdict.verdict(name, endpoint, verdict.output(result), journal))
