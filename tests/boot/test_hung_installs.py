# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installations that hang, for real: what a boot server and a load balancer know of them is the cause in the first lines of the message.

Real are dnsmasq, nginx and HAProxy, as the roles have configured them, and what clients request of them. The install tool is a stand-in, and machines
are hosts that send the requests of machines, or that stay off.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import pathlib
import shlex
import subprocess
import sys
import tarfile
import typing as t

import pytest
import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import STATE, Client, Site, address, mac
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher

#: Last byte of the addresses of the bootstrap machine.
BOOTSTRAP = 150
#: An SSH server as far as a client hears of it first.
GREETS = """import socket
server = socket.create_server(("", 22))
print("listens", flush=True)
while True:
    with server.accept()[0] as connection:
        connection.sendall(b"SSH-2.0-stand-in\\r\\n")
"""
#: By which machine_boot records where the logs end when it starts a machine, and where it does.
LOGS = pathlib.Path(next(iter(collection.__path__))) / "roles" / "machine_boot" / "files" / "logs.sh"
MARKS = ("/run/hwaccel-gpu/machine_boot", mac(BOOTSTRAP), address(BOOTSTRAP), "dnsmasq", "/var/log/nginx/access.log")


@dataclasses.dataclass
class Hanging:
    """A site whose machines never become a cluster. balancer: a machine with the role load_balancer."""

    site: Site
    balancer: Machine
    place: pathlib.Path

    def groups(self, *without: str) -> dict[str, dict[str, dict[str, t.Any]]]:
        found = {**self.site.groups, "load_balancers": {self.balancer.name: {}}}
        return {name: hosts for name, hosts in found.items() if name not in without}

    @property
    def clusters(self) -> dict[str, dict[str, t.Any]]:
        example = REPOSITORY / "examples" / "inventories" / "sno-edge" / "hosts.yml"
        known = yaml.safe_load(example.read_text(encoding="utf-8"))["gpu_clusters"]["hosts"]["edge"]
        given = {name: known[name] for name in ("cluster_openshift_pull_secret", "cluster_openshift_ssh_keys")}
        own = {
            "ansible_connection": "local",
            "hwaccel_distribution": "openshift",
            "hwaccel_installer": "openshift",
            "hwaccel_load_balancer_address": self.balancer.address,
            "cluster_openshift_folder": str(self.place / "installations" / "ocp"),
            "cluster_openshift_installer": str(launcher.write(self.place)),
            "cluster_openshift_api_timeout": 5,
        }
        return {"ocp": {**self.site.clusters["ocp"], **given, **own}}

    def balance(self, *without: str) -> None:
        clusters = {"ocp": {**self.clusters["ocp"], "hwaccel_installer": ""}}
        run = self.site.rig.play("load_balancer", self.groups(*without), clusters=clusters)
        assert run.rc == 0, run.stdout[-8000:]

    def told(self, *arguments: str, **variables: t.Any) -> tuple[list[str], Run]:
        """The message with which the run has to fail."""
        clusters = {"ocp": {**self.clusters["ocp"], **variables}}
        run = self.site.rig.play("cluster_openshift", self.groups(), *arguments, clusters=clusters)
        assert run.rc != 0 and "ocp" in run.summary, run.stdout[-8000:]
        assert run.summary["ocp"]["state"] == "failed"
        (reason,) = run.summary["ocp"]["reasons"]
        return reason.splitlines(), run


@dataclasses.dataclass(frozen=True)
class Card:
    """The network card of the bootstrap machine."""

    client: Client
    server: Machine

    def lease(self) -> None:
        lease = self.client.dhcp(mac(BOOTSTRAP), 0)
        assert lease["ip"] == address(BOOTSTRAP)
        ip("address", "replace", f"{lease['ip']}/24", "dev", "eth0", pid=self.client.pid)

    def fetch(self, path: str) -> None:
        self.run(f"http://{self.server.address}:8080/{path}", "--output", "/dev/null")

    def run(self, url: str, *more: str) -> str:
        return self.client.host.run("curl", "--silent", "--interface", address(BOOTSTRAP), *more, url).stdout

    def start(self) -> str:
        """As its firmware starts from the network. The word that its boot entry chooses."""
        self.lease()
        entry = self.run(f"tftp://{self.server.address}/pxelinux.cfg/01-{mac(BOOTSTRAP).replace(':', '-')}")
        return entry.partition("DEFAULT ")[2].split("\n")[0]


def wrong(run: Run) -> list[str]:
    """What the boot server has found wrong last, when it requested what machines do."""
    printed = [
        json.loads(one["stdout"]) for one in run.results("command", "ocp") if one.get("stdout", "").startswith("{")
    ]
    return [str(text) for one in printed if "wrong" in one for text in one["wrong"]]


@pytest.fixture(scope="module")
def hanging(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Hanging]:
    place = tmp_path_factory.mktemp("hanging")
    site = Site.of(rig, rig.machine("boot"), place)
    site.clusters["ocp"]["hwaccel_load_balancer_address"] = ""
    found = Hanging(site, rig.machine("balancer"), place)
    (place / "installations").mkdir()
    site.clusters["ocp"]["hwaccel_load_balancer_address"] = found.balancer.address
    site.done()
    found.balance()
    yield found
    for machine in (site.server, found.balancer):
        rig.remove(machine)


def test_a_machine_that_stays_off(hanging: Hanging) -> None:
    lines, run = hanging.told()
    assert "the API was waited for in vain" in lines[0] and "(phase api, prepared: " in lines[0]
    assert lines[1].startswith("Most likely: bootstrap-0.ocp.example.com: no DHCP request was seen (boot servers)"), (
        lines
    )
    assert lines[2].startswith("Last observation: the API does not answer: "), lines
    far = run.summary["ocp"]["installation"]
    assert (far["state"], far["phase"]) == ("prepared", "api") and far["since"] in lines[0]
    assert "no DHCP request was seen" in far["why"] and far["next_step"].startswith("verify that the machine is on")
    # Otherwise they would be the cause: members of HAProxy, and names and the port as machines request them.
    # The load balancer may have reset the connection of the boot server, which is no machine of the cluster.
    assert [text for text in wrong(run) if "Connection reset by peer" not in text] == []


def test_a_load_balancer_that_is_off_and_a_wrong_record(hanging: Hanging) -> None:
    hanging.balancer.sh("systemctl stop haproxy")
    try:
        lines, run = hanging.told(hwaccel_ingress_address="10.99.0.77")
    finally:
        hanging.balancer.sh("systemctl start haproxy")
    assert lines[1].startswith(
        "Most likely: machines cannot reach 22623, from which they get their configuration (22623): api-int."
    ), lines
    assert f"cannot be reached at {hanging.balancer.address}:22623" in lines[1] and "Connection refused" in lines[1]
    assert "load balancer balancer could not be read" in run.shown("ocp")
    name = f"A any.name.apps.ocp.example.com: {hanging.balancer.address} instead of 10.99.0.77"
    assert name in wrong(run), wrong(run)


