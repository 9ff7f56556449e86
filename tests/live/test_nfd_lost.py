# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of Node Feature Discovery schedule the drivers, which nevertheless keep running when it is disturbed.

Runtime: none; it reads the results of `lifecycle`.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.support.life import Lifecycle


def test_no_driver_pod_ends_with_workers_master_or_namespace_of_nfd(lifecycle: Lifecycle) -> None:
    before = lifecycle.drivers["before"]
    assert sorted(before) == ["bad-0", "gpu-0", "gpu-1", "late-0"]
    assert lifecycle.drivers == dict.fromkeys(
        ("before", "workers_rolled_out", "master_restarted", "namespace_deleted", "repaired"), before
    )
