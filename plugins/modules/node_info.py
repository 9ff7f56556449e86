#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
version_added: 0.1.0
short_description: Summarize the nodes of a cluster for GPU workloads
description:
  - Reads all nodes of a cluster and returns the distinct combinations of the properties that drivers depend on (kernel, operating system, architecture,
    container runtime, GPU), the number of nodes of each, their pools, the platform, existing GPU components of other deployments,
    and the driver DaemonSets of this collection with the nodes on which they run.
  - Nodes are read page by page and summarized at once, so that thousands of them need little memory and the result stays small.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  pools:
    description:
      - Declared pools, as in the inventory variable C(hwaccel_pools). Each has C(name), C(selector) or C(nodes), and the expected properties of its nodes.
      - GPU nodes outside of every declared pool belong to pool C(default), nodes without GPUs to pool C(cpu).
      - Pools that overlap are an error. A node that is named but is not in the cluster is a warning.
    type: list
    elements: dict
    default: []
  gather_subset:
    description:
      - V(all), or V(platform) for RV(platform) alone. V(platform) reads no object and needs no permission beyond those of every authenticated user.
    version_added: 0.2.0
    type: str
    default: all
    choices: [all, platform]
  label_selector:
    description: Only nodes that match this label selector are read, as for C(kubectl -l).
    type: str
    default: ""
  rows:
    description: Whether RV(nodes) is returned as well, one row for each node. For large fleets this makes a large result.
    type: bool
    default: false
  namespaces:
    description: Names of the namespaces for GPU components. RV(namespaces) reports who created each of them and what it admits.
    version_added: 0.2.0
    type: list
    elements: str
    default: []
  cluster_uid:
    description: The uid of the namespace C(kube-system) of the intended cluster. Any other cluster is refused, and so is one whose uid cannot be read.
    version_added: 0.2.0
    type: str
  named_nodes:
    description: Names of nodes to check. RV(unknown_nodes) reports which of them the cluster does not have.
    version_added: 0.2.0
    type: list
    elements: str
    default: []
  query:
    description:
      - JMESPath expression on everything that the module returns, including RV(nodes). Its value is returned as RV(result).
      - Needs the Python package C(jmespath).
    type: str
extends_documentation_fragment:
  - hwaccel.gpu.cluster
  - hwaccel.gpu.attributes.info_module
  - hwaccel.gpu.attributes.cluster_group
seealso:
  - module: hwaccel.gpu.node_gate
"""

EXAMPLES = r"""
- name: Get the kernels and GPUs of the cluster
  hwaccel.gpu.node_info:
    kubeconfig: /etc/kubernetes/admin.conf
  register: fleet

- name: Get them by declared pool
  hwaccel.gpu.node_info:
    kubeconfig: /etc/kubernetes/admin.conf
    pools:
      - name: training
        selector: pool=training
        gpu:
          product: NVIDIA-H100-80GB-HBM3
          count: 8
          memory_mib: 81559

- name: Find the nodes that are not ready
  hwaccel.gpu.node_info:
    kubeconfig: /etc/kubernetes/admin.conf
    query: "nodes[?!ready].name"
  register: not_ready
"""

RETURN = r"""
cluster_uid:
  description: Uid of the namespace C(kube-system), which identifies the cluster. Empty if it cannot be read.
  returned: when O(gather_subset) is V(all)
  type: str
  sample: 2a62dddd-a928-4c56-bbe1-dfc0e441394a
platform:
  description: The Kubernetes distribution and version.
  returned: success
  type: dict
  contains:
    distribution:
      description: V(kubernetes), V(openshift), V(k3s) or V(rke2).
      type: str
      returned: success
      sample: kubernetes
    version:
      description: Version of the API server.
      type: str
      returned: success
      sample: v1.36.4
pools:
  description: Pools, the declared ones first in their order.
  returned: when O(gather_subset) is V(all)
  type: list
  elements: dict
  contains:
    name:
      description: Name of the pool.
      type: str
      returned: success
    declared:
      description: Whether O(pools) has it.
      type: bool
      returned: success
    nodes:
      description: Number of nodes.
      type: int
      returned: success
    ready:
      description: Number of nodes whose kubelet is ready.
      type: int
      returned: success
    gpu:
      description: The GPUs of one node, C(product), C(count) and C(memory_mib), as declared, or as most nodes of the pool have them.
      type: dict
      returned: success
classes:
  description: Distinct combinations of the properties that drivers depend on.
  returned: when O(gather_subset) is V(all)
  type: list
  elements: dict
  contains:
    pool:
      description: Name of the pool.
      type: str
      returned: success
    kernel:
      description: Kernel version, as the kubelet reports it.
      type: str
      returned: success
    nfd_kernel:
      description: Kernel version from the label of Node Feature Discovery, which lags behind after a reboot. Empty without that label.
      type: str
      returned: success
    os_id:
      description: Operating system, such as V(ubuntu).
      type: str
      returned: success
    os_version:
      description: Version of the operating system, such as V(24.04).
      type: str
      returned: success
    os_image:
      description: The operating system as the kubelet names it.
      type: str
      returned: success
    architecture:
      description: V(amd64) or V(arm64).
      type: str
      returned: success
    runtime:
      description: Container runtime, V(containerd), V(cri-o) or V(docker).
      type: str
      returned: success
    runtime_version:
      description: Version of the container runtime.
      type: str
      returned: success
    gpu_present:
      description: Whether the nodes report a GPU.
      type: bool
      returned: success
    gpu_assumed:
      description: Whether a GPU is declared for the pool that the nodes do not report yet.
      type: bool
      returned: success
    gpu_product:
      description: GPU product, as GPU feature discovery names it.
      type: str
      returned: success
    host_driver:
      description:
        - Version of a driver that is installed on the host.
        - V(unknown) if only its presence is known, V(pre-installed) if a driver manager detected it and labeled the node.
      type: str
      returned: success
    driver_version:
      description: Version of the driver that is loaded.
      type: str
      returned: success
    count:
      description: Number of nodes.
      type: int
      returned: success
    ready:
      description: Number of nodes whose kubelet is ready.
      type: int
      returned: success
    unschedulable:
      description: Number of nodes that are cordoned.
      type: int
      returned: success
