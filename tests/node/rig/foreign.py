# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's programs for the kubelet as a board with an arm64 processor runs them: cross-built, and started by an emulator of the processor.

Debian's packages are gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static. unmet() names what is missing.
"""

from __future__ import annotations

import os
import pathlib
import shutil

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import Go, architecture
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder
from ansible_collections.hwaccel.gpu.tests.node.rig import components as native
from ansible_collections.hwaccel.gpu.tests.node.rig.archive import Layer

ARCHITECTURE, COMPILER, EMULATOR = "arm64", "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
_LIBRARIES = pathlib.Path("/usr/aarch64-linux-gnu/lib")
#: What dynamically linked programs of Go with cgo load.
_NEEDED = ("ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libpthread.so.0", "libresolv.so.2")


def unmet() -> str:
    """The reason why they cannot run on this machine, "" if they can."""
    if architecture() == ARCHITECTURE:
        return "this machine has that processor, and its programs run in the other tests"
    missing = [name for name in (COMPILER, EMULATOR) if not shutil.which(name)]
    missing += [str(_LIBRARIES / name) for name in _NEEDED if not (_LIBRARIES / name).exists()]
    return f"missing: {', '.join(missing)}" if missing else ""


def emulator() -> pathlib.Path:
    return pathlib.Path(shutil.which(EMULATOR) or EMULATOR)


def libraries() -> Layer:
    return {f"lib/{name}": (_LIBRARIES / name).resolve() for name in _NEEDED}


def ensure_programs(say: native.Say) -> native.Components:
    """NVIDIA's programs for the kubelet and the stand-in for the library that they load, from the cache or built now; see native.ensure_components."""
    required = [part for part in native.parts() if part.name in (native.DEVICE_PLUGIN, native.LIBRARY)]
    environment = os.environ | {"CC": COMPILER}
    return native.ensured(_Builder(cache_folder(os.environ) / "node-arm64", native.SOURCES, environment, say), required)


class _Builder(native.Builder):
    """Builds for the other processor."""

    def _of_go(self, part: native.Part, go: Go, made: pathlib.Path) -> dict[str, str]:
        return super()._of_go(part, go, made) | {"GOARCH": ARCHITECTURE}
