#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: openshift_install
version_added: 0.2.0
short_description: Create the files of an OpenShift installation, at most once
description:
  - Runs C(openshift-install) where the files of an installation do not exist yet, and otherwise leaves them as they are. What happens follows from a table of
    17 rows, and RV(row) is the one that applies. Each failure says what to do next.
  - A second set of files has other certificate authorities, and machines that were installed with the first set never join machines with the second one. So
    files that exist are only created again with O(regenerate=true), and not while machines have them, unless these are named.
  - The files can be used as long as their certificates are valid, which is one day. This is read from the certificates, and not from times of files.
  - The program works in a folder beside O(path), which is renamed when it is complete, and under a lock. A folder that is replaced is kept as
    C(<path>.bak-<time>), and nothing is deleted. If a run is killed, the previous folder is in one of these places, and a new one is there only if it is
    complete.
  - What the files were created from is kept in C(<path>.hwaccel-gpu.json), with secrets as salted hashes, because the program deletes its inputs.
  - The program writes private keys and the pull secret with mode 0640. Files have mode 0600 and folders 0700 before anybody else can read them.
  - In check mode the program does not run.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  path:
    description: Absolute path of the folder of the installation. The folder above is created with mode 0700 if it does not exist.
    type: path
    required: true
  program:
    description: C(openshift-install), as C(oc adm release extract --command=openshift-install) extracts it from a release. Its release is that of the cluster.
    type: path
    required: true
  method:
    description:
      - With V(upi), a bootstrap machine and ignition files for all machines.
      - With V(in_place), one machine that installs itself, by C(bootstrap-in-place-for-live-iso.ign).
      - With V(agent), kernel, initramfs and rootfs of the agent-based installer. The program needs the registry of the release and C(nmstatectl) for it.
    type: str
    choices: [upi, in_place, agent]
    default: upi
  files:
    description:
      - Contents of the inputs by their path in the folder, in YAML, such as C(install-config.yaml).
      - Files in a folder, such as C(openshift/99-worker-kernel-arguments.yaml), are written after C(create manifests), also in place of a manifest that the
        program has written.
    type: dict
    required: true
  own_approver:
    description:
      - Whether C(approve-csr.service) is masked in the bootstrap file. As long as the bootstrap machine runs, it approves every certificate signing request
        without reading it. If it is masked, requests of all machines wait for M(hwaccel.gpu.node_csr_approve), also those of masters.
      - Only with O(method=upi).
    type: bool
    default: false
  architecture:
    description: Architecture of the machines, for RV(artifacts), as CoreOS names it.
    type: str
    choices: [x86_64, aarch64, ppc64le, s390x]
    default: x86_64
  stream:
    description: Stream of CoreOS, such as V(rhel-10), for RV(artifacts) of releases that have several.
    type: str
  mirror:
    description: Address of a folder that has the files of RV(artifacts) under their own names. If unset, they are where the release says.
    type: str
  cluster:
    description: What is known of the cluster and its machines.
    type: dict
    default: {}
    suboptions:
      name:
        description: Its name and base domain, such as V(dgxpod.example.com), for messages.
        type: str
        default: ""
      answers:
        description: Whether an API server answers at the cluster's address.
        type: bool
        default: false
      infrastructure:
        description: C(status.infrastructureName) of Infrastructure C(cluster), empty if it cannot be read.
        type: str
        default: ""
      bootstrapped:
        description: Whether its bootstrap is complete.
        type: bool
        default: false
      installed:
        description: Whether its ClusterVersion has a completed installation.
        type: bool
        default: false
      written:
        description: Machines that were installed with the files in the folder.
        type: list
        elements: str
        default: []
  adopt:
    description: Whether files that this module has not created are those of this cluster, and are recorded as they are.
    type: bool
    default: false
  regenerate:
    description: Whether files that exist are moved away and created again. For one run only.
    type: bool
    default: false
  regenerate_named:
    description: Machines that were installed with the previous files, and may lose their cluster by O(regenerate).
    type: list
    elements: str
    default: []
  margin:
    description: Seconds for which files have to be valid that are used again. By default 12 hours, or half the lifetime of their certificates if that is less.
    type: float
  timeout:
    description: Seconds after which a command of the program is ended.
    type: float
    default: 1800
requirements:
  - cryptography >= 42.0
  - PyYAML
extends_documentation_fragment:
  - hwaccel.gpu.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: hwaccel.gpu.ignition_info
  - name: Installing a user-provisioned cluster on bare metal
    description: What the program and its files are for.
    link: https://docs.redhat.com/en/documentation/openshift_container_platform/
