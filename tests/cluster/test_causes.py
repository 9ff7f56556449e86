# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that cannot join, each for another reason, which its verdict names: symptoms of docs/node-does-not-join.md, made for real.

All machines have the clock and the kernel of one computer, so that a wrong time, swap and version 1 of cgroups cannot be had.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import threading
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import CONFIGURATION, NAME, Site, nft
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import KEY, certificate, key_pem

pytestmark = pytest.mark.slow
_SECRET = Resource("", "v1", "Secret", "secrets", True)
_CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
_MARK = 7
#: Takes the traffic to the API server and answers with a certificate of its own, as some proxies do.
_BETWEEN = """import asyncio, socket, ssl
async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
async def serve(reader, writer):
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, {mark})
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("{server}", 6443))
    other = await asyncio.open_connection(sock=plain, ssl=ssl._create_unverified_context(), server_hostname="x")
    await asyncio.gather(pump(reader, other[1]), pump(other[0], writer), return_exceptions=True)
async def main():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain("/run/between.pem")
    await (await asyncio.start_server(serve, "0.0.0.0", 7443, ssl=tls)).serve_forever()
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = Site(rig, servers=("s1",), agents=("a1",))
    # The default is five minutes.
    configuration: dict[str, t.Any] = {**CONFIGURATION, "JoinConfiguration": {"timeouts": {"discovery": "30s"}}}
    site.variables["cluster_kubeadm_configuration"] = configuration
    # What the preflight would find before anything is touched.
    site.variables["cluster_kubeadm_skipped_checks"] = ["clock", "disk", "identity", "swap", "cgroup", "ports"]
    site.done()
    return site


def intercept(machine: Machine, server: str, names: tuple[str, ...] = ()) -> None:
    """names: for which its certificate is valid."""
    machine.write("/run/between.pem", certificate(names=names) + key_pem(KEY))
    machine.write("/run/between.py", _BETWEEN.format(mark=_MARK, server=server))
    machine.sh("systemd-run --unit=between python3 /run/between.py")
    nft(machine, "add table ip between; add chain ip between out { type nat hook output priority -100; }")
    rule = f"ip daddr {server} tcp dport 6443 meta mark != {_MARK} redirect to :7443"
    nft(machine, f"add rule ip between out {rule}")


def joining(site: Site, *names: str) -> None:
    site.agents = ("a1", *names)
    for name in names:
        site.machines[name] = site.machines.get(name) or site.boot(name)


def test_each_machine_of_a_run_has_its_own_cause(site: Site) -> None:
    joining(site, "b1", "b2", "b3", "b5")
    server = site.machines["s1"].address
    site.machines["b1"].sh("systemd-run --unit=taken python3 -m http.server 10250")
    broken = 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
    site.machines["b2"].write("/etc/containerd/conf.d/without.toml", broken)
    intercept(site.machines["b3"], server, (server,))
    intercept(site.machines["b5"], server)
    run = site.play(timeout=1800)
    found = {name: " ".join(run.summary[name]["reasons"]) for name in ("b1", "b2", "b3", "b5")}
    print("\n".join(found.values()))
    assert run.rc != 0 and run.summary["a1"]["succeeded"]
    assert "b1 did not become a healthy node: a port that it needs is in use (" in found["b1"]
    assert "10250" in found["b1"] and "`ss --listening --tcp --processes`" in found["b1"]
    assert "b2 did not become a healthy node: the container runtime does not answer at its socket (" in found["b2"]
    assert "what answers has a certificate of another authority than the cluster's (" in found["b3"]
    assert "what answers has no certificate for the endpoint (" in found["b5"]
    assert site.versions().keys() == {"s1", "a1"}


def joining_process() -> int | None:
    """Of a machine that runs `kubeadm join`: its process, as the host counts it."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        # It may have ended.
        with contextlib.suppress(OSError):
            if b"kubeadm\0join\0" in pathlib.Path("/proc", name, "cmdline").read_bytes():
                return int(name)
    return None


def forget_tokens(client: Client) -> None:
    """Ends when nobody who asks the cluster finds a sign of any: its signatures are withdrawn by a controller."""
    for one in client.list(_SECRET, namespace="kube-system").items:
        if one["metadata"]["name"].startswith("bootstrap-token-"):
            with contextlib.suppress(NotFound):
                client.delete(_SECRET, one["metadata"]["name"], "kube-system")
    while any(key.startswith("jws-") for key in client.get(_CONFIG_MAP, "cluster-info", "kube-public")["data"]):
        time.sleep(0.2)


def test_a_token_that_the_cluster_does_not_know(site: Site) -> None:
    joining(site, "b4")
    client, ended = site.client(), threading.Event()

    def forget() -> None:
        while (process := joining_process()) is None:
            if ended.wait(0.02):
                return
        # It waits meanwhile: before it runs, the role itself would miss the token, and a moment later it has joined.
        os.kill(process, signal.SIGSTOP)
        try:
            forget_tokens(client)
        finally:
            os.kill(process, signal.SIGCONT)

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        run = site.play(timeout=1800)
    finally:
        ended.set()
        thread.join()
    assert run.summary["b4"]["reasons"], (run.summary, run.stdout[-6000:])
    (reason,) = run.summary["b4"]["reasons"]
    print(reason)
    assert (
        "b4 did not become a healthy node: the cluster does not know the bootstrap token, or it has expired (" in reason
    )


def test_a_name_that_another_machine_has(site: Site, rig: ClusterRig) -> None:
    joining(site, "b4")
    groups = site.groups()
    del groups["workers"]["a1"]
    groups["workers"]["b4"]["hwaccel_node_name"] = "a1"
    run = rig.play("cluster_kubeadm", groups, clusters={NAME: site.cluster()}, timeout=1800)
    told = " ".join(run.summary[NAME]["reasons"])
    print(told)
    assert run.rc != 0
    assert f"a1: the cluster has a node of this name at {site.machines['a1'].address}, which is Ready" in told
    assert "a name of its own by hwaccel_node_name" in told
    assert site.versions().keys() == {"s1", "a1"}


def test_each_joins_once_its_cause_is_gone(site: Site) -> None:
    joining(site, "b1", "b2", "b3", "b4", "b5")
    site.machines["b1"].sh("systemctl stop taken")
    site.machines["b2"].sh("rm /etc/containerd/conf.d/without.toml; systemctl restart containerd")
    for name in ("b3", "b5"):
        nft(site.machines[name], "delete table ip between")
    run = site.done()
    assert all(run.summary[name]["succeeded"] for name in site.agents)
    assert site.versions().keys() == {"s1", *site.agents}
