# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Caches for work that a playbook repeats; sitecustomize.py describes the reason.

The key of cached code of templates and plugins contains everything that determines it. Templates are cached only if ansible-core disables the
folding of constants in Jinja (2.19), so that the code contains no results of filters.
"""

from __future__ import annotations

import importlib.machinery
import types
import typing as t

#: Returns the cached code of a key, or the result of the function.
Kept = t.Callable[[bytes, t.Callable[[], types.CodeType]], types.CodeType]


def templates(bits: t.Any, kept: Kept) -> None:
    """ansible._internal._templating._jinja_bits: because each task is a process, a run of site compiles 1,400 templates, of which only 250 differ."""
    from ansible.release import __version__
    from jinja2 import __version__ as jinja

    own = bits.AnsibleEnvironment.compile

    def key(environment: t.Any, *given: object) -> bytes:
        """The source, and everything that affects its compilation: delimiters, extensions, escapes and releases."""
        settings = [getattr(environment, name) for name in bits._TEMPLATE_OVERRIDE_FIELD_NAMES]
        read = (
            sorted(environment.extensions),
            bits._TemplateCompileContext.current(optional=True),
            bits._TemplateConfig.allow_embedded_templates,
        )
        return repr((given, settings, read, jinja, __version__)).encode(errors="surrogatepass")

    def compile_once(
        self: t.Any, source: t.Any, name: str | None = None, filename: str | None = None, *others: t.Any, **named: t.Any
    ) -> t.Any:
        def make() -> t.Any:
            return own(self, source, name, filename, *others, **named)

        if others or named or not isinstance(source, str) or self.optimized or self._debuggable_template_source:
            return make()
        return kept(key(self, source, name, filename), make)

    bits.AnsibleEnvironment.compile = compile_once


def plugins(finder: t.Any, kept: Kept) -> None:
    """ansible-core's loader of collections, which compiles their plugins in each process without a cache."""

    def compile_once(source: str | bytes, filename: str, **how: t.Any) -> types.CodeType:
        text = source if isinstance(source, bytes) else source.encode()
        return kept(f"{filename}\0{how}\0".encode() + text, lambda: compile(source, filename, **how))

    finder.compile = compile_once


def files(loader: t.Any, _kept: Kept) -> None:
    """ansible.parsing.dataloader: ansible-core 2.19 reads a play's vars_files for each task, 2.16 once per run. No run of these tests changes them."""
    own = loader.DataLoader.load_from_file

    def load_once(self: t.Any, file_name: str, cache: t.Any = "all", **others: t.Any) -> t.Any:
        return own(self, file_name, cache="all" if cache == "vaulted" else cache, **others)

    loader.DataLoader.load_from_file = load_once


def lookups(loader: t.Any, _kept: Kept) -> None:
    """ansible.plugins.loader: the lookup "template" makes a deep copy of all variables to add five. None of our templates changes a variable."""
    own = loader.PluginLoader._load_module_source

    def load_and_change(self: t.Any, *given: t.Any, **named: t.Any) -> t.Any:
        module = own(self, *given, **named)
        if module.__name__ == "ansible.plugins.lookup.template":
            module.deepcopy = dict
        return module

    loader.PluginLoader._load_module_source = load_and_change


CHANGES: dict[str, t.Callable[[t.Any, Kept], None]] = {
    "ansible._internal._templating._jinja_bits": templates,
    "ansible.parsing.dataloader": files,
    "ansible.plugins.loader": lookups,
    "ansible.utils.collection_loader._collection_finder": plugins,
}


class Finder:
    """Loads these modules, and changes them afterwards."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def find_spec(self, name: str, path: t.Any = None, target: t.Any = None) -> importlib.machinery.ModuleSpec | None:
        if name not in CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_change(module: types.ModuleType) -> None:
                execute(module)
                CHANGES[name](module, self._kept)

            spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec
