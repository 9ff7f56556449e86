# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources that the cluster in memory serves."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource


def served(api_version: str, kind: str, plural: str, namespaced: bool = True) -> Resource:
    group, _slash, version = api_version.rpartition("/")
    return Resource(group, version, kind, plural, namespaced, frozenset(("list",)))


CONFIG_MAP = served("v1", "ConfigMap", "configmaps")
SECRET = served("v1", "Secret", "secrets")
NAMESPACE = served("v1", "Namespace", "namespaces", namespaced=False)
NODE = served("v1", "Node", "nodes", namespaced=False)
POD = served("v1", "Pod", "pods")
EVENT = served("v1", "Event", "events")
DAEMON_SET = served("apps/v1", "DaemonSet", "daemonsets")
DEPLOYMENT = served("apps/v1", "Deployment", "deployments")
JOB = served("batch/v1", "Job", "jobs")
RUNTIME_CLASS = served("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", namespaced=False)
CRD = served("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
CSR = served("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False)
KINDS = (
    CONFIG_MAP,
    SECRET,
    NAMESPACE,
    NODE,
    POD,
    EVENT,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    RUNTIME_CLASS,
    CRD,
    CSR,
)
