#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox
version_added: 0.1.0
short_description: Run a Kubernetes control plane with a simulated fleet of GPU nodes on this machine
description:
  - Starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, each a process of its own, on loopback and free ports,
    with certificates of their own, RBAC, the Node authorizer and an audit log. Neither root nor containers are needed.
  - A fleet agent simulates the kubelet, the container runtime and the programs of the GPU stack on the nodes of a fleet that is described as data.
    Everything related to nodes is simulated. Everything else is Kubernetes itself.
  - Ports and certificates are chosen once and kept, so that a stopped sandbox resumes its state and its kubeconfig stays valid.
  - A process that died is restarted by the next run, and RV(died) reports it with the end of its log.
  - Sources of the components are tried in this order. First a folder that O(components) or E(HWACCEL_COMPONENTS) names. If one is named, no other source is
    tried. Then the cache in C(${XDG_CACHE_HOME:-~/.cache}/hwaccel-gpu). Then official release binaries, verified by their pinned checksums. Then a build from
    Go modules, with Go from this machine or from the Python package index, which takes some minutes once, 3 GiB of memory and 6 GiB of disk space.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  state:
    description:
      - V(started) starts all processes that are not running, passes the fleet to the fleet agent, and waits until every node is ready.
      - V(stopped) stops the processes and keeps the data.
      - V(absent) stops the processes and deletes the folder of the sandbox. The cache is kept.
    type: str
    choices: [started, stopped, absent]
    default: started
  name:
    description: Name of the sandbox. Several sandboxes can run at the same time.
    type: str
    default: default
  state_dir:
    description: Folder of the sandbox. By default C(${XDG_STATE_HOME:-~/.local/state}/hwaccel-gpu/sandbox/<name>). It is created with mode 0700.
    type: path
  components:
    description:
      - Folder with the programs C(etcd), C(kube-apiserver), C(kube-controller-manager), C(kube-scheduler) and C(kwok),
        or with C(controlplane), which contains all of them. Also E(HWACCEL_COMPONENTS).
      - If the folder has a file C(SHA256SUMS), in the format of C(sha256sum), a program that it does not list or that differs is refused.
        Without that file the programs are used unchecked, with a warning.
    type: path
  component_sources:
    description: Sources of the components if no folder is named. Also E(HWACCEL_COMPONENT_SOURCES), separated by commas, which takes precedence.
    type: list
    elements: str
    choices: [cache, release, build]
    default: [cache, release, build]
  releases:
    description: Downloads that replace the pinned official ones, for example from a mirror.
    type: list
    elements: dict
    suboptions:
      url:
        description: URL of a program or of a tar archive.
        type: str
        required: true
      checksum:
        description: C(sha256:) or C(sha512:) and the checksum of the file behind O(releases[].url).
        type: str
        required: true
      files:
        description: The components in it, each with its path in the archive, or with an empty string if the download is the program itself.
        type: dict
        required: true
  sources:
    description:
      - Folder with C(control_plane) and C(fleet_agent), as the role P(hwaccel.gpu.sandbox#role) ships them.
      - Without it there is neither a build nor a fleet agent.
    type: path
  fleet:
    description:
      - The fleet, in the format of a fleet file. If neither this nor O(fleet_file) is set, the fleet is not changed.
      - New nodes join, nodes that are no longer in it leave, and changed nodes are updated. A change of kernel or operating system image reboots a node.
    type: dict
  fleet_file:
    description: Path of a fleet file in YAML.
    type: path
  faults:
    description:
      - Faults to simulate, beyond those of the fleet file. If it is not set, they are not changed. An empty list ends them.
    type: list
    elements: dict
    suboptions:
      name:
        description: Which fault.
        type: str
        required: true
        choices:
          - driver_load_failure
          - fabric_manager_down
          - gpu_ecc_error
          - gpu_off_bus
          - gpu_unsupported
          - image_pull_failure
          - kubelet_gone
          - node_flapping
          - node_not_ready
          - out_of_memory
          - plugin_fewer_gpus
          - slow_node
      node:
        description: The node that has it. Either this or O(faults[].pool).
        type: str
      pool:
        description: The pool whose nodes all have it.
        type: str
      image:
        description: For V(image_pull_failure), the basename of the image's repository. By default all images fail.
        type: str
      container:
        description: For V(out_of_memory), the container's name.
        type: str
      xid:
        description: For V(gpu_ecc_error), the Xid that the driver reports. By default V(48).
        type: str
        choices: ["48", "94", "95"]
      factor:
        description: For V(slow_node), the factor by which all work takes longer. By default V(10).
        type: str
  reboot:
    description: Nodes to reboot, each time the task runs.
    type: list
    elements: dict
    suboptions:
      node:
        description: Name of the node.
        type: str
        required: true
      kernel:
        description: Kernel after the reboot. The node keeps it until the kernel in the fleet file changes.
        type: str
  wait_timeout:
    description: Seconds to wait for the nodes. By default 120, plus 0.3 for each node.
    type: float
extends_documentation_fragment:
  - hwaccel.gpu.attributes
  - hwaccel.gpu.waiting
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details: A node in O(reboot) is rebooted by every run.
notes:
  - It runs on Linux, as the user who runs it. Its processes keep running after the play.
requirements:
  - python >= 3.11
  - cryptography >= 42.0
  - urllib3 >= 2.0
  - PyYAML >= 6.0
seealso:
  - name: kwok
    description: Simulates nodes. Here it renews their leases.
    link: https://kwok.sigs.k8s.io/
"""

EXAMPLES = r"""
- name: Start a sandbox with one pool of GPU nodes
  hwaccel.gpu.sandbox:
    sources: "{{ role_path }}/files"
    fleet:
      pools:
        - name: training
          count: 8
          kernel: 6.8.0-45-generic
          os_image: Ubuntu 24.04.1 LTS
          gpu: {product: NVIDIA-H100-80GB-HBM3, count: 8, memory_mib: 81559, mig_capable: true}
  register: sandbox

- name: Get information about its nodes
  hwaccel.gpu.node_info:
    kubeconfig: "{{ sandbox.kubeconfig }}"

- name: Make the driver of one node fail
  hwaccel.gpu.sandbox:
    sources: "{{ role_path }}/files"
    faults:
      - name: driver_load_failure
        node: training-3

- name: Reboot a node into another kernel
  hwaccel.gpu.sandbox:
    sources: "{{ role_path }}/files"
    reboot:
      - node: training-0
        kernel: 6.8.0-48-generic

- name: Delete the sandbox
  hwaccel.gpu.sandbox:
    state: absent
"""

RETURN = r"""
kubeconfig:
  description: Path of the administrator's kubeconfig, mode 0600, context C(sandbox).
  returned: always
  type: str
  sample: ~/.local/state/hwaccel-gpu/sandbox/default/kubeconfig
audit_log:
  description: Path of the API server's audit log, one line a request.
  returned: always
  type: str
state_dir:
  description: Folder of the sandbox.
  returned: always
  type: str
nodes:
  description: How many nodes the fleet has.
  returned: always
  type: int
  sample: 20
pools:
  description: The pools of the fleet.
  returned: always
  type: list
  elements: dict
  sample: [{name: training, nodes: 8, gpus: 64, gpu_product: NVIDIA-H100-80GB-HBM3}]
processes:
  description: The running processes, each with the path of its log.
  returned: always
  type: list
  elements: dict
  sample: [{component: etcd, pid: 4711, log: ~/.local/state/hwaccel-gpu/sandbox/default/logs/etcd.log}]
components:
  description: Where the programs come from, and whether their checksums were verified.
  returned: when the components were searched for and found
  type: dict
  sample: {source: cache, folder: ~/.cache/hwaccel-gpu/components/5f0c, verified: true}
actions:
  description: What the run did, or would do in check mode, and why.
  returned: always
  type: list
  elements: str
  sample: ["restarted kube-scheduler: it had died"]
died:
  description: Processes that had died, with the end of their logs.
  returned: always
  type: list
  elements: dict
  contains:
    component:
      description: Which one.
      type: str
    log_tail:
      description: Last lines of its log.
      type: list
      elements: str
"""

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.sandbox import run, settings_of
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.fleet_file import FAULTS, XIDS
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.resolver import WAYS

_RELEASE = {
    "url": {"type": "str", "required": True},
    "checksum": {"type": "str", "required": True},
    "files": {"type": "dict", "required": True},
}
_FAULT = {
    "name": {"type": "str", "required": True, "choices": sorted(FAULTS)},
    "node": {"type": "str"},
    "pool": {"type": "str"},
    "image": {"type": "str"},
    "container": {"type": "str"},
    "xid": {"type": "str", "choices": list(XIDS)},
    "factor": {"type": "str"},
}
ARGUMENT_SPEC: dict[str, t.Any] = {
    "state": {"type": "str", "choices": ["started", "stopped", "absent"], "default": "started"},
    "name": {"type": "str", "default": "default"},
    "state_dir": {"type": "path"},
    "components": {"type": "path"},
    "component_sources": {"type": "list", "elements": "str", "choices": list(WAYS), "default": list(WAYS)},
    "releases": {"type": "list", "elements": "dict", "options": _RELEASE},
    "sources": {"type": "path"},
    "fleet": {"type": "dict"},
    "fleet_file": {"type": "path"},
    "faults": {"type": "list", "elements": "dict", "options": _FAULT},
    "reboot": {
        "type": "list",
        "elements": "dict",
        "options": {"node": {"type": "str", "required": True}, "kernel": {"type": "str"}},
    },
    "wait_timeout": {"type": "float"},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    return run(settings_of(params), check_mode=context.check_mode, deadline=context.deadline, resume=context.resume)


def main() -> None:
    run_module(
        ARGUMENT_SPEC,
        operation,
        cluster=False,
        waits=True,
        supports_check_mode=True,
        mutually_exclusive=[("fleet", "fleet_file")],
    )


if __name__ == "__main__":
    main()