existing:
  description:
    - GPU components that are not from this collection, each with C(kind), C(namespace), C(name) and C(image).
    - They are recognized by their images, and the GPU Operator by its C(ClusterPolicy).
  returned: when O(gather_subset) is V(all)
  type: dict
  contains:
    nfd:
      description: Node Feature Discovery.
      type: list
      elements: dict
      returned: success
    device_plugin:
      description: Device plugins.
      type: list
      elements: dict
      returned: success
    driver:
      description: Driver containers.
      type: list
      elements: dict
      returned: success
    cluster_policy:
      description: Objects of kind C(ClusterPolicy) of the GPU Operator.
      type: list
      elements: dict
      returned: success
    runtime_class:
      description: Objects of kind C(RuntimeClass) with the handler V(nvidia), which K3s, RKE2 and the GPU Operator create.
      type: list
      elements: dict
      returned: success
    dcgm_exporter:
      description: Exporters of GPU metrics.
      type: list
      elements: dict
      returned: success
    prometheus_operator:
      description: Kinds of the Prometheus Operator, if the cluster serves C(ServiceMonitor) and C(PrometheusRule).
      type: list
      elements: dict
      returned: success
unknown_nodes:
  description: Nodes of O(named_nodes) that the cluster does not have.
  returned: when O(gather_subset) is V(all)
  type: list
  elements: dict
  contains:
    name:
      description: The name in O(named_nodes).
      type: str
      returned: success
    near:
      description: Name of a node with a similar spelling. Empty if there is none.
      type: str
      returned: success
driver_daemon_sets:
  description:
    - Driver DaemonSets that this collection created. They are needed so that a running driver is kept when the declaration changes.
    - Those that only report that there is no driver for a kernel are omitted. Pods are read only if there is such a DaemonSet.
  returned: when O(gather_subset) is V(all)
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace.
      type: str
      returned: success
    name:
      description: Name.
      type: str
      returned: success
    pool:
      description: Pool that it was created for, as a label value.
      type: str
      returned: success
    class:
      description: Value of the label C(hwaccel.gpu/class), by which it selects its pods.
      type: str
      returned: success
    version:
      description: Driver version.
      type: str
      returned: success
    kernel:
      description: Kernel, as a label value. Empty if it selects nodes whose kernels were not known.
      type: str
      returned: success
    image:
      description: Image of the driver.
      type: str
      returned: success
    node_affinity:
      description: Affinity of the nodes that it selects.
      type: dict
      returned: success
    running:
      description: Number of nodes on which one of its pods has ever started the driver.
      type: int
      returned: success
    nodes:
      description: Names of these nodes, at most five.
      type: list
      elements: str
      returned: success
namespaces:
  description: Those of O(namespaces) that exist and can be read.
  returned: when O(gather_subset) is V(all)
  type: list
  elements: dict
  contains:
    name:
      description: Name.
      type: str
      returned: success
    set:
      description: Name of the set of this collection that created it. Empty if this collection did not create it.
      type: str
      returned: success
    pod_security:
      description: The Pod Security level that it enforces by its label, empty without the label.
      type: str
      returned: success
    config_maps:
      description: Names of its ConfigMaps, V(null) if the run may not list them.
      type: list
      elements: str
      returned: success
    secrets:
      description: Names of its Secrets, V(null) if the run may not list them. Their data is not read.
      type: list
      elements: str
      returned: success
nodes:
  description: One row for each node, sorted by name.
  returned: when O(rows) is true
  type: list
  elements: dict
result:
  description: Value of O(query).
  returned: when O(query) is given
  type: raw
"""

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import _deps
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet

ARGUMENT_SPEC = {
    "gather_subset": {"type": "str", "default": "all", "choices": ["all", "platform"]},
    "pools": {"type": "list", "elements": "dict", "default": []},
    "label_selector": {"type": "str", "default": ""},
    "rows": {"type": "bool", "default": False},
    "namespaces": {"type": "list", "elements": "str", "default": []},
    "cluster_uid": {"type": "str"},
    "named_nodes": {"type": "list", "elements": "str", "default": []},
    "query": {"type": "str"},
}


def node_info(params: dict, context: Context) -> Outcome:
    fleet.refuse_another(context.client(), params["cluster_uid"] or "")
    if params["gather_subset"] == "platform":
        return Outcome(values={"platform": fleet.platform(context.client())})
    query = params["query"]
    jmespath = _deps.jmespath() if query else None
    values = fleet.summary(
        context.client(),
        params["pools"],
        label_selector=params["label_selector"],
        rows=params["rows"] or bool(query),
        namespaces=params["namespaces"],
        named=params["named_nodes"],
        warn=context.warn,
    )
    if query:
        values["result"] = fleet.query(query, values, jmespath)
        if not params["rows"]:
            del values["nodes"]
    return Outcome(values=values)


def main() -> None:
    run_module(ARGUMENT_SPEC, node_info, supports_check_mode=True)


if __name__ == "__main__":
    main()
