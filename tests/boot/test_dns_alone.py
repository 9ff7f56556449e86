# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dns_pxe for a part of what it can serve: all of it, then names alone, then addresses alone, on one server."""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import BALANCER, DOMAIN, Client, Site, address, asked, mac

pytestmark = pytest.mark.slow
PORTS = "ss -Hlntu | sed -n 's/.*[0-9.]:\\(53\\|67\\|69\\|8080\\) .*/\\1/p' | sort -u"


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    made = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    made.server.sh("apt-get -qq update && apt-get -qq install --no-install-recommends bind9-dnsutils >/dev/null", seconds=300)
    yield made
    rig.remove(made.server)


def test_each_part_is_served_alone_and_what_is_switched_off_goes(site: Site, rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> None:
    server, card = site.server, Client.of(rig.host("card"), tmp_path_factory.mktemp("card"))
    site.done()
    assert server.sh(PORTS).split() == ["53", "67", "69", "8080"]
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
