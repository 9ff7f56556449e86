# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents without their secrets, for differences: each by its hash, so that a change shows. Pure.

What is a secret is decided as for the record of an installation. Contents of files are among them, in data URLs, units and ConfigMaps: users have put
passwords and private keys there.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import inputs


def redacted(document: t.Any, salt: str, hidden: bool = False) -> t.Any:
    """salt: of findings.Site. hidden: whether no value of it is shown."""
    if isinstance(document, c.Mapping):
        shown = inputs.shown_keys(document)
        return {
            name: redacted(
                value, salt, hidden or inputs.is_secret_key(str(name)) or (shown is not None and name not in shown)
            )
            for name, value in document.items()
        }
    if isinstance(document, (list, tuple)):
        return [redacted(one, salt, hidden) for one in document]
    if document in (None, "") or isinstance(document, bool) or not (hidden or inputs.is_hidden(document)):
        return document
    hashed = inputs.shown_hash(document, salt)
    address = isinstance(document, str) and "\n" not in document and credentials.in_value(document)
    return f"{credentials.redacted_value(document)} ({hashed})" if address and not hidden else hashed
