# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values from outside that Ansible must never evaluate as templates, and texts of this collection that it must."""

from __future__ import annotations

import re
import typing as t

try:
    # Since core 2.19 only trusted strings are templates.
    from ansible.template import is_trusted_as_template, trust_as_template
except ImportError:
    is_trusted_as_template = trust_as_template = None

#: Characters that every template contains. Core 2.18 and older write every marked string as {"__ansible_unsafe": …} into `ansible-inventory --list`,
#: which readers of that output must handle, so only strings that need it are marked.
_SUSPICIOUS = re.compile("[{}%]")


def template(text: str) -> str:
    """The text as a template."""
    return text if trust_as_template is None else t.cast("str", trust_as_template(text))


def is_trusted(text: str) -> bool:
    """Whether Ansible evaluates the text, if it is a template."""
    if is_trusted_as_template is None:
        return not hasattr(text, "__UNSAFE__")
    return t.cast("bool", is_trusted_as_template(text))


def untemplated(value: t.Any) -> t.Any:
    """The value, plain data, in which every string that could be a template is marked as unsafe if this version of core needs that."""
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
