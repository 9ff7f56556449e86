# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values from outside that Ansible must never take for templates."""

from __future__ import annotations

import re
import typing as t

try:
    # Since core 2.19 only what is marked as trusted is a template.
    from ansible.template import trust_as_template
except ImportError:
    trust_as_template = None

#: What a template cannot be without. Core 2.18 and older write every marked text as {"__ansible_unsafe": …} into `ansible-inventory --list`,
#: which who reads it must know, so only those are marked that need it.
_SUSPICIOUS = re.compile("[{}%]")


def untemplated(value: t.Any) -> t.Any:
    """The value, plain data, with every text in it that could be a template marked as none where this core needs that."""
    if trust_as_template is not None:
        return value
    if isinstance(value, dict):
        return {untemplated(key): untemplated(item) for key, item in value.items()}
    if isinstance(value, list):
        return [untemplated(item) for item in value]
    if isinstance(value, str) and _SUSPICIOUS.search(value):
        from ansible.utils.unsafe_proxy import wrap_var

        return wrap_var(value)
    return value
