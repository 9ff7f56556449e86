# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of control plane, compute and platform of install-config.yaml (section 2.1 of behaviours.yml)."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import (
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.schema import PLATFORMS

Config = c.Mapping[str, t.Any]
ARCHITECTURES = ("arm64", "amd64", "s390x", "ppc64le")
_THREADING = ("Disabled", "Enabled")
_COMPUTE = ("worker", "edge")
#: A control plane of two needs credentials by which each fences the other.
_FENCED = 2


def _pool(path: str, pool: Config) -> list[str]:
    errors = []
    if pool["architecture"] not in ARCHITECTURES:
        errors.append(unsupported(f"{path}.architecture", pool["architecture"], ARCHITECTURES))
    if pool["hyperthreading"] not in _THREADING:
        errors.append(unsupported(f"{path}.hyperthreading", pool["hyperthreading"], _THREADING))
    return errors


def control_plane(config: Config) -> list[str]:
    pool = config["controlPlane"]
    path = "controlPlane.replicas"
    errors = _pool("controlPlane", pool)
    if pool["replicas"] <= 0:
        errors.append(invalid(path, pool["replicas"], "number of control plane replicas must be positive"))
    found = len(pool.get("fencing", {}).get("credentials", ()))
    arbiters = config.get("arbiter", {}).get("replicas", 0)
    if pool["replicas"] == _FENCED and not arbiters and found != _FENCED:
        text = (
            "there should be exactly two fencing credentials to support the two node cluster, "
            f"instead {found} credentials were found"
        )
        errors.append(forbidden("controlPlane.fencing.credentials", text))
    return errors


def compute(config: Config) -> list[str]:
    errors: list[str] = []
    seen: set[str] = set()
    for number, pool in enumerate(config["compute"]):
        path = f"compute[{number}]"
        if pool["name"] not in _COMPUTE:
            errors.append(unsupported(f"{path}.name", pool["name"], _COMPUTE))
        if pool["name"] in seen:
            errors.append(duplicate(f"{path}.name", pool["name"]))
        seen.add(pool["name"])
        if pool["replicas"] < 0:
            errors.append(invalid(f"{path}.replicas", pool["replicas"], "number of replicas must not be negative"))
        errors += _pool(path, pool)
        if pool["architecture"] != config["controlPlane"]["architecture"]:
            text = "heteregeneous multi-arch is not supported; compute pool architecture must match control plane"
            errors.append(invalid(f"{path}.architecture", pool["architecture"], text))
    return errors


def platform(config: Config) -> list[str]:
    given = config.get("platform", {})
    if not given:
        text = f"must specify one of the platforms ({', '.join(PLATFORMS)})"
        return [invalid("platform", "", text)]
    return _bare_metal(given["baremetal"], config) if "baremetal" in given else []


def _bare_metal(given: Config, config: Config) -> list[str]:
    path, errors = "platform.baremetal", []
    for name, what in (("apiVIPs", "API"), ("ingressVIPs", "Ingress")):
        if not given.get(name):
            errors.append(required(f"{path}.{name}", f"must specify at least one VIP for the {what}"))
    hosts = given.get("hosts") or []
    if not hosts:
        errors.append(invalid(f"{path}.hosts", hosts, "bare metal hosts are missing"))
    wanted = config["controlPlane"]["replicas"] + sum(pool["replicas"] for pool in config["compute"])
    if len(hosts) < wanted:
        text = f"not enough hosts found ({len(hosts)}) to support all the configured ControlPlane and Compute replicas ({wanted})"
        errors.append(required(f"{path}.Hosts", text))
    return errors


def in_place(config: Config, needed: bool) -> list[str]:
    """needed: the command is the one for bootstrap in place."""
    given = config.get("bootstrapInPlace")
    if given is None and not needed:
        return []
    errors = []
    if not (given or {}).get("installationDisk"):
        text = "installationDisk must be set the target disk drive for the installation"
        errors.append(required("bootstrapInPlace.installationDisk", text))
    if config["controlPlane"]["replicas"] != 1:
        text = "bootstrapInPlace requires one control plane replica"
        errors.append(invalid("controlPlane.replicas", config["controlPlane"]["replicas"], text))
    return errors
