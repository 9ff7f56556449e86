#!/usr/bin/python
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: openshift_archive
version_added: 0.2.0
short_description: Move the folder of an OpenShift installation to a backup
description:
  - Moves the folder in which M(hwaccel.gpu.openshift_install) has created the files of an installation, and the record beside it, to C(<path>.bak-<time>).
    Nothing is deleted, because the folder has the keys of the cluster. The backup has mode 0700.
  - It works under the lock of M(hwaccel.gpu.openshift_install). A folder in which C(openshift-install) has written nothing is refused, and so is one of another
    cluster than the one that answers.
  - Nothing is moved if there is neither a folder nor a record.
author:
  - hwaccel.gpu contributors (@hwaccel)
options:
  path:
    description: Absolute path of the folder.
    type: path
    required: true
  infrastructure:
    description: C(status.infrastructureName) of the cluster that answers under its name. Empty if none does.
    type: str
    default: ""
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
  - module: hwaccel.gpu.openshift_install
"""

EXAMPLES = r"""
- name: Move the files of a cluster that was removed
  hwaccel.gpu.openshift_archive:
    path: /srv/installations/dgxpod
"""

RETURN = r"""
path:
  description: The folder.
  returned: success
  type: str
present:
  description: Whether there was a folder, or a record of one.
  returned: success
  type: bool
backup:
  description: Where it is now, empty in check mode, or if nothing was moved, or only a record.
  returned: success
  type: str
  sample: /srv/installations/dgxpod.bak-20261130T120000Z
"""

import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.values import shown
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import openshift_archive

ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "required": True},
    "infrastructure": {"type": "str", "default": ""},
}


def operation(params: dict[str, t.Any], context: Context) -> Outcome:
    path = pathlib.Path(params["path"])
    if not path.is_absolute():
        why = "it would depend on where the task runs"
        raise HwaccelError(f"{shown(params['path'])} is no absolute path", "path", why, "begin it with /")
    return openshift_archive.run(path, params.get("infrastructure") or "", check_mode=context.check_mode)


def main() -> None:
    run_module(ARGUMENT_SPEC, operation, cluster=False, supports_check_mode=True)


if __name__ == "__main__":
    main()
