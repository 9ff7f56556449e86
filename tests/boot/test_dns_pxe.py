# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role dns_pxe on a real dnsmasq and a real nginx: what machines of every kind are told, what others are not, and what a run does to a server that serves.

One boot server; the tests go on from each other's state, and each leaves what its inventory says.
"""

from __future__ import annotations

import collections.abc as c
import hashlib
import json
import pathlib
import threading
import time

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import (
    BALANCER,
    CONFIG,
    DOMAIN,
    MACHINES,
    PORT,
    SECRET,
    STATE,
    UNKNOWN,
    Client,
    Site,
    address,
    asked,
    fetched,
    mac,
    offering,
)
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY, ip
from ansible_collections.hwaccel.gpu.tests.node.rig.repository import Signer
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.mirror import CONTENT, Mirror

OUTSIDE = "10.98.0.5"
#: Another cluster, whose machines reach the server by a relay.
EDGE, EDGE_BALANCER, FAR, FAR_ROUTER = "edge.example.net", "10.97.0.5", "10.97.0.0/24", "10.97.0.1"
SELF_TEST = (pathlib.Path(__file__).parents[2] / "roles" / "dns_pxe" / "files" / "self_test.py").read_text(
    encoding="utf-8"
)
NAME = "late.example.com"
#: Codes of architectures in DHCP's option 93. None: a client that does not boot by network.
BIOS, EFI32, EFI64, EFI64_OF_OLD, ARM64, HTTP64, HTTP_ARM64 = 0, 6, 9, 7, 11, 16, 19


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    made = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    for name, (group, _firmware, _number) in MACHINES.items():
        made.groups[group][name]["hwaccel_cluster"] = "ocp"
    made.clusters["edge"] = {
        "hwaccel_domain": EDGE,
        "hwaccel_load_balancer_address": EDGE_BALANCER,
        "hwaccel_machine_network": FAR,
    }
    made.groups["control_plane"]["edge-0"] = {
        "hwaccel_cluster": "edge",
        "hwaccel_mac": mac(160),
        "hwaccel_address": "10.97.0.10",
    }
    made.variables["dns_pxe_networks"].append({"network": FAR, "router": FAR_ROUTER})
    # Four seconds of listening a run: one test is about that.
    made.variables["dns_pxe_skipped_checks"] = ["other_dhcp"]
    yield made
    rig.remove(made.server)


@pytest.fixture(scope="module")
def predicted(site: Site) -> tuple[Run, str, str]:
    """A run in check mode, and the server before and after it."""
    before = site.state()
    return site.done("--check", "--diff"), before, site.state()


@pytest.fixture(scope="module")
def served(site: Site, predicted: tuple[Run, str, str]) -> Run:
    return site.done()


@pytest.fixture(scope="module")
def client(rig: BootRig, served: Run) -> Machine:
    """A machine on the segment with dig and curl, and an address of each machine of the inventory to ask from."""
    made = rig.machine("client")
    made.sh(
        "apt-get -qq update && apt-get -qq install --no-install-recommends bind9-dnsutils curl >/dev/null", seconds=300
    )
    made.sh(f"ip address add {OUTSIDE}/24 dev eth0; ip address add {address(151)}/24 dev eth0")
    return made


@pytest.fixture(scope="module")
def card(rig: BootRig, served: Run, tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client.of(rig.host("card"), tmp_path_factory.mktemp("card"))


@pytest.fixture(scope="module")
def far(site: Site, rig: BootRig, served: Run, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A card on another segment, between which and the server's there is a router that relays requests."""
    relay, host = rig.machine("relay"), rig.host("far")
    relay.sh("apt-get -qq update && apt-get -qq install --no-install-recommends dnsmasq-base >/dev/null", seconds=300)
    made = Client.of(host, tmp_path_factory.mktemp("far"))
    ip("address", "flush", "dev", "eth0", pid=made.pid)
    host.port.plug_into(relay.port)
    cable = host.port.cable
    relay.sh(
        f"ip address add {FAR_ROUTER}/24 dev {cable}; ip link set {cable} up; echo 1 >/proc/sys/net/ipv4/ip_forward"
    )
    relay.sh(
        f"systemd-run --quiet dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --dhcp-relay={FAR_ROUTER},{site.server.address}"
    )
    relay.wait("the relay listens", lambda: ":67 " in relay.sh("ss -lnu"))
    site.server.sh(f"ip route add {FAR} via {relay.address}")
    return made


