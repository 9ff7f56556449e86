# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of old releases, and defaults, as the installer applies them before it checks. Pure.

Sources: pkg/types/conversion/installconfig.go and pkg/types/defaults/installconfig.go of openshift/installer.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import Document

API_VERSION = "v1"
MASTER_POOL, WORKER_POOL = "master", "worker"
OVN = "OVNKubernetes"
CLUSTER_NETWORK, HOST_PREFIX, SERVICE_NETWORK, MACHINE_NETWORK = "10.128.0.0/14", 23, "172.30.0.0/16", "10.0.0.0/16"
#: Replicas of a pool for which none are set.
REPLICAS = 3
_POOL = {"replicas": REPLICAS, "architecture": "amd64", "hyperthreading": "Enabled"}
#: Of networks whose size was set by the bits of a node's part.
_BITS = 32


def completed(config: Document) -> dict[str, t.Any]:
    """config: as schema.typed returns it."""
    networking = _networking(config.get("networking") or {})
    found: dict[str, t.Any] = {"publish": "External", **config, "networking": networking}
    # Whatever its name is.
    found["controlPlane"] = {**_POOL, **config.get("controlPlane", {}), "name": MASTER_POOL}
    found["compute"] = [{**_POOL, **one} for one in config.get("compute") or [{"name": WORKER_POOL}]]
    if found.get("additionalTrustBundle"):
        found.setdefault("additionalTrustBundlePolicy", "Proxyonly")
    return found


def _networking(given: Document) -> dict[str, t.Any]:
    found = dict(given)
    machine, service = found.pop("machineCIDR", ""), found.pop("serviceCIDR", "")
    kind, networks = found.pop("type", ""), found.pop("clusterNetworks", [])
    found["networkType"] = found.get("networkType") or kind or OVN
    found["machineNetwork"] = found.get("machineNetwork") or [{"cidr": machine or MACHINE_NETWORK}]
    found["serviceNetwork"] = found.get("serviceNetwork") or [service or SERVICE_NETWORK]
    listed = found.get("clusterNetwork") or networks or [{"cidr": CLUSTER_NETWORK, "hostPrefix": HOST_PREFIX}]
    found["clusterNetwork"] = [_cluster_network(one) for one in listed]
    return found


def _cluster_network(given: Document) -> dict[str, t.Any]:
    found = dict(given)
    length = found.pop("hostSubnetLength", 0)
    return {**found, "hostPrefix": found.get("hostPrefix") or (_BITS - length if length else 0)}
