# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ConfigMaps and Secrets that pods reference and that this collection does not create."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import Manifest, containers, pod_template

#: Kind, namespace, name, and the variable that names it.
Reference = tuple[str, str, str, str]
_FOUND_AS = {"ConfigMap": "config_maps", "Secret": "secrets"}
_PULL, _BUILD = "hwaccel_image_pull_secrets", "driver_build"


def missing(objects: c.Sequence[Manifest], facts: c.Mapping[str, t.Any] | None) -> list[Fault]:
    """An error for each one that its namespace lacks. Namespaces that do not exist or may not be read are skipped."""
    ours = {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects}
    there = {row["name"]: row for row in (facts or {}).get("namespaces") or ()}
    faults = []
    for kind, namespace, name, variable in sorted({found for one in objects for found in _references(one)}):
        known = there.get(namespace, {}).get(_FOUND_AS[kind])
        if known is not None and name not in known and (kind, namespace, name) not in ours:
            why = "pods that reference it cannot start without it"
            faults.append(
                Fault(
                    f"{kind} {namespace}/{name} does not exist",
                    variable,
                    why,
                    f"create it in that namespace, or correct its name in {variable}",
                )
            )
    return faults


def _references(workload: Manifest) -> c.Iterator[Reference]:
    template = pod_template(workload)
    if template is None:
        return
    namespace, spec = workload["metadata"]["namespace"], template["spec"]
    for entry in spec.get("imagePullSecrets", ()):
        yield "Secret", namespace, entry["name"], _PULL
    for volume in spec.get("volumes", ()):
        if "configMap" in volume and not volume["configMap"].get("optional"):
            yield "ConfigMap", namespace, volume["configMap"]["name"], _BUILD
    for container in containers(template):
        for source in container.get("envFrom", ()):
            if "secretRef" in source and not source["secretRef"].get("optional"):
                yield "Secret", namespace, source["secretRef"]["name"], _BUILD
