# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers may do on their node: the tables of rights, and what follows from them."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests, Workload, tables
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

_LEVELS = ("privileged", "baseline", "restricted")
_MODES = ("enforce", "audit", "warn")


def on_the_host(found: Manifests) -> c.Iterator[Finding]:
    """A container has the user, privileges, capabilities, SELinux options and host paths of its row in vars/rights.yml, from which docs/rights.md is made."""
    for one in found.workloads:
        rows = {row["container"]: row for row in tables(one.role)["rights"] if row["workload"] == one.name}
        there = set()
        for at, container in one.containers():
            there.add(container["name"])
            if container["name"] not in rows:
                yield f"{at}.name: {container['name']} has no row in the table of rights"
                continue
            row, actual = rows[container["name"]], _rights(one, container)
            for field, (key, value) in actual.items():
                if row[key] != value:
                    yield f"{at}.{field}: {key} is {value!r}, and {row[key]!r} in the table of rights"
        for name in sorted(rows.keys() - there):
            yield f'{one.where}spec: the container "{name}" of the table of rights is missing'


def _rights(one: Workload, container: Obj) -> dict[str, tuple[str, t.Any]]:
    """Key in the table and value, by field."""
    security = container.get("securityContext") or {}
    capabilities = security.get("capabilities") or {}
    hosts = {
        volume["name"]: volume["hostPath"]["path"] for volume in one.spec.get("volumes") or () if volume.get("hostPath")
    }
    mounts = [mount for mount in container.get("volumeMounts") or () if mount["name"] in hosts]
    return {
        "securityContext.privileged": ("privileged", security.get("privileged", False)),
        "securityContext.runAsUser": ("user", stack.user_of(one.spec, container)),
        "securityContext.capabilities.drop": ("capabilities_dropped", capabilities.get("drop") or []),
        "securityContext.capabilities.add": ("capabilities_added", capabilities.get("add") or []),
        "securityContext.seLinuxOptions": ("selinux", security.get("seLinuxOptions") or {}),
        "volumeMounts (readOnly, hostPath)": (
            "host_paths",
            {hosts[mount["name"]]: "ro" if mount.get("readOnly") else "rw" for mount in mounts},
        ),
        "hostPID": ("host_pid", one.spec.get("hostPID", False)),
    }


def confined(found: Manifests) -> c.Iterator[Finding]:
    """What is not privileged gives up new privileges and all capabilities, and if it is not root, the right to be root and to any system call."""
    for one in found.workloads:
        pod = one.spec.get("securityContext") or {}
        for at, container in one.containers():
            security = container.get("securityContext") or {}
            if security.get("privileged"):
                continue
            if security.get("allowPrivilegeEscalation") is not False:
                yield f"{at}.securityContext.allowPrivilegeEscalation is not false, and the container is not privileged"
            if (security.get("capabilities") or {}).get("drop") != ["ALL"]:
                yield f"{at}.securityContext.capabilities.drop is not ALL, and the container is not privileged"
            if stack.user_of(one.spec, container) == 0:
                continue
            if pod.get("runAsNonRoot") is not True:
                yield f"{one.where}spec.securityContext.runAsNonRoot is not true, so another image may run as root"
            if (pod.get("seccompProfile") or {}).get("type") != "RuntimeDefault":
                yield f"{one.where}spec.securityContext.seccompProfile is not RuntimeDefault, so any system call is allowed"


def users(found: Manifests) -> c.Iterator[Finding]:
    """Who runs as whom is written in the manifest wherever it matters: a container that is not privileged, or that writes files for others, names its user."""
    for one in found.workloads:
        for at, container in one.containers():
            security, pod = container.get("securityContext") or {}, one.spec.get("securityContext") or {}
            if not security.get("privileged") and "runAsUser" not in security and "runAsUser" not in pod:
                yield f"{at}.securityContext.runAsUser is not set, so the image decides who runs"


def levels(found: Manifests) -> c.Iterator[Finding]:
    """A namespace's Pod Security level is the strictest that its pods pass, and what is denied, audited and warned of is the same."""
    for item in found.of("Namespace"):
        labels, name = item["metadata"].get("labels") or {}, item["metadata"]["name"]
        needed = _LEVELS[min((_level(one) for one in found.workloads if one.namespace == name), default=2)]
        for mode in _MODES:
            actual = labels.get(f"pod-security.kubernetes.io/{mode}")
            if actual != needed:
                yield f"Namespace {name}: metadata.labels: pod-security.kubernetes.io/{mode} is {actual!r}, and {needed} is what its pods need"


def _level(one: Workload) -> int:
    """Place in _LEVELS, as far as the pods of the roles differ: paths and processes of the host and privileges, or the profile restricted."""
    spec = one.spec
    host = spec.get("hostPID") or any(volume.get("hostPath") for volume in spec.get("volumes") or ())
    if host or any((container.get("securityContext") or {}).get("privileged") for _at, container in one.containers()):
        return 0
    pod = spec.get("securityContext") or {}
    strict = pod.get("runAsNonRoot") is True and (pod.get("seccompProfile") or {}).get("type") == "RuntimeDefault"
    return 2 if strict else 1