def test_check_mode_foresees_what_the_run_does_and_does_none_of_it(
    predicted: tuple[Run, str, str], served: Run, site: Site
) -> None:
    run, before, after = predicted
    assert before == after
    told = run.stdout
    for path in ("dnsmasq.conf", "hosts", "extra-hosts", "nginx.conf", "clients.nft"):
        assert f"write {CONFIG}/{path}" in told
        assert site.server.read(f"{CONFIG}/{path}")
    assert "install dnsmasq" in told and "download os/kernel" in told and "restarted: nginx" in told
    assert "+host-record" not in told and f"+{address(151)} master-0.{DOMAIN}" in told
    assert SECRET not in told + served.stdout


def test_the_second_run_changes_nothing(site: Site, served: Run) -> None:
    before = site.state()
    assert site.done().changed() == 0
    assert site.state() == before
    run = site.done("--check")
    assert (run.changed(), site.state()) == (0, before)


@pytest.mark.parametrize("name", ["api", "api-int", "apps", "console.apps", "a.b.apps", "a.b.c.apps"])
def test_names_of_a_cluster_have_one_address_and_no_error_for_the_other_kind(
    name: str, site: Site, client: Machine
) -> None:
    server = site.server.address
    assert asked(client, server, f"{name}.{DOMAIN}") == ("NOERROR", [BALANCER])
    assert asked(client, server, f"{name}.{DOMAIN}", "AAAA") == ("NOERROR", [])


def test_names_of_machines_go_both_ways_and_others_are_not_there(site: Site, client: Machine) -> None:
    server = site.server.address
    for name, (_group, _firmware, number) in MACHINES.items():
        assert asked(client, server, f"{name}.{DOMAIN}") == ("NOERROR", [address(number)])
        assert asked(client, server, address(number), "PTR") == ("NOERROR", [f"{name}.{DOMAIN}."])
    assert asked(client, server, "nobody." + DOMAIN) == ("NXDOMAIN", [])
    assert asked(client, server, f"_etcd-server-ssl._tcp.{DOMAIN}", "SRV") == ("NXDOMAIN", [])
    assert asked(client, server, "10.99.0.7", "PTR") == ("NOERROR", ["storage.example.com."])
    assert asked(client, server, "nfs.example.com") == ("NOERROR", ["10.99.0.7"])
    assert asked(client, server, "example.org") == ("REFUSED", [])


def test_a_client_outside_gets_no_answer(site: Site, client: Machine) -> None:
    server = site.server
    server.sh("ip route add 10.98.0.0/24 dev eth0")
    outside = ("-b", OUTSIDE)
    assert asked(client, server.address, f"api.{DOMAIN}", "A", *outside) == ("", [])
    assert asked(client, server.address, f"api.{DOMAIN}", "A", "+tcp", *outside) == ("", [])
    assert fetched(client, f"http://{server.address}:{PORT}/images/os/kernel", "--interface", OUTSIDE)[0] == "403"
    server.sh("nft delete table inet hwaccel_dns_pxe")
    try:
        assert asked(client, server.address, f"api.{DOMAIN}", "A", *outside)[0] == "NOERROR", (
            "without the rules it would be answered"
        )
    finally:
        server.sh("systemctl reload dnsmasq")
    assert asked(client, server.address, f"api.{DOMAIN}", "A", *outside) == ("", [])
    assert asked(client, server.address, f"api.{DOMAIN}")[0] == "NOERROR", (
        "it was given no answer, not by a dnsmasq that is gone"
    )


#: What a machine boots by what it says of itself: of BIOS, of UEFI, and of either.
BOOTS = {
    None: ("", "", ""),
    BIOS: ("pxelinux.0", "", "pxelinux.0"),
    EFI32: ("", "", ""),
    EFI64: ("", "shimx64.efi", "shimx64.efi"),
    EFI64_OF_OLD: ("", "shimx64.efi", "shimx64.efi"),
    ARM64: ("", "", ""),
    HTTP64: ("", "http", "http"),
    HTTP_ARM64: ("", "", ""),
}


@pytest.mark.parametrize("code", BOOTS)
def test_what_a_machine_boots_follows_from_its_mac_and_what_it_is(code: int | None, site: Site, card: Client) -> None:
    for (name, number), boots in zip(
        (("master-0", 151), ("worker-0", 152), ("worker-1", 153)), BOOTS[code], strict=True
    ):
        given = card.asks(mac(number), code)
        wanted = f"http://{site.server.address}:{PORT}/httpx64.efi" if boots == "http" else boots
        assert (given.get("ip"), given.get("hostname"), given.get("boots")) == (address(number), name, wanted)
    assert card.asks(UNKNOWN, code) == {}


def test_machines_of_another_cluster_behind_a_relay_are_served_alike(site: Site, far: Client) -> None:
    server = site.server.address
    given = far.asks(mac(160), EFI64)
    told = {key: given.get(key) for key in ("ip", "hostname", "domain", "router", "dns", "boots")}
    assert told == {
        "ip": "10.97.0.10",
        "hostname": "edge-0",
        "domain": EDGE,
        "router": FAR_ROUTER,
        "dns": server,
        "boots": "shimx64.efi",
    }
    assert far.asks(UNKNOWN, EFI64) == {}
    assert far.asks(mac(152), EFI64).get("ip") is None, "a machine of the other segment has no address here"
    for arguments in (
        ("address", "add", "10.97.0.10/24", "dev", "eth0"),
        ("route", "add", "default", "via", FAR_ROUTER),
    ):
        ip(*arguments, pid=far.pid)
    answer = far.host.run("busybox", "nslookup", f"console.apps.{EDGE}", server).stdout
    assert f"Address: {EDGE_BALANCER}" in answer
    kernel = far.host.run(
        "curl", "--silent", "--max-time", "60", "--head", f"http://{server}:{PORT}/images/os/kernel"
    ).stdout
    assert kernel.startswith("HTTP/1.1 200")


def test_ipxe_gets_its_script_and_options_are_those_of_the_network(site: Site, card: Client) -> None:
    given = card.asks(mac(151), BIOS, ipxe=True)
    assert given["boots"] == f"http://{site.server.address}:{PORT}/ipxe/boot.ipxe"
    options = {key: given[key] for key in ("router", "dns", "ntpsrv", "mtu", "domain", "lease")}
    assert options == {
        "router": "10.99.0.1",
        "dns": site.server.address,
        "ntpsrv": "10.99.0.1",
        "mtu": "9000",
        "domain": DOMAIN,
        "lease": "43200",
    }
    assert card.asks(UNKNOWN, BIOS, ipxe=True) == {}


def test_dnsmasq_reads_its_files_again_after_it_has_given_addresses(site: Site, card: Client) -> None:
    """2.90 ended with SIGSEGV where lines of machines were in a file that it reads again."""
    assert card.asks(mac(151))["ip"] == address(151)
    pid = site.server.sh("systemctl show dnsmasq -p MainPID")
    for _reload in range(2):
        site.server.sh("systemctl reload dnsmasq")
        assert card.asks(mac(151))["ip"] == address(151)
    assert site.server.sh("systemctl show dnsmasq -p MainPID") == pid


def test_files_are_those_of_their_checksums_and_keys_are_for_one_machine(site: Site, client: Machine) -> None:
    server = site.server.address
    # dnsmasq has told it where the cards were that it has given addresses to.
    site.server.sh("ip neighbour flush all")
    checksum = site.variables["dns_pxe_artifacts"][0]["checksum"].removeprefix("sha256:")
    assert fetched(client, f"tftp://{server}/images/os/kernel")[1] == checksum
    assert fetched(client, f"http://{server}:{PORT}/images/os/kernel") == ("200", checksum)
    half = fetched(client, f"http://{server}:{PORT}/images/os/rootfs", "--range", "0-99")
    assert half[0] == "206", "a broken download goes on"
    keys = f"http://{server}:{PORT}/ignition/ocp/master.ign"
    assert fetched(client, keys)[0] == "403"
    assert fetched(client, keys, "--interface", address(151))[0] == "200"
    assert fetched(client, keys.replace("master", "bootstrap"), "--interface", address(151))[0] == "403"
    assert fetched(client, f"tftp://{server}/../ignition/ocp/master.ign")[1] == ""
    assert fetched(client, f"http://{server}:{PORT}/ignition/")[0] == "404"
    assert site.server.sh(f"find {STATE}/ignition -name '*.ign' -printf '%m %g\\n'").split() == ["640", "www-data"] * 3


