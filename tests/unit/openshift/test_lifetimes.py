# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock of an installation: which certificates count, and which one ends first."""

from __future__ import annotations

import datetime

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import certificates, lifetimes
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i

HOUR = datetime.timedelta(hours=1)


def one(path: str, start: int = 0, end: int = 24, name: str = "a") -> certificates.Certificate:
    """start, end: in hours from now."""
    return certificates.Certificate(path, 1, f"CN={name}", "leaf", "RSA 2048", i.NOW + start * HOUR, i.NOW + end * HOUR)


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("/opt/openshift/tls/a.crt", True),
        ("/opt/openshift/tls/a.crt.bak", False),
        ("/opt/openshift/tls/below/a.crt", False),
        ("/opt/openshift/tls.crt", False),
        ("/etc/pki/a.crt", False),
    ],
)
def test_only_certificates_that_the_tool_judges_count(path: str, counts: bool) -> None:
    assert lifetimes.judged(path) is counts
    assert (lifetimes.clock([one(path)]) is not None) is counts


def test_the_first_end_and_the_last_start_count() -> None:
    tls = "/opt/openshift/tls"
    found = lifetimes.clock(
        [
            one(f"{tls}/a.crt", -2, 22, "a"),
            one(f"{tls}/b.crt", -1, 200, "b"),
            one(f"{tls}/c.crt", -3, 21, "c"),
            one("/d.crt", 5, 6, "d"),
        ]
    )
    assert found is not None
    assert (str(found.expires), found.not_after) == (f"CN=c ({tls}/c.crt)", i.NOW + 21 * HOUR)
    assert (str(found.starts), found.not_before) == (f"CN=b ({tls}/b.crt)", i.NOW - HOUR)
    assert (found.certificates, found.lifetime) == (3, 24 * HOUR)


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (0, "0 min"),
        (0.4, "0 min"),
        (59, "59 min"),
        (60, "1 h"),
        (190, "3 h 10 min"),
        (24 * 60 + 5, "1 d 5 min"),
        (25 * 60 + 5, "1 d 1 h"),
        (-5, "0 min"),
    ],
)
def test_spans_have_two_units(minutes: float, expected: str) -> None:
    assert lifetimes.span(datetime.timedelta(minutes=minutes)) == expected


def test_moments_are_in_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert lifetimes.moment(i.NOW.astimezone(zone)) == "2026-11-30T06:00:00Z"
