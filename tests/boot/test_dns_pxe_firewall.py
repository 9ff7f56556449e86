# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot servers with a firewall: the role opens the ports that machines need, and no others."""

from __future__ import annotations

import json
import pathlib

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import (
    BALANCER,
    DOMAIN,
    PORT,
    Client,
    Site,
    address,
    mac,
    start_other_dhcp_server,
)
from ansible_collections.hwaccel.gpu.tests.boot.test_load_balancer_firewall import FIREWALLS

#: Prints the addresses in the response.
RESOLVE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import self_test
try:
    print(json.dumps(self_test.ask(sys.argv[2], sys.argv[3], "A")[1]))
except self_test.Wrong:
    print("[]")
"""
FILES = pathlib.Path(__file__).parents[2] / "roles" / "dns_pxe" / "files"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FIREWALLS))
def test_machines_have_access_through_a_firewall_and_teardown_restores_it(
    name: str, rig: BootRig, tmp_path: pathlib.Path
) -> None:
    start, show = FIREWALLS[name]
    machine = rig.machine(f"boot-{name}")
    machine.sh(
        f"apt-get -qq update && apt-get -qq install --yes --no-install-recommends {name} && {start}", seconds=300
    )
    before = machine.sh(show)
    site = Site.of(rig, machine, tmp_path)
    other = rig.host(f"other-{name}")
    start_other_dhcp_server(other, tmp_path)
    assert f"another DHCP server answers on eth0: {other.address}" in site.refused(), "the firewall does not hide it"
    other.stop()
    predicted = site.done("--check")
    assert (machine.sh(show), "access | " in predicted.stdout or name in predicted.stdout) == (before, True)
    site.done()
    assert site.done().changed() == 0
    client = rig.host(f"client-{name}")
    card = Client.of(rig.host(f"card-{name}"), tmp_path)
    assert card.dhcp(mac(151), 0)["ip"] == address(151)

    def download(url: str) -> int:
        return client.run("curl", "--silent", "--max-time", "5", "--output", "/dev/null", url, check=False).returncode

    def resolved() -> list[str]:
        return list(
            json.loads(client.run("python3", "-c", RESOLVE, str(FILES), machine.address, f"api.{DOMAIN}").stdout)
        )

    urls = [f"http://{machine.address}:{PORT}/images/os/kernel", f"tftp://{machine.address}/images/os/kernel"]
    assert (resolved(), [download(url) for url in urls]) == ([BALANCER], [0, 0])
    # To verify that the firewall is effective, another service uses a port that the role does not open now.
    site.done(dns_pxe_pxe=False)
    machine.sh(f"systemd-run --quiet --unit=other python3 -m http.server {PORT}")
    machine.wait("another service listens", lambda: f":{PORT}" in machine.sh("ss -ltn"))
    assert (resolved(), download(urls[0]) != 0) == ([BALANCER], True)
    machine.sh("systemctl stop other")
    site.done("-e", "dns_pxe_entry=teardown")
    assert machine.sh(show) == before
    rig.remove(machine)
