# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of machine pools, platforms and capabilities in install-config. Pure.

Sources: validateControlPlane, validateCompute, validatePlatform and validateCapabilities in pkg/types/validation/installconfig.go, and machinepools.go beside
it, of openshift/installer; config/v1/types_cluster_version.go of openshift/api.
"""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.conversion import OVN, WORKER_POOL
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    AGENT,
    IN_PLACE,
    Finding,
    Site,
    one_of,
    shown,
)

#: Of releases, by the names that machines have for them.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_ARCHITECTURES = ("arm64", "amd64", "s390x", "ppc64le")
_HYPERTHREADING = ("Enabled", "Disabled")
_PARTITIONING = ("", "None", "AllNodes")
NONE, BAREMETAL, EXTERNAL = "none", "baremetal", "external"
_PLATFORMS = (
    *("aws", "azure", BAREMETAL, EXTERNAL, "gcp", "ibmcloud", NONE, "nutanix", "openstack", "ovirt", "powervs"),
    "vsphere",
)
#: Platforms of the agent-based installer, and of this role.
_OF_AGENT = (BAREMETAL, "vsphere", NONE, EXTERNAL, "nutanix")
_OF_ROLE = {AGENT: (NONE, BAREMETAL, EXTERNAL)}
_PUBLISH = ("External", "Internal", "Mixed")
#: Masters of the agent-based installer.
_MASTERS_OF_AGENT = (1, 3, 4, 5)
OLM, MARKETPLACE, INGRESS = "OperatorLifecycleManager", "marketplace", "Ingress"
#: Capabilities that were added to a set of a release. Later sets have all of earlier ones.
_ADDED = {
    (4, 11): ("baremetal", "MachineAPI", MARKETPLACE, "openshift-samples"),
    (4, 12): ("Console", "CSISnapshot", "Insights", "Storage"),
    (4, 13): ("NodeTuning",),
    (4, 14): ("Build", "DeploymentConfig", "ImageRegistry"),
    (4, 15): ("CloudCredential", OLM),
    (4, 16): ("CloudControllerManager", INGRESS),
    (4, 18): ("OperatorLifecycleManagerV1",),
}
_ALL = tuple(sorted(name for names in _ADDED.values() for name in names))
_NO_SET, _CURRENT = "None", "vCurrent"
#: What the stages on the cluster need, and why.
_NEEDED = {
    "NodeTuning": "it sets the kernel arguments and huge pages of nodes with GPUs",
    "Build": "drivers are built for kernels by it",
    "ImageRegistry": "the images of drivers that are built lie in it",
    OLM: "operators of NVIDIA are installed by it",
    MARKETPLACE: "operators of NVIDIA are found in it",
}


def control_plane(site: Site) -> c.Iterator[Finding]:
    key, pool = "controlPlane", site.at("controlPlane")
    replicas = pool["replicas"]
    if replicas == 0:
        yield Finding(f"{key}.replicas", "0 masters", "a cluster has one at least", "add a machine to control_plane")
    yield from _pool(key, pool)
    given = len((pool.get("fencing") or {}).get("credentials") or [])
    if replicas == 2 and not site.at("arbiter") and given != 2:
        why = f"a cluster of two masters needs two fencing credentials, and has {given}"
        yield Finding(f"{key}.fencing.credentials", "two masters", why, "use one, three or more masters")
    if site.at("arbiter") and BAREMETAL not in (site.at("platform") or {}):
        yield Finding("arbiter.platform", "an arbiter is set", f"it is supported on {BAREMETAL} only", "remove it")


def compute(site: Site) -> c.Iterator[Finding]:
    names: set[str] = set()
    architecture = site.at("controlPlane.architecture")
    for number, pool in enumerate(site.at("compute")):
        key, name = f"compute[{number}]", pool.get("name") or ""
        yield from one_of(f"{key}.name", name, (WORKER_POOL,))
        if name in names:
            yield Finding(f"{key}.name", f"{shown(key, name)} is there already", "", "remove one of the pools")
        names.add(name)
        if pool["architecture"] != architecture:
            why = f"the control plane has {architecture}, and pools of several architectures are not supported"
            next_step = "set the same, and add such machines to the cluster later"
            yield Finding(f"{key}.architecture", f"{shown(key, pool['architecture'])} differs", why, next_step)
        yield from _pool(key, pool)


def _pool(key: str, pool: c.Mapping[str, t.Any]) -> c.Iterator[Finding]:
    if pool["replicas"] < 0:
        yield Finding(f"{key}.replicas", f"{pool['replicas']} is negative", "", "set a number of 0 or more")
    yield from one_of(f"{key}.hyperthreading", pool["hyperthreading"], _HYPERTHREADING)
    yield from one_of(f"{key}.architecture", pool["architecture"], _ARCHITECTURES)


def platform(site: Site) -> c.Iterator[Finding]:
    given = [name for name in _PLATFORMS if name in (site.at("platform") or {})]
    if not given:
        yield Finding("platform", "no platform is given", "", f"set one, such as {NONE}: {{}}")
    if BAREMETAL in given:
        bare = site.at(f"platform.{BAREMETAL}") or {}
        for name in ("apiVIP", "ingressVIP"):
            if not bare.get(name) and not bare.get(f"{name}s"):
                yield Finding(f"platform.{BAREMETAL}.{name}s", "no virtual address is given", "", "set one")
        if not bare.get("hosts") and site.method != AGENT:
            key = f"platform.{BAREMETAL}"
            yield Finding(f"{key}.hosts", "no hosts are given", "the installer would start none", f"use {NONE}: {{}}")
            yield Finding(f"{key}.Hosts", "0 hosts are not enough", "each replica needs one", f"use {NONE}: {{}}")


def one_platform(site: Site) -> c.Iterator[Finding]:
    """The installer takes the first one that it knows, and of none and external it takes both."""
    given = sorted(name for name in site.at("platform") or {} if name in _PLATFORMS)
    supported = _OF_ROLE.get(site.method, (NONE,))
    if len(given) > 1:
        yield Finding("platform", f"{' and '.join(given)} are set", "a cluster has one platform", "remove all but one")
    for name in given:
        if name not in supported:
            why = f"this role installs machines of an inventory ({some(supported)})"
            yield Finding(f"platform.{name}", f"{name} is not supported", why, f"set {NONE}: {{}}")


def publish(site: Site) -> c.Iterator[Finding]:
    given, key = site.at("publish"), "publish"
    yield from one_of(key, given, _PUBLISH)
    if given in _PUBLISH[1:]:
        yield Finding(key, f"{given} is set", "the platform does not support it", f"remove it, or set {_PUBLISH[0]}")
    if site.at("credentialsMode"):
        yield Finding("credentialsMode", "credentialsMode is set", "the platform does not support it", "remove it")
    yield from one_of("cpuPartitioningMode", site.at("cpuPartitioningMode") or "", _PARTITIONING)


def in_place(site: Site) -> c.Iterator[Finding]:
    """Source: pkg/asset/ignition/bootstrap/bootstrap_in_place.go of openshift/installer."""
    if site.method != IN_PLACE:
        return
    key = "bootstrapInPlace.installationDisk"
    if not site.at(key):
        yield Finding(key, "no disk is given", "the machine installs itself on it", "set hwaccel_install_device of it")
    if (replicas := site.at("controlPlane.replicas")) != 1:
        yield Finding("controlPlane.replicas", f"{replicas} masters", "in place, a cluster is one machine", "set 1")


def agent(site: Site) -> c.Iterator[Finding]:
    """What the agent-based installer adds (pkg/asset/agent/installconfig.go of openshift/installer)."""
    if site.method != AGENT:
        return
    given = [name for name in site.at("platform") or {} if name in _PLATFORMS]
    masters, workers = site.at("controlPlane.replicas"), sum(one["replicas"] for one in site.at("compute"))
    for name in given:
        yield from one_of("platform", name, _OF_AGENT)
    if masters not in _MASTERS_OF_AGENT and not (masters == 2 and site.at("arbiter")):
        yield Finding(
            "controlPlane.replicas", f"{masters} masters", "", f"use {', '.join(map(str, _MASTERS_OF_AGENT))}"
        )
    if masters == 1:
        if workers:
            yield Finding("compute.replicas", f"{workers} workers", "with one master there are none", "set 0")
        if not {NONE, EXTERNAL} & set(given):
            yield Finding("platform", f"{some(given)} with one master", "", f"use {NONE}: {{}}")
        if (name := site.at("networking.networkType")) != OVN:
            yield Finding("networking.networkType", f"{name} with one master", "", f"use {OVN}")
    if site.at("featureSet"):
        yield Finding(
            "featureSet", "a featureSet is set", "the agent-based installer supports the default only", "remove it"
        )


def capabilities(site: Site) -> c.Iterator[Finding]:
    """As the installer, which names the last two without their beginning."""
    given = site.at("capabilities")
    if given is None:
        return
    key, baseline = "capabilities", given.get("baselineCapabilitySet") or ""
    if baseline not in (_NO_SET, _CURRENT) and not _version(baseline):
        name = f"{key}.baselineCapabilitySet"
        why = "" if baseline else "it is missing"
        yield Finding(
            name, f"{shown(name, baseline)} is not a set", why, f"use {_NO_SET}, {_CURRENT} or one such as v4.18"
        )
    added = given.get("additionalEnabledCapabilities") or []
    for number, name in enumerate(added):
        yield from one_of(f"{key}.additionalEnabledCapabilities[{number}]", name, _ALL)
    enabled = _enabled(baseline, added)
    if MARKETPLACE in enabled and OLM not in enabled:
        yield Finding("additionalEnabledCapabilities", f"{MARKETPLACE} needs {OLM}", "", f"add {OLM}")
    if INGRESS not in enabled:
        yield Finding(key, f"{INGRESS} is not enabled", "a cluster needs it", f"add {INGRESS} to the additional ones")


def needed_capabilities(site: Site) -> c.Iterator[Finding]:
    """A capability cannot be enabled for a cluster and disabled again, but one that lacks can be added to ClusterVersion."""
    given = site.at("capabilities")
    if given is None:
        return
    enabled = _enabled(given.get("baselineCapabilitySet") or "", given.get("additionalEnabledCapabilities") or [])
    for name, why in _NEEDED.items():
        if name not in enabled:
            next_step = f"add {name} to the additional ones (cluster_openshift_capabilities)"
            yield Finding("capabilities", f"{name} is not enabled", why, next_step)


def _version(baseline: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"v([0-9]+)\.([0-9]+)", baseline)
    release = (int(found[1]), int(found[2])) if found else (0, 0)
    return release if release >= min(_ADDED) else None


def _enabled(baseline: str, added: c.Iterable[str]) -> set[str]:
    """Sets of releases that this table does not have are taken for the newest one."""
    until = (0, 0) if baseline == _NO_SET else _version(baseline) or max(_ADDED)
    return {*added, *(name for release, names in _ADDED.items() if release <= until for name in names)}
