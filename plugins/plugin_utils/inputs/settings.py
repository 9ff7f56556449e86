# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of roles that have a form of their own: what each may be. Pure."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import kinds
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import patches, values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.monitoring import alerts, thresholds
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import declared_classes

_CONFIG_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def pools(value: t.Any, where: str) -> list[Fault]:
    """Declared pools, with what their nodes run."""
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
    """The plugin reads a number of JSON, and not a text (k8s-device-plugin 19d7d8f, api/config/v1/replicas.go)."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return []
    return [
        Fault(
            f"{values.shown(value)} is no number of replicas",
            where,
            "the plugin ends with an error",
            "give a whole number without quotes, 2 or more",
        )
    ]


def _plain_dictionary(value: t.Any, where: str) -> list[Fault]:
    return (
        []
        if isinstance(value, dict)
        else [Fault(f"{values.shown(value)} is no dictionary", where, "", "write it as the plugin reads it")]
    )


def _shared_resource(value: t.Any, where: str) -> list[Fault]:
    if not isinstance(value, dict):
        return [Fault(f"{values.shown(value)} is no resource that is shared", where, "", "give name and replicas")]
    known: dict[str, values.Check] = {
        "name": kinds.resource_name,
        "replicas": _replicas,
        "rename": kinds.resource_name,
        "devices": lambda _value, _where: [],
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
    """The parts that decide what a node offers; others are the plugin's business."""
    if not isinstance(value, dict):
        return _plain_dictionary(value, where)
    faults = values.choice("v1")(value["version"], f"{where}.version") if "version" in value else []
    if not values.unset(value.get("sharing")):
        faults += _SHARING(value["sharing"], f"{where}.sharing")
    flags = value.get("flags") or {}
    if not isinstance(flags, dict):
        return faults + _plain_dictionary(flags, f"{where}.flags")
    return faults + (_MIG(flags["migStrategy"], f"{where}.flags.migStrategy") if "migStrategy" in flags else [])


plugin_configs = values.mapping(
    _plugin_config, "configurations by name", values.matching(_CONFIG_NAME, "no name of a configuration", "shared")
)
#: Credentials in addresses of proxies are looked at in objects/credentials.py.
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


#: By the name of an alert. A key that is there and empty keeps what the alert has.
_ALERT = values.fields({"severity": kinds.label_value, "for": _pause, "enabled": values.truth}, "an alert")
changed_alerts = values.fields(dict.fromkeys(alerts.ALERTS, _ALERT), "monitoring_alerts")


def toleration(value: t.Any, where: str) -> list[Fault]:
    """As kubernetes v1.36, pkg/apis/core/validation/validation.go, ValidateTolerations, has it."""
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
                    "only operator Exists takes all taints",
                    "give a key, or operator: Exists",
                )
            )
        if value.get("operator") == "Exists" and not values.unset(value.get("value")):
            faults.append(
                Fault(
                    "operator Exists and a value contradict each other",
                    where,
                    "",
                    "leave out the value, or take operator Equal",
                )
            )
        if not values.unset(value.get("tolerationSeconds")) and value.get("effect") != "NoExecute":
            faults.append(
                Fault(
                    "tolerationSeconds is there without effect NoExecute",
                    where,
                    "",
                    "give effect: NoExecute, or leave it out",
                )
            )
    return faults
