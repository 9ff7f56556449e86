# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of an installation without computers: files of the install tool's stand-in, a real control plane from their keys, machines that join it by
what 22623 hands out, operators, and then the GPU half on the kubeconfig of the folder.

bootstrap.ign is decoded here, where Ignition would write it on a disk. Runtime: two minutes, half of one for what openshift_wait calls stable.
"""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import subprocess
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.tests.live.support import adhoc, site
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import find_programs
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.rig.control_plane import ControlPlane
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import unpack
from ansible_collections.hwaccel.gpu.tests.openshift.rig.fleet import Fleet
from ansible_collections.hwaccel.gpu.tests.openshift.rig.node_program import BOOTSTRAP, Process
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import INSTALLED, Expected, Operators
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import furnish

DOMAIN = "dgxpod.example.com"
API = "10.33.3.9"
MASTER, WORKER = f"m0.{DOMAIN}", f"w0.{DOMAIN}"
#: Role and address of each machine.
MACHINES = {MASTER: ("master", "10.33.3.11"), WORKER: ("worker", "10.33.3.21")}
GPU = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559}
#: Nodes have the kernel of this host.
PRECOMPILED = f"595-{platform.release()}-rhel9"
POOL = {"name": "gpu", "selector": "node-role.kubernetes.io/worker", "gpu": GPU}


@dataclasses.dataclass(frozen=True)
class Chain:
    """folder: of the installation. program: in place of kubelets."""

    folder: pathlib.Path
    place: pathlib.Path
    plane: ControlPlane
    fleet: Fleet
    program: pathlib.Path

    @property
    def kubeconfig(self) -> str:
        return str(self.folder / "auth" / "kubeconfig")

    @contextlib.contextmanager
    def machine(self, name: str) -> c.Iterator[Process]:
        """A machine to which 22623 has given its config."""
        role, address = MACHINES[name]
        root = self.place / name
        given = root / BOOTSTRAP
        given.parent.mkdir(parents=True)
        given.write_bytes(self.plane.disk.path("auth/kubeconfig-kubelet").read_bytes())
        arguments = (
            f"--root={root}",
            f"--name={name}",
            f"--address={address}",
            f"--role={role}",
            f"--logs={self.fleet.logs}",
        )
        with Process.start(self.place / f"{name}.log", self.program, "node", *arguments) as started:
            yield started


@pytest.fixture(scope="module")
def chain(program: pathlib.Path, keys: str, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Chain]:
    if "HWACCEL_ISOLATED" not in os.environ:
        pytest.skip("machines need addresses and names of their own: run it by tests/tools/isolated")
    place = tmp_path_factory.mktemp("chain")
    ip("link", "set", "lo", "up")
    for address in (API, *(address for _role, address in MACHINES.values())):
        ip("address", "add", f"{address}/32", "dev", "lo")
    (place / "hosts").write_text(f"127.0.0.1 localhost\n{API} api.{DOMAIN} api-int.{DOMAIN}\n", encoding="utf-8")
    subprocess.run(["mount", "--bind", place / "hosts", "/etc/hosts"], check=True)
    folder = support.configure(place / "installation")
    with support.start(folder, *support.IGNITION, keys=keys) as tool:
        assert tool.communicate()[1] is not None and tool.returncode == 0
    disk = unpack(folder / "bootstrap.ign", place / "disk")
    (place / "fleet").mkdir()
    with ControlPlane(find_programs(), disk, place / "state", API, 6443) as plane:
        furnish(plane.admin, disk)
        with Fleet(plane, place / "fleet", [f"nvcr.io/nvidia/driver:{PRECOMPILED}"], API) as fleet:
            yield Chain(folder, place, plane, fleet, program)


def wait(chain: Chain) -> tuple[int, dict[str, t.Any], str]:
    metadata = json.loads((chain.folder / "metadata.json").read_text(encoding="utf-8"))
    arguments = {
        "name": DOMAIN,
        "kubeconfig": chain.kubeconfig,
        "expected_nodes": [{"name": name, "ip_addresses": [address]} for name, (_role, address) in MACHINES.items()],
        "installation": {"path": str(chain.folder), "files": True, "infrastructure": metadata["infraID"]},
        **{f"{phase}_timeout": 240 for phase in ("api", "bootstrap", "nodes", "install")},
    }
    return adhoc.task("openshift_wait", arguments, home=chain.place)


def test_from_files_to_validated_gpus(chain: Chain) -> None:
    with (
        concurrent.futures.ThreadPoolExecutor() as pool,
        Operators(chain.plane.kubeconfig, Expected((MASTER,), (WORKER,)), pace=0.5) as operators,
        chain.machine(MASTER),
        chain.machine(WORKER),
    ):
        waiting = pool.submit(wait, chain)
        until(lambda: waiting.done() or INSTALLED in operators.done, "the installation", seen=lambda: operators.done)
        status, result, said = waiting.result(timeout=240)
        assert status == 0, said
        assert (result["state"], result["missing_nodes"]) == ("installed", [])
        assert sorted(one["node"] for one in result["approved"]) == [MASTER, MASTER, WORKER, WORKER]
        print(f"installed: {operators.done}")

        chain.fleet.play({MASTER: {}, WORKER: {"gpu": GPU}})
        host = site.cluster(
            chain.kubeconfig,
            hwaccel_distribution="openshift",
            hwaccel_pools=[POOL],
            driver_source="precompiled",
            driver_precompiled_images=[PRECOMPILED],
            hwaccel_wait_timeout=240,
            hwaccel_stages=site.ALL,
        )
        run = site.playbook("site", {"ocp": host})
        assert run.rc == 0, run.stdout[-8000:]
        assert gpus_of(chain.plane.admin.get(NODE, WORKER)) == GPU["count"]
        (validated,) = run.results("node_validate", "ocp")
        assert not validated.get("failed"), validated
    # The Nodes are those of their machines, and not the agent's.
    for name, (role, address) in MACHINES.items():
        node = chain.plane.admin.get(NODE, name)
        assert f"node-role.kubernetes.io/{role}" in node["metadata"]["labels"]
        assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": address}
    chain.fleet.play({})
    assert {one["metadata"]["name"] for one in chain.plane.admin.list(NODE).items} == set(MACHINES)
