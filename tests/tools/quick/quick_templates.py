# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the code that Jinja makes of Ansible's templates, by all that it follows from. For sitecustomize.py, which says why.

Only where ansible-core lets Jinja fold no constants (2.19 and newer): there nothing that a filter has answered is part of the code.
"""

from __future__ import annotations

import types
import typing as t

import jinja2
from ansible._internal._templating import _jinja_bits as bits
from ansible.release import __version__

_compile = bits.AnsibleEnvironment.compile


def _key(environment: t.Any, *given: object) -> bytes:
    """The source, and what changes how it is read: delimiters, extensions, escapes and the releases."""
    settings = [getattr(environment, name) for name in bits._TEMPLATE_OVERRIDE_FIELD_NAMES]
    read = (sorted(environment.extensions), bits._TemplateCompileContext.current(optional=True), bits._TemplateConfig.allow_embedded_templates)
    return repr((given, settings, read, jinja2.__version__, __version__)).encode()


def keep(kept: t.Callable[[bytes, t.Callable[[], types.CodeType]], types.CodeType]) -> None:
    """kept: the code that is known by a key, else what the function makes."""

    def compile_once(self: t.Any, source: t.Any, name: str | None = None, filename: str | None = None, *others: t.Any, **named: t.Any) -> t.Any:
        def make() -> t.Any:
            return _compile(self, source, name, filename, *others, **named)

        if others or named or not isinstance(source, str) or self.optimized or self._debuggable_template_source:
            return make()
        return kept(_key(self, source, name, filename), make)

    bits.AnsibleEnvironment.compile = compile_once
