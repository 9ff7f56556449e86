# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of a real boot server turn to the disk once a machine has fetched its ignition file, and back only if the machine is explicitly requested again."""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import CONFIG, PORT, STATE, Site, address, mac
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip

NUMBERS = {"bootstrap-0": 150, "master-0": 151, "worker-0": 152}
ROLES = {"bootstrap-0": "bootstrap", "master-0": "master", "worker-0": "worker"}
HASH = f"$6$salt${'a' * 86}"
ANSWER = {
    "kind": "preseed",
    "user": "gpuadmin",
    "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3xYk1s6m2Yc2l3 operator@example.com"],
    "source": "http://mirror.example.com/debian",
    "password": HASH,
}
LOG = "/var/log/nginx/hwaccel-gpu-fetched"


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    made = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    made.variables["dns_pxe_skipped_checks"] = ["other_dhcp"]
    made.done()
    yield made
    rig.remove(made.server)


@pytest.fixture(scope="module")
def host(rig: BootRig) -> Host:
    """A host with the addresses of all machines."""
    host = rig.host("machines")
    pid = int(host.port.namespace.split("/")[2])
    for number in NUMBERS.values():
        ip("address", "add", f"{address(number)}/24", "dev", "eth0", pid=pid)
    return host


def fetch(site: Site, host: Host, name: str, *more: str, role: str = "", path: str = "") -> str:
    """Status of a machine's request for a file, by default for its ignition file."""
    url = f"http://{site.server.address}:{PORT}{path or f'/ignition/ocp/{role or ROLES[name]}.ign'}"
    argv = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--interface")
    return host.run(*argv, address(NUMBERS[name]), *more, url).stdout


def words(site: Site, name: str) -> set[str]:
    """What the three entries of a machine choose."""
    own = f"01-{mac(NUMBERS[name]).replace(':', '-')}"
    files = f"cd {STATE}/files; cat pxelinux.cfg/{own} grub/{own} ipxe/{own}.ipxe"
    begins = ("DEFAULT ", "set boots")
    lines = [line for line in site.server.sh(files).splitlines() if line.startswith(begins)]
    assert len(lines) == 3
    return {line.replace("=", " ").split()[-1] for line in lines}


def turns(site: Site, name: str, word: str) -> None:
    site.server.wait(f"the entries of {name} turn to {word}", lambda: words(site, name) == {word}, 10)


def test_entries_turn_once_the_ignition_file_is_fetched_and_those_of_other_machines_do_not(
    site: Site, host: Host
) -> None:
    assert {name: words(site, name) for name in NUMBERS} == {name: {"install"} for name in NUMBERS}
    assert fetch(site, host, "master-0", "--head") == "200"
    assert fetch(site, host, "master-0", "--range", "0-3") == "206"
    assert fetch(site, host, "master-0", role="worker") == "403"
    assert fetch(site, host, "bootstrap-0") == "200"
    turns(site, "bootstrap-0", "disk")
    assert (words(site, "master-0"), words(site, "worker-0")) == ({"install"}, {"install"})


def test_the_next_run_changes_nothing_and_tells_who_was_written(site: Site) -> None:
    before = site.state()
    run = site.done()
    assert (run.changed(), site.state()) == (0, before), run.stdout[-4000:]
    assert "written once, so they boot their disks: bootstrap-0. Next: " in run.stdout
    assert "installed at their next boot: master-0, worker-0; all" in run.stdout


def test_a_fetch_counts_after_the_service_was_killed_the_log_was_rotated_and_the_server_restarted(
    site: Site, host: Host
) -> None:
    server = site.server
    server.sh(f"systemctl stop hwaccel-gpu-once; mv {LOG} {LOG}.1; nginx -c {CONFIG}/nginx.conf -s reopen")
    server.wait("nginx writes a new log", lambda: "yes" in server.sh(f"test -e {LOG} && echo yes", check=False), 10)
    assert fetch(site, host, "master-0") == "200"
    assert words(site, "master-0") == {"install"}
    server.sh("systemctl start hwaccel-gpu-once")
    turns(site, "master-0", "disk")
    # Somebody, or a run that has observed the server before the fetch, writes the old entry.
    server.sh(
        f"systemctl kill --signal=KILL hwaccel-gpu-once; sed -i s/disk$/install/ {STATE}/files/grub/01-*-{NUMBERS['master-0']:02x}"
    )
    turns(site, "master-0", "disk")
    assert words(site, "bootstrap-0") == {"disk"}, "what was read of the log that was moved away"


def test_a_machine_is_written_again_if_it_is_requested_by_name_and_then_once(site: Site, host: Host) -> None:
    again = {"dns_pxe_install_again": ["master-0"]}
    site.done(**again)
    assert words(site, "master-0") == {"install"}
    assert fetch(site, host, "master-0") == "200"
    turns(site, "master-0", "disk")
    assert site.done(**again).changed() == 0
    assert words(site, "master-0") == {"disk"}
    # As machine_boot requests it.
    site.renew(NUMBERS["master-0"])
    turns(site, "master-0", "install")
    assert fetch(site, host, "master-0") == "200"
    turns(site, "master-0", "disk")


def test_an_answer_file_is_validated_served_to_its_own_machine_only_and_turns_its_entries(
    site: Site, host: Host
) -> None:
    worker = site.variables["dns_pxe_profiles"][2]
    del worker["ignition"]
    worker["answer"] = ANSWER
    run = site.done("-vvv", "--diff")
    assert HASH not in run.stdout
    assert "not validated" not in run.stdout, "Debian has the validator of preseed"
    file = f"/answers/{mac(NUMBERS['worker-0']).replace(':', '-')}/preseed.cfg"
    assert HASH in site.server.read(f"{STATE}{file}")
    assert site.server.sh(f"stat -c '%a %G' {STATE}/answers").split() == ["750", "www-data"]
    assert fetch(site, host, "master-0", path=file) == "403"
    assert words(site, "worker-0") == {"install"}
    assert fetch(site, host, "worker-0", path=file) == "200"
    turns(site, "worker-0", "disk")
    assert fetch(site, host, "worker-0", path="/report/worker-0?host_key=SHA256:x") == "204"
    assert site.done().changed() == 0
