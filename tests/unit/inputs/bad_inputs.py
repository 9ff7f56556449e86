# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid inputs of a cluster as a table, each with parts of the expected message."""

from __future__ import annotations

import typing as t

#: Forbidden in messages: types and errors of Python, names of filters, arguments of tasks, and values of secrets.
FORBIDDEN = (
    r"<class|NoneType|\bdict object\b|\blist object\b|\bstr object\b|AnsibleU|AnsibleLazy|_Ansible|Traceback|TypeError|KeyError|ValueError|AttributeError|"
    r"\b(dict|str|int|float|bool|tuple)\b|object has no|hwaccel\.gpu\.stage_objects|declared_pools|as_list|argument of type|module_args|Undefined|"
    r"unexpected templating|template error|planted"
)


def pool(**changes: t.Any) -> dict[str, t.Any]:
    return {"hwaccel_pools": [{"name": "training", "selector": "pool=training", **changes}]}


def patch(**changes: t.Any) -> dict[str, t.Any]:
    return {"driver_patches": [{"target": {"kind": "DaemonSet"}, "patch": {"spec": {"minReadySeconds": 1}}, **changes}]}


def operation(**op: t.Any) -> dict[str, t.Any]:
    return patch(patch=[op])


def connection(**options: t.Any) -> dict[str, t.Any]:
    return {"hwaccel_connection": {"kubeconfig": "/nowhere/kubeconfig", **options}}


def sharing(**entry: t.Any) -> dict[str, t.Any]:
    return {
        "device_plugin_configs": {
            "shared": {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4, **entry}]}}}
        }
    }


