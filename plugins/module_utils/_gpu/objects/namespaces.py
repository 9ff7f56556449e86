# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who makes the namespaces: the first stage of a run that puts anything into one. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.objects.common import Manifest, containers, listed, pod_template

#: https://kubernetes.io/docs/concepts/security/pod-security-admission/#pod-security-admission-labels-for-namespaces
POD_SECURITY = "pod-security.kubernetes.io/"
PRIVILEGED, RESTRICTED = "privileged", "restricted"


def needed(objects: c.Sequence[Manifest], settings: c.Mapping[str, t.Any]) -> list[Manifest]:
    """The Namespaces of these objects, but those that an earlier stage of the run brings (setting `namespaces_before`)."""
    names = {one["metadata"]["namespace"] for one in objects if one["metadata"].get("namespace")}
    return [_namespace(name, _level(name, objects)) for name in sorted(names - set(listed(settings.get("namespaces_before"))))]


def _namespace(name: str, level: str) -> Manifest:
    labels = {POD_SECURITY + mode: level for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _level(name: str, objects: c.Iterable[Manifest]) -> str:
    """Node agents mount folders of the host or run privileged; controllers touch no host."""
    templates = [pod_template(one) for one in objects if one["metadata"].get("namespace") == name]
    return PRIVILEGED if any(_touches_host(template) for template in templates if template) else RESTRICTED


def _touches_host(template: Manifest) -> bool:
    spec = template["spec"]
    return (
        any(spec.get(field) for field in ("hostPID", "hostNetwork", "hostIPC")) or any("hostPath" in volume for volume in spec.get("volumes", ()))
        or any((one.get("securityContext") or {}).get("privileged") for one in containers(template))
    )
