# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From bare machines with a driver to a GPU on which a pod has computed, by site, on K3s.

The machine with GPUs gets NVIDIA's container toolkit, the real one, before K3s starts there first.
"""

from __future__ import annotations

import pathlib
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.cluster.rig import audit
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_gpus import driven_site
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

pytestmark = pytest.mark.slow
_POLICY, _LOG = "/etc/rancher/audit.yaml", "/var/log/audit.log"


def made(
    rig: K3sRig,
    folder: pathlib.Path,
    servers: tuple[str, ...],
    agents: tuple[str, ...],
    balancer: str = "",
    manager: bool = True,
) -> K3sSite:
    """A site whose API servers record who has written what."""
    site = driven_site(rig, folder, servers, agents, manager=manager, balancer=balancer)
    logged = {"audit-policy-file": _POLICY, "audit-log-path": _LOG}
    site.variables["cluster_k3s_server_configuration"] = {
        "kube-apiserver-arg": [f"{name}={value}" for name, value in logged.items()]
    }
    for name in servers:
        site.machines[name].write(_POLICY, audit.policy("system:admin"))
    return site


def writes(site: K3sSite) -> list[str]:
    return audit.writes((site.machines[name] for name in site.servers), _LOG)


@pytest.mark.parametrize(
    ("servers", "agents", "balancer", "manager"),
    [
        (("s1",), ("a1",), "", True),
        (("n1",), ("m1",), "", False),
        (("cp1", "cp2", "cp3"), ("w1", "w2"), "lb", True),
    ],
    ids=["one-server", "without-a-package-manager", "three-servers"],
)
def test_site_makes_the_cluster_and_a_pod_computes_on_its_gpus(
    k3s_rig: K3sRig,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    servers: tuple[str, ...],
    agents: tuple[str, ...],
    balancer: str,
    manager: bool,
) -> None:
    site = made(k3s_rig, tmp_path, servers, agents, balancer, manager)
    with_gpus = site.machines[agents[0]]
    checked = site.play("site", "--check")
    assert checked.rc == 0, checked.stdout[-6000:]
    assert with_gpus.sh("ls /usr/local/bin/k3s /usr/bin/nvidia-ctk /usr/local/bin/nvidia-ctk 2>/dev/null || :") == ""
    began = time.monotonic()
    first = site.play("site")
    between = time.monotonic()
    assert first.rc == 0, first.stdout[-8000:]
    node = site.client().get(NODE, agents[0])
    assert gpus_of(node) == 2
    # A pod has computed.
    assert names.PROOF in node["metadata"]["annotations"]
    # K3s has found the runtime when it started first, so nothing was restarted for it.
    folder = "/usr/bin" if manager else "/usr/local/bin"
    config = with_gpus.read(f"{DATA}/agent/etc/containerd/config.toml")
    assert "runtimes.'nvidia'.options" in config and f"{folder}/nvidia-container-runtime" in config
    taken = first.summary["one"]["machine_steps"]
    assert [text for text in taken if text.startswith("toolkit: ")] and not [
        text for text in taken if text.startswith("node_runtime: ")
    ]
    assert checked.summary["one"]["machine_steps"] == taken
    written = writes(site)
    assert written
    middle = time.monotonic()
    second = site.play("site")
    with capsys.disabled():
        print(f"\nsite: {between - began:.0f} s; the second run: {time.monotonic() - middle:.0f} s")
    assert (second.rc, second.changed()) == (0, 0), second.stdout[-6000:]
    assert writes(site) == written
