# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for kubelet of machines that Ignition has configured (tests/openshift/components/machine), built into the cache, and run on this host.

program = ensure_machine(say)
with Process.start(place, program, "node", f"--root={place}/root", "--name=w0.ocp.example.com", "--address=127.0.31.2") as node:
    ...

What it takes is in the usage of its main.go. For an emulated computer it is one static file of 28 MB (9 MB with gzip, 6 MB with xz), without anything beside
it. On a host it starts in 0.01 s, and has 27 MiB of memory when it has joined, of which 21 MiB are the file.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import os
import pathlib
import subprocess
import types
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Builder, Part, Say, digest_of, ensured

Obj = dict[str, t.Any]
SOURCES = pathlib.Path(__file__).parents[1] / "components" / "machine"
#: Of a machine that has not joined: where Ignition writes the kubeconfig that 22623 adds to the config of its pool, and where kubelet keeps its own.
BOOTSTRAP, OWN = "etc/kubernetes/kubeconfig", "var/lib/kubelet"
#: In seconds, after SIGTERM.
_PATIENCE = 20.0


def machine_part() -> Part:
    files = sorted(path.name for path in SOURCES.glob("*.go") if not path.name.endswith("_test.go"))
    arguments = ("build", "-trimpath", "-ldflags=-s -w", ".")
    return Part("openshift-machine", ("machine",), arguments, digest_of(SOURCES, ["go.mod", "go.sum", *files]))


def ensure_machine(say: Say, environment: c.Mapping[str, str] | None = None) -> pathlib.Path:
    """The program, from the cache or built now. Raises Unavailable without Go, HwaccelError with the end of the log if the build fails."""
    environment = os.environ if environment is None else environment
    builder = Builder(cache_folder(environment) / "node", SOURCES, environment, say)
    return ensured(builder, [machine_part()]).program("machine")


def write_bootstrap(root: pathlib.Path, kubeconfig: Obj) -> None:
    """As Ignition writes what 22623 adds to the config of a pool, but for its owner only."""
    path = root / BOOTSTRAP
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")


@dataclasses.dataclass
class Process:
    """A process of the program, whose output is appended to a file. It ends with the block."""

    log: pathlib.Path
    running: subprocess.Popen[bytes]

    @classmethod
    def start(cls, log: pathlib.Path, program: pathlib.Path, *arguments: str) -> Process:
        with log.open("ab") as file:
            running = subprocess.Popen(
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ["PATH"]},
            )
        return cls(log, running)

    def output(self) -> str:
        """What it has printed by now, and earlier processes with the same file."""
        return self.log.read_text(encoding="utf-8")

    def stop(self) -> int:
        """Ends it as systemd does, and returns its status."""
        self.running.terminate()
        return self.running.wait(timeout=_PATIENCE)

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: types.TracebackType | None) -> None:
        if self.running.poll() is None:
            self.running.kill()
            self.running.wait()
