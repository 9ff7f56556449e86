# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of settings of roles with their own format. Pure."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import kinds, resources
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import patches, values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts, thresholds
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import declared_classes

_CONFIG_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def pools(value: t.Any, where: str) -> list[Fault]:
    """Declared pools, including the operating systems of their nodes."""
    faults: list[Fault] = []
    plain = value
    if isinstance(value, (list, tuple)):
        plain = [
            {key: item for key, item in pool.items() if key != "machines"} if isinstance(pool, dict) else pool
            for pool in value
        ]
        for position, pool in enumerate(value):
            if isinstance(pool, dict) and not values.unset(pool.get("machines")):
                list(
                    declared_classes(
                        str(pool.get("name") or ""), pool["machines"], f"{where}[{position}].machines", faults
                    )
                )
    try:
        parse_pools(plain, where)
    except ManyFaults as many:
        return [*many.faults, *faults]
    return faults


def all_patches(value: t.Any, where: str) -> list[Fault]:
    return patches.read(value, where)[1]


def _replicas(value: t.Any, where: str) -> list[Fault]:
    """The plugin reads a JSON number, not a string, and refuses 1 (k8s-device-plugin v0.20.0, api/config/v1/replicas.go)."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 1:
        return []
    return [
        Fault(
            f"{values.shown(value)} is not a number of replicas",
            where,
            "the plugin exits with an error",
            "set a whole number without quotes, 2 or more",
        )
    ]


def _plain_dictionary(value: t.Any, where: str) -> list[Fault]:
    return (
        []
        if isinstance(value, dict)
        else [
            Fault(
                f"{values.shown(value)} is not a dictionary",
                where,
                "",
                "use the format of the plugin's configuration file",
            )
        ]
    )


def _ignored(value: t.Any, where: str, next_step: str) -> Fault:
    """The plugin writes a warning to its log and continues (k8s-device-plugin v0.20.0, api/config/v1/config.go, DisableResourceNamingInConfig)."""
    return Fault(f"{values.shown(value)} has no effect", where, "the device plugin ignores this field", next_step)


def _rename(value: t.Any, where: str) -> list[Fault]:
    return [_ignored(value, where, "remove it; renameByDefault adds .shared to the name of the resource")]


def _devices(value: t.Any, where: str) -> list[Fault]:
    return [] if value == "all" else [_ignored(value, where, "remove it: all devices of a resource are shared")]


def _shared_resource(value: t.Any, where: str) -> list[Fault]:
    if not isinstance(value, dict):
        return [Fault(f"{values.shown(value)} is not a shared resource", where, "", "set name and replicas")]
    known: dict[str, values.Check] = {
        "name": kinds.resource_name,
        "replicas": _replicas,
        "rename": _rename,
        "devices": _devices,
    }
    return values.fields(known, "a shared resource", ("name", "replicas"))(value, where)


_TIME_SLICING = values.fields(
    {
        "renameByDefault": values.truth,
        "failRequestsGreaterThanOne": values.truth,
        "strategy": values.text,
        "resources": values.listed(_shared_resource, "resources, each with name and replicas"),
    },
    "timeSlicing",
    ("resources",),
)
_SHARING = values.fields({"timeSlicing": _TIME_SLICING, "mps": _plain_dictionary}, "sharing")
_MIG = values.choice("none", "single", "mixed")


def _plugin_config(value: t.Any, where: str) -> list[Fault]:
    """The parts that determine what a node offers. Other parts are validated by the plugin."""
    if not isinstance(value, dict):
        return _plain_dictionary(value, where)
    faults = values.choice("v1")(value["version"], f"{where}.version") if "version" in value else []
    if value.get("resources"):
        faults.append(
            _ignored(
                value["resources"], f"{where}.resources", f"remove it: whole GPUs are always named {resources.WHOLE}"
            )
        )
    if not values.unset(value.get("sharing")):
        faults += _SHARING(value["sharing"], f"{where}.sharing")
    flags = value.get("flags") or {}
    if not isinstance(flags, dict):
        return faults + _plain_dictionary(flags, f"{where}.flags")
    return faults + (_MIG(flags["migStrategy"], f"{where}.flags.migStrategy") if "migStrategy" in flags else [])


plugin_configs = values.mapping(
    _plugin_config, "configurations by name", values.matching(_CONFIG_NAME, "not a name of a configuration", "shared")
)
#: Credentials in proxy addresses are checked in objects/credentials.py.
build = values.fields(
    {
        **dict.fromkeys(("http_proxy", "https_proxy", "no_proxy"), values.text),
        **dict.fromkeys(("repositories", "certificates", "proxy_secret"), kinds.object_name),
    },
    "driver_build",
)
environment = values.mapping(values.text, "environment variables with their values", kinds.environment_name)
labels = values.mapping(kinds.label_value, "labels with their values", kinds.label_key)


def extra_versions(value: t.Any, where: str) -> list[Fault]:
    def versions(listed: t.Any, place: str) -> list[Fault]:
        return values.listed(kinds.driver_version, "versions")(
            listed if isinstance(listed, (list, tuple)) else [listed], place
        )

    return values.mapping(versions, "a list of versions by the name of a pool")(value, where)


def _threshold(name: str) -> values.Check:
    default = thresholds.THRESHOLDS[name].default
    if isinstance(default, str):
        return kinds.prometheus_duration
    return values.number(0, 1) if name.endswith("_share") else values.number(0)


limits = values.fields({name: _threshold(name) for name in thresholds.THRESHOLDS}, "monitoring_thresholds")


def _pause(value: t.Any, where: str) -> list[Fault]:
    return [] if str(value) in ("0", "0s") else kinds.prometheus_duration(value, where)


#: Keys by the name of an alert. An empty value keeps the alert's default.
_ALERT = values.fields({"severity": kinds.label_value, "for": _pause, "enabled": values.truth}, "an alert")
changed_alerts = values.fields(dict.fromkeys(alerts.ALERTS, _ALERT), "monitoring_alerts")


def toleration(value: t.Any, where: str) -> list[Fault]:
    """Follows ValidateTolerations in kubernetes v1.36, pkg/apis/core/validation/validation.go."""
    faults = values.fields(
        {
            "key": kinds.label_key,
            "operator": values.choice("Exists", "Equal", "Lt", "Gt"),
            "value": kinds.label_value,
            "effect": values.choice("NoSchedule", "PreferNoSchedule", "NoExecute"),
            "tolerationSeconds": values.number(-(2**63), whole=True),
        },
        "a toleration",
    )(value, where)
    if isinstance(value, dict) and not faults:
        if values.unset(value.get("key")) and value.get("operator") != "Exists":
            faults.append(
                Fault(
                    "a toleration has no key",
                    where,
                    "only operator Exists matches all taints",
                    "set a key, or operator: Exists",
                )
            )
        if value.get("operator") == "Exists" and not values.unset(value.get("value")):
            faults.append(
                Fault(
                    "operator Exists and a value contradict each other",
                    where,
                    "",
                    "remove the value, or use operator Equal",
                )
            )
        if not values.unset(value.get("tolerationSeconds")) and value.get("effect") != "NoExecute":
            faults.append(
                Fault(
                    "tolerationSeconds is set without effect NoExecute",
                    where,
                    "",
                    "set effect: NoExecute, or remove it",
                )
            )
    return faults
