# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of each public variable of the roles on clusters, and of the common variables. Pure.

docs/variables.md and the roles' argument specs document them, and a test verifies that none of them is missing here.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import kinds
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import PROVIDERS, SOURCES
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import connection
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import settings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.platforms import PLATFORMS

STAGES = ("feature_discovery", "driver", "device_plugin", "monitoring", "gpu_validation")
_ALL_PROVIDERS = ("", *PROVIDERS)
_ONCE = ("", "hwaccel", "existing")


@dataclasses.dataclass(frozen=True)
class Variable:
    """needed: an empty value is an error. planned: a wrong value prevents the plan. as_text: a list may be a string."""

    check: values.Check
    needed: bool = False
    planned: bool = True
    as_text: bool = False


def _needed(check: values.Check) -> Variable:
    return Variable(check, needed=True)


#: Settings that limit a run without changing its plan. For an empty one, modules use their default.
_LIMIT, _SHARE = Variable(values.limit, planned=False), Variable(values.share, planned=False)
_SECONDS, _NODES = Variable(values.seconds(), planned=False), values.listed(kinds.node_name, "names of nodes")
_TIMEOUT, _PARALLEL = (
    Variable(values.seconds(0.001), planned=False),
    Variable(values.number(1, 10000, whole=True), planned=False),
)
_SECRETS = values.listed(kinds.object_name, "names of pull secrets")
_TRUTH, _TEXT = Variable(values.truth), Variable(values.text)
_IMAGE, _NAMESPACE, _PATH, _DURATION = map(_needed, (kinds.image, kinds.namespace, kinds.path, kinds.duration))
_NAME = _needed(kinds.object_name)

_ENDPOINT = values.matching(
    re.compile(r"(https://)?(\[[0-9A-Fa-f:]+\]|[0-9A-Fa-f:]+|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?/?"),
    "not the address of an API server",
    "api.example.com:6443",
)

#: Variables that all roles on clusters have, by the name without the role.
_SHARED = {
    "pools": Variable(settings.pools),
    "image_registry": Variable(kinds.registry),
    "image_pull_secrets": Variable(_SECRETS),
    "namespace": _NAMESPACE,
    "max_failed": _LIMIT,
    "excluded_nodes": Variable(_NODES),
}
#: Variables of roles that deploy objects.
_OBJECTS = {
    **_SHARED,
    "patches": Variable(settings.all_patches),
    "adopt": _TRUTH,
    "max_prune": _SHARE,
    "wait_timeout": _SECONDS,
    "cluster_uid": _TEXT,
    "distribution": Variable(values.choice(*PLATFORMS)),
    "kubernetes_version": Variable(kinds.kubernetes_version),
    "render_folder": _TEXT,
}
_OWN: dict[str, dict[str, Variable]] = {
    "feature_discovery": {
        **_OBJECTS,
        "provider": Variable(values.choice(*_ONCE)),
        "image": _IMAGE,
        "system_namespace": _NAMESPACE,
        "sleep_interval": _DURATION,
        "finding_namespaces": Variable(values.listed(kinds.namespace, "names of namespaces")),
        "resync_period": _DURATION,
        "label_white_list": Variable(kinds.pattern),
    },
    "driver": {
        **_OBJECTS,
        "provider": Variable(values.choice(*_ALL_PROVIDERS)),
        "version": Variable(kinds.driver_version),
        "source": Variable(values.choice("", *SOURCES)),
        "extra_versions": Variable(settings.extra_versions),
        "kernel_module_type": _needed(values.choice("auto", "open", "proprietary")),
        "repository": _needed(kinds.repository),
        **dict.fromkeys(
            ("precompiled_images", "build_images"), Variable(values.listed(kinds.image_tag, "tags of images"))
        ),
        "build": Variable(settings.build),
        **dict.fromkeys(("manager_image", "toolkit_image", "validator_image"), _IMAGE),
        "toolkit_install_dir": _PATH,
        "toolkit_env": Variable(settings.environment),
        "runtime_config": Variable(kinds.path),
        "runtime_socket": Variable(kinds.path),
        "runtime_class": _NAME,
    },
    "device_plugin": {
        **_OBJECTS,
        "provider": Variable(values.choice(*_ONCE)),
        "configs": Variable(settings.plugin_configs),
        "image": _IMAGE,
        "validator_image": _IMAGE,
        "gfd_sleep_interval": _DURATION,
        "toolkit_install_dir": _PATH,
        "runtime_class": _NAME,
        "kubelet_root": _PATH,
    },
    "monitoring": {
        **_OBJECTS,
        "provider": Variable(values.choice(*_ONCE)),
        "prometheus": Variable(values.choice("", "operator", "plain")),
        "prometheus_labels": Variable(settings.labels),
        "scrape_interval": _needed(kinds.prometheus_duration),
        "profiling": _TRUTH,
        "rules": _TRUTH,
        "thresholds": Variable(settings.limits),
        "alerts": Variable(settings.changed_alerts),
        "runbook_url": Variable(kinds.web_address),
        "dashboards": _TRUTH,
        "dashboard_labels": Variable(settings.labels),
        "dashboard_folder": _TEXT,
        "image": _IMAGE,
        "validator_image": _IMAGE,
        "runtime_class": _NAME,
        "kubelet_root": _PATH,
        "driver_namespace": _NAMESPACE,
    },
    "gpu_validation": {
        **_SHARED,
        **{end: _OBJECTS[end] for end in ("patches", "adopt", "max_prune", "distribution", "render_folder")},
        "provider": Variable(values.choice(*_ONCE)),
        "plugin_configs": Variable(settings.plugin_configs),
        **dict.fromkeys(("image", "integrated_image", "bandwidth_image"), _IMAGE),
        "runtime_class": _NAME,
        "tolerations": Variable(values.listed(settings.toleration, "tolerations")),
        **dict.fromkeys(("always", "all_gpus", "exclusivity", "bandwidth"), _TRUTH),
        **dict.fromkeys(("parallel", "all_gpus_parallel", "bandwidth_parallel"), _PARALLEL),
        **dict.fromkeys(("schedule_timeout", "start_timeout", "timeout", "bandwidth_start_timeout"), _TIMEOUT),
    },
}

