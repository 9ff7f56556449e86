# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Datastores of others, in which servers of K3s keep everything that they share. Pure.

Servers with the same datastore and the same token are one cluster: each takes the authorities from there (storageBootstrap in pkg/cluster/storage.go), and
none of them joins another one.
"""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.contents import has
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import places

Settings = c.Mapping[str, t.Any]
EXTERNAL = "external"
OPTION = "datastore-endpoint"
_WHERE = "cluster_k3s_datastore_endpoint"
#: Of endpoints: those of etcd are several, with commas (https://docs.k3s.io/datastore#datastore-endpoint-format-and-functionality).
_ENDPOINT = re.compile(r"(mysql|postgres|postgresql|nats|https?)://\S+")


def is_set(settings: Settings) -> bool:
    return bool(settings["datastore"] == EXTERNAL)


def faults(settings: Settings) -> list[Fault]:
    """Values are not shown: they have passwords."""
    endpoint, found = str(settings["datastore_endpoint"]), []
    if not is_set(settings):
        if endpoint:
            next_step = "set cluster_k3s_datastore: external too, or unset it"
            found.append(Fault("the endpoint of a datastore would not be used", _WHERE, "", next_step))
        return found
    if not _ENDPOINT.fullmatch(endpoint):
        what = "the endpoint of the datastore is no address of one" if endpoint else "the datastore has no endpoint"
        next_step = "set one such as postgres://USER:PASSWORD@HOST:5432/NAME, mysql://USER:PASSWORD@tcp(HOST:3306)/NAME or https://HOST:2379"
        found.append(Fault(what, _WHERE, "", next_step))
    if not settings["has_token"]:
        why = (
            "what servers share is encrypted with it there, and nothing else is kept on a server that is installed anew"
        )
        found.append(Fault("a datastore of others needs a token that is known", "cluster_k3s_token", why, "set it"))
    return found


def used(host: Host) -> str:
    """The endpoint that the machine's configuration has, empty if its datastore is its own."""
    try:
        read = yaml.safe_load(host.text(places.CONFIGURATION))
    except yaml.YAMLError:
        return ""
    return str(read.get(OPTION) or "") if isinstance(read, dict) else ""


def changed(host: Host, settings: Settings) -> list[Fault]:
    """Another datastore of a server that is a member: it would begin there with nothing."""
    there, wanted = used(host), str(settings["datastore_endpoint"]) if is_set(settings) else ""
    own = next((name for path, name in ((places.ETCD, "etcd"), (places.SQLITE, "SQLite")) if has(host, path)), "")
    if is_set(settings) and own:
        next_step = "unset cluster_k3s_datastore, or make another cluster with the datastore"
        return [Fault(f"the server has {own}, and another datastore is set", "cluster_k3s_datastore", "", next_step)]
    if not there or _without_user(there) == _without_user(wanted):
        return []
    what = f"the datastore of the cluster is {_without_user(there)}, and {_without_user(wanted) or 'none'} is set"
    next_step = f"set the one that it has; if its data are in the other one already, change it first in {places.CONFIGURATION} of each server"
    return [Fault(what, _WHERE, "a server would begin there with nothing", next_step)]


def adopted(was: str, becomes: str) -> list[Fault]:
    """The same of a K3s that is adopted. Empty: its datastore is its own, which its data say otherwise."""
    if not was or _without_user(was) == _without_user(becomes):
        return []
    what = f"the datastore of the K3s that is adopted is {_without_user(was)}, and {_without_user(becomes) or 'none'} is set"
    why = "a server would begin there with nothing"
    return [Fault(what, _WHERE, why, "set it, with cluster_k3s_datastore: external and the token of the cluster")]


def _without_user(endpoint: str) -> str:
    """Without user, password and options, which may change."""
    return re.sub(r"://[^/]*@", "://", endpoint).partition("?")[0]