"""

EXAMPLES = r"""
- name: Create the files of the installation, or use them again
  hwaccel.gpu.openshift_install:
    path: /srv/installations/dgxpod
    program: /usr/local/bin/openshift-install
    files:
      install-config.yaml: "{{ lookup('ansible.builtin.template', 'install-config.yaml.j2') }}"
    cluster:
      name: dgxpod.example.com
  register: installation

- name: Report whether machines can still be installed with them
  ansible.builtin.debug:
    msg: "{{ installation.message }}"

- name: Create them again, although worker-0 was installed with the previous ones
  hwaccel.gpu.openshift_install:
    path: /srv/installations/dgxpod
    program: /usr/local/bin/openshift-install
    files:
      install-config.yaml: "{{ lookup('ansible.builtin.template', 'install-config.yaml.j2') }}"
    cluster:
      name: dgxpod.example.com
      written: [worker-0]
    regenerate: true
    regenerate_named: [worker-0]
"""

RETURN = r"""
row:
  description: Row of the table that applies.
  returned: when the folder could be read
  type: int
  sample: 2
action:
  description: What happens, one of C(create), C(reuse), C(adopt), C(regenerate), C(nothing) and C(fail).
  returned: when the folder could be read
  type: str
  sample: reuse
message:
  description: What happens and why.
  returned: when the folder could be read
  type: str
silent:
  description: Whether the cluster was installed, and does not answer now.
  returned: when the folder could be read
  type: bool
path:
  description: The folder.
  returned: when the folder could be read
  type: str
backup:
  description: Where the previous folder is, empty if there was none.
  returned: when the folder could be read
  type: str
infrastructure:
  description: C(infraID) of C(metadata.json), by which the cluster is recognized.
  returned: when the folder could be read
  type: str
  sample: dgxpod-x7k2p
publishable:
  description: SHA-256 of each file that boot servers may publish, by its path in the folder.
  returned: when the folder could be read
  type: dict
secret:
  description:
    - Names of the files in RV(publishable) that hold private keys or the pull secret. Whoever downloads one of them owns the cluster, so boot servers may
      give them to their machine only, and no longer than it needs them.
    - With O(method=agent) it is the initramfs.
  returned: when the folder could be read
  type: list
  elements: str
  sample: [bootstrap.ign]
release:
  description: Version, release image and architecture of the program, in check mode of the one that has created the files, empty if there are none.
  returned: when the folder could be read
  type: dict
  sample: {"version": "4.20.3", "release_image": "quay.io/openshift-release-dev/ocp-release@sha256:…", "architecture": "amd64"}
not_after:
  description: When the first certificate of the bootstrap file expires, empty without one.
  returned: when the folder could be read
  type: str
  sample: "2026-12-01T06:00:00Z"
seconds_left:
  description: Seconds until RV(not_after), V(null) without it.
  returned: when the folder could be read
  type: int
artifacts:
  description: Kernel, initramfs and rootfs of the release for network boot, each with C(location) and C(sha256). Empty in check mode.
  returned: success
  type: dict
"""

import datetime
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import openshift_install

ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "required": True},
    "program": {"type": "path", "required": True},
    "method": {"type": "str", "choices": ["upi", "in_place", "agent"], "default": "upi"},
    # Without no_log, which would hide "master", "3" and the like everywhere in the result. It is never shown.
    "files": {"type": "dict", "required": True, "no_log": False},
    "own_approver": {"type": "bool", "default": False},
    "architecture": {"type": "str", "choices": ["x86_64", "aarch64", "ppc64le", "s390x"], "default": "x86_64"},
    "stream": {"type": "str"},
    "mirror": {"type": "str"},
    "cluster": {
        "type": "dict",
        "default": {},
        "options": {
            "name": {"type": "str", "default": ""},
            "answers": {"type": "bool", "default": False},
            "infrastructure": {"type": "str", "default": ""},
            "bootstrapped": {"type": "bool", "default": False},
            "installed": {"type": "bool", "default": False},
            "written": {"type": "list", "elements": "str", "default": []},
        },
    },
    "adopt": {"type": "bool", "default": False},
    "regenerate": {"type": "bool", "default": False},
    "regenerate_named": {"type": "list", "elements": "str", "default": []},
    "margin": {"type": "float"},
    "timeout": {"type": "float", "default": 1800},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    return openshift_install.run(params, datetime.datetime.now(datetime.UTC), context.check_mode)


def main() -> None:
    run_module(ARGUMENT_SPEC, operation, cluster=False, supports_check_mode=True)


if __name__ == "__main__":
    main()
