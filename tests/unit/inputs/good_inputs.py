# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Valid inputs of a cluster."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.unit.inputs.bad_inputs import connection, operation, patch, pool, sharing

#: Valid inputs: answers of surveys, empty values, and unusual ones.
GOOD: list[dict[str, t.Any]] = [
    {},
    {"hwaccel_max_failed": "10%"},
    {"hwaccel_max_failed": "5"},
    {"hwaccel_max_failed": 0},
    {"hwaccel_max_failed": " 10 % "},
    {"hwaccel_max_failed": ""},
    {"hwaccel_max_failed": None},
    {"hwaccel_max_failed": "100%"},
    {"hwaccel_wait_timeout": "300"},
    {"hwaccel_wait_timeout": 0.5},
    {"hwaccel_wait_timeout": ""},
    {"driver_max_prune": "12.5%"},
    {"driver_max_prune": 3},
    {"driver_adopt": "true"},
    {"driver_adopt": "no"},
    {"driver_adopt": 1},
    {"monitoring_rules": ""},
    {"hwaccel_connection": {}},
    {"hwaccel_connection": ""},
    {"hwaccel_connection": None},
    connection(host="", api_key=None),
    {
        "hwaccel_connection": {
            "host": "api.example.com:6443",
            "api_key": "planted\n",
            "verify_ssl": "false",
            "ssl_ca_cert": "/etc/ca.pem",
        }
    },
    {
        "hwaccel_connection": {
            "host": "https://[2001:db8::1]:6443/k8s/clusters/c-1",
            "username": "me",
            "password": 12345,
        }
    },
    {"hwaccel_connection": {"kubeconfig": {"clusters": [], "users": [], "contexts": []}, "retry_timeout": "30"}},
    {
        "hwaccel_connection": {
            "host": "h.example",
            "api_key": "planted",
            "impersonate_user": "a",
            "impersonate_groups": "a,b",
            "proxy": "http://u:planted@p:1",
        }
    },
    {"hwaccel_stages": ""},
    {"hwaccel_stages": "driver, monitoring"},
    {"hwaccel_stages": ["driver"]},
    {"hwaccel_stages": '["driver"]'},
    {"hwaccel_excluded_nodes": "gpu-1 gpu-2"},
    {"hwaccel_excluded_nodes": []},
    {"hwaccel_excluded_nodes": ["ip-10-0-0-1.ec2.internal"]},
    {"hwaccel_image_pull_secrets": "mirror"},
    {"hwaccel_image_registry": "mirror.example.com:5000/a/b"},
    {"hwaccel_image_registry": "localhost:5000"},
    {"hwaccel_image_registry": "registry:5000"},
    {"hwaccel_image_registry": ""},
    {"hwaccel_image_registry": "[2001:db8::1]:5000/gpu"},
    {"hwaccel_namespace": ""},
    {"hwaccel_namespace": "nvidia"},
    {"hwaccel_distribution": "rke2"},
    {"hwaccel_kubernetes_version": "1.36"},
    {"hwaccel_kubernetes_version": "v1.30.2+k3s1"},
    {"driver_version": "595"},
    {"driver_version": 595},
    {"driver_version": ""},
    {"driver_version": "580.126.20"},
    {"driver_version": "999.1.1", "driver_build_images": ["999.1.1-debian12"]},
    {"driver_version": "999.1", "driver_repository": "mirror.example.com/driver"},
    {"driver_provider": ""},
    {"driver_provider": "none"},
    {"driver_build": {"https_proxy": "http://proxy:3128", "repositories": ""}},
    {"driver_build": {}},
    {"driver_toolkit_env": {"RUNTIME_EXECUTABLE_PATH": "/usr/bin/containerd", "N": 3}},
    {"driver_manager_image": "localhost:5000/x@sha256:" + "0" * 64},
    {"driver_extra_versions": {"default": "580"}},
    {**pool(), "driver_extra_versions": {"training": ["595.91.07", "580"]}},
    {"driver_patches": []},
    patch(),
    patch(target={"kind": "Daemon*", "name": "", "namespace": None}),
    operation(op="add", path="/metadata/labels/a~1b", value=None),
    operation(op="move", path="/a", **{"from": "/b"}),
    {"feature_discovery_sleep_interval": "1h30m"},
    {"feature_discovery_resync_period": "1.5h"},
    {"feature_discovery_label_white_list": ""},
    {"device_plugin_configs": {}},
    {"device_plugin_configs": {"shared": {}}},
    sharing(),
    sharing(devices="all"),
    {
        "device_plugin_configs": {
            "mig": {"version": "v1", "flags": {"migStrategy": "mixed", "plugin": {"x": 1}}, "resources": {}}
        }
    },
    {"monitoring_scrape_interval": "1m30s"},
    {"monitoring_thresholds": {"temperature_margin": "5", "power_capped_share": "0.5", "xid_hold": "20m"}},
    {"monitoring_alerts": {"GpuHot": {"severity": "page", "for": "0s", "enabled": "false"}}},
    {"monitoring_alerts": {"GpuHot": {}}},
    {"monitoring_prometheus_labels": {"release": "kps", "empty": ""}},
    {"monitoring_runbook_url": "https://docs.example.com/alerts#top"},
    {"gpu_validation_max_failed": ""},
    {"driver_max_prune": ""},
    {"gpu_validation_start_timeout": ""},
    {"gpu_validation_parallel": ""},
    {"gpu_validation_parallel": "50"},
    {"gpu_validation_timeout": "60.5"},
    {"gpu_validation_tolerations": [{"operator": "Exists"}]},
    {
        "gpu_validation_tolerations": [
            {
                "key": "nvidia.com/gpu",
                "operator": "Equal",
                "value": "present",
                "effect": "NoExecute",
                "tolerationSeconds": 60,
            }
        ]
    },
    {"gpu_validation_tolerations": []},
    {"hwaccel_pools": ""},
    {"hwaccel_pools": []},
    {"hwaccel_pools": '[{"name": "a", "selector": "x=y"}]'},
    {"hwaccel_pools": "- name: a\n  nodes: [gpu-1]"},
    {"hwaccel_pools": [{"name": "default", "gpu": {"count": "8", "ecc": "True", "mig": ""}}]},
    pool(gpu={"product": "NVIDIA H100 80GB HBM3", "count": 32, "memory_mib": "81559"}),
    pool(gpu={}),
    pool(gpu=None),
    pool(may_be_empty=True),
    pool(driver={"provider": "host", "version": ""}),
    pool(driver={"provider": "hwaccel", "version": "595", "source": "build"}),
    pool(
        interconnect={
            "min_bandwidth": "40.5",
            "resources": {"rdma/a": "1"},
            "environment": {"NCCL_IB_GID_INDEX": 3},
            "annotations": {"a.b/c": "x"},
        }
    ),
    pool(
        machines=[
            {
                "kernel": "6.8.0-134-generic",
                "os_image": "Ubuntu 24.04.3 LTS",
                "runtime": "cri-o",
                "architecture": "arm64",
            }
        ]
    ),
    {"unknown_variable": object()},
    {"hwaccel_render_to": "out"},
    {"hwaccel_cluster_uid": "2a62dddd-a928-4c56-bbe1-dfc0e441394a"},
]
