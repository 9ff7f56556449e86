# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files from the templates of the host roles: Python computes the model, a template has the form that operators know.

The lookup `template` is not used, because a plan compares texts with the files on the machine, also in check mode and in unit tests. The lookup also copies
all variables of a host for each file.
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
    """Renders a template of a role. The values of the model are final: a template has sections, loops and conditions, but computes nothing.

    name: of the file in the role's templates folder, without .j2.
    Raises HwaccelError, with the template and the line, if the template is missing or not valid, or uses a value that is not in the model.
    """
    path = f"{role}/templates/{name}.j2"
    try:
        return _environment().get_template(path).render(model)
    except (jinja2.TemplateError, TypeError) as error:
        where, next_step = _place(error, path), "report this as a bug of the collection"
        raise HwaccelError("a configuration file cannot be rendered", where, str(error), next_step) from error


def program(role: str, name: str) -> str:
    """Text of a program in the role's files folder. name: of the file. Raises OSError if it does not exist."""
    return (_ROLES / role / "files" / name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    """One for each process, because it caches compiled templates."""
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
    """An IP address in the form before a port: IPv6 in brackets. Raises ValueError for anything else."""
    found = ipaddress.ip_address(str(address))
    return f"[{address}]" if found.version == 6 else str(address)


def _place(error: Exception, path: str) -> str:
    """The innermost template of an error, and its line. path: of the rendered template."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"roles/{error.name or path}, line {error.lineno}"
    found, trace = f"roles/{path}", error.__traceback__
    while isinstance(trace, types.TracebackType):
        # Jinja sets file and line of the template in its frames.
        file = pathlib.Path(trace.tb_frame.f_code.co_filename)
        if file.suffix == ".j2" and file.is_relative_to(_ROLES):
            found = f"roles/{file.relative_to(_ROLES)}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found
