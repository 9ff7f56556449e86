# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty computers that become a cluster by the playbook site, and what holds once they are one."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import hashlib
import json
import pathlib

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of, is_ready
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.openshift.rig import coreos, metal
from ansible_collections.hwaccel.gpu.tests.openshift.rig.chain import Chain
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import CoreOS
from ansible_collections.hwaccel.gpu.tests.openshift.rig.metal import GPU, NAME, Layout, Metal
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import STATES


@dataclasses.dataclass(frozen=True)
class Trial:
    """machines: of the inventory. chain: what they meet."""

    machines: Metal
    chain: Chain

    def done(self, *arguments: str) -> Run:
        """A run that succeeds."""
        run = self.machines.play(*arguments)
        consoles = "".join(self.machines.console(name)[-1500:] for name in self.machines.layout.machines)
        assert run.rc == 0, run.stdout[-8000:] + self.chain.failed + consoles
        return run

    def is_installed(self, run: Run) -> None:
        """All that the layout has are Nodes, with validated GPUs where they are workers. run: the last one."""
        layout = self.machines.layout
        assert tuple(self.chain.operators.done) == STATES
        nodes = {one["metadata"]["name"]: one for one in self.chain.plane.admin.list(NODE).items}
        workers = layout.nodes("workers")
        assert nodes.keys() == {*layout.nodes("control_plane"), *workers}
        assert all(map(is_ready, nodes.values()))
        assert {name: gpus_of(nodes[name]) for name in workers} == dict.fromkeys(workers, GPU["count"])
        (validated,) = run.results("node_validate", NAME)
        assert not validated.get("failed"), validated

    def are_written(self, **more: int) -> None:
        """Each disk once, and those that are named as often as they say."""
        wanted = {name: more.get(name.replace("-", "_"), 1) for name in self.machines.layout.machines}
        counted = self.machines.counted(coreos.WRITES), self.machines.counted(coreos.IGNITED)
        assert counted == (wanted, wanted)

    def rests(self) -> None:
        """Another run has nothing to do, and no request of it writes."""
        audit = AuditLog(self.chain.plane.audit_log)
        run = self.done()
        assert run.changed() == 0, [one["name"] for one in run.tasks if one["result"].get("changed") is True]
        assert [str(one) for one in audit.ours() if one.verb not in ("get", "list", "watch")] == []

    def refuses(self, *warnings: str) -> list[str]:
        """Problems of a run that touches nothing. warnings: regular expressions of those that come with them."""
        machines, started = self.machines, "cd /run/libvirt/qemu; grep '' *.pid"
        before = machines.hyper.machine.sh(started), machines.counted(coreos.WRITES), self.calls()
        run = machines.play(warnings=warnings)
        assert (run.rc != 0, run.changed()) == (True, 0), run.stdout[-8000:]
        assert (machines.hyper.machine.sh(started), machines.counted(coreos.WRITES), self.calls()) == before
        found: list[str] = run.summary[NAME]["problems"]
        return found

    def calls(self) -> list[list[str]]:
        """What the install tool was called with so far to make files."""
        rows = self.machines.calls.read_text(encoding="utf-8").splitlines()
        return [words for words in (json.loads(row)["arguments"] for row in rows) if "ignition-configs" in words]

    def keys(self) -> str:
        """A digest of what the folder has as the administrator's identity, "" without it."""
        path = self.machines.installation / "auth" / "kubeconfig"
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""

    def reached(self, state: str) -> bool:
        """Whether the operators have come to a state of theirs."""
        return self.chain.started.is_set() and state in self.chain.operators.done


@contextlib.contextmanager
def empty(rig: BootRig, system: CoreOS, place: pathlib.Path, layout: Layout) -> c.Iterator[Trial]:
    """place: an empty folder. Nothing is left of the machines at the end."""
    images = [f"nvcr.io/nvidia/driver:{metal.precompiled(system)}"]
    for name in ("chain", "metal"):
        (place / name).mkdir()
    with (
        Chain(place / "chain", layout.expected, images, GPU) as chain,
        contextlib.closing(Metal(rig, system, place / "metal", layout)) as machines,
    ):
        yield Trial(machines, chain)
