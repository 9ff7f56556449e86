# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files from the templates of the host roles: Python has the model, a template the form that an operator knows.

The lookup `template` is not used: a plan compares the texts with what is on the machine, so it has to render them itself, and the same in check mode and in
unit tests; besides, the lookup copies all variables of a host for each file.
"""

from __future__ import annotations

import functools
import ipaddress
import pathlib
import types

import jinja2

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

_ROLES = pathlib.Path(__file__).resolve().parents[3] / "roles"


def render(role: str, name: str, /, **model: object) -> str:
    """The text that a template of a role makes of a model, whose values are finished: a template has sections, loops and conditions and computes nothing.

    name: of the file in the role's folder of templates, without .j2.
    Raises HwaccelError, with the template and the line, where the template is missing or broken or names a value that is not in the model.
    """
    path = f"{role}/templates/{name}.j2"
    try:
        return _environment().get_template(path).render(model)
    except (jinja2.TemplateError, TypeError) as error:
        where, next_step = _place(error, path), "report it: the template is a part of the collection"
        raise HwaccelError("a configuration file cannot be rendered", where, str(error), next_step) from error


@functools.cache
def _environment() -> jinja2.Environment:
    """Once for each process: it keeps the templates that it has compiled."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_ROLES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    made.filters["bracketed"] = bracketed
    return made


def bracketed(address: object) -> str:
    """An IP address as it stands before a port: that of IPv6 in brackets. Raises ValueError for anything else."""
    found = ipaddress.ip_address(str(address))
    return f"[{address}]" if found.version == 6 else str(address)


def _place(error: Exception, path: str) -> str:
    """The innermost template that an error comes from, and the line in it. path: of the template that was to be rendered."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"roles/{error.name or path}, line {error.lineno}"
    found, trace = f"roles/{path}", error.__traceback__
    while isinstance(trace, types.TracebackType):
        # Jinja gives the frames of a template its file and its lines.
        file = pathlib.Path(trace.tb_frame.f_code.co_filename)
        if file.suffix == ".j2" and file.is_relative_to(_ROLES):
            found = f"roles/{file.relative_to(_ROLES)}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found
