# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in the public variables of a cluster, from the variables as Ansible has them."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import judge, on_cluster, table


def judged(
    stages: c.Sequence[str],
    variables: c.Mapping[str, t.Any],
    template: c.Callable[[t.Any], t.Any],
    fleet: dict[str, t.Any] | None = None,
) -> list[dict[str, t.Any]]:
    """Errors in the common variables and those of the roles. stages: their roles; if empty, those that the variables request.

    template: evaluates a value. fleet: result of node_info; if given, only errors that need the cluster are reported. Raises ValueError for
    an unknown role.
    """

    def given(names: c.Iterable[str]) -> dict[str, t.Any]:
        """Values as modules would get them: plain and evaluated."""
        return {name: _variables.plain(template(variables[name])) for name in names if name in variables}

    taken = [str(stage) for stage in stages] or judge.taken(given(["hwaccel_stages"]).get("hwaccel_stages"))
    if unknown := [stage for stage in taken if stage not in table.ROLES]:
        raise ValueError(f"there is no role {', '.join(unknown)}. Next: use some of {', '.join(table.ROLES)}")
    values = given(table.names(taken))
    return [one.as_dict() for one in (on_cluster.judge(values, fleet) if fleet else judge.judge(values, taken))]
