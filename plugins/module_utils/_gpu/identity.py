# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster is the one that the inventory means."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault


def other_cluster(observed: str, expected: str) -> list[Fault]:
    """Uids of kube-system. seen: "" where it cannot be read, which proves nothing. wanted: "" where the inventory names none."""
    if not expected or expected == observed:
        return []
    if not observed:
        why = f"the uid of kube-system cannot be read, and hwaccel_cluster_uid says {expected}"
        next_step = "allow to get the namespace kube-system, or take hwaccel_cluster_uid out"
        return [Fault("nothing proves that this is the cluster that the inventory means", "", why, next_step)]
    why = f"the uid of kube-system is {observed}, hwaccel_cluster_uid says {expected}"
    return [
        Fault(
            "this is another cluster than the inventory means",
            "",
            why,
            "correct the connection, or hwaccel_cluster_uid",
        )
    ]
