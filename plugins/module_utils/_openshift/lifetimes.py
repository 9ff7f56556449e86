# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long machines can be installed with the files of an installation. Pure.

Several certificates in a bootstrap file are valid for one day from its creation. `openshift-install` judges those in one folder, and refuses to load a file in
which one of them has expired (pkg/asset/ignition/bootstrap/common.go); so does this.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import posixpath

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.certificates import Certificate

_FOLDER, _SUFFIX = "/opt/openshift/tls", ".crt"


@dataclasses.dataclass(frozen=True)
class Clock:
    """expires: the certificate that ends first; starts: the one whose time begins last; certificates: how many were judged."""

    expires: Certificate
    starts: Certificate
    certificates: int

    @property
    def not_after(self) -> datetime.datetime:
        return self.expires.not_after

    @property
    def not_before(self) -> datetime.datetime:
        return self.starts.not_before

    @property
    def lifetime(self) -> datetime.timedelta:
        """Of the certificate that ends first: a day, or two hours with the feature gate ShortCertRotation."""
        return self.expires.not_after - self.expires.not_before


def judged(path: str) -> bool:
    """Whether certificates of this file of a machine count."""
    return posixpath.dirname(path) == _FOLDER and path.endswith(_SUFFIX)


def clock(found: c.Iterable[Certificate]) -> Clock | None:
    """None if no certificate counts, as in the files of masters and workers, which hold none that ends before ten years."""
    counted = [one for one in found if judged(one.path)]
    if not counted:
        return None
    return Clock(
        min(counted, key=lambda one: one.not_after), max(counted, key=lambda one: one.not_before), len(counted)
    )


def moment(time: datetime.datetime) -> str:
    """In ISO 8601 and UTC, as Kubernetes writes it: 2026-11-30T06:00:00Z"""
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(length: datetime.timedelta) -> str:
    """A length of time for messages, in its two largest units: "3 h 10 min"."""
    minutes = max(round(length.total_seconds() / 60), 0)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [f"{days} d"] * bool(days) + [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return " ".join(units[:2]) or "0 min"