def test_the_self_test_tells_what_machines_would_not_get(site: Site, served: Run) -> None:
    server = site.server.address
    base = f"http://{server}:{PORT}/images/os"
    expected = {
        "server": server,
        "names": [
            (f"api.{DOMAIN}", "A", [BALANCER]),
            (f"api.{DOMAIN}", "A", ["10.99.0.6"]),
            (f"nobody.{DOMAIN}", "A", ["10.99.0.6"]),
        ],
        "tftp": [("pxelinux.0", "0"), ("gone", "0")],
        "http": [(f"{base}/kernel", "0"), (f"{base}/gone", "0")],
        "refused": [f"{base}/kernel"],
        "apis": [
            {"name": "api", "address": BALANCER, "port": port, "there": there}
            for port, there in ((6443, True), (6444, True), (6444, False))
        ],
    }
    told = json.loads(site.server.execute("python3", "-c", SELF_TEST, stdin=json.dumps(expected)).stdout)
    unreached = f"api cannot be reached at {BALANCER}:6444, its load balancer: "
    assert [note.startswith(unreached) for note in told["notes"]] == [True]
    wrong = told["wrong"]
    begins = (
        f"A api.{DOMAIN}: {BALANCER} instead of 10.99.0.6",
        f"A nobody.{DOMAIN}: the name does not exist",
        "tftp pxelinux.0: ",
        "tftp gone: file ",
        f"{base}/kernel: ",
        f"{base}/gone: HTTP Error 404",
        f"{base}/kernel is served to a host that must not get it",
        unreached,
    )
    assert len(wrong) == len(begins)
    assert [one for one, begin in zip(wrong, begins, strict=True) if not one.startswith(begin)] == []
    assert "all as expected" in served.stdout


def test_a_machine_that_has_joined_boots_its_disk_and_keys_go(site: Site, client: Machine) -> None:
    """A broken file of somebody's hand is put right by the same run."""
    entry, server = f"pxelinux.cfg/01-{mac(152).replace(':', '-')}", site.server
    assert "APPEND" in server.read(f"{STATE}/files/{entry}") and "LOCALBOOT" in server.read(
        f"{STATE}/files/pxelinux.cfg/01-{mac(153).replace(':', '-')}"
    )
    server.sh(f"echo 'this is no nginx }}' >>{CONFIG}/nginx.conf")
    site.done("-e", json.dumps({"dns_pxe_joined": {"ocp": ["worker-0", "master-0"]}}))
    assert "LOCALBOOT" in server.read(f"{STATE}/files/{entry}")
    assert server.sh(f"find {STATE}/ignition -name '*.ign'") == ""
    assert fetched(client, f"http://{server.address}:{PORT}/ignition/ocp/bootstrap.ign")[0] == "404"
    server.sh("nginx -t -q -c " + f"{CONFIG}/nginx.conf")


def test_a_machine_that_has_been_a_node_keeps_its_disk_while_its_cluster_is_silent_and_told_to_be_new(
    site: Site,
) -> None:
    """But where somebody names it, and then once."""
    entry, server = f"{STATE}/files/pxelinux.cfg/01-{mac(152).replace(':', '-')}", site.server
    told = (
        "not installed although hwaccel_install is set, as they have been nodes before: bootstrap-0, master-0, worker-0"
    )
    assert site.clusters["ocp"]["hwaccel_new_cluster"]
    before = site.state()
    for arguments in (("--check",), ("-e", "dns_pxe_entry=preflight"), ()):
        run = site.done(*arguments)
        assert (run.changed(), site.state()) == (0, before), "all are kept since the run before"
        assert told in run.stdout
        assert "LOCALBOOT" in server.read(entry)
    again = {"dns_pxe_install_again": ["worker-0"]}
    assert f"write {STATE}/joined.json" in site.done("--check", **again).stdout
    assert site.state() == before
    assert "until they have joined again: worker-0" in site.done(**again).stdout
    assert "APPEND" in server.read(entry)
    assert site.done(**again).changed() == 0
    joined = ("-e", json.dumps({"dns_pxe_joined": {"ocp": [{"name": "worker-0", "boot": "2"}]}}))
    assert "not installed again, as they have joined" in site.done(*joined, **again).stdout
    for changed in (again, {}):
        site.done(**changed)
        assert "LOCALBOOT" in server.read(entry)
    server.sh(f"rm {STATE}/joined.json")
    site.done()
    assert "APPEND" in server.read(entry), "the control: without what the server remembers it would be installed"


