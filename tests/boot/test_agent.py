# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of OpenShift without a bootstrap machine, from `site` to computers that boot: by agents, whose initramfs holds all keys, and in place.

Real are dnsmasq, nginx, boot loaders, kernels and firmware. CoreOS and openshift-install are stand-ins, and no API ever answers, so each run of site ends with
a time limit. The tests depend on the state that earlier ones leave.
"""

from __future__ import annotations

import collections.abc as c
import json

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.agents import IN_PLACE, MACHINES, Agents
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import PORT, STATE, Client, address, download, mac
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import BIOS, DISK, UEFI, Computers
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import INSTALLED, LIVE, Installer
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

INITRAMFS = f"{STATE}/secret/edge/initramfs"
#: Codes of architectures in DHCP's option 93.
CODE_BIOS, CODE_UEFI = 0, 7


@pytest.fixture(scope="module")
def agents(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Agents]:
    installer = Installer.of(tmp_path_factory.mktemp("installer"), LIVE)
    made = Agents.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("agents"), installer)
    yield made
    rig.remove(made.server)


@pytest.fixture(scope="module")
def predicted(agents: Agents) -> Run:
    """In check mode, before anything is there."""
    run = agents.site("--check", "--diff")
    assert run.rc == 0, run.stdout[-8000:]
    assert not (agents.folder / "installations").exists()
    alone = agents.rig.play("dns_pxe", agents.groups, clusters=agents.clusters)
    assert alone.rc != 0 and "What machines of edge, sno boot is unknown" in alone.failures[-1], alone.stdout[-8000:]
    assert agents.server.sh(f"ls {STATE} /etc/hwaccel-gpu 2>/dev/null || :") == ""
    return run


@pytest.fixture(scope="module")
def served(agents: Agents, predicted: Run) -> Run:
    run = agents.site()
    assert run.rc != 0, "the limit of the wait"
    return run


@pytest.fixture
def client(rig: BootRig, served: Run) -> c.Iterator[Machine]:
    """A machine of the segment with the addresses of edge-2 and sno-0 beside its own, as long as they are off."""
    client = rig.machine("client")
    client.sh("apt-get -qq update && apt-get -qq install --no-install-recommends curl >/dev/null", seconds=300)
    client.sh(f"ip address add {address(163)}/24 dev eth0; ip address add {address(164)}/24 dev eth0")
    yield client
    rig.remove(client)


def test_check_mode_tells_the_whole_plan_of_both_methods(predicted: Run) -> None:
    for name in ("edge", "sno"):
        assert f"installation: {name}: create the files of the installation" in predicted.stdout
    for done in ("copy secret/edge/initramfs", "download edge/rootfs", f"copy ignition/sno/{IN_PLACE}"):
        assert f"dns_pxe: boot: {done} (assumed: this run makes it first)" in predicted.stdout, done
    # It is in the inventory, and there already.
    assert "dns_pxe: boot: download sno/kernel\n" in predicted.stdout
    assert "PRIVATE KEY" not in predicted.stdout


def test_site_ends_where_machines_have_to_answer_and_a_second_run_changes_nothing(agents: Agents, served: Run) -> None:
    for name in ("edge", "sno"):
        (reason,) = served.summary[name]["stopped"]
        assert "the API was waited for in vain" in reason, reason
    # hwaccel-gpu-once keeps there how much of nginx's log it has read.
    before = agents.server.sh(f"find {STATE} -type f ! -name written.json -printf '%p %m %U:%G %C@\\n' | sort")
    again = agents.site()
    changed = [task["name"] for task in again.tasks if task["outcome"] == "changed"]
    assert changed == [], again.stdout[-6000:]
    assert "the API was waited for in vain" in again.summary["edge"]["stopped"][0]
    assert agents.server.sh(f"find {STATE} -type f ! -name written.json -printf '%p %m %U:%G %C@\\n' | sort") == before


def test_the_boot_server_alone_gives_the_same(agents: Agents, served: Run) -> None:
    """The playbook of this stage finds out itself how far the installations are, and takes nothing away."""
    before = agents.server.sh(f"find {STATE}/files {STATE}/secret -type f -printf '%p %C@\\n' | sort")
    assert "edge" in before and "sno" in before
    run = agents.rig.play("dns_pxe", agents.groups, clusters=agents.clusters)
    assert run.rc == 0, run.stdout[-8000:]
    assert [task["name"] for task in run.tasks if task["outcome"] == "changed"] == [], run.stdout[-6000:]
    assert agents.server.sh(f"find {STATE}/files {STATE}/secret -type f -printf '%p %C@\\n' | sort") == before


def test_only_the_machines_of_its_cluster_get_what_holds_keys(agents: Agents, client: Machine) -> None:
    web = f"http://{agents.server.address}:{PORT}"
    right = agents.server.sh(f"sha256sum {INITRAMFS}")[:64]
    of_edge, of_sno = ("--interface", address(163)), ("--interface", address(164))
    assert download(client, f"{web}/secret/edge/initramfs", *of_edge) == ("200", right)
    assert download(client, f"{web}/secret/edge/initramfs", *of_sno)[0] == "403"
    assert download(client, f"{web}/secret/edge/initramfs")[0] == "403"
    # Downloaded as a whole, it would be what sno-0 is installed with.
    assert download(client, f"{web}/ignition/sno/{IN_PLACE}", "--head", *of_sno)[0] == "200"
    for other in (of_edge, ()):
        assert download(client, f"{web}/ignition/sno/{IN_PLACE}", *other)[0] == "403"
    for path in ("images/edge/initramfs", "secret/edge", "secret/edge/initramfs.part", "files/secret/edge/initramfs"):
        assert download(client, f"{web}/{path}", *of_edge)[0] == "404", path
    for path in ("secret/edge/initramfs", "../secret/edge/initramfs", "images/edge/initramfs", "/" + INITRAMFS):
        assert download(client, f"tftp://{agents.server.address}/{path}", *of_edge)[1] != right, path
    assert download(client, f"tftp://{agents.server.address}/images/edge/kernel", *of_edge)[1] != "", "TFTP answers"
    web_user = agents.server.sh(f"stat -c '%a %U:%G' {INITRAMFS} {STATE}/secret {STATE}/secret/edge").split("\n")
    assert web_user[:3] == ["640 root:www-data", "750 root:www-data", "750 root:www-data"]


def test_machines_that_boot_keys_get_ipxe_first(agents: Agents, rig: BootRig, served: Run) -> None:
    card = Client.of(rig.host("card"), agents.folder)
    boots = {name: card.dhcp(mac(number), CODE_BIOS).get("boots") for name, (_c, _f, number) in MACHINES.items()}
    assert boots == {"edge-0": "undionly.kpxe", "edge-1": "", "edge-2": "undionly.kpxe", "sno-0": "pxelinux.0"}
    assert card.dhcp(mac(162), CODE_UEFI)["boots"] == "snponly.efi"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["edge-0", "sno-0"])
def test_a_machine_installs_itself_once_and_boots_its_disk(name: str, agents: Agents, computers: Computers) -> None:
    """The network is first in its boot order."""
    number = MACHINES[name][2]
    console = computers.boot(mac(number), BIOS, disk=computers.blank(name), restarts=True)
    assert agents.installed(name) in console, console[-3000:]
    assert console.count(INSTALLED) == 1 and console.index(INSTALLED) < console.index(DISK)
    written = json.loads(agents.server.read(f"{STATE}/written.json"))["written"]
    assert mac(number) in written


@pytest.mark.slow
def test_uefi_fetches_the_keys_by_ipxe(agents: Agents, computers: Computers) -> None:
    """The signed GRUB that it would get otherwise has no HTTP."""
    console = computers.boot(mac(162), UEFI)
    assert agents.installed("edge-1") in console, console[-3000:]


@pytest.mark.slow
def test_who_has_joined_gets_no_keys_any_more_and_with_the_last_one_the_file_goes(agents: Agents) -> None:
    joined = {"dns_pxe_joined": {"edge": [name for name in MACHINES if name.startswith("edge")], "sno": []}}
    assert agents.server.sh(f"test -e {INITRAMFS} && echo there").strip() == "there"
    # Its self-test would ask the API of a cluster that has nodes.
    agents.site("-e", json.dumps({**joined, "dns_pxe_self_test": False}))
    assert agents.server.sh(f"test -e {INITRAMFS} || echo gone").strip() == "gone"
    assert "secret/edge" not in agents.server.read("/etc/hwaccel-gpu/dns_pxe/nginx.conf")
