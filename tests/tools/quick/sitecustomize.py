# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes Pythons of test runs faster, without other effects. It is loaded by each Python with this folder on its path.

Ansible sends a module as a zip archive, and Python does not cache code that it compiles from an archive, which takes a third of the time of `file` or
`stat`. Here this code is cached by its content, in a folder beside this file, and so is code that playbooks compile repeatedly (quick_playbooks.py):
templates take a quarter of a worker's time. The cyclic garbage collector runs a hundred times less often, which saves a tenth of a playbook's processor
time. Tests of whole commands as for users (demo, molecule, site on other cores) run without this file.

HWACCEL_PACKED contains a folder in which consecutive playbooks of the same collection cache archives of modules; ansible-core caches them for one run
only, and needs a third of a second for each.
"""

from __future__ import annotations

import _imp
import gc
import marshal
import os
import sys
import zipimport

# Each starting Python loads this file, so it imports only what it needs: other imports would double the time of the start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable

#: The default threshold is 700 net allocations of objects.
gc.set_threshold(70_000, 10, 10)

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compiled", sys.implementation.cache_tag)
_compile = zipimport._compile_source


def _kept(content: bytes, make: Callable[[], types.CodeType]) -> types.CodeType:
    """The cached code for this content, or the result of `make`, which is cached."""
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
        """ansible-core's folder of one run (config/manager.py, resolve_path), in which executor/module_common.py stores archives in this subfolder."""
        made = make(suffix, prefix, dir)
        if prefix == f"ansible-local-{os.getpid()}":
            os.symlink(os.environ["HWACCEL_PACKED"], os.path.join(made, "ansiballz_cache"))
        return made

    tempfile.mkdtemp = make_with_archives


# Modules inherit the environment of their playbook, but have other arguments.
if any(word.endswith("playbook") for word in sys.orig_argv[1:4]):
    import quick_playbooks

    sys.meta_path.insert(0, quick_playbooks.Finder(_kept))
    if "HWACCEL_PACKED" in os.environ:
        _keep_archives()