#: Variables, and parts of the expected message: problem, location and remedy.
BAD: list[tuple[dict[str, t.Any], tuple[str, ...]]] = [
    # Connection to the cluster.
    ({"hwaccel_connection": "planted-token"}, ("a connection is not a string", "hwaccel_connection")),
    ({"hwaccel_connection": ["planted-token"]}, ("a connection is not a list", "hwaccel_connection")),
    (connection(kubconfig="x"), ("unknown: kubconfig", "did you mean kubeconfig?")),
    (connection(api_kay="planted-token"), ("unknown: api_kay", "did you mean api_key?")),
    (connection(validate_cert=False), ("unknown: validate_cert", "did you mean validate_certs?")),
    (connection(namespace="x"), ("unknown: namespace", "a connection has the keys")),
    (
        connection(host="ftp://api.example.com"),
        ("'ftp://api.example.com' is not the address of an API server", "hwaccel_connection.host"),
    ),
    (
        connection(host="https://me:planted@api.example.com"),
        ("contains a user or password", "hwaccel_connection.host"),
    ),
    (connection(host="api example com"), ("is not the address", "hwaccel_connection.host")),
    (connection(validate_certs="maybe"), ("'maybe' is neither true nor false", "hwaccel_connection.validate_certs")),
    (
        connection(retry_timeout="1m"),
        ("'1m' is not a number of seconds", "hwaccel_connection.retry_timeout", "set 60"),
    ),
    (connection(api_key={"token": "planted"}), ("it is not a string", "hwaccel_connection.api_key")),
    (connection(proxy_headers="x"), ("'x' is not a dictionary", "hwaccel_connection.proxy_headers")),
    (connection(proxy_headers={"agent": "x"}), ("unknown: agent", "hwaccel_connection.proxy_headers")),
    (connection(client_cert="/a", cert_file="/b"), ("cert_file and client_cert are the same option",)),
    (connection(api_key="planted", username="me", password="planted"), ("api_key and username contradict each other",)),
    (connection(impersonate_groups={"a": 1}), ("a dictionary is not a list", "hwaccel_connection.impersonate_groups")),
    ({"hwaccel_connection": {"kubeconfig": 7}}, ("7 is not a kubeconfig", "hwaccel_connection.kubeconfig")),
    (
        {"hwaccel_connection": {"kubeconfig": {"users": []}}},
        ("has no list of clusters", "hwaccel_connection.kubeconfig"),
    ),
    # Limits and timeouts.
    ({"hwaccel_max_failed": "many"}, ("'many' is neither a number of nodes nor a percentage", "hwaccel_max_failed")),
    ({"hwaccel_max_failed": -1}, ("-1 is neither", "hwaccel_max_failed")),
    ({"hwaccel_max_failed": "-10%"}, ("'-10%' is neither", "hwaccel_max_failed")),
    ({"hwaccel_max_failed": "110%"}, ("'110%'", "a percentage is at most 100%")),
    ({"hwaccel_max_failed": 0.1}, ("0.1 is neither", "set 3 or 10%")),
    ({"hwaccel_max_failed": True}, ("true is neither", "hwaccel_max_failed")),
    ({"hwaccel_max_failed": [1]}, ("a list is neither", "hwaccel_max_failed")),
    ({"monitoring_max_failed": "10 percent"}, ("'10 percent' is neither", "monitoring_max_failed")),
    ({"gpu_validation_max_failed": "101%"}, ("'101%'", "gpu_validation_max_failed")),
    ({"hwaccel_wait_timeout": "5m"}, ("'5m' is not a number of seconds", "hwaccel_wait_timeout", "set 300")),
    ({"hwaccel_wait_timeout": -5}, ("-5 is not a number of seconds", "it is less than 0")),
    ({"driver_wait_timeout": "soon"}, ("'soon' is not a number of seconds", "driver_wait_timeout")),
    ({"device_plugin_wait_timeout": "nan"}, ("'nan' is not a number of seconds", "device_plugin_wait_timeout")),
    ({"driver_max_prune": "all"}, ("'all' is neither a number of objects nor a percentage", "driver_max_prune")),
    ({"monitoring_max_prune": "120%"}, ("'120%' is neither", "monitoring_max_prune")),
    ({"gpu_validation_timeout": 0}, ("0 is not a number of seconds", "gpu_validation_timeout")),
    ({"gpu_validation_start_timeout": "10m"}, ("'10m'", "gpu_validation_start_timeout", "set 600")),
    ({"gpu_validation_schedule_timeout": "30s"}, ("'30s'", "set 30")),
    ({"gpu_validation_parallel": 0}, ("0 is not a whole number from 1", "gpu_validation_parallel")),
    (
        {"gpu_validation_all_gpus_parallel": "some"},
        ("'some' is not a whole number", "gpu_validation_all_gpus_parallel"),
    ),
    ({"gpu_validation_bandwidth_parallel": 2.5}, ("2.5 is not a whole number", "gpu_validation_bandwidth_parallel")),
    # Names and paths.
    (
        {"hwaccel_image_registry": "https://mirror.example.com"},
        ("image references have no scheme", "set mirror.example.com alone"),
    ),
    ({"hwaccel_image_registry": "mirror.example.com/gpu/"}, ("a slash is put between", "set mirror.example.com/gpu")),
    (
        {"hwaccel_image_registry": "me:planted@mirror.example.com"},
        ("contains a user or password", "use a pull secret instead"),
    ),
    ({"hwaccel_image_registry": "mirror"}, ("neither a dot nor a port", "hwaccel_image_registry")),
    ({"driver_image_registry": "Mirror Example"}, ("is not a registry", "driver_image_registry")),
    ({"hwaccel_namespace": "GPU_Operator"}, ("'GPU_Operator' is not a name of a namespace", "hwaccel_namespace")),
    ({"hwaccel_system_namespace": "a" * 64}, ("is not a name of a namespace", "hwaccel_system_namespace")),
    (
        {"hwaccel_namespace": "gpus", "hwaccel_system_namespace": "gpus"},
        ("have the same namespace", "set different ones"),
    ),
    ({"driver_namespace": ""}, ("driver_namespace is empty",)),
    (
        {"hwaccel_image_pull_secrets": ["Mirror Secret"]},
        ("'Mirror Secret' is not a name of an object", "hwaccel_image_pull_secrets[0]"),
    ),
    ({"driver_image_pull_secrets": "mirror"}, ("'mirror' is not a list", "driver_image_pull_secrets")),
    ({"hwaccel_excluded_nodes": {"gpu-1": True}}, ("a dictionary is not a list", "hwaccel_excluded_nodes")),
    ({"hwaccel_excluded_nodes": ["GPU 1"]}, ("'GPU 1' is not a name of a node", "hwaccel_excluded_nodes[0]")),
    ({"hwaccel_excluded_nodes": '["gpu-1", '}, ("the list cannot be read", "neither JSON nor YAML")),
    ({"hwaccel_runtime_socket": "run/containerd.sock"}, ("is not an absolute path", "hwaccel_runtime_socket")),
    ({"hwaccel_kubelet_root": "/var/lib/../kubelet"}, ("contains ..", "hwaccel_kubelet_root")),
    ({"driver_toolkit_install_dir": ""}, ("driver_toolkit_install_dir is empty",)),
    ({"driver_runtime_class": "NVIDIA"}, ("'NVIDIA' is not a name of an object", "driver_runtime_class")),
    ({"driver_manager_image": "https://nvcr.io/nvidia/x:1"}, ("is not an image reference", "driver_manager_image")),
    ({"device_plugin_image": "nvcr.io/NVIDIA/Plugin:v1"}, ("is not an image reference", "device_plugin_image")),
    ({"gpu_validation_image": ""}, ("gpu_validation_image is empty",)),
    ({"driver_repository": "nvcr.io/nvidia/driver:595"}, ("neither scheme nor tag", "driver_repository")),
    ({"driver_build_images": ["nvcr.io/x:595"]}, ("is not an image tag", "driver_build_images[0]")),
    ({"monitoring_runbook_url": "docs/alerts.md"}, ("is not the address of a page", "monitoring_runbook_url")),
    # Platform and stages.
    ({"hwaccel_distribution": "openshfit"}, ("'openshfit' is unknown", "did you mean openshift?")),
    ({"hwaccel_kubernetes_version": 1.3}, ("1.3 cannot be read", "without quotes YAML reads 1.30 as the number 1.3")),
    ({"hwaccel_kubernetes_version": "latest"}, ("'latest' cannot be read", "hwaccel_kubernetes_version")),
    ({"hwaccel_stages": ["divers"]}, ("'divers' is unknown", "hwaccel_stages[0]", "did you mean driver?")),
    ({"hwaccel_stages": "driver, monitorng"}, ("'monitorng' is unknown", "did you mean monitoring?")),
    ({"hwaccel_stages": 5}, ("5 is not a list", "set a list of stages", "hwaccel_stages")),
    ({"hwaccel_stages": {"driver": True}}, ("a dictionary is not a list", "hwaccel_stages")),
    # The driver.
    ({"driver_version": "latest"}, ("'latest' is not a driver version", "would change over time")),
    (
        {"driver_version": 580.1},
        ("580.1 is a number, not a version", "without quotes", 'write it in quotes, as "580.10"'),
    ),
    ({"driver_version": "v595.91.07"}, ("'v595.91.07' is not a driver version", "driver_version")),
    (
        {"driver_version": "999.10.01"},
        ("driver 999.10.01 is unknown", "no image of branch 999 is known", "driver_build_images"),
    ),
    ({"driver_version": ["595"]}, ("a list is not a driver version", "driver_version")),
    ({"driver_provider": "hwacel"}, ("'hwacel' is unknown", "did you mean hwaccel?")),
    ({"driver_source": "precompile"}, ("'precompile' is unknown", "did you mean precompiled?")),
    ({"driver_kernel_module_type": "closed"}, ("'closed' is unknown", "choose one of auto, open, proprietary")),
    ({"driver_extra_versions": ["595"]}, ("a list is not a dictionary", "driver_extra_versions")),
    ({"driver_extra_versions": {"nowhere": ["595"]}}, ("there is no pool nowhere", "driver_extra_versions.nowhere")),
    (
        {**pool(), "driver_extra_versions": {"trainig": ["595"]}},
        ("there is no pool trainig", "did you mean training?"),
    ),
    ({"driver_build": {"https_prox": "http://proxy:3128"}}, ("unknown: https_prox", "did you mean https_proxy?")),
    ({"driver_build": "http://proxy:3128"}, ("is not a dictionary", "driver_build")),
    ({"driver_toolkit_env": {"A B": "1"}}, ("'A B' is not a name of an environment variable", "driver_toolkit_env")),
    ({"driver_toolkit_env": {"DEBUG": True}}, ("true is not a string", "driver_toolkit_env.DEBUG")),
    ({"driver_adopt": "perhaps"}, ("'perhaps' is neither true nor false", "driver_adopt")),
    # Patches.
    ({"driver_patches": {"target": {}}}, ("a dictionary is not a list of patches", "driver_patches")),
    ({"driver_patches": ["DaemonSet"]}, ("it is not a mapping", "driver_patches[0]")),
    (patch(target=None), ("target has no kind", "driver_patches[0]")),
    (patch(target={"kind": "DaemonSet", "nam": "x"}), ("unknown key 'nam'", "did you mean name?")),
    (patch(patches={}), ("unknown key 'patches'", "driver_patches[0]")),
    (patch(patch="text"), ("neither a mapping", "driver_patches[0]")),
    (operation(op="replaced", path="/spec", value=1), ("op 'replaced' is unknown", "did you mean replace?")),
    (operation(op="add", path="spec/x", value=1), ("does not begin with a slash", "driver_patches[0]")),
    (operation(op="add", path="/spec/x"), ("add /spec/x has no value", "driver_patches[0]")),
    (patch(patch=["remove"]), ("'remove' is not an operation of RFC 6902", "driver_patches[0]")),
    # Feature discovery, device plugin, monitoring, validation.
    ({"feature_discovery_sleep_interval": 60}, ("60 is not a duration", "feature_discovery_sleep_interval", "60s")),
    ({"feature_discovery_resync_period": "1 hour"}, ("'1 hour' is not a duration", "feature_discovery_resync_period")),
    (
        {"feature_discovery_label_white_list": "^(pci"},
        ("the regular expression cannot be used", "feature_discovery_label_white_list"),
    ),
    (
        {"feature_discovery_label_white_list": "^(?!cpu).*"},
        ("Go's regular expressions do not support (?!", "feature_discovery_label_white_list"),
    ),
    ({"feature_discovery_provider": "exisiting"}, ("'exisiting' is unknown", "did you mean existing?")),
    ({"device_plugin_gfd_sleep_interval": "0s"}, ("'0s' is not a duration", "device_plugin_gfd_sleep_interval")),
    ({"device_plugin_configs": [{"version": "v1"}]}, ("a list is not a dictionary", "device_plugin_configs")),
    ({"device_plugin_configs": {"shared": "v1"}}, ("'v1' is not a dictionary", "device_plugin_configs.shared")),
    (
        {"device_plugin_configs": {"shared": {"version": "v2"}}},
        ("'v2' is unknown", "device_plugin_configs.shared.version"),
    ),
    (
        {"device_plugin_configs": {"shared": {"flags": {"migStrategy": "mixd"}}}},
        ("'mixd' is unknown", "did you mean mixed?"),
    ),
    (
        {"device_plugin_configs": {"shared": {"sharing": {"timeslicing": {}}}}},
        ("unknown: timeslicing", "device_plugin_configs.shared.sharing"),
    ),
    (sharing(replicas="4"), ("'4' is not a number of replicas", "without quotes")),
    (
        sharing(replicas=0),
        ("0 is not a number of replicas", "device_plugin_configs.shared.sharing.timeSlicing.resources[0].replicas"),
    ),
    (sharing(replicas=1), ("1 is not a number of replicas", "2 or more")),
    (sharing(rename="example.com/half"), ("'example.com/half' has no effect", "the device plugin ignores this field")),
    (sharing(devices=2), ("2 has no effect", "device_plugin_configs.shared.sharing.timeSlicing.resources[0].devices")),
    (
        {"device_plugin_configs": {"named": {"resources": {"gpus": [{"pattern": "*", "name": "gpu-a"}]}}}},
        ("has no effect", "device_plugin_configs.named.resources"),
    ),
    (sharing(name=""), ("name is missing", "device_plugin_configs.shared.sharing.timeSlicing.resources[0]")),
    ({"monitoring_scrape_interval": "30"}, ("'30' is not a duration of Prometheus", "monitoring_scrape_interval")),
    ({"monitoring_scrape_interval": "5s1m"}, ("the largest first", "monitoring_scrape_interval")),
    ({"monitoring_prometheus": "operater"}, ("'operater' is unknown", "did you mean operator?")),
    (
        {"monitoring_prometheus_labels": {"rel ease": "x"}},
        ("'rel ease' is not a label key", "monitoring_prometheus_labels"),
    ),
    (
        {"monitoring_dashboard_labels": {"grafana_dashboard": "yes please"}},
        ("is not a label value", "monitoring_dashboard_labels.grafana_dashboard"),
    ),
    (
        {"monitoring_thresholds": {"xid_hold": 15}},
        ("15 is not a duration of Prometheus", "monitoring_thresholds.xid_hold"),
    ),
    ({"monitoring_thresholds": {"temperature": 3}}, ("unknown: temperature", "monitoring_thresholds")),
    (
        {"monitoring_thresholds": {"rows_remapped": -1}},
        ("-1 is not a number of 0 or more", "monitoring_thresholds.rows_remapped"),
    ),
    (
        {"monitoring_thresholds": {"power_capped_share": 90}},
        ("90 is not a number from 0 to 1", "monitoring_thresholds.power_capped_share"),
    ),
    ({"monitoring_thresholds": "default"}, ("'default' is not a dictionary", "monitoring_thresholds")),
    ({"monitoring_alerts": {"GpuHott": {"enabled": False}}}, ("unknown: GpuHott", "did you mean GpuHot?")),
    ({"monitoring_alerts": {"GpuHot": False}}, ("false is not a dictionary", "monitoring_alerts.GpuHot")),
    (
        {"monitoring_alerts": {"GpuHot": {"for": "soon"}}},
        ("'soon' is not a duration of Prometheus", "monitoring_alerts.GpuHot.for"),
    ),
    ({"monitoring_profiling": "a bit"}, ("'a bit' is neither true nor false", "monitoring_profiling")),
    (
        {"gpu_validation_tolerations": [{"key": "a", "operator": "Exist"}]},
        ("'Exist' is unknown", "did you mean Exists?"),
    ),
    (
        {"gpu_validation_tolerations": [{"operator": "Equal", "value": "x"}]},
        ("a toleration has no key", "gpu_validation_tolerations[0]"),
    ),
    (
        {"gpu_validation_tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
        ("contradict each other", "gpu_validation_tolerations[0]"),
    ),
    ({"gpu_validation_tolerations": {"key": "a"}}, ("a dictionary is not a list", "gpu_validation_tolerations")),
    ({"gpu_validation_always": "sometimes"}, ("'sometimes' is neither true nor false", "gpu_validation_always")),
    # Pools.
    ({"hwaccel_pools": {"training": {"selector": "a=b"}}}, ("a dictionary is not a list of pools", "hwaccel_pools")),
    ({"hwaccel_pools": ["training"]}, ("'training' is not a pool", "hwaccel_pools[0]")),
    ({"hwaccel_pools": "training"}, ("'training' is not a pool", "hwaccel_pools[0]")),
    ({"hwaccel_pools": [{"selector": "a=b"}]}, ("a pool has no name", "hwaccel_pools[0]")),
    ({"hwaccel_pools": [{"name": "a"}]}, ("a pool selects nothing", "hwaccel_pools[0], pool a")),
    ({"hwaccel_pools": [{"name": "a", "nodes": []}]}, ("a pool selects nothing", "hwaccel_pools[0], pool a")),
    (
        {"hwaccel_pools": [{"name": "a", "selector": "x"}, {"name": "a", "selector": "y"}]},
        ("pool a is declared twice",),
    ),
    (pool(selector="pool = = x"), ("the selector cannot be read", "hwaccel_pools[0].selector")),
    (pool(selector={"pool": "training"}), ("a dictionary is not a label selector", "hwaccel_pools[0].selector")),
    (pool(selctor="x"), ("unknown: selctor", "did you mean selector?")),
    (pool(nodes="gpu-1"), ("'gpu-1' is not a list", "hwaccel_pools[0].nodes")),
    (pool(nodes=["GPU 1"]), ("'GPU 1' is not a name of a node", "hwaccel_pools[0].nodes[0]")),
    (pool(gpu=8), ("8 is not a dictionary", "hwaccel_pools[0].gpu")),
    (pool(gpu={"cuont": 8}), ("unknown: cuont", "did you mean count?")),
    (pool(gpu={"count": "many"}), ("'many' is not a whole number", "hwaccel_pools[0].gpu.count")),
    (pool(gpu={"count": -1}), ("-1 is not a whole number from 0 to 32", "hwaccel_pools[0].gpu.count")),
    (pool(gpu={"count": 64}), ("64 is not a whole number from 0 to 32", "hwaccel_pools[0].gpu.count, pool training")),
    (pool(gpu={"memory_mib": 80}), ("80 MiB is not the memory of any GPU", "it looks like GiB", "81920")),
    (pool(gpu={"memory_mib": 85899345920}), ("is not a whole number from 0 to", "hwaccel_pools[0].gpu.memory_mib")),
    (pool(gpu={"ecc": "on"}), ("'on' is neither true nor false", "hwaccel_pools[0].gpu.ecc")),
    (pool(driver={"version": 580.1}), ("580.1 is a number, not a version", "hwaccel_pools[0].driver.version")),
    (pool(driver={"version": "latest"}), ("'latest' is not a driver version", "hwaccel_pools[0].driver.version")),
    (pool(driver={"version": "333"}), ("driver 333 is unknown", "hwaccel_pools[0].driver.version")),
    (pool(driver={"provider": "operator"}), ("'operator' is unknown", "hwaccel_pools[0].driver.provider")),
    (
        pool(driver={"provider": "host", "version": "595"}),
        ("driver.version and provider host contradict", "hwaccel_pools[0].driver"),
    ),
    (pool(driver="host"), ("'host' is not a dictionary", "hwaccel_pools[0].driver")),
    (
        pool(interconnect={"min_bandwidth": "fast"}),
        ("'fast' is not a bandwidth", "hwaccel_pools[0].interconnect.min_bandwidth"),
    ),
    (
        pool(interconnect={"resources": {"rdma/a": "one"}}),
        ("'one' is not a whole number", "hwaccel_pools[0].interconnect.resources.rdma/a"),
    ),
    (
        pool(interconnect={"environment": {"1A": "x"}}),
        ("'1A' is not a name of an environment variable", "hwaccel_pools[0].interconnect.environment"),
    ),
    (
        pool(interconnect={"annotations": {"a b": "x"}}),
        ("'a b' is not a label key", "hwaccel_pools[0].interconnect.annotations"),
    ),
    (pool(interconnect="IB"), ("'IB' is not a dictionary", "hwaccel_pools[0].interconnect")),
    (pool(machines=[{"kernel": "6.8.0-134-generic"}]), ("os_image is missing", "hwaccel_pools[0].machines[0]")),
    (
        pool(machines=[{"kernel": 6.8, "os_image": "Ubuntu 24.04.3 LTS"}]),
        ("6.8 is not a kernel version", "hwaccel_pools[0].machines[0].kernel"),
    ),
    (
        pool(machines=[{"kernel": "6.8", "os_image": "Plan 9"}]),
        ("the operating system 'Plan 9' is unknown", "hwaccel_pools[0].machines[0].os_image"),
    ),
    (
        pool(machines=[{"kernel": "6.8", "os_image": "Ubuntu 24.04.3 LTS", "architecture": "x86"}]),
        ("'x86' is unknown", "machines[0].architecture"),
    ),
    (
        pool(machines=[{"kernel": "6.8", "os_image": "Ubuntu 24.04.3 LTS", "runtime": "crio"}]),
        ("'crio' is unknown", "did you mean cri-o?"),
    ),
    (pool(may_be_empty="perhaps"), ("'perhaps' is neither true nor false", "hwaccel_pools[0].may_be_empty")),
]
