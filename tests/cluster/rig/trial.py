# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of a site that are killed at tasks which a seed chooses, and what must hold after the same command again."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import random
import time

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig import kills
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site, nft
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)


@dataclasses.dataclass
class Trial:
    """seed: of all choices. folder: of the records of runs."""

    site: Site
    seed: int
    folder: pathlib.Path
    _numbers: itertools.count[int] = dataclasses.field(default_factory=itertools.count)

    def undisturbed(self, *arguments: str) -> list[Kill]:
        """The moments at which a run like this one can be killed. A second run changes nothing."""
        path = self._record()
        began = time.monotonic()
        run = self.site.done(*arguments, environment={"HWACCEL_STARTED": str(path)})
        print(f"undisturbed: {time.monotonic() - began:.0f} s", flush=True)
        self._is_idle(*arguments)
        changed = {task["name"] for task in run.tasks if task["result"].get("changed") is True}
        found = kills.changing(kills.read(path), self.site.playbook, changed)
        assert found
        return found

    def killed(self, what: str, moments: list[Kill], *arguments: str) -> None:
        """Kills a run, and repeats it. The choice depends on the seed and on what it is, not on choices before it."""
        chance = random.Random(f"{self.seed} {what}")
        kill = chance.choice(moments).within(chance)
        print(f"{what}: seed {self.seed}, killed at {kill}, one of {len(moments)}", flush=True)
        path, began = self._record(), time.monotonic()
        came_so_far = self.site.killed(kill.reached(path), *arguments, environment={"HWACCEL_STARTED": str(path)})
        middle = time.monotonic()
        assert came_so_far, [name for _when, name in kills.read(path)]
        self.site.done(*arguments)
        print(f"{what}: {middle - began:.0f} s until then; the next run: {time.monotonic() - middle:.0f} s", flush=True)
        self._is_idle(*arguments)

    def retire(self, first: str, second: str) -> None:
        """Takes out an agent, and another one in a run that is killed."""
        self.site.retired = {first}
        moments = self.undisturbed()
        self.site.retired = {first, second}
        self.killed("retire an agent", moments)
        self.is_settled()

    def join(self, made: list[Kill]) -> None:
        """Lets those that were taken out join again. made: moments of the run that has made the cluster."""
        self.site.retired = set()
        self.killed("join agents", kills.joining(made, self.site.machines))
        self.is_settled()

    def teardown(self) -> tuple[str, ...]:
        uid = self.site.client().get(_NAMESPACE, "kube-system")["metadata"]["uid"]
        return ("-e", f"{self.site.playbook}_entry=teardown", "-e", f"hwaccel_confirm={uid}")

    def is_settled(self) -> None:
        """One cluster of exactly the machines that are wanted, without anything of a run."""
        servers = [name for name in self.site.servers if name not in self.site.retired]
        names = {*servers, *self.site.agents} - self.site.retired
        client, machines = self.site.client(), {name: self.site.machines[name] for name in names}
        nodes = {one["metadata"]["name"]: one for one in client.list(NODE).items}
        assert nodes.keys() == names
        ready = {
            name: {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"]
            for name, node in nodes.items()
        }
        assert set(ready.values()) == {"True"}, ready
        assert self.site.cordoned() == set()
        assert len({machine.sh(f"sha256sum <{self.site.authority}") for machine in machines.values()}) == 1
        assert [self.site.voters(machines[name]) for name in servers] == [set(servers)] * len(servers)
        assert self.site.secrets_left() == []
        folder = f"/var/lib/hwaccel-gpu/{self.site.playbook}"
        for name, machine in machines.items():
            left = f"{folder}/archives/* {folder}/teardown {folder}/turn.json"
            assert machine.sh(f"ls -d {left} 2>/dev/null || :") == "", name
        for name in self.site.retired:
            self._is_bare(name)

    def is_gone(self) -> None:
        for name in (*self.site.servers, *self.site.agents):
            self._is_bare(name)

    def _is_bare(self, name: str) -> None:
        machine = self.site.machines[name]
        left = machine.sh(
            f"ls -d {' '.join(self.site.made)} 2>/dev/null || :; find /var/lib/hwaccel-gpu -type f ! -name '*.db' 2>/dev/null || :"
        )
        assert left == "", (name, left)
        assert "kube-proxy" not in nft(machine, "list", "tables"), name
        assert " via " not in machine.sh("ip route show root 10.0.0.0/8"), "routes to pods of other nodes"

    def _is_idle(self, *arguments: str) -> None:
        again = self.site.done(*arguments)
        assert again.changed() == 0, [
            (one["host"], one["name"]) for one in again.tasks if one["result"].get("changed") is True
        ]

    def _record(self) -> pathlib.Path:
        return self.folder / f"started-{next(self._numbers)}"
