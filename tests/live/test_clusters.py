# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several clusters in one run: each is configured separately, none waits for another, and none is confused with another.

Runtime: one run of site on two sandboxes, and four short ones.
"""

from __future__ import annotations

import pathlib
import re
import socket
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

FLEET = {"time_scale": 0.01, "pools": [{"name": "gpu", "count": 1, "gpu": GPU}]}
WAIT = {"hwaccel_wait_timeout": 240}


@pytest.fixture(scope="module")
def north(make_sandbox: t.Any) -> Sandbox:
    return make_sandbox(FLEET)


@pytest.fixture(scope="module")
def south(make_sandbox: t.Any) -> Sandbox:
    return make_sandbox({**FLEET, "pools": [{**FLEET["pools"][0], "count": 2}]})


def test_one_cluster_under_two_names_is_refused(north: Sandbox) -> None:
    audit = AuditLog(north.audit_log)
    run = site.playbook("site", {"north": site.cluster(north.kubeconfig), "again": site.cluster(north.kubeconfig)})
    assert run.rc != 0
    for host, other in (("north", "again"), ("again", "north")):
        expected = f"the inventory has this cluster twice, also as {other} (the uid of kube-system is the same)"
        assert any(expected in message for message in run.failures_of(host)), run.stdout
    assert audit.our_writes() == []


def test_with_several_clusters_the_environment_is_no_credential(north: Sandbox) -> None:
    audit = AuditLog(north.audit_log)
    bare = site.cluster(north.kubeconfig)
    del bare["hwaccel_connection"]
    environment = {"K8S_AUTH_KUBECONFIG": north.kubeconfig, "KUBECONFIG": north.kubeconfig}
    run = site.playbook("preflight", {"north": site.cluster(north.kubeconfig), "bare": bare}, environment=environment)
    assert run.rc != 0
    assert any("bare has no credentials of its own" in message for message in run.failures_of("bare")), run.stdout
    assert run.failures_of("north") == []
    assert audit.our_writes() == []
    alone = site.playbook("preflight", {"bare": bare}, environment=environment)
    assert alone.rc == 0, alone.stdout


def test_another_cluster_than_expected_and_unknown_stages_are_refused(north: Sandbox, south: Sandbox) -> None:
    run = site.playbook(
        "preflight",
        {
            "north": site.cluster(north.kubeconfig, hwaccel_cluster_uid="11111111-2222-3333-4444-555555555555"),
            "south": site.cluster(south.kubeconfig, hwaccel_stages="driver, blockchain"),
        },
    )
    assert run.rc != 0
    assert any("this is not the cluster in the inventory" in message for message in run.failures_of("north")), (
        run.stdout
    )
    assert any("blockchain" in message and "device_plugin" in message for message in run.failures_of("south")), (
        run.stdout
    )


@pytest.fixture(scope="module")
def both(north: Sandbox, south: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> site.Run:
    """A run over two clusters and an unreachable one. Credentials in the environment belong to none of them, and refer to another address."""
    folder = tmp_path_factory.mktemp("unreachable")
    config = yaml.safe_load(pathlib.Path(north.kubeconfig).read_text(encoding="utf-8"))
    environment = {"K8S_AUTH_KUBECONFIG": north.kubeconfig, "K8S_AUTH_HOST": "https://203.0.113.1"}
    with socket.socket() as held:
        # The socket is bound but does not listen, so no server answers here during the run.
        held.bind(("127.0.0.1", 0))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{held.getsockname()[1]}"
        (folder / "kubeconfig").write_text(yaml.safe_dump(config), encoding="utf-8")
        clusters = {"north": site.cluster(north.kubeconfig, **WAIT), "south": site.cluster(south.kubeconfig, **WAIT)}
        return site.playbook(
            "site", {"unreachable": site.cluster(str(folder / "kubeconfig")), **clusters}, environment=environment
        )


def test_both_clusters_have_schedulable_gpus(both: site.Run) -> None:
    assert [both.recap[name][kind] for name in ("north", "south") for kind in ("failures", "unreachable")] == [
        0,
        0,
        0,
        0,
    ], both.stdout[-6000:]
    gpus = {name: sum(pool["seen"] for pool in both.summary[name]["pools"]) for name in ("north", "south")}
    assert gpus == {"north": 8, "south": 16}
    assert [both.summary[name]["stopped"] for name in gpus] == [[], []]


def test_an_unreachable_cluster_does_not_delay_the_others(both: site.Run) -> None:
    assert both.rc != 0
    assert any("127.0.0.1" in message for message in both.failures_of("unreachable")), both.failures
    assert any("127.0.0.1" in reason for reason in both.summary["unreachable"]["stopped"])
    assert re.search(r"^unreachable +- +- +- +stopped +\S.*127\.0\.0\.1", both.stdout, re.MULTILINE), both.stdout[
        -3000:
    ]
    assert re.search(r"^north +1 +8 +8 +well$", both.stdout, re.MULTILINE), both.stdout[-3000:]
