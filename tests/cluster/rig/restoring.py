# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of etcd, and objects that show whether one was restored."""

from __future__ import annotations

import pathlib
import typing as t

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import FOLDER
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

ENTRY = ("-e", "cluster_kubeadm_entry=restore")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
_SCRIPT = pathlib.Path(next(iter(collection.__path__))) / "roles" / "cluster_kubeadm" / "files" / "snapshot.py"


def config_map(name: str) -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def take(machine: Machine) -> str:
    """Path of a snapshot that this server's etcd has given, as an upgrade takes it."""
    machine.write("/run/snapshot.py", _SCRIPT.read_text(encoding="utf-8"))
    return machine.execute("python3", "/run/snapshot.py", "take", f"{FOLDER}/snapshots", "5").stdout.split()[0]
