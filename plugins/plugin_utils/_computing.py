# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What filters of host roles share: errors as Ansible tells them, and results that are no templates."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

T = t.TypeVar("T")


def of_role(name: str, role: str, choices: c.Mapping[str, T]) -> T:
    """What a filter has for a role. name: the filter. Raises AnsibleFilterError that names the roles it knows."""
    if role not in choices:
        raise AnsibleFilterError(f"hwaccel.gpu.{name} knows no role {role!r}: give one of {', '.join(choices)}")
    return choices[role]


def computed(name: str, compute: t.Callable[[], t.Any]) -> t.Any:
    """What compute returns. name: the filter. What machines, BMCs and logs say is never a template.

    Raises AnsibleFilterError for what cannot be read, and with the sentences of a HwaccelError.
    """
    try:
        return wrap_var(compute())
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise AnsibleFilterError(
            f"hwaccel.gpu.{name} cannot read what it was given: {type(error).__name__} {error}"
        ) from error
    except HwaccelError as error:
        raise AnsibleFilterError(str(error)) from error
