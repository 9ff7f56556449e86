# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a request is sent again, and after how long. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import email.utils
import enum
import random


class Repeat(enum.Enum):
    """What may be sent again after a failure that leaves open whether the server has carried it out."""

    #: Reads, server-side apply, deletes of one uid, dry runs: twice is the same as once.
    ALWAYS = "always"
    #: All others: only where the server cannot have begun with it.
    UNSENT = "unsent"


class Failure(enum.Enum):
    """How one attempt failed."""

    #: No connection came about, or the server refused before it looked (429).
    BEFORE = "before"
    #: The connection broke, timed out or answered 5xx: the request may have been carried out.
    UNKNOWN = "unknown"
    #: It will fail again.
    FINAL = "final"


@dataclasses.dataclass(frozen=True)
class Policy:
    """Exponential back-off with jitter, bounded in number and in time."""

    attempts: int = 6
    first: float = 0.25
    longest: float = 8.0
    #: A Retry-After beyond this is not waited for.
    longest_requested: float = 60.0
    #: Seconds after which no further attempt begins.
    patience: float = 90.0
    #: The same where no attempt was answered at all. Shorter for a server that nobody has met: other clusters of the run wait for its preflight.
    silence: float = 15.0

    def delay(
        self,
        attempt: int,
        retry_after: float | None,
        spent: float,
        jitter: c.Callable[[], float] = random.random,
        *,
        answered: bool = True,
    ) -> float | None:
        """Seconds before attempt + 1 (the first attempt is 1), None where there is none."""
        if attempt >= self.attempts:
            return None
        own = min(self.first * 2 ** (attempt - 1), self.longest) * (0.5 + jitter() / 2)
        if retry_after is not None and retry_after > self.longest_requested:
            return None
        wait = own if retry_after is None else max(own, retry_after)
        return wait if spent + wait <= (self.patience if answered else min(self.patience, self.silence)) else None


def lasting(seconds: float) -> Policy:
    """Bounded by time alone."""
    return Policy(attempts=10**6, patience=seconds, silence=seconds)


#: For a server that has answered before: it is being restarted or upgraded, which takes a minute, not misspelt.
PATIENT = lasting(60.0)


def may_repeat(repeat: Repeat, failure: Failure) -> bool:
    return failure is Failure.BEFORE or (failure is Failure.UNKNOWN and repeat is Repeat.ALWAYS)


def of_status(status: int) -> Failure | None:
    """None: an answer, not a failure of the way to it."""
    if status == 429:
        return Failure.BEFORE
    if status in (500, 502, 503, 504):
        return Failure.UNKNOWN
    return None


def retry_after(header: str | None, date: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date. date: the answer's Date, by whose clock the other one is written."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    until, now = moment(header), moment(date)
    return None if until is None or now is None else max(0.0, until - now)


def moment(header: str | None) -> float | None:
    """Seconds since 1970 of a date as HTTP writes it (RFC 9110, 5.6.7), None where it is none."""
    try:
        return email.utils.parsedate_to_datetime(header or "").timestamp()
    except (ValueError, TypeError):
        return None