def test_an_api_that_its_load_balancer_does_not_reach_counts_once_the_cluster_has_a_node(site: Site) -> None:
    site.server.sh("systemctl stop balancer")
    told = f"api.{DOMAIN} cannot be reached at {BALANCER}:6443, its load balancer: "
    try:
        assert told in (run := site.done()).stdout and "it counts once the cluster has a node" in run.stdout
        assert told in site.refused("-e", json.dumps({"dns_pxe_joined": {"ocp": ["worker-1"]}}))
    finally:
        site.server.sh("systemd-run --quiet --unit=balancer python3 -m http.server 6443")


def test_a_run_that_is_cut_off_before_the_reload_is_finished_by_the_next(site: Site, client: Machine) -> None:
    server = site.server
    pid = server.sh("systemctl show dnsmasq -p MainPID")
    late = [*site.variables["dns_pxe_extra_hosts"], {"address": "10.99.0.8", "names": [NAME]}]
    # The connection ends as soon as the file is there.
    cut = f"until grep -q {NAME} {CONFIG}/extra-hosts; do sleep 0.02; done; systemctl stop ssh; systemctl kill --signal=KILL ssh"
    watch = threading.Thread(target=server.sh, args=(cut,), kwargs={"check": False})
    watch.start()
    run = site.play(dns_pxe_extra_hosts=late)
    watch.join()
    server.sh("systemctl start ssh")
    assert run.recap["boot"]["unreachable"] == 1, run.stdout[-3000:]
    assert asked(client, server.address, NAME)[0] == "REFUSED", "dnsmasq has not read it"
    site.variables["dns_pxe_extra_hosts"] = late
    again = site.done()
    assert "dnsmasq is reloaded" in again.stdout
    assert asked(client, server.address, NAME) == ("NOERROR", ["10.99.0.8"])
    assert server.sh("systemctl show dnsmasq -p MainPID") == pid


def test_a_configuration_that_its_checker_refuses_changes_nothing(site: Site) -> None:
    before = site.state()
    why = site.refused(dns_pxe_dnsmasq_extra=["no-such-option=1"], dns_pxe_nginx_extra=["no_such_directive on;"])
    assert site.state() == before
    assert (
        "dnsmasq does not accept its new configuration" in why
        and "bad option at line" in why
        and "The line is: no-such-option=1" in why
    )
    assert "nginx does not accept its new configuration" in why and 'unknown directive "no_such_directive"' in why


