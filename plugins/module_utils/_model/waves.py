# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which kinds are applied."""

from __future__ import annotations

import collections.abc as c
import typing as t

CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
NAMESPACE = ("", "Namespace")
API_SERVICE = ("apiregistration.k8s.io", "APIService")
WEBHOOKS = (
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
)

#: Never pruned, and kept by `absent` while they contain objects of others, because deleting one deletes everything in it.
CONTAINERS = frozenset((CRD, NAMESPACE))

WAVE_CRD, WAVE_NAMESPACE, WAVE_CLASS, WAVE_CONFIG, WAVE_WORKLOAD, WAVE_EXTENSION, WAVE_CUSTOM = range(7)

_CLASSES = frozenset(
    (
        ("scheduling.k8s.io", "PriorityClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "VolumeSnapshotClass"),
        ("networking.k8s.io", "IngressClass"),
        ("resource.k8s.io", "DeviceClass"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("", "PersistentVolume"),
    )
)

WORKLOADS = frozenset(
    (
        ("", "Pod"),
        ("", "ReplicationController"),
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
    )
)

_EXTENSIONS = frozenset((API_SERVICE, *WEBHOOKS))

#: Groups of the API server itself. Kinds of other groups are custom resources.
_BUILT_IN = frozenset(
    (
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    )
)


def is_custom(group: str) -> bool:
    return group not in _BUILT_IN


def wave_of(group: str, kind: str) -> int:
    """The wave that objects of a kind are applied in."""
    group_kind = (group, kind)
    if group_kind == CRD:
        return WAVE_CRD
    if group_kind == NAMESPACE:
        return WAVE_NAMESPACE
    if group_kind in _CLASSES:
        return WAVE_CLASS
    if group_kind in WORKLOADS:
        return WAVE_WORKLOAD
    if group_kind in _EXTENSIONS:
        return WAVE_EXTENSION
    return WAVE_CUSTOM if is_custom(group) else WAVE_CONFIG


T = t.TypeVar("T")


def in_waves(
    items: c.Iterable[T], group_kind: c.Callable[[T], tuple[str, str]], *, backwards: bool = False
) -> list[tuple[int, list[T]]]:
    """Items by wave; their order within a wave is kept."""
    waves: dict[int, list[T]] = {}
    for item in items:
        waves.setdefault(wave_of(*group_kind(item)), []).append(item)
    return sorted(waves.items(), key=lambda pair: pair[0], reverse=backwards)
