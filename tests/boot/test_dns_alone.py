# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dns_pxe with a part of its services: all of them, then only DNS, then only DHCP, on one server that also runs other name servers."""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import BALANCER, DOMAIN, Client, Site, address, dig, mac
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip

pytestmark = pytest.mark.slow
PORTS = "ss -Hlntu | sed -n 's/.*[0-9.]:\\(53\\|67\\|69\\|8080\\) .*/\\1/p' | sort -u"

#: A name that only another name server resolves, and its address.
OTHER_NAME, OTHER_ADDRESS = "shop.example.net", "10.96.0.9"
#: Addresses of a machine that is no client, on the segment and at another interface.
OUTSIDE, GUESTS = "10.98.0.5", "10.96.0.1"


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    site = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    site.server.sh(
        "apt-get -qq update && apt-get -qq install --no-install-recommends bind9-dnsutils >/dev/null", seconds=300
    )
    yield site
    rig.remove(site.server)


def test_each_service_runs_alone_and_disabled_ones_are_removed(
    site: Site, rig: BootRig, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server, card = site.server, Client.of(rig.host("card"), tmp_path_factory.mktemp("card"))
    site.done()
    assert server.sh(PORTS).split() == ["53", "67", "69", "8080"]
    # As after a run that was interrupted while it removed nginx.
    server.sh("rm /etc/systemd/system/nginx.service.d/hwaccel-gpu.conf")
    names = {"dns_pxe_dhcp": False, "dns_pxe_pxe": False}
    site.done(**names)
    assert server.sh(PORTS).split() == ["53"]
    assert server.sh("systemctl is-active nginx || :", check=False).strip() == "inactive"
    assert dig(server, server.address, f"console.apps.{DOMAIN}") == ("NOERROR", [BALANCER])
    assert card.dhcp(mac(151)) == {}
    assert site.done(**names).changed() == 0
    addresses = {"dns_pxe_dns": False, "dns_pxe_pxe": False}
    site.done(**addresses)
    assert server.sh(PORTS).split() == ["67"]
    lease = card.dhcp(mac(151), 0)
    assert (lease["ip"], lease["dns"], lease["boots"]) == (address(151), "", "")
    assert site.done(**addresses).changed() == 0


def test_an_existing_web_server_is_not_changed_and_an_unused_one_is_restored(site: Site) -> None:
    server = site.server
    site.done("-e", "dns_pxe_entry=teardown")
    server.sh("apt-get -qq install --yes --no-install-recommends nginx && systemctl enable --now nginx", seconds=300)
    server.sh("echo '# shop' >>/etc/nginx/sites-available/default")
    assert "nginx has an existing configuration (/etc/nginx/sites-enabled/default)" in site.refused()
    server.sh("sed -i '$d' /etc/nginx/sites-available/default")
    site.done()
    site.done("-e", "dns_pxe_entry=teardown")
    assert server.sh("systemctl is-active nginx; systemctl is-enabled nginx").split() == ["active", "enabled"]


def test_other_name_servers_on_this_server_keep_running(site: Site, rig: BootRig) -> None:
    server, guest, outside = site.server, rig.host("guest"), rig.host("outside")
    site.done()
    move(guest, "10.96.0.2/24")
    guest.port.plug_into(server.port)
    cable = guest.port.cable
    server.sh(f"ip address add {GUESTS}/24 dev {cable}; ip link set {cable} up; ip route add 10.98.0.0/24 dev eth0")
    move(outside, f"{OUTSIDE}/24", "10.99.0.0/24")
    start_name_server(site, GUESTS)
    assert resolves(guest, OTHER_NAME, GUESTS)
    assert not resolves(outside, f"api.{DOMAIN}", server.address), (
        "our names are not resolved for other hosts than clients"
    )
    site.done(dns_pxe_dns=False)
    start_name_server(site, server.address)
    assert resolves(outside, OTHER_NAME, server.address)


def move(host: Host, own: str, *networks: str) -> None:
    """Changes the address of a host, and adds routes to networks on its segment."""
    pid = int(host.port.namespace.split("/")[2])
    ip("address", "flush", "dev", "eth0", pid=pid)
    ip("address", "add", own, "dev", "eth0", pid=pid)
    for network in networks:
        ip("route", "add", network, "dev", "eth0", pid=pid)


def start_name_server(site: Site, own: str) -> None:
    """Starts another name server at an address of the server."""
    options = f"--conf-file=/dev/null --pid-file --no-resolv --no-hosts --bind-interfaces --listen-address={own} --address=/{OTHER_NAME}/{OTHER_ADDRESS}"
    site.server.sh(f"systemd-run --quiet dnsmasq --keep-in-foreground {options}")
    site.server.wait("the name server listens", lambda: f"{own}:53 " in site.server.sh("ss -lnu"))


def resolves(client: Host, name: str, server: str) -> bool:
    output = client.run("busybox", "nslookup", name, server, check=False).stdout.partition(name)[2]
    return OTHER_ADDRESS in output or BALANCER in output
