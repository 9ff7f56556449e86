# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of etcd, objects that show whether one was restored, and whether secrets show."""

from __future__ import annotations

import collections.abc as c
import pathlib
import typing as t

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import FOLDER
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

ENTRY = ("-e", "cluster_kubeadm_entry=restore")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
#: What a restoration has to bring back as it was.
_KEPT = (
    Resource("", "v1", "Namespace", "namespaces", False),
    Resource("apps", "v1", "Deployment", "deployments", True),
    Resource("", "v1", "Secret", "secrets", True),
    CONFIG_MAP,
)
_SCRIPT = pathlib.Path(next(iter(collection.__path__))) / "roles" / "cluster_kubeadm" / "files" / "snapshot.py"
#: Where secrets may show, with what prints it.
_PLACES = {
    "processes": "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'",
    "units": "find /etc/systemd/system -type f -exec cat {} +",
    "journal": "journalctl --no-pager",
    "temporary files": "find /tmp /root /run -type f -size -1024k -print0 2>/dev/null | xargs -0 cat 2>/dev/null",
}


def config_map(name: str) -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def uids(client: Client) -> dict[str, str]:
    """Of objects, by kind, namespace and name. One that was created again has another one."""
    return {
        f"{resource.kind} {meta.get('namespace', '')}/{meta['name']}": meta["uid"]
        for resource in _KEPT
        for meta in (one["metadata"] for one in client.list(resource).items)
    }


def take(machine: Machine) -> str:
    """Path of a snapshot that this server's etcd has given, as an upgrade takes it."""
    machine.write("/run/snapshot.py", _SCRIPT.read_text(encoding="utf-8"))
    return machine.execute("python3", "/run/snapshot.py", "take", f"{FOLDER}/snapshots", "5").stdout.split()[0]


def secrets_shown(
    machines: c.Iterable[Machine], secrets: c.Sequence[str], places: c.Iterable[str] = tuple(_PLACES)
) -> list[tuple[str, str]]:
    """Machines on which a process, a unit or the journal has one of these, with the place."""
    return [
        (machine.name, place)
        for machine in machines
        for place in places
        # Some of it is no text.
        for text in [machine.sh(f"{{ {_PLACES[place]} || :; }} | LC_ALL=C tr -cd '\\12\\40-\\176'", seconds=120)]
        if any(secret in text for secret in secrets)
    ]