#: Variables of all stages. An empty value counts as unset.
SHARED: dict[str, Variable] = {
    "hwaccel_connection": Variable(connection.check),
    "hwaccel_cluster_uid": _TEXT,
    "hwaccel_confirm": Variable(values.text, planned=False),
    "hwaccel_distribution": Variable(values.choice(*PLATFORMS)),
    "hwaccel_installer": Variable(values.choice("", "k3s", "kubeadm", "openshift")),
    "hwaccel_api_endpoint": Variable(_ENDPOINT),
    "hwaccel_even_servers": _TRUTH,
    "hwaccel_kubeconfig_file": _TEXT,
    "hwaccel_kubernetes_version": Variable(kinds.kubernetes_version),
    "hwaccel_pools": Variable(settings.pools, as_text=True),
    "hwaccel_namespace": Variable(kinds.namespace),
    "hwaccel_system_namespace": Variable(kinds.namespace),
    "hwaccel_image_registry": Variable(kinds.registry),
    "hwaccel_image_pull_secrets": Variable(_SECRETS, as_text=True),
    "hwaccel_runtime_socket": Variable(kinds.path),
    "hwaccel_kubelet_root": Variable(kinds.path),
    "hwaccel_max_failed": Variable(values.limit, planned=False),
    "hwaccel_wait_timeout": _SECONDS,
    "hwaccel_excluded_nodes": Variable(_NODES, as_text=True),
    "hwaccel_only_clusters": Variable(
        values.listed(kinds.object_name, "names of clusters"), planned=False, as_text=True
    ),
    "hwaccel_only_pools": Variable(values.listed(values.text, "names of pools"), as_text=True),
    "hwaccel_only_nodes": Variable(_NODES, as_text=True),
    "hwaccel_stages": Variable(values.listed(values.choice(*STAGES), "stages"), planned=False, as_text=True),
    "hwaccel_render_to": Variable(values.text, planned=False),
}
#: Variables of each stage.
ROLES: dict[str, dict[str, Variable]] = {
    role: {f"{role}_{end}": one for end, one in own.items()} for role, own in _OWN.items()
}


def of(name: str) -> Variable | None:
    return SHARED.get(name) or next((one[name] for one in ROLES.values() if name in one), None)


def names(stages: t.Iterable[str]) -> list[str]:
    """Variables that these stages read."""
    return [*SHARED, *(name for stage in stages for name in ROLES[stage])]
