# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster is the one that the inventory names."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault


def other_cluster(observed: str, expected: str) -> list[Fault]:
    """Uids of kube-system. observed: "" if it cannot be read, which is an error. expected: "" if the inventory names none."""
    if not expected or expected == observed:
        return []
    if not observed:
        why = f"the uid of kube-system cannot be read, but hwaccel_cluster_uid is {expected}"
        next_step = "allow the run to get the namespace kube-system, or unset hwaccel_cluster_uid"
        return [Fault("it cannot be verified that this is the cluster in the inventory", "", why, next_step)]
    why = f"the uid of kube-system is {observed}, hwaccel_cluster_uid is {expected}"
    return [
        Fault(
            "this is not the cluster in the inventory",
            "",
            why,
            "correct the connection, or hwaccel_cluster_uid",
        )
    ]
