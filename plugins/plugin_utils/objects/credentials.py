# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords of proxies belong in a Secret, because everyone who may read pods can read their environment."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: Settings that become environment variables, and how to use a Secret instead.
_NEXT_STEPS = {
    "build": "put it into a Secret of the namespace (kubectl create secret generic proxy --from-literal=HTTPS_PROXY=…), "
    "and set its name instead: driver_build: {proxy_secret: proxy}",
    "toolkit_env": "put it into a Secret of the namespace, and refer to it with driver_patches",
}


def taken_out(settings: c.Mapping[str, t.Any]) -> tuple[dict[str, t.Any], list[Fault]]:
    """Settings without values that contain user and password in a URL, and an error for each. The errors do not contain the values."""
    kept, faults = dict(settings), []
    for setting, next_step in _NEXT_STEPS.items():
        values = settings.get(setting) or {}
        secret = sorted(key for key, value in values.items() if credentials.in_url(str(value)))
        kept[setting] = {key: value for key, value in values.items() if key not in secret}
        why = "it would be in objects and rendered files, and visible to everyone who may read pods"
        faults += [Fault(f"{key} contains a user or password", f"driver_{setting}", why, next_step) for key in secret]
    return kept, faults
