# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by filters of host roles: errors in Ansible's format, and results that are not templates.

These filters import a role's package when they are called: Ansible imports all filters of a collection in every run, also in those without machines.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables

T = t.TypeVar("T")


def of_role(name: str, role: str, choices: c.Mapping[str, T]) -> T:
    """The implementation of a filter for a role. name: the filter. Raises AnsibleFilterError with the supported roles."""
    if role not in choices:
        raise AnsibleFilterError(f"hwaccel.gpu.{name} does not support role {role!r}: set one of {', '.join(choices)}")
    return choices[role]


def computed(name: str, compute: t.Callable[..., t.Any], *given: t.Any) -> t.Any:
    """The result of compute for what is given. name: the filter. Output of machines, BMCs and logs is never a template.

    compute gets plain data: Ansible's own types know their origin, which makes copies of them twenty times as slow, and YAML has no form for them.
    Raises AnsibleFilterError for invalid input, and with the message of a HwaccelError.
    """
    try:
        return wrap_var(compute(*_variables.plain(given)))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise AnsibleFilterError(f"hwaccel.gpu.{name} cannot read its input: {type(error).__name__} {error}") from error
    except HwaccelError as error:
        raise AnsibleFilterError(str(error)) from error
