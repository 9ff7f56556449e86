# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the filters of host roles share: which functions compute for which role, and errors as Ansible tells them."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _computing
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import installed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import role as dns_pxe
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import role as load_balancer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import role as node_runtime

_ROLES = {"dns_pxe": dns_pxe, "load_balancer": load_balancer, "node_runtime": node_runtime}
#: With modules for firewalls and SELinux: preflight names those that a machine needs and that are missing.
_COLLECTIONS = ("ansible.posix", "community.general")


def computed(
    name: str, role: str, what: str, printed: str, settings: dict[str, t.Any], *given: t.Any
) -> dict[str, t.Any]:
    """What a function of the role's module `role` makes of a look and of what else was given. name: the filter. what: the function.

    Raises AnsibleFilterError for another role, for a look that did not come to its end, and with the sentences of a HwaccelError.
    """
    compute = getattr(_ROLES.get(role), what, None)
    if compute is None:
        known = ", ".join(one for one, module in _ROLES.items() if hasattr(module, what))
        raise AnsibleFilterError(f"hwaccel.gpu.{name} knows no role {role!r}: give one of {known}")
    settings = {**settings, "collections": installed(*_COLLECTIONS)}
    return t.cast("dict[str, t.Any]", _computing.computed(name, lambda: compute(printed, settings, *given)))