def test_a_download_that_breaks_off_goes_on_from_there(site: Site) -> None:
    mirror = Mirror([700_000], address=GATEWAY)
    thread = threading.Thread(target=mirror.serve_forever)
    thread.start()
    large = {"path": "os/large", "source": mirror.url, "checksum": f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"}
    artifacts = [*site.variables["dns_pxe_artifacts"], large]
    try:
        assert "download os/large" in site.done("--check", dns_pxe_artifacts=artifacts).stdout
        assert mirror.asked == []
        site.done(dns_pxe_artifacts=artifacts)
        assert mirror.asked == ["", "bytes=700000-"]
        assert site.done(dns_pxe_artifacts=artifacts).changed() == 0
        wrong = {**large, "path": "os/other", "checksum": f"sha256:{'0' * 64}"}
        assert "os/other could not be downloaded" in site.refused(dns_pxe_artifacts=[*artifacts, wrong])
        assert site.server.sh(f"ls {STATE}/files/images/os").split() == ["initramfs", "kernel", "large", "rootfs"]
    finally:
        mirror.shutdown()
        thread.join()
        mirror.server_close()


def test_a_file_is_served_only_with_a_signature_of_a_trusted_key(
    site: Site, rig: BootRig, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "signed").write_bytes(CONTENT)
    (tmp_path / "other").write_bytes(CONTENT[1:])
    with Signer.made(rig.folder / "signer") as signer:
        keyring = str(signer.keyring(tmp_path / "keyring"))
        signatures = {name: str(signer.detached(tmp_path / name)) for name in ("signed", "other")}
    checked = {
        "source": str(tmp_path / "signed"),
        "checksum": f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
        "keyring": keyring,
    }
    good, bad = ({**checked, "path": f"os/{name}", "signature": signatures[name]} for name in ("signed", "other"))
    artifacts = [*site.variables["dns_pxe_artifacts"], good]
    assert "the keyring of os/signed is missing" in site.refused(
        dns_pxe_artifacts=[*artifacts[:-1], {**good, "keyring": "/missing"}]
    )
    why = site.refused(dns_pxe_artifacts=[*artifacts, bad])
    assert (
        "os/other could not be downloaded" in why
        and "its signature is not by a trusted key" in why
        and "os/signed could" not in why
    )
    site.done(dns_pxe_artifacts=artifacts)
    served = site.server.sh(f"cd {STATE}/files/images/os && sha256sum signed; ls other* 2>/dev/null || :").split()
    assert served == [hashlib.sha256(CONTENT).hexdigest(), "signed"]
    assert site.done(dns_pxe_artifacts=artifacts).changed() == 0


def test_a_full_disk_changes_nothing(site: Site) -> None:
    server = site.server
    before = site.state()
    server.sh(
        f"cp -a {CONFIG} /var/tmp/kept && mount -t tmpfs -o size=64k tmpfs {CONFIG} && cp -a /var/tmp/kept/. {CONFIG}/"
    )
    try:
        server.sh(f"cat /dev/zero >{CONFIG}/filler || :", check=False)
        why = site.refused(dns_pxe_extra_hosts=[{"address": "10.99.0.9", "names": [NAME]}])
        assert "No space left on device" in why and "no file was changed" in why
        server.sh(f"rm {CONFIG}/filler && diff -r /var/tmp/kept {CONFIG}")
    finally:
        server.sh(f"umount {CONFIG}; rm -r /var/tmp/kept")
    assert site.state() == before


def test_faults_of_the_server_and_of_the_segment_are_told_at_once(
    site: Site, rig: BootRig, tmp_path: pathlib.Path
) -> None:
    before = site.state()
    other = rig.host("other")
    offering(other, tmp_path)
    site.server.sh("systemd-run --quiet --unit=squatter python3 -m http.server 9999")
    site.server.wait("the port is taken", lambda: ":9999" in site.server.sh("ss -ltn"))
    pool = {"network": "10.99.0.0/24", "pool": ["10.99.0.150", "10.99.0.160"]}
    why = site.refused(dns_pxe_skipped_checks=[], dns_pxe_http_port=9999, dns_pxe_networks=[pool])
    site.server.sh("systemctl stop squatter")
    other.stop()
    assert f"another DHCP server answers on eth0: {other.address}" in why
    assert "port 9999/tcp is in use by python3 (all addresses of squatter.service)" in why
    assert "is in the pool 10.99.0.150 to 10.99.0.160" in why
    assert site.state() == before


@pytest.mark.slow
def test_two_hundred_machines_behind_a_relay_take_little_longer(site: Site) -> None:
    few = time.monotonic()
    site.done()
    few = time.monotonic() - few
    for number in range(200):
        host = {
            "hwaccel_mac": f"52:54:01:99:00:{number:02x}",
            "hwaccel_address": f"10.95.0.{number + 10}",
            "hwaccel_install": True,
            "hwaccel_cluster": "ocp",
        }
        site.groups["workers"][f"dgx-{number}"] = host
    site.clusters["ocp"]["hwaccel_machine_network"] = ["10.99.0.0/24", "10.95.0.0/24"]
    site.variables["dns_pxe_networks"] = [
        *site.variables["dns_pxe_networks"],
        {"network": "10.95.0.0/24", "router": "10.95.0.1"},
    ]
    first = time.monotonic()
    site.done()
    first = time.monotonic() - first
    again = time.monotonic()
    assert site.done().changed() == 0
    again = time.monotonic() - again
    print(f"4 machines {few:.0f} s, 204 machines {first:.0f} s at first, {again:.0f} s again")
    assert again < 3 * few


def test_teardown_puts_the_server_back(site: Site, predicted: tuple[Run, str, str]) -> None:
    site.done("-e", "dns_pxe_entry=teardown")
    left = site.server.sh(
        f"ls -d {CONFIG} {STATE} /etc/systemd/system/*.service.d 2>/dev/null; nft list tables; ss -Hlnu", check=False
    )
    assert left.split() == []
    assert (
        site.server.sh(
            "dpkg-query -W -f='${db:Status-Abbrev} ${Package}\\n' dnsmasq nginx pxelinux | grep '^ii' || :", check=False
        )
        == ""
    )
    assert site.server.sh("systemctl is-enabled nginx || :", check=False).strip() != "enabled", (
        "its unit stays with a package that its own has brought"
    )
