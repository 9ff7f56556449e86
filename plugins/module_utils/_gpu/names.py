# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of labels, annotations and taints: those of other projects as they define them, those of this collection under `hwaccel.gpu/`."""

from __future__ import annotations

#: Prefix of the labels and extended resources of NVIDIA's components.
VENDOR = "nvidia.com/"
#: Prefix of the labels and annotations of this collection.
OURS = "hwaccel.gpu/"
NFD = "feature.node.kubernetes.io/"

#: Labels of every object and pod that this collection creates.
MANAGED_BY_LABEL, MANAGER = "app.kubernetes.io/managed-by", "hwaccel.gpu"
OWNER_LABELS = {MANAGED_BY_LABEL: MANAGER, "app.kubernetes.io/part-of": "hwaccel-gpu"}

#: NFD's three forms of "there is an NVIDIA device on the PCI bus", by `deviceLabelFields` (vendor, or class and vendor: 3D controller, VGA controller).
PCI_LABELS = (NFD + "pci-10de.present", NFD + "pci-0302_10de.present", NFD + "pci-0300_10de.present")
CPU_VENDOR_LABEL = NFD + "cpu-model.vendor_id"
TEGRA_CPU_VENDOR = "NVIDIA"
KERNEL_LABEL = NFD + "kernel-version.full"
OS_ID_LABEL = NFD + "system-os_release.ID"
OS_VERSION_LABEL = NFD + "system-os_release.VERSION_ID"

GPU_PRESENT_LABEL = VENDOR + "gpu.present"
GPU_PRODUCT_LABEL = VENDOR + "gpu.product"
GPU_COUNT_LABEL = VENDOR + "gpu.count"
GPU_MEMORY_LABEL = VENDOR + "gpu.memory"
GPU_REPLICAS_LABEL = VENDOR + "gpu.replicas"
GPU_SHARING_LABEL = VENDOR + "gpu.sharing-strategy"
MIG_CAPABLE_LABEL = VENDOR + "mig.capable"
MIG_STRATEGY_LABEL = VENDOR + "mig.strategy"
MIG_CONFIG_STATE_LABEL = VENDOR + "mig.config.state"
PLUGIN_CONFIG_LABEL = VENDOR + "device-plugin.config"
#: Label of GPU feature discovery since v0.15, and the parts that older versions write.
DRIVER_VERSION_LABEL = VENDOR + "cuda.driver-version.full"
OLD_DRIVER_VERSION_LABELS = (VENDOR + "cuda.driver.major", VENDOR + "cuda.driver.minor", VENDOR + "cuda.driver.rev")

#: The GPU Operator's labels that enable or disable components. They are respected regardless of who set them.
OPERANDS_LABEL = VENDOR + "gpu.deploy.operands"
DEPLOY_DRIVER_LABEL = VENDOR + "gpu.deploy.driver"
#: Components that use the driver. NVIDIA's driver manager can evict them from a node if their label has a value ("true").
CLIENT_SWITCHES = tuple(
    f"{VENDOR}gpu.deploy.{name}"
    for name in ("container-toolkit", "dcgm-exporter", "device-plugin", "gpu-feature-discovery", "operator-validator")
)
PRE_INSTALLED = "pre-installed"
#: Version of a driver that is installed on the host (set by the user).
HOST_DRIVER_LABEL = OURS + "host-driver"
#: The driver version of a node, if a cluster has two.
DESIRED_DRIVER_VERSION_LABEL = OURS + "driver-version"
#: On driver DaemonSets and their pods: its class, its pool, and its kernel if it is for one.
DRIVER_CLASS_LABEL = OURS + "class"
DRIVER_POOL_LABEL = OURS + "pool"
DRIVER_KERNEL_LABEL = OURS + "kernel"

#: The GPU is part of the processor and not on a PCI bus (set by the collection's NodeFeatureRule).
INTEGRATED_LABEL = OURS + "integrated"

QUARANTINE = OURS + "quarantine"
#: Annotation: why and by which gate, for the user.
QUARANTINE_REASON = OURS + "quarantine-reason"
#: Annotation: when this collection has cordoned the node, in RFC 3339 format.
CORDONED = OURS + "cordoned"
#: Annotation: what a workload proved about the node, as JSON.
PROOF = OURS + "proof"
#: Annotation by which kwok recognizes the nodes that it simulates (kwok's documentation, "Manage Nodes with kwok").
SIMULATED, SIMULATED_VALUE = "kwok.x-k8s.io/node", "fake"
