# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dns_pxe for a part of what it can serve: all of it, then names alone, then addresses alone, on one server that serves names of others as well."""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import BALANCER, DOMAIN, Client, Site, address, asked, mac
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip

pytestmark = pytest.mark.slow
PORTS = "ss -Hlntu | sed -n 's/.*[0-9.]:\\(53\\|67\\|69\\|8080\\) .*/\\1/p' | sort -u"

#: A name that only a name server of somebody else knows, and what it says.
FOREIGN, TOLD = "shop.example.net", "10.96.0.9"
#: Of a machine that is no client, on the segment and at an interface of its own.
OUTSIDE, GUESTS = "10.98.0.5", "10.96.0.1"


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    made = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    made.server.sh(
        "apt-get -qq update && apt-get -qq install --no-install-recommends bind9-dnsutils >/dev/null", seconds=300
    )
    yield made
    rig.remove(made.server)


def test_each_part_is_served_alone_and_what_is_switched_off_goes(
    site: Site, rig: BootRig, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server, card = site.server, Client.of(rig.host("card"), tmp_path_factory.mktemp("card"))
    site.done()
    assert server.sh(PORTS).split() == ["53", "67", "69", "8080"]
    # As a run leaves it that is cut off while it lets nginx go.
    server.sh("rm /etc/systemd/system/nginx.service.d/hwaccel-gpu.conf")
    names = {"dns_pxe_dhcp": False, "dns_pxe_pxe": False}
    site.done(**names)
    assert server.sh(PORTS).split() == ["53"]
    assert server.sh("systemctl is-active nginx || :", check=False).strip() == "inactive"
    assert asked(server, server.address, f"console.apps.{DOMAIN}") == ("NOERROR", [BALANCER])
    assert card.asks(mac(151)) == {}
    assert site.done(**names).changed() == 0
    addresses = {"dns_pxe_dns": False, "dns_pxe_pxe": False}
    site.done(**addresses)
    assert server.sh(PORTS).split() == ["67"]
    given = card.asks(mac(151), 0)
    assert (given["ip"], given["dns"], given["boots"]) == (address(151), "", "")
    assert site.done(**addresses).changed() == 0


def test_a_web_server_that_serves_somebody_is_not_taken_and_one_that_does_not_is_given_back(site: Site) -> None:
    server = site.server
    site.done("-e", "dns_pxe_entry=teardown")
    server.sh("apt-get -qq install --yes --no-install-recommends nginx && systemctl enable --now nginx", seconds=300)
    server.sh("echo '# shop' >>/etc/nginx/sites-available/default")
    assert "nginx has an existing configuration (/etc/nginx/sites-enabled/default)" in site.refused()
    server.sh("sed -i '$d' /etc/nginx/sites-available/default")
    site.done()
    site.done("-e", "dns_pxe_entry=teardown")
    assert server.sh("systemctl is-active nginx; systemctl is-enabled nginx").split() == ["active", "enabled"]


def test_name_servers_of_others_on_this_server_go_on(site: Site, rig: BootRig) -> None:
    server, guest, outside = site.server, rig.host("guest"), rig.host("outside")
    site.done()
    moved(guest, "10.96.0.2/24")
    guest.port.plug_into(server.port)
    cable = guest.port.cable
    server.sh(f"ip address add {GUESTS}/24 dev {cable}; ip link set {cable} up; ip route add 10.98.0.0/24 dev eth0")
    moved(outside, f"{OUTSIDE}/24", "10.99.0.0/24")
    serves_names(site, GUESTS)
    assert answered(guest, FOREIGN, GUESTS)
    assert not answered(outside, f"api.{DOMAIN}", server.address), "who is no client is answered nothing of ours"
    site.done(dns_pxe_dns=False)
    serves_names(site, server.address)
    assert answered(outside, FOREIGN, server.address)


def moved(host: Host, own: str, *networks: str) -> None:
    """Has another address, and reaches other networks on its segment."""
    pid = int(host.port.namespace.split("/")[2])
    ip("address", "flush", "dev", "eth0", pid=pid)
    ip("address", "add", own, "dev", "eth0", pid=pid)
    for network in networks:
        ip("route", "add", network, "dev", "eth0", pid=pid)


def serves_names(site: Site, own: str) -> None:
    """Somebody else's name server at an address of the server."""
    options = f"--conf-file=/dev/null --pid-file --no-resolv --no-hosts --bind-interfaces --listen-address={own} --address=/{FOREIGN}/{TOLD}"
    site.server.sh(f"systemd-run --quiet dnsmasq --keep-in-foreground {options}")
    site.server.wait("it listens", lambda: f"{own}:53 " in site.server.sh("ss -lnu"))


def answered(client: Host, name: str, server: str) -> bool:
    told = client.run("busybox", "nslookup", name, server, check=False).stdout.partition(name)[2]
    return TOLD in told or BALANCER in told
