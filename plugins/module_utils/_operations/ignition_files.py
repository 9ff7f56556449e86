# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ignition files on this host, and what the module ignition_info returns of them."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import os
import stat
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import ignition, lifetimes, strict_json
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.certificates import Certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import Clock

_WHAT = "the ignition file cannot be read"


def run(paths: c.Sequence[str], now: datetime.datetime) -> Outcome:
    """What the files contain, in the order of their paths. A file that cannot be read fails the task, and the others are returned nevertheless.

    Raises HwaccelError if there are no paths.
    """
    if not paths:
        raise HwaccelError("there is no ignition file to read", "path", "it is empty", "name a file")
    files: list[dict[str, t.Any]] = []
    faults: list[Fault] = []
    for path in dict.fromkeys(paths):
        try:
            found = ignition.read(content(path), path)
        except HwaccelError as error:
            faults += error.faults
        else:
            files.append({"path": path, **_shown(found, now)})
    return Outcome(values={"files": files}, failure=ManyFaults(faults) if faults else None)


def content(path: str) -> bytes:
    """Of a regular file, up to one byte more than an ignition file may have. Raises HwaccelError."""
    if not path.strip():
        raise HwaccelError(_WHAT, "path", "a path is empty", "name a file")
    try:
        # A pipe without a writer would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(strict_json.LARGEST + 1)
        why, next_step = "it is not a regular file", "name a file"
    except (OSError, ValueError) as error:
        why = str(getattr(error, "strerror", "")) or "it is not a path"
        next_step = "correct the path, or run the task as a user who can read the file"
    raise HwaccelError(_WHAT, path, why, next_step)


def _shown(found: ignition.Ignition, now: datetime.datetime) -> dict[str, t.Any]:
    return {
        "version": found.version,
        "size": found.size,
        "sha256": found.sha256,
        "valid": not found.faults,
        "problems": [str(fault) for fault in found.faults],
        "warnings": list(found.warnings),
        "clock": _clock(found.clock, now) if found.clock else None,
        "certificates": [_certificate(one) for one in found.certificates],
        "sources": [dataclasses.asdict(one) for one in found.sources],
        "users": [dataclasses.asdict(one) for one in found.users],
        "units": [dataclasses.asdict(one) for one in found.units],
        "contents": [dataclasses.asdict(one) for one in found.files],
        "private_keys": list(found.private_keys),
        "pull_secrets": list(found.pull_secrets),
    }


def _clock(clock: Clock, now: datetime.datetime) -> dict[str, t.Any]:
    return {
        "not_before": lifetimes.moment(clock.not_before),
        "not_after": lifetimes.moment(clock.not_after),
        "seconds_left": int((clock.not_after - now).total_seconds()),
        "expired": clock.not_after <= now,
        "first": _certificate(clock.expires),
        "certificates": clock.certificates,
    }


def _certificate(certificate: Certificate) -> dict[str, t.Any]:
    return dataclasses.asdict(certificate) | {
        "not_before": lifetimes.moment(certificate.not_before),
        "not_after": lifetimes.moment(certificate.not_after),
    }
