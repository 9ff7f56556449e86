# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of members that other managers own, and the controllers that own them by design. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import fnmatch
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

_CONTROLLER_MANAGER = "kube-controller-manager"


@dataclasses.dataclass(frozen=True)
class Rightful:
    """Fields that a controller owns by design: shell patterns over kind, manager and subresource, and prefixes of field paths."""

    kinds: str
    managers: str
    subresource: str
    paths: tuple[str, ...]


#: Controllers that write to objects of others by design. A field is only left to one if both manager and path match.
KNOWN_CONTROLLERS = (
    # The HorizontalPodAutoscaler scales through the subresource. A user of kubectl does so with another manager name.
    Rightful("*", _CONTROLLER_MANAGER, "scale", ("spec.replicas",)),
    Rightful("*", "vpa-*", "", ("spec.template.spec.containers",)),
    Rightful("*", "keda*", "scale", ("spec.replicas",)),
    Rightful("ServiceAccount", _CONTROLLER_MANAGER, "", ("secrets", "imagePullSecrets")),
    Rightful("ServiceAccount", "openshift-controller-manager", "", ("secrets", "imagePullSecrets")),
    Rightful("ServiceAccount", "*", "", ("secrets",)),
    Rightful("Secret", _CONTROLLER_MANAGER, "", ("data.token", "data.ca.crt", "data.namespace", "data")),
    Rightful("Secret", "cert-manager*", "", ("data", "type")),
    Rightful("ConfigMap", "service-ca-operator", "", ("data.service-ca.crt",)),
    Rightful("MutatingWebhookConfiguration", "*", "", ("webhooks[*].clientConfig.caBundle",)),
    Rightful("ValidatingWebhookConfiguration", "*", "", ("webhooks[*].clientConfig.caBundle",)),
    Rightful("APIService", "*", "", ("spec.caBundle", "spec.insecureSkipTLSVerify")),
    Rightful(
        "CustomResourceDefinition",
        "*",
        "",
        ("spec.conversion.webhook.clientConfig.caBundle", "spec.conversion.webhook.clientConfig"),
    ),
    Rightful("CustomResourceDefinition", "kube-apiserver", "", ("spec",)),
    Rightful("PersistentVolumeClaim", "kube-*", "", ("spec.volumeName", "spec.resources")),
    Rightful("PersistentVolume", "kube-*", "", ("spec.claimRef",)),
    Rightful("Namespace", "*", "finalize", ("spec.finalizers",)),
    Rightful("Job", _CONTROLLER_MANAGER, "", ("spec",)),
    Rightful("Pod", "kube-scheduler", "*", ("spec.nodeName",)),
    Rightful("ClusterRole", _CONTROLLER_MANAGER, "", ("rules",)),
    Rightful("ClusterRole", "clusterrole-aggregation-controller", "", ("rules",)),
    Rightful("Service", "cloud-controller-manager", "*", ("spec",)),
    Rightful("Deployment", "olm*", "", ("spec",)),
)


def is_rightful(kind: str, manager: str, subresource: str, path_text: str) -> bool:
    """Whether a known controller writes this field by design."""
    return any(
        fnmatch.fnmatchcase(kind, rule.kinds)
        and fnmatch.fnmatchcase(manager, rule.managers)
        and fnmatch.fnmatchcase(subresource, rule.subresource)
        and any(_below(path_text, beginning) for beginning in rule.paths)
        for rule in KNOWN_CONTROLLERS
    )


def foreign_fields(
    key: ObjectKey, live: c.Mapping[str, t.Any], manager: str, owned: fieldsets.FieldSet
) -> list[dict[str, str]]:
    """Fields that others added to the object's specification. Anyone may write metadata and status."""
    found: list[dict[str, str]] = []
    for entry in fieldsets.managers_of(live):
        other, subresource = str(entry.get("manager") or ""), str(entry.get("subresource") or "")
        if other == manager or subresource == "status":
            continue
        members = fieldsets.parse(entry.get("fieldsV1"))
        added = {
            path
            for path in members - owned
            if path[0] not in ("f:metadata", "f:status") and not _only_structure(path, owned)
        }
        for path in fieldsets.topmost(added):
            text = fieldsets.text(path)
            if not is_rightful(key.kind, other, subresource, text):
                found.append(
                    {"kind": key.kind, "name": key.name, "namespace": key.namespace, "path": text, "manager": other}
                )
    return found


def _only_structure(path: fieldsets.Path, owned: fieldsets.FieldSet) -> bool:
    """Whether others own a whole map or list of which the set owns all or a part, so that nothing was added."""
    return fieldsets.covers(owned, path)


def _below(path_text: str, beginning: str) -> bool:
    if "[*]" in beginning:
        head, _separator, tail = beginning.partition("[*]")
        return path_text.startswith(head + "[") and path_text.endswith(tail)
    return path_text == beginning or path_text.startswith((f"{beginning}.", f"{beginning}["))
