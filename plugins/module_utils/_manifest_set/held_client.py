# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of a run that holds a set."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.hold import Held
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client

#: Methods of a client that send nothing, or only read kinds.
_NO_REQUESTS = frozenset(("resource", "resource_by_group", "all_resources", "forget_discovery"))


class HeldClient:
    """A client that checks the hold before every request, so that a hold cannot expire unnoticed and nothing is written without it."""

    def __init__(self, client: Client, held: Held) -> None:
        self._client = client
        self._held = held

    def __getattr__(self, name: str) -> t.Any:
        method = getattr(self._client, name)
        if name in _NO_REQUESTS or not callable(method):
            return method

        def kept(*args: t.Any, **options: t.Any) -> t.Any:
            self._held.keep()
            return method(*args, **options)

        return kept