@pytest.fixture(scope="module")
def card(hanging: Hanging, rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> Card:
    return Card(Client.of(rig.host("card"), tmp_path_factory.mktemp("card")), hanging.site.server)


def test_a_rootfs_that_is_not_there(hanging: Hanging, card: Card) -> None:
    server = hanging.site.server
    server.sh(f"mv {STATE}/files/images/os/rootfs {STATE}/rootfs")
    card.lease()
    for name in ("kernel", "initramfs", "rootfs", "rootfs"):
        card.fetch(f"images/os/{name}")
    lines, _run = hanging.told()
    server.sh(f"mv {STATE}/rootfs {STATE}/files/images/os/rootfs")
    assert "(phase api, booting: bootstrap-0.ocp.example.com have started from the network" in lines[0], lines
    assert lines[1].startswith(
        "Most likely: rootfs cannot be downloaded (bootstrap-0.ocp.example.com): /images/os/rootfs was refused with status 404"
    )
    assert "bootstrap-0.ocp.example.com (bootstrap): kernel" in "\n".join(lines)


def test_a_load_balancer_without_the_bootstrap_machine(hanging: Hanging) -> None:
    hanging.balance("bootstrap")
    try:
        lines, _run = hanging.told(cluster_openshift_second_opinion=True)
    finally:
        hanging.balance()
    assert lines[1].startswith(
        "Most likely: the load balancer does not send to the bootstrap machine (load balancer): bootstrap-0.ocp.example.com is no member of 6443 and 22623"
    ), lines


def members(hanging: Hanging) -> str:
    """HAProxy's configuration."""
    return hanging.balancer.sh("cat /etc/hwaccel-gpu/load_balancer/haproxy/*")


def test_load_balancers_alone_know_that_bootstrap_is_not_complete(hanging: Hanging) -> None:
    """Silence of another cluster would leave a machine out that is no member."""
    hanging.balance("bootstrap")
    assert " bootstrap-0 " not in members(hanging)
    clusters = {"ocp": {**hanging.clusters["ocp"], "hwaccel_new_cluster": False}}
    run = hanging.site.rig.play("load_balancer", hanging.groups(), clusters=clusters)
    assert run.rc == 0, run.stdout[-8000:]
    assert " bootstrap-0 " in members(hanging)


def test_logs_are_fetched_from_a_bootstrap_machine_that_answers(
    hanging: Hanging, card: Card, tmp_path: pathlib.Path
) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    card.lease()
    _lines, run = hanging.told(cluster_openshift_ssh_key_file=str(key))
    assert "openshift-install gather bootstrap has ended with exit code 1" in run.shown("ocp")
    assert f"failed to create SSH client: dial tcp {address(BOOTSTRAP)}:22: connection refused" in run.shown("ocp")
    server = card.client.host.spawn(sys.executable, "-c", GREETS, stdout=subprocess.PIPE)
    assert server.stdout and server.stdout.readline() == "listens\n"
    lines, run = hanging.told(cluster_openshift_ssh_key_file=str(key))
    server.kill()
    server.communicate()
    (bundle,) = (hanging.place / "installations" / "ocp").glob("log-bundle-*.tar.gz")
    assert f'Bootstrap gather logs captured here "{bundle}"' in run.shown("ocp")
    with tarfile.open(bundle) as found:
        assert [name.partition("/")[2] for name in found.getnames()] == [address(BOOTSTRAP), address(BOOTSTRAP + 1)]
    assert "the API was waited for in vain" in lines[0] and lines[1].startswith("Most likely: ")
    # The folder is still that of the installation.
    lines, _run = hanging.told()
    assert "the API was waited for in vain" in lines[0]


def test_a_network_loop(hanging: Hanging, card: Card) -> None:
    server, name = hanging.site.server, "bootstrap-0.ocp.example.com"
    server.write("/var/tmp/logs.sh", LOGS.read_text(encoding="utf-8"))
    server.sh(shlex.join(["sh", "/var/tmp/logs.sh", "mark", *MARKS, f"{STATE}/again"]))
    assert card.start() == "install"
    for path in ("images/os/kernel", "images/os/initramfs", "images/os/rootfs", "ignition/ocp/bootstrap.ign"):
        card.fetch(path)
    server.wait("its entry turns", lambda: card.start() == "disk")
    # Its disk does not start, so that it starts from the network again.
    assert {card.start() for _number in range(4)} == {"disk"}
    lines, run = hanging.told()
    assert f"(phase api, booting: {name} have started from the network" in lines[0], lines
    assert lines[1].startswith(f"Most likely: {name} restarts again and again (boot order): it has started from "), (
        lines
    )
    assert "times since it downloaded its ignition file" in lines[1]
    assert lines[2].startswith("Last observation: "), lines
    assert run.summary["ocp"]["installation"]["next_step"].startswith("inspect its console: its firmware may not start")
    # Without the service nothing turns its entry, and it is written each time.
    server.sh("systemctl stop hwaccel-gpu-once")
    try:
        card.fetch("ignition/ocp/bootstrap.ign")
        lines, run = hanging.told()
    finally:
        server.sh("systemctl start hwaccel-gpu-once")
    assert lines[1].startswith(
        f"Most likely: {name} is installed again and again (boot order): it has downloaded its ignition file 2 times"
    ), lines
    assert run.summary["ocp"]["installation"]["next_step"].startswith("set its firmware to start from its disk first")
