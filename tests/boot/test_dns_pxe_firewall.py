# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot servers with a firewall of their own: machines get in by what the role opens, others by nothing."""

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
    offering,
)
from ansible_collections.hwaccel.gpu.tests.boot.test_load_balancer_firewall import FIREWALLS

#: Prints the names that it was answered.
ASK = """
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
def test_machines_get_in_where_a_firewall_runs_and_teardown_closes_it_again(
    name: str, rig: BootRig, tmp_path: pathlib.Path
) -> None:
    start, tell = FIREWALLS[name]
    machine = rig.machine(f"boot-{name}")
    machine.sh(
        f"apt-get -qq update && apt-get -qq install --yes --no-install-recommends {name} && {start}", seconds=300
    )
    before = machine.sh(tell)
    site = Site.of(rig, machine, tmp_path)
    other = rig.host(f"other-{name}")
    offering(other, tmp_path)
    assert f"another DHCP server answers on eth0: {other.address}" in site.refused(), "the firewall does not hide it"
    other.stop()
    predicted = site.done("--check")
    assert (machine.sh(tell), "access | " in predicted.stdout or name in predicted.stdout) == (before, True)
    site.done()
    assert site.done().changed() == 0
    client = rig.host(f"client-{name}")
    card = Client.of(rig.host(f"card-{name}"), tmp_path)
    assert card.asks(mac(151), 0)["ip"] == address(151)

    def fetched(url: str) -> int:
        return client.run("curl", "--silent", "--max-time", "5", "--output", "/dev/null", url, check=False).returncode

    def named() -> list[str]:
        return list(json.loads(client.run("python3", "-c", ASK, str(FILES), machine.address, f"api.{DOMAIN}").stdout))

    urls = [f"http://{machine.address}:{PORT}/images/os/kernel", f"tftp://{machine.address}/images/os/kernel"]
    assert (named(), [fetched(url) for url in urls]) == ([BALANCER], [0, 0])
    # The control: a firewall that drops is there, and opened for what is served alone.
    site.done(dns_pxe_pxe=False)
    machine.sh(f"systemd-run --quiet --unit=other python3 -m http.server {PORT}")
    machine.wait("something else is there", lambda: f":{PORT}" in machine.sh("ss -ltn"))
    assert (named(), fetched(urls[0]) != 0) == ([BALANCER], True)
    machine.sh("systemctl stop other")
    site.done("-e", "dns_pxe_entry=teardown")
    assert machine.sh(tell) == before
    rig.remove(machine)
