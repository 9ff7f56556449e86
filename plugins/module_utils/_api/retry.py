# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides whether and after how long a request is retried. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import email.utils
import enum
import random


class Repeat(enum.Enum):
    """Which requests may be retried if it is unknown whether the server has carried them out."""

    #: Reads, server-side apply, deletes of one uid, dry runs: repeating them has no further effect.
    ALWAYS = "always"
    #: All others are retried only if the server cannot have started on them.
    UNSENT = "unsent"


class Failure(enum.Enum):
    """How one attempt failed."""

    #: There was no connection, or the server refused the request before reading it (429).
    BEFORE = "before"
    #: The connection broke, timed out or answered 5xx: the request may have been carried out.
    UNKNOWN = "unknown"
    #: A retry would fail as well.
    FINAL = "final"


@dataclasses.dataclass(frozen=True)
class Policy:
    """Exponential back-off with jitter, limited in number of attempts and in time."""

    attempts: int = 6
    first: float = 0.25
    longest: float = 8.0
    #: A longer Retry-After is not waited for.
    longest_requested: float = 60.0
    #: Seconds after which no further attempt is made.
    patience: float = 90.0
    #: The same if no attempt was answered. It is shorter for a server that has never answered, because other clusters of the run wait for its preflight.
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
        """Seconds before attempt + 1 (the first attempt is 1), None if there is no further attempt."""
        if attempt >= self.attempts:
            return None
        own = min(self.first * 2 ** (attempt - 1), self.longest) * (0.5 + jitter() / 2)
        if retry_after is not None and retry_after > self.longest_requested:
            return None
        wait = own if retry_after is None else max(own, retry_after)
        return wait if spent + wait <= (self.patience if answered else min(self.patience, self.silence)) else None


def lasting(seconds: float) -> Policy:
    """Limited by time alone."""
    return Policy(attempts=10**6, patience=seconds, silence=seconds)


#: For a server that has answered before: its address is correct, and a restart or upgrade takes a minute.
PATIENT = lasting(60.0)


def may_repeat(repeat: Repeat, failure: Failure) -> bool:
    return failure is Failure.BEFORE or (failure is Failure.UNKNOWN and repeat is Repeat.ALWAYS)


def of_status(status: int) -> Failure | None:
    """None if this is an answer and not a connection failure."""
    if status == 429:
        return Failure.BEFORE
    if status in (500, 502, 503, 504):
        return Failure.UNKNOWN
    return None


def retry_after(header: str | None, date: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date. date: the answer's Date, which is by the same clock."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    until, now = moment(header), moment(date)
    return None if until is None or now is None else max(0.0, until - now)


def moment(header: str | None) -> float | None:
    """Seconds since 1970 of an HTTP date (RFC 9110, 5.6.7), None if it is not a date."""
    try:
        return email.utils.parsedate_to_datetime(header or "").timestamp()
    except (ValueError, TypeError):
        return None
