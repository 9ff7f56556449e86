# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""install-config.yaml, from settings and machines. Pure.

Source: pkg/types/installconfig.go of openshift/installer. Names of old releases are not used.
"""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import patches
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import BOOTSTRAP, MASTER, Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import keys
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.conversion import (
    API_VERSION,
    MASTER_POOL,
    WORKER_POOL,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import AGENT, IN_PLACE, Document
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.pools import ARCHITECTURES, NONE

Settings = c.Mapping[str, t.Any]
#: Prefix length of a node's part of a network of IPv6.
_NODE_PREFIX_6 = 64


def rendered(settings: Settings, machines: c.Sequence[Machine], overrides: Document) -> dict[str, t.Any]:
    """settings: the role's variables by their names without cluster_openshift_. overrides: merged key by key, where null removes a key (RFC 7386)."""
    name, _dot, domain = settings["domain"].partition(".")
    masters = [machine for machine in machines if machine.role == MASTER]
    workers = [machine for machine in machines if machine.role not in (MASTER, BOOTSTRAP)]
    found: dict[str, t.Any] = {
        "apiVersion": API_VERSION,
        "baseDomain": domain,
        "metadata": {"name": name},
        "controlPlane": _pool(MASTER_POOL, len(masters), masters),
        # On platform none the installer makes no workers: they join by themselves.
        "compute": [
            _pool(WORKER_POOL, len(workers) if settings["method"] == AGENT else 0, _alike(settings, masters, workers))
        ],
        "networking": _networking(settings),
        "platform": {NONE: {}},
        "pullSecret": _pull_secret(settings["pull_secret"]),
        **_optional(settings),
    }
    if settings["method"] == IN_PLACE:
        disk = next((str(one.more.get("install_device") or "") for one in masters), "")
        found["bootstrapInPlace"] = {"installationDisk": disk}
    return t.cast("dict[str, t.Any]", patches.merge(found, overrides))


def _alike(settings: Settings, masters: c.Sequence[Machine], workers: c.Sequence[Machine]) -> c.Sequence[Machine]:
    """Machines that a pool of workers is like. Those that join later may have another architecture."""
    return workers or masters if settings["method"] == AGENT else masters


def _pool(name: str, replicas: int, machines: c.Sequence[Machine]) -> dict[str, t.Any]:
    architecture = next((ARCHITECTURES[machine.architecture] for machine in machines), "amd64")
    return {"name": name, "replicas": replicas, "architecture": architecture, "hyperthreading": "Enabled"}


def _networking(settings: Settings) -> dict[str, t.Any]:
    found: dict[str, t.Any] = {
        "networkType": settings["network_type"],
        "machineNetwork": [{"cidr": one} for one in settings["machine_network"]],
        "clusterNetwork": [
            {"cidr": one, "hostPrefix": _NODE_PREFIX_6 if ":" in str(one) else settings["host_prefix"]}
            for one in settings["cluster_network"]
        ],
        "serviceNetwork": list(settings["service_network"]),
    }
    if join := settings["internal_networks"].get("join"):
        found["ovnKubernetesConfig"] = {"ipv4": {"internalJoinSubnet": join}}
    return found


def _pull_secret(given: t.Any) -> str:
    """Ansible makes a dictionary of JSON in a variable."""
    return json.dumps(given, separators=(",", ":")) if isinstance(given, c.Mapping) else str(given or "").strip()


def _optional(settings: Settings) -> dict[str, t.Any]:
    proxy, capabilities = settings["proxy"], settings["capabilities"]
    found = {
        "sshKey": "\n".join(line.strip() for line in settings["ssh_keys"]),
        "fips": settings["fips"],
        "additionalTrustBundle": settings["trust_bundle"],
        "additionalTrustBundlePolicy": _policy(settings),
        "proxy": {
            name: value
            for name, value in (
                ("httpProxy", proxy.get("http")),
                ("httpsProxy", proxy.get("https")),
                ("noProxy", ",".join(map(str, proxy.get("no_proxy") or ()))),
            )
            if value
        },
        "imageDigestSources": [_mirror(one) for one in settings["mirrors"]],
        "capabilities": {
            name: value
            for name, value in (
                ("baselineCapabilitySet", capabilities.get("baseline")),
                ("additionalEnabledCapabilities", list(capabilities.get("additional") or ())),
            )
            if value
        },
    }
    return {name: value for name, value in found.items() if value}


def _policy(settings: Settings) -> str:
    """Without a proxy machines would not take the bundle by the installer's default."""
    if not settings["trust_bundle"]:
        return ""
    return str(settings["trust_bundle_policy"] or (keys.PROXY_ONLY if settings["proxy"] else keys.ALWAYS))


def _mirror(given: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    policy = {"sourcePolicy": given["policy"]} if given.get("policy") else {}
    return {"source": given["source"], "mirrors": list(given["mirrors"]), **policy}
