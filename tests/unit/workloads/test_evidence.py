# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The warning event of an object that is shown as the cause."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.evidence import newest

FAILED = {
    "reason": "FailedCreatePodSandBox",
    "message": 'no runtime for "nvidia" is configured',
    "lastTimestamp": "2026-11-23T00:21:26Z",
}
OLDER = {"reason": "FailedMount", "message": "not found", "lastTimestamp": "2026-11-23T00:21:00Z"}


@pytest.mark.parametrize("reason", ["MissingClusterDNS", "DNSConfigForming"])
@pytest.mark.parametrize("second", ["26", "27"])
def test_dns_warnings_of_the_kubelet_do_not_hide_the_cause(reason: str, second: str) -> None:
    """A real kubelet reports them with each attempt, in the same second or later."""
    beside = {
        "reason": reason,
        "message": "Nameserver limits were exceeded",
        "lastTimestamp": f"2026-11-23T00:21:{second}Z",
    }
    assert newest([OLDER, beside, FAILED]) == 'FailedCreatePodSandBox: no runtime for "nvidia" is configured'
    assert newest([beside]) == ""
