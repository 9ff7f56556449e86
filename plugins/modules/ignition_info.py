#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: ignition_info
version_added: 0.2.0
short_description: Report what ignition files contain, and how long they can be used
description:
  - Reads ignition files of the specifications 3.0 to 3.6 on the host of the task, such as those that C(openshift-install create ignition-configs) writes, and
    reports their certificates, the time at which the first of them expires, remote sources, users, units and files, and whether they hold private keys or a
    pull secret.
  - A bootstrap file of OpenShift can be used for one day only, because of its certificates. RV(files[].clock) is read from these, and not from the times of
    the file, which change when it is copied.
  - Nothing in the result is a secret. Contents, keys, hashes of passwords, headers, and credentials and queries of URLs are never returned.
  - A file that is damaged, or would need too much memory, fails the task with each place and the cause. What Ignition would refuse in a file that can be read
    is in RV(files[].problems).
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  path:
    description:
      - The files, of at most 32 MiB each.
      - Bootstrap files have mode 0600, so that the task runs as their owner.
    type: list
    elements: path
    required: true
    aliases: [paths]
requirements:
  - cryptography >= 42.0, for files with certificates
extends_documentation_fragment:
  - hwaccel.gpu.attributes.info_module
seealso:
  - name: Ignition configuration specification
    description: Fields of ignition files.
    link: https://coreos.github.io/ignition/specs/
"""

EXAMPLES = r"""
- name: Report how long machines can be installed with the bootstrap file
  hwaccel.gpu.ignition_info:
    path: /srv/installations/production/bootstrap.ign
  register: ignition

- name: Fail if less than an hour is left
  ansible.builtin.assert:
    that: ignition.files[0].clock.seconds_left > 3600
    fail_msg: "{{ ignition.files[0].clock.first.subject }} expires at {{ ignition.files[0].clock.not_after }}"

- name: Verify that the files of masters and workers hold no private keys
  hwaccel.gpu.ignition_info:
    path:
      - /srv/installations/production/master.ign
      - /srv/installations/production/worker.ign
  register: pointers
  failed_when: pointers is failed or pointers.files | selectattr('private_keys') | length > 0
"""

RETURN = r"""
files:
  description: What each file contains, in the order of O(path).
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: The file, as in O(path).
      type: str
    version:
      description: Version of the specification.
      type: str
      sample: 3.2.0
    size:
      description: Size of the file in bytes.
      type: int
    sha256:
      description: SHA-256 of the file.
      type: str
    valid:
      description: Whether Ignition would accept the file.
      type: bool
    problems:
      description: Why Ignition would refuse the file, each with its place and the next step.
      type: list
      elements: str
    warnings:
      description: What Ignition would ignore, such as misspelled fields.
      type: list
      elements: str
    clock:
      description: How long machines can be installed with the file, V(null) if it has no certificates in C(/opt/openshift/tls/*.crt).
      type: dict
      contains:
        not_before:
          description: The time from which all of them are valid, in UTC.
          type: str
          sample: "2026-11-30T06:00:00Z"
        not_after:
          description: The time at which the first of them expires, in UTC.
          type: str
        seconds_left:
          description: Seconds until then by the clock of the host, negative afterwards.
          type: int
        expired:
          description: Whether it has expired.
          type: bool
        first:
          description: The certificate that expires first, with the fields of RV(files[].certificates).
          type: dict
        certificates:
          description: Number of these certificates.
          type: int
    certificates:
      description: All certificates in PEM in the contents of the file.
      type: list
      elements: dict
      contains:
        path:
          description: File on the machine, or field of the ignition file, that contains it.
          type: str
        position:
          description: Its position among the certificates there, from 1.
          type: int
        subject:
          description: Its subject (RFC 4514).
          type: str
          sample: CN=kubelet-signer,OU=openshift
        role:
          description: Whether it signs others, V(signer), or not, V(leaf).
          type: str
        key:
          description: Algorithm and size of its key.
          type: str
          sample: RSA 2048
        not_before:
          description: Start of its validity, in UTC.
          type: str
        not_after:
          description: End of its validity, in UTC.
          type: str
    sources:
      description: What the machine reads from elsewhere.
      type: list
      elements: dict
      contains:
        field:
          description: Field of the ignition file.
          type: str
          sample: ignition.config.merge[0]
        url:
          description: The URL without credentials and query.
          type: str
    users:
      description: Users that are created or changed.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the user.
          type: str
        ssh_keys:
          description: Number of SSH keys with which the user can log in.
          type: int
        password:
          description: Whether the user has a password.
          type: bool
    units:
      description: Units of systemd.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the unit.
          type: str
        enabled:
          description: Whether it is enabled, V(null) if the file does not say so.
          type: bool
        masked:
          description: Whether it is masked.
          type: bool
        dropins:
          description: Names of its drop-ins.
          type: list
          elements: str
    contents:
      description: Files that are written.
      type: list
      elements: dict
      contains:
        path:
          description: Path on the machine.
          type: str
        mode:
          description: Its mode.
          type: str
          sample: "0600"
        size:
          description: Size in bytes of what the ignition file has of it, after decompression.
          type: int
        remote:
          description: Whether the machine reads it from elsewhere.
          type: bool
    private_keys:
      description: Files on the machine, or fields of the ignition file, with a private key, also inside a kubeconfig or a Secret.
      type: list
      elements: str
    pull_secrets:
      description: Files on the machine, or fields of the ignition file, with a pull secret.
      type: list
      elements: str
"""

import datetime

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import ignition_files

ARGUMENT_SPEC: dict = {"path": {"type": "list", "elements": "path", "required": True, "aliases": ["paths"]}}


def ignition_info(params: dict, _context: Context) -> Outcome:
    return ignition_files.run(params["path"], datetime.datetime.now(datetime.UTC))


def main() -> None:
    run_module(ARGUMENT_SPEC, ignition_info, cluster=False, supports_check_mode=True)


if __name__ == "__main__":
    main()
