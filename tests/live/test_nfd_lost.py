# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers are placed by labels of Node Feature Discovery and outlive whatever happens to it.

Runtime: none of its own; it reads what `life` left.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.support.life import Life


def test_no_driver_pod_goes_with_workers_master_or_namespace_of_nfd(life: Life) -> None:
    before = life.drivers["before"]
    assert sorted(before) == ["bad-0", "gpu-0", "gpu-1", "late-0"]
    assert life.drivers == dict.fromkeys(
        ("before", "workers_rolled", "master_restarted", "namespace_lost", "mended"), before
    )
