# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes Pythons of test runs cheaper, and does nothing else: read by each that has this folder on its path.

Ansible sends a module as a zip archive, and Python keeps nothing of what it compiles from one: a third of what `file` or `stat` costs. Here it is
kept by its content, in a folder beside this file, as is what playbooks compile again and again (quick_playbooks.py): templates are a quarter of a worker's
time. And the cyclic garbage collector looks a hundred times less often, which is a tenth of a playbook's processor time. Tests of whole commands as users
have them (demo, molecule, site on other cores) run without.

HWACCEL_PACKED names a folder in which playbooks of the same collection, one after the other, keep the archives that they make of modules; ansible-core
keeps them for one run, and takes a third of a second for each.
"""

from __future__ import annotations

import _imp
import gc
import marshal
import os
import sys
import zipimport

# Each program that starts reads this: what it does not need is not imported, or costs as much as the rest of the start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable

#: Of Python: 700, each time that so many objects more have been made than have gone.
gc.set_threshold(70_000, 10, 10)

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compiled", sys.implementation.cache_tag)
_compile = zipimport._compile_source


def _kept(content: bytes, make: Callable[[], types.CodeType]) -> types.CodeType:
    """The code that was kept for this content, else what `make` makes, kept from now on."""
    place = os.path.join(KEPT, _imp.source_hash(0, content).hex())
    try:
        with open(place, "rb") as file:
            return marshal.load(file)
    except (OSError, EOFError, ValueError, TypeError):
        pass
    code = make()
    try:
        os.makedirs(KEPT, exist_ok=True)
        with open(f"{place}.{os.getpid()}", "wb") as file:
            marshal.dump(code, file)
        os.replace(f"{place}.{os.getpid()}", place)
    except OSError:
        pass
    return code


zipimport._compile_source = lambda pathname, source: _kept(source, lambda: _compile(pathname, source))


def _keep_archives() -> None:
    import tempfile

    make = tempfile.mkdtemp

    def make_with_archives(suffix: str | None = None, prefix: str | None = None, dir: str | None = None) -> str:
        """ansible-core's folder of one run (config/manager.py, resolve_path), in which executor/module_common.py has this one."""
        made = make(suffix, prefix, dir)
        if prefix == f"ansible-local-{os.getpid()}":
            os.symlink(os.environ["HWACCEL_PACKED"], os.path.join(made, "ansiballz_cache"))
        return made

    tempfile.mkdtemp = make_with_archives


# Modules that a playbook runs have its environment, and not its arguments.
if any(word.endswith("playbook") for word in sys.orig_argv[1:4]):
    import quick_playbooks

    sys.meta_path.insert(0, quick_playbooks.Finder(_kept))
    if "HWACCEL_PACKED" in os.environ:
        _keep_archives()
