# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories that the documentation shows pass the preflight on bare machines, with addresses and files of the rig in place of theirs."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import PROGRAMS, ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import ARCHIVE, K3sRig, system_images
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import file_of
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow
_EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "inventories"
#: All machines are on one computer, whose clock, disk and memory are not the tests' business.
_SKIPPED = ["clock", "disk", "identity", "memory", "swap", "cgroup"]
_OF_NODES = ("control_plane", "workers", "edge_nodes")


def read(example: str) -> tuple[str, dict[str, t.Any], dict[str, dict[str, dict[str, t.Any]]]]:
    """The cluster's name, its variables, and machines by group with their variables, without addresses."""
    found = yaml.safe_load((_EXAMPLES / example / "hosts.yml").read_text(encoding="utf-8"))
    ((name, variables),) = found.pop("gpu_clusters")["hosts"].items()
    groups = {
        group: {
            host: {
                **described.get("vars", {}),
                **{key: value for key, value in own.items() if key != "ansible_host"},
            }
            for host, own in described["hosts"].items()
        }
        for group, described in found.items()
    }
    return name, {"ansible_connection": "local", **variables}, groups


def of_k3s(rig: K3sRig, variables: dict[str, t.Any], folder: pathlib.Path) -> dict[str, t.Any]:
    """Files of the rig where the example has those of a release."""
    listed = folder / "k3s-images.txt"
    listed.write_text("".join(f"{image}\n" for image in system_images().values()), encoding="utf-8")
    own = {
        "cluster_k3s_version": rig.k3s.version,
        "cluster_k3s_programs": [file_of(rig.k3s.binary)],
        "cluster_k3s_images": [file_of(rig.k3s.images / ARCHIVE)],
        "cluster_k3s_image_list": str(listed),
    }
    return {"cluster_k3s_skipped_checks": _SKIPPED, **{name: own[name] for name in own if name in variables}}


@pytest.mark.parametrize("example", ["kubeadm-ha", "k3s-ha-airgap", "jetson-edge"])
def test_an_example_passes_the_preflight(example: str, tmp_path: pathlib.Path) -> None:
    name, variables, groups = read(example)
    try:
        rig: ClusterRig | K3sRig = ClusterRig(say) if example == "kubeadm-ha" else K3sRig(say)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with contextlib.closing(rig):
        machines = {host: rig.machine(host) for hosts in groups.values() for host in hosts}
        if isinstance(rig, K3sRig):
            variables |= of_k3s(rig, variables, tmp_path)
        else:
            # The example says so.
            for host in (host for group in _OF_NODES for host in groups.get(group, {})):
                machines[host].sh(f"install {PROGRAMS}/kubeadm {PROGRAMS}/kubelet /usr/bin")
            variables |= {"cluster_kubeadm_skipped_checks": _SKIPPED}
        if "lb" in machines:
            variables["hwaccel_load_balancer_address"] = machines["lb"].address
        for host in groups.get("edge_nodes", {}):
            machines[host].write("/etc/nv_tegra_release", "# R36 (release), REVISION: 4.3, GCID: 38968081\n")
        run = rig.play("preflight", groups, "--check", clusters={name: variables})
    assert (run.rc, run.changed()) == (0, 0), run.stdout[-6000:]
    steps = run.summary[name]["machine_steps"]
    assert any("initialize the cluster on" in text for text in steps), steps
    # They are printed, too.
    assert all(text in run.stdout for text in steps)
