# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observed machines for the tests of node_runtime."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import containerd
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import Rendered

CRI, RUNTIME = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
#: The main file of Debian 12's package with changes of an administrator.
EDITED = """version = 2
# our mirror, see ticket 4711
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "mirror.example.com/pause:3.9"   # not the default
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = true
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""
#: Output of `containerd config dump` of 1.6.20, 1.7 and 2.4.2 if no file names a runtime, reduced to the parts that are read.
DUMPS = {
    "1.6.20": f'version = 2\n[plugins."{CRI}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n',
    "1.7.29": f'version = 2\n[plugins."{CRI}"]\nenable_cdi = false\n[plugins."{CRI}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n',
    "2.0.5": f'version = 3\n[plugins."{RUNTIME}"]\nenable_cdi = true\n[plugins."{RUNTIME}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n',
    "2.4.2": f'version = 4\n[plugins."{RUNTIME}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n',
}


def host(
    version: str = "1.6.20", files: dict[str, str] | None = None, imports: tuple[str, ...] = (), **facts: str
) -> Host:
    """A machine with containerd of a version, and files by path."""
    return Host(
        facts=dict(facts),
        imports=imports,
        files={path: File(path, text, changed_at=100.0) for path, text in (files or {}).items()},
        commands={
            "containerd": Command(0, f"containerd containerd.io {version} abc"),
            "containerd_dump": Command(0, DUMPS[version]),
        },
        units={"containerd": Unit(loaded=True, active=True, enabled=True, started_at=200.0)},
    )


def after(before: Host, rendered: Rendered) -> Host:
    """The machine after the files are written, as the next run observes it."""
    files = {
        **before.files,
        **{one.path: File(one.path, one.text, one.mode, one.uid, one.gid, 300.0) for one in rendered.contents},
    }
    imports = [*before.imports]
    if containerd.DROP_IN in files and containerd.DROP_IN not in imports:
        imports.append(containerd.DROP_IN)
    remaining = {path: file for path, file in files.items() if path not in rendered.absent}
    return dataclasses.replace(before, files=remaining, imports=tuple(imports))


def text(rendered: Rendered, path: str) -> str:
    return next(one.text for one in rendered.contents if one.path == path)


def lines_added(old: str, new: str) -> list[str]:
    """Lines that are only in the new text; asserts that all others are unchanged and in their order."""
    rest = iter(old.splitlines(keepends=True))
    added, expected = [], next(rest, None)
    for line in new.splitlines(keepends=True):
        if line == expected:
            expected = next(rest, None)
        else:
            added.append(line)
    assert expected is None, f"a line was lost: {expected!r}"
    return added


def table(parsed: dict[str, t.Any], plugin: str = CRI) -> dict[str, t.Any]:
    found: dict[str, t.Any] = parsed["plugins"][plugin]
    return found
