# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the filters take that make a role's objects."""

from __future__ import annotations


class ModuleDocFragment:
    # What a filter documents under `settings` takes the place of all that is here: options are merged by their names only.
    DOCUMENTATION = r"""
positional: _input
options:
  _input:
    description: The role's manifests, YAML documents as they are in its templates folder, values filled in.
    type: list
    elements: str
    required: true
  settings:
    description: The role's settings.
    type: dict
    required: true
    suboptions:
      cluster_uid:
        description: The uid of the namespace C(kube-system) that the inventory means.
        type: str
      distribution:
        description: V(kubernetes), V(openshift), V(k3s) or V(rke2), where no cluster was asked. Another one that was asked is a fault.
        type: str
      image_pull_secrets:
        description: Names of Secrets in the pods' namespace.
        type: list
        elements: str
      image_registry:
        description: Takes the place of the registry's host in each image reference.
        type: str
      kubernetes_version:
        description: Minor version of Kubernetes, such as V("1.36"), where no cluster was asked. Another one that was asked is a fault.
        type: str
      namespaces_before:
        description: Names of Namespaces that an earlier stage of the run brings.
        type: list
        elements: str
      patches:
        description: Patches that the objects get when they are applied. One that matches none of them is a fault.
        type: list
        elements: dict
      pools:
        description: Declared pools, as in C(hwaccel_pools).
        type: list
        elements: dict
      provider:
        description: Who brings the component. Empty, what is there decides.
        type: str
  fleet:
    description:
      - What M(hwaccel.gpu.node_info) returned of the cluster. Read are C(classes), C(platform), C(existing), C(driver_daemon_sets),
        C(namespaces) and C(cluster_uid).
      - Where it is left out, no cluster was asked, and the declared pools with C(machines) are taken as the fleet.
    type: dict
seealso:
  - module: hwaccel.gpu.manifest_set
  - module: hwaccel.gpu.node_info
notes:
  - It is a pure function. It asks no cluster and changes none.
"""
