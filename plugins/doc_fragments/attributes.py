# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules of this collection promise about check mode, diff mode and where they run."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and return what would change, without changing anything.
  diff_mode:
    description: Returns what has changed, or in check mode would change, when run with C(--diff). Secrets are removed.
  platform:
    description: Operating systems that the module runs on.
    platforms: posix
    support: full
  idempotent:
    description: Run again with the same options and no change from elsewhere, the module changes nothing and says so.
"""

    INFO_MODULE = r"""
options: {}
attributes:
  check_mode:
    support: full
    description: Can run in check mode, which makes no difference because the module only reads.
  diff_mode:
    support: N/A
    description: Returns what has changed when run with C(--diff).
  platform:
    description: Operating systems that the module runs on.
    platforms: posix
    support: full
  idempotent:
    support: full
    description: Run again with the same options and no change from elsewhere, the module changes nothing and says so.
"""

    CLUSTER_GROUP = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/hwaccel.gpu.cluster) in C(module_defaults) to set the connection options of all modules at once.
    support: full
    membership:
      - hwaccel.gpu.cluster
notes:
  - The module runs on the host of the task, which for a cluster is the controller (connection C(local)) or a bastion.
  - Connection options are set once for all modules with C(module_defaults) of the group C(hwaccel.gpu.cluster).
"""
