# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""install-config.yaml as the tool takes it: read, converted from names of old releases, completed with defaults, checked."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import pools, values
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.networks import Networks
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import Refused, read, required, together, typed
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.schema import INSTALL_CONFIG

FILE = "install-config.yaml"
_VERSION = "v1"
_POOL_DEFAULTS = {"hyperthreading": "Enabled", "architecture": "amd64"}
_REPLICAS = 3


@dataclasses.dataclass(frozen=True)
class InstallConfig:
    """Content with defaults. unknown: names that were left out, which the tool warns of."""

    content: dict[str, t.Any]
    unknown: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.content["metadata"]["name"])

    @property
    def domain(self) -> str:
        return f"{self.name}.{self.content['baseDomain'].removesuffix('.')}"

    @property
    def masters(self) -> int:
        return int(self.content["controlPlane"]["replicas"])

    @property
    def workers(self) -> int:
        return sum(pool["replicas"] for pool in self.content["compute"])

    @property
    def platform(self) -> str:
        return next(iter(self.content["platform"]))

    def gate(self, name: str) -> bool:
        """Whether a feature gate is on. Those of the technology preview are on with its set as well."""
        preview = self.content.get("featureSet") in ("TechPreviewNoUpgrade", "DevPreviewNoUpgrade")
        return f"{name}=true" in self.content.get("featureGates", ()) or (preview and name == "ConfigurablePKI")

    def text(self) -> bytes:
        return yaml.safe_dump(self.content, sort_keys=True).encode()


def load(text: str, host_fips: bool = False, in_place: bool = False) -> InstallConfig:
    """in_place: for the command of bootstrap in place. Raises Refused with all errors together."""
    unknown: list[str] = []
    try:
        found = typed(read(text) or {}, INSTALL_CONFIG, "InstallConfig", "", unknown)
        config = _complete(_converted(found))
    except Refused as error:
        raise Refused(f"failed to create install config: {error}") from None
    if errors := _errors(config, host_fips, in_place):
        raise Refused(f'failed to create install config: invalid "{FILE}" file: {together(errors)}')
    return InstallConfig(config, tuple(unknown))


def warning_of(unknown: str) -> str:
    reason = f'error unmarshaling JSON: while decoding JSON: json: unknown field "{unknown}"'
    return f"failed to parse first occurrence of unknown field: {reason}"


def _converted(config: dict[str, t.Any]) -> dict[str, t.Any]:
    if not config.get("apiVersion"):
        raise Refused(required("apiVersion", "no version was provided"))
    if config["apiVersion"] not in (_VERSION, "v1beta1", "v1beta2", "v1beta3", "v1beta4"):
        raise Refused(f'apiVersion: Invalid value: "{config["apiVersion"]}": cannot upconvert from version')
    old = dict(config.get("networking", {}))
    renamed: dict[str, t.Any] = {}
    if "machineCIDR" in old:
        renamed["machineNetwork"] = [{"cidr": old.pop("machineCIDR")}]
    if "serviceCIDR" in old:
        renamed["serviceNetwork"] = [old.pop("serviceCIDR")]
    if "type" in old:
        renamed["networkType"] = old.pop("type")
    if "clusterNetworks" in old:
        renamed["clusterNetwork"] = [
            {"cidr": one.get("cidr", ""), "hostPrefix": one.get("hostPrefix") or 32 - one.get("hostSubnetLength", 0)}
            for one in old.pop("clusterNetworks")
        ]
    return {**config, "apiVersion": _VERSION, "networking": {**renamed, **old}}


def _complete(config: dict[str, t.Any]) -> dict[str, t.Any]:
    networking = {
        "networkType": "OVNKubernetes",
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
        "serviceNetwork": ["172.30.0.0/16"],
        "machineNetwork": [{"cidr": "10.0.0.0/16"}],
        **config["networking"],
    }
    control = {"replicas": _REPLICAS, **_POOL_DEFAULTS, **config.get("controlPlane", {}), "name": "master"}
    compute = [
        {"name": "worker", "replicas": _REPLICAS, **_POOL_DEFAULTS, **pool} for pool in config.get("compute") or [{}]
    ]
    return {
        "additionalTrustBundlePolicy": "Proxyonly",
        "publish": "External",
        **config,
        "networking": networking,
        "controlPlane": control,
        "compute": compute,
    }


def _errors(config: c.Mapping[str, t.Any], host_fips: bool, in_place: bool) -> list[str]:
    networks = Networks(config["networking"])
    platforms = list(config.get("platform", {}))
    return [
        *values.ssh_key(config, host_fips),
        *values.trust_bundle(config),
        *values.names(config, platforms),
        *networks.check(),
        *pools.platform(config),
        *pools.control_plane(config),
        *pools.compute(config),
        *values.pull_secret(config),
        *values.proxy(config, networks),
        *values.mirrors(config),
        *values.choices(config, platforms),
        *values.capabilities(config),
        *pools.in_place(config, in_place),
    ]
