# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What install-config.yaml may contain: names and types, of which an unknown name is only warned of (section 2.1 of behaviours.yml)."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import ANY, MAP

#: Platforms, as the error for one that is missing lists them.
PLATFORMS = (
    "aws",
    "azure",
    "baremetal",
    "external",
    "gcp",
    "ibmcloud",
    "none",
    "nutanix",
    "openstack",
    "powervs",
    "vsphere",
)
_POOL: dict[str, t.Any] = {
    "name": str,
    "replicas": int,
    "architecture": str,
    "hyperthreading": str,
    "platform": ANY,
    "fencing": {"credentials": [ANY]},
    "diskSetup": [ANY],
}
_MIRRORS: dict[str, t.Any] = {"source": str, "mirrors": [str]}
INSTALL_CONFIG: dict[str, t.Any] = {
    "apiVersion": str,
    "kind": str,
    "metadata": {
        "name": str,
        "namespace": str,
        "labels": MAP,
        "annotations": MAP,
        "creationTimestamp": ANY,
    },
    "baseDomain": str,
    "networking": {
        "networkType": str,
        "clusterNetwork": [{"cidr": str, "hostPrefix": int}],
        "machineNetwork": [{"cidr": str}],
        "serviceNetwork": [str],
        "clusterNetworkMTU": int,
        "ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": str}},
        # Names of old releases
        "machineCIDR": str,
        "serviceCIDR": str,
        "clusterNetworks": [{"cidr": str, "hostPrefix": int, "hostSubnetLength": int}],
        "type": str,
    },
    "controlPlane": _POOL,
    "arbiter": _POOL,
    "compute": [_POOL],
    "platform": dict.fromkeys(PLATFORMS, MAP),
    "pullSecret": str,
    "sshKey": str,
    "additionalTrustBundle": str,
    "additionalTrustBundlePolicy": str,
    "proxy": {"httpProxy": str, "httpsProxy": str, "noProxy": str},
    "imageContentSources": [_MIRRORS],
    "imageDigestSources": [{**_MIRRORS, "sourcePolicy": str}],
    "publish": str,
    "operatorPublishingStrategy": ANY,
    "fips": bool,
    "cpuPartitioningMode": str,
    "capabilities": {"baselineCapabilitySet": str, "additionalEnabledCapabilities": [str]},
    "credentialsMode": str,
    "featureSet": str,
    "featureGates": [str],
    "bootstrapInPlace": {"installationDisk": str},
}
