# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys and types of install-config.yaml and agent-config.yaml, and their values without those of a wrong type. Pure.

Sources: pkg/types/installconfig.go, machinepools.go and agent/agent_config_type.go of openshift/installer.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    INSTALL_CONFIG,
    Document,
    Finding,
    shown,
)

#: A type, a dictionary of keys, a list of one of these, or anything.
ANY: t.Any = object()
_POOL = {
    "name": str,
    "replicas": int,
    "architecture": str,
    "hyperthreading": str,
    "platform": ANY,
    "fencing": {"credentials": [ANY]},
    "management": str,
    "diskSetup": [ANY],
}
_MIRROR = {"source": str, "mirrors": [str], "sourcePolicy": str}
_BAREMETAL = ("apiVIP", "apiVIPs", "ingressVIP", "ingressVIPs", "hosts", "loadBalancer", "provisioningNetwork")
_OTHER_PLATFORMS = (
    "aws",
    "azure",
    "external",
    "gcp",
    "ibmcloud",
    "nutanix",
    "openstack",
    "ovirt",
    "powervs",
    "vsphere",
)
INSTALL: dict[str, t.Any] = {
    "apiVersion": str,
    "metadata": {"name": str, "namespace": str, "annotations": ANY, "labels": ANY, "creationTimestamp": ANY},
    "baseDomain": str,
    "additionalTrustBundle": str,
    "additionalTrustBundlePolicy": str,
    "sshKey": str,
    "pullSecret": str,
    "networking": {
        "networkType": str,
        "machineNetwork": [{"cidr": str}],
        "clusterNetwork": [{"cidr": str, "hostPrefix": int, "hostSubnetLength": int}],
        "serviceNetwork": [str],
        "clusterNetworkMTU": int,
        "ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": str}},
        "machineCIDR": str,
        "type": str,
        "serviceCIDR": str,
        "clusterNetworks": [{"cidr": str, "hostPrefix": int, "hostSubnetLength": int}],
    },
    "controlPlane": _POOL,
    "arbiter": _POOL,
    "compute": [_POOL],
    "platform": {
        "none": {},
        "baremetal": dict.fromkeys(_BAREMETAL, ANY),
        **dict.fromkeys(_OTHER_PLATFORMS, ANY),
    },
    "proxy": {"httpProxy": str, "httpsProxy": str, "noProxy": str},
    "imageContentSources": [_MIRROR],
    "imageDigestSources": [_MIRROR],
    "publish": str,
    "operatorPublishingStrategy": ANY,
    "fips": bool,
    "cpuPartitioningMode": str,
    "credentialsMode": str,
    "bootstrapInPlace": {"installationDisk": str},
    "capabilities": {"baselineCapabilitySet": str, "additionalEnabledCapabilities": [str]},
    "featureSet": str,
    "featureGates": [str],
}
_HINTS = {
    **dict.fromkeys(("deviceName", "hctl", "model", "vendor", "serialNumber", "wwn"), str),
    **dict.fromkeys(("wwnWithExtension", "wwnVendorExtension"), str),
    "minSizeGigabytes": int,
    "rotational": bool,
}
AGENT: dict[str, t.Any] = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str, "namespace": str},
    "rendezvousIP": str,
    "additionalNTPSources": [str],
    "bootArtifactsBaseURL": str,
    "minimalISO": bool,
    "hosts": [
        {
            "hostname": str,
            "role": str,
            "interfaces": [{"name": str, "macAddress": str}],
            "rootDeviceHints": _HINTS,
            "networkConfig": ANY,
            "bmc": ANY,
        }
    ],
}
_NAMES = {str: "text", int: "a whole number", bool: "true or false"}


def typed(given: t.Any, schema: t.Any, document: str = INSTALL_CONFIG) -> tuple[dict[str, t.Any], list[Finding]]:
    """The document without keys that are null or have another type, and a finding for each of the latter.

    Keys that the schema does not have stay: unknown() reports them.
    """
    found: list[Finding] = []
    kept = _kept(given, schema, "", document, found)
    return (kept if isinstance(kept, dict) else {}), found


def _kept(value: t.Any, schema: t.Any, key: str, document: str, found: list[Finding]) -> t.Any:
    if schema is ANY:
        return value
    if isinstance(schema, dict) and isinstance(value, c.Mapping):
        below = {
            str(name): _kept(one, schema.get(name, ANY), f"{key}.{name}" if key else str(name), document, found)
            for name, one in value.items()
            if one is not None
        }
        return {name: one for name, one in below.items() if one is not None}
    if isinstance(schema, list) and isinstance(value, (list, tuple)):
        each = [_kept(one, schema[0], f"{key}[{number}]", document, found) for number, one in enumerate(value)]
        # Others keep their numbers.
        empty = schema[0]() if isinstance(schema[0], type) else {}
        return [empty if one is None else one for one in each]
    if isinstance(schema, type) and isinstance(value, schema) and (schema is bool or not isinstance(value, bool)):
        return value
    wanted = "a dictionary" if isinstance(schema, dict) else "a list" if isinstance(schema, list) else _NAMES[schema]
    # Text such as 1.10 or 012 became a number, because it had no quotes.
    quotes = "YAML read it as another type: put it in quotes" if schema is str and values.scalar(value) else ""
    found.append(Finding(key, f"{shown(key, value)} is not {wanted}", quotes, document=document))
    return None


def unknown(given: Document, schema: t.Any, document: str = INSTALL_CONFIG, key: str = "") -> c.Iterator[Finding]:
    """Keys that the installer warns of and ignores."""
    for name, value in given.items():
        path = f"{key}.{name}" if key else str(name)
        if name not in schema:
            near = values.near(name, schema)
            why = near or "the installer would ignore it, and take the default"
            yield Finding(path, f"unknown key {name}", why, "correct or remove it", document)
        elif isinstance(schema[name], dict) and isinstance(value, c.Mapping):
            yield from unknown(value, schema[name], document, path)
        elif isinstance(schema[name], list) and isinstance(schema[name][0], dict) and isinstance(value, list):
            for number, one in enumerate(value):
                if isinstance(one, c.Mapping):
                    yield from unknown(one, schema[name][0], document, f"{path}[{number}]")
