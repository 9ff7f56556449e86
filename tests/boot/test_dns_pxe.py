# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role dns_pxe on a real dnsmasq and a real nginx: responses to machines of every kind, no responses to others, and runs on a server in use.

There is one boot server. The tests depend on the state that earlier ones leave, which is that of the inventory.
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
    dig,
    download,
    mac,
    start_other_dhcp_server,
)
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY, ip
from ansible_collections.hwaccel.gpu.tests.node.rig.repository import Signer
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.mirror import CONTENT, Mirror

OUTSIDE = "10.98.0.5"
#: Another cluster, whose machines reach the server through a relay.
EDGE, EDGE_BALANCER, FAR, FAR_ROUTER = "edge.example.net", "10.97.0.5", "10.97.0.0/24", "10.97.0.1"
SELF_TEST = (pathlib.Path(__file__).parents[2] / "roles" / "dns_pxe" / "files" / "self_test.py").read_text(
    encoding="utf-8"
)
NAME = "late.example.com"
#: Codes of architectures in DHCP's option 93. None: a client that does not boot from the network.
BIOS, EFI32, EFI64, OLD_EFI64, ARM64, HTTP64, HTTP_ARM64 = 0, 6, 9, 7, 11, 16, 19


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    site = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    for name, (group, _firmware, _number) in MACHINES.items():
        site.groups[group][name]["hwaccel_cluster"] = "ocp"
    site.clusters["edge"] = {
        "hwaccel_domain": EDGE,
        "hwaccel_load_balancer_address": EDGE_BALANCER,
        "hwaccel_machine_network": FAR,
    }
    site.groups["control_plane"]["edge-0"] = {
        "hwaccel_cluster": "edge",
        "hwaccel_mac": mac(160),
        "hwaccel_address": "10.97.0.10",
    }
    site.variables["dns_pxe_networks"].append({"network": FAR, "router": FAR_ROUTER})
    # This check listens for four seconds in each run, and has its own test.
    site.variables["dns_pxe_skipped_checks"] = ["other_dhcp"]
    yield site
    rig.remove(site.server)


@pytest.fixture(scope="module")
def predicted(site: Site) -> tuple[Run, str, str]:
    """A run in check mode, and the state of the server before and after it."""
    before = site.state()
    return site.done("--check", "--diff"), before, site.state()


@pytest.fixture(scope="module")
def served(site: Site, predicted: tuple[Run, str, str]) -> Run:
    return site.done()


@pytest.fixture(scope="module")
def client(rig: BootRig, served: Run) -> Machine:
    """A machine on the segment with dig and curl, which also has an address outside of the machine network and that of master-0."""
    client = rig.machine("client")
    client.sh(
        "apt-get -qq update && apt-get -qq install --no-install-recommends bind9-dnsutils curl >/dev/null", seconds=300
    )
    client.sh(f"ip address add {OUTSIDE}/24 dev eth0; ip address add {address(151)}/24 dev eth0")
    return client


@pytest.fixture(scope="module")
def card(rig: BootRig, served: Run, tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client.of(rig.host("card"), tmp_path_factory.mktemp("card"))


@pytest.fixture(scope="module")
def far(site: Site, rig: BootRig, served: Run, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A card on another segment, whose router relays requests to the segment of the server."""
    relay, host = rig.machine("relay"), rig.host("far")
    relay.sh("apt-get -qq update && apt-get -qq install --no-install-recommends dnsmasq-base >/dev/null", seconds=300)
    card = Client.of(host, tmp_path_factory.mktemp("far"))
    ip("address", "flush", "dev", "eth0", pid=card.pid)
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
    return card


def test_check_mode_predicts_the_changes_and_makes_none(
    predicted: tuple[Run, str, str], served: Run, site: Site
) -> None:
    run, before, after = predicted
    assert before == after
    output = run.stdout
    for path in ("dnsmasq.conf", "hosts", "extra-hosts", "nginx.conf", "clients.nft"):
        assert f"write {CONFIG}/{path}" in output
        assert site.server.read(f"{CONFIG}/{path}")
    assert "install the package dnsmasq" in output and "download os/kernel" in output and "restart nginx" in output
    assert "+host-record" not in output and f"+{address(151)} master-0.{DOMAIN}" in output
    assert SECRET not in output + served.stdout


def test_the_second_run_changes_nothing(site: Site, served: Run) -> None:
    before = site.state()
    assert site.done().changed() == 0
    assert site.state() == before
    run = site.done("--check")
    assert (run.changed(), site.state()) == (0, before)


@pytest.mark.parametrize("name", ["api", "api-int", "apps", "console.apps", "a.b.apps", "a.b.c.apps"])
def test_names_of_a_cluster_have_one_address_and_no_error_for_the_other_type(
    name: str, site: Site, client: Machine
) -> None:
    server = site.server.address
    assert dig(client, server, f"{name}.{DOMAIN}") == ("NOERROR", [BALANCER])
    assert dig(client, server, f"{name}.{DOMAIN}", "AAAA") == ("NOERROR", [])


def test_names_and_addresses_of_machines_are_resolved_and_others_do_not_exist(site: Site, client: Machine) -> None:
    server = site.server.address
    for name, (_group, _firmware, number) in MACHINES.items():
        assert dig(client, server, f"{name}.{DOMAIN}") == ("NOERROR", [address(number)])
        assert dig(client, server, address(number), "PTR") == ("NOERROR", [f"{name}.{DOMAIN}."])
    assert dig(client, server, "nobody." + DOMAIN) == ("NXDOMAIN", [])
    assert dig(client, server, f"_etcd-server-ssl._tcp.{DOMAIN}", "SRV") == ("NXDOMAIN", [])
    assert dig(client, server, "10.99.0.7", "PTR") == ("NOERROR", ["storage.example.com."])
    assert dig(client, server, "nfs.example.com") == ("NOERROR", ["10.99.0.7"])
    assert dig(client, server, "example.org") == ("REFUSED", [])


def test_a_client_outside_of_the_network_gets_no_response(site: Site, client: Machine) -> None:
    server = site.server
    server.sh("ip route add 10.98.0.0/24 dev eth0")
    outside = ("-b", OUTSIDE)
    assert dig(client, server.address, f"api.{DOMAIN}", "A", *outside) == ("", [])
    assert dig(client, server.address, f"api.{DOMAIN}", "A", "+tcp", *outside) == ("", [])
    assert download(client, f"http://{server.address}:{PORT}/images/os/kernel", "--interface", OUTSIDE)[0] == "403"
    server.sh("nft delete table inet hwaccel_dns_pxe")
    try:
        assert dig(client, server.address, f"api.{DOMAIN}", "A", *outside)[0] == "NOERROR", (
            "without the firewall rules there is a response"
        )
    finally:
        server.sh("systemctl reload dnsmasq")
    assert dig(client, server.address, f"api.{DOMAIN}", "A", *outside) == ("", [])
    assert dig(client, server.address, f"api.{DOMAIN}")[0] == "NOERROR", "dnsmasq still responds to other clients"


#: Boot programs by architecture in the request, for machines with BIOS, with UEFI, and with either.
BOOTS = {
    None: ("", "", ""),
    BIOS: ("pxelinux.0", "", "pxelinux.0"),
    EFI32: ("", "", ""),
    EFI64: ("", "shimx64.efi", "shimx64.efi"),
    OLD_EFI64: ("", "shimx64.efi", "shimx64.efi"),
    ARM64: ("", "", ""),
    HTTP64: ("", "http", "http"),
    HTTP_ARM64: ("", "", ""),
}


@pytest.mark.parametrize("code", BOOTS)
def test_the_boot_program_depends_on_mac_and_architecture(code: int | None, site: Site, card: Client) -> None:
    for (name, number), boots in zip(
        (("master-0", 151), ("worker-0", 152), ("worker-1", 153)), BOOTS[code], strict=True
    ):
        lease = card.dhcp(mac(number), code)
        expected = f"http://{site.server.address}:{PORT}/httpx64.efi" if boots == "http" else boots
        assert (lease.get("ip"), lease.get("hostname"), lease.get("boots")) == (address(number), name, expected)
    assert card.dhcp(UNKNOWN, code) == {}


def test_machines_of_another_cluster_are_served_through_a_relay(site: Site, far: Client) -> None:
    server = site.server.address
    lease = far.dhcp(mac(160), EFI64)
    observed = {key: lease.get(key) for key in ("ip", "hostname", "domain", "router", "dns", "boots")}
    assert observed == {
        "ip": "10.97.0.10",
        "hostname": "edge-0",
        "domain": EDGE,
        "router": FAR_ROUTER,
        "dns": server,
        "boots": "shimx64.efi",
    }
    assert far.dhcp(UNKNOWN, EFI64) == {}
    assert far.dhcp(mac(152), EFI64).get("ip") is None, "a machine of the other segment has no address here"
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


def test_ipxe_gets_its_script_and_the_options_of_the_network(site: Site, card: Client) -> None:
    lease = card.dhcp(mac(151), BIOS, ipxe=True)
    assert lease["boots"] == f"http://{site.server.address}:{PORT}/ipxe/boot.ipxe"
    options = {key: lease[key] for key in ("router", "dns", "ntpsrv", "mtu", "domain", "lease")}
    assert options == {
        "router": "10.99.0.1",
        "dns": site.server.address,
        "ntpsrv": "10.99.0.1",
        "mtu": "9000",
        "domain": DOMAIN,
        "lease": "43200",
    }
    assert card.dhcp(UNKNOWN, BIOS, ipxe=True) == {}


def test_dnsmasq_can_be_reloaded_after_it_has_assigned_addresses(site: Site, card: Client) -> None:
    """dnsmasq 2.90 ended with SIGSEGV when entries of machines were in a file that a reload reads."""
    assert card.dhcp(mac(151))["ip"] == address(151)
    pid = site.server.sh("systemctl show dnsmasq -p MainPID")
    for _reload in range(2):
        site.server.sh("systemctl reload dnsmasq")
        assert card.dhcp(mac(151))["ip"] == address(151)
    assert site.server.sh("systemctl show dnsmasq -p MainPID") == pid


def test_files_have_their_checksums_and_keys_are_for_one_machine(site: Site, client: Machine) -> None:
    server = site.server.address
    # The neighbor table still contains the cards to which dnsmasq has assigned addresses.
    site.server.sh("ip neighbour flush all")
    checksum = site.variables["dns_pxe_artifacts"][0]["checksum"].removeprefix("sha256:")
    assert download(client, f"tftp://{server}/images/os/kernel")[1] == checksum
    assert download(client, f"http://{server}:{PORT}/images/os/kernel") == ("200", checksum)
    half = download(client, f"http://{server}:{PORT}/images/os/rootfs", "--range", "0-99")
    assert half[0] == "206", "an interrupted download can be continued"
    keys = f"http://{server}:{PORT}/ignition/ocp/master.ign"
    assert download(client, keys)[0] == "403"
    assert download(client, keys, "--interface", address(151))[0] == "200"
    assert download(client, keys.replace("master", "bootstrap"), "--interface", address(151))[0] == "403"
    assert download(client, f"tftp://{server}/../ignition/ocp/master.ign")[1] == ""
    assert download(client, f"http://{server}:{PORT}/ignition/")[0] == "404"
    assert site.server.sh(f"find {STATE}/ignition -name '*.ign' -printf '%m %g\\n'").split() == ["640", "www-data"] * 3


def test_the_self_test_reports_what_machines_would_not_get(site: Site, served: Run) -> None:
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
    report = json.loads(site.server.execute("python3", "-c", SELF_TEST, stdin=json.dumps(expected)).stdout)
    unreached = f"api cannot be reached at {BALANCER}:6444, its load balancer: "
    assert [note.startswith(unreached) for note in report["notes"]] == [True]
    wrong = report["wrong"]
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


def test_a_machine_that_has_joined_boots_its_disk_and_keys_are_deleted(site: Site, client: Machine) -> None:
    """The same run corrects a file that has been edited by hand."""
    entry, server = f"pxelinux.cfg/01-{mac(152).replace(':', '-')}", site.server
    assert "DEFAULT install" in server.read(f"{STATE}/files/{entry}") and "DEFAULT local" in server.read(
        f"{STATE}/files/pxelinux.cfg/01-{mac(153).replace(':', '-')}"
    )
    server.sh(f"echo 'this is no nginx }}' >>{CONFIG}/nginx.conf")
    site.done("-e", json.dumps({"dns_pxe_joined": {"ocp": ["worker-0", "master-0"]}}))
    assert "DEFAULT local" in server.read(f"{STATE}/files/{entry}")
    assert server.sh(f"find {STATE}/ignition -name '*.ign'") == ""
    assert download(client, f"http://{server.address}:{PORT}/ignition/ocp/bootstrap.ign")[0] == "404"
    server.sh("nginx -t -q -c " + f"{CONFIG}/nginx.conf")


def test_a_former_node_is_not_installed_again_while_its_cluster_is_unreachable_and_declared_as_new(
    site: Site,
) -> None:
    """Unless the variable for another installation names it, and then once."""
    entry, server = f"{STATE}/files/pxelinux.cfg/01-{mac(152).replace(':', '-')}", site.server
    message = (
        "not installed although hwaccel_install is set, as they have been nodes before: bootstrap-0, master-0, worker-0"
    )
    assert site.clusters["ocp"]["hwaccel_new_cluster"]
    before = site.state()
    for arguments in (("--check",), ("-e", "dns_pxe_entry=preflight"), ()):
        run = site.done(*arguments)
        assert (run.changed(), site.state()) == (0, before), "the previous run has changed everything"
        assert message in run.stdout
        assert "DEFAULT local" in server.read(entry)
    again = {"dns_pxe_install_again": ["worker-0"]}
    assert f"write {STATE}/joined.json" in site.done("--check", **again).stdout
    assert site.state() == before
    assert "until they have joined again: worker-0" in site.done(**again).stdout
    assert "DEFAULT install" in server.read(entry)
    assert site.done(**again).changed() == 0
    joined = ("-e", json.dumps({"dns_pxe_joined": {"ocp": [{"name": "worker-0", "boot": "2"}]}}))
    assert "not installed again, as they have joined" in site.done(*joined, **again).stdout
    for changed in (again, {}):
        site.done(**changed)
        assert "DEFAULT local" in server.read(entry)
    server.sh(f"rm {STATE}/joined.json")
    site.done()
    assert "DEFAULT install" in server.read(entry), "without the record on the server, the machine is installed"


def test_an_unreachable_api_fails_the_run_once_the_cluster_has_a_node(site: Site) -> None:
    site.server.sh("systemctl stop balancer")
    message = f"api.{DOMAIN} cannot be reached at {BALANCER}:6443, its load balancer: "
    try:
        assert message in (run := site.done()).stdout and "it counts once the cluster has a node" in run.stdout
        assert message in site.refused("-e", json.dumps({"dns_pxe_joined": {"ocp": ["worker-1"]}}))
    finally:
        site.server.sh("systemd-run --quiet --unit=balancer python3 -m http.server 6443")


def test_the_next_run_completes_one_that_was_interrupted_before_the_reload(site: Site, client: Machine) -> None:
    server = site.server
    pid = server.sh("systemctl show dnsmasq -p MainPID")
    late = [*site.variables["dns_pxe_extra_hosts"], {"address": "10.99.0.8", "names": [NAME]}]
    # The connection ends as soon as the file is written.
    cut = f"until grep -q {NAME} {CONFIG}/extra-hosts; do sleep 0.02; done; systemctl stop ssh; systemctl kill --signal=KILL ssh"
    watch = threading.Thread(target=server.sh, args=(cut,), kwargs={"check": False})
    watch.start()
    run = site.play(dns_pxe_extra_hosts=late)
    watch.join()
    server.sh("systemctl start ssh")
    assert run.recap["boot"]["unreachable"] == 1, run.stdout[-3000:]
    assert dig(client, server.address, NAME)[0] == "REFUSED", "dnsmasq has not loaded the file"
    site.variables["dns_pxe_extra_hosts"] = late
    again = site.done()
    assert "dnsmasq is reloaded" in again.stdout
    assert dig(client, server.address, NAME) == ("NOERROR", ["10.99.0.8"])
    assert server.sh("systemctl show dnsmasq -p MainPID") == pid


def test_an_invalid_configuration_changes_nothing(site: Site) -> None:
    before = site.state()
    why = site.refused(dns_pxe_dnsmasq_extra=["no-such-option=1"], dns_pxe_nginx_extra=["no_such_directive on;"])
    assert site.state() == before
    assert (
        "dnsmasq does not accept its new configuration" in why
        and "bad option at line" in why
        and "The line is: no-such-option=1" in why
    )
    assert "nginx does not accept its new configuration" in why and 'unknown directive "no_such_directive"' in why


def test_an_interrupted_download_is_continued(site: Site) -> None:
    mirror = Mirror([700_000], address=GATEWAY)
    thread = threading.Thread(target=mirror.serve_forever)
    thread.start()
    large = {"path": "os/large", "source": mirror.url, "checksum": f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"}
    artifacts = [*site.variables["dns_pxe_artifacts"], large]
    try:
        assert "download os/large" in site.done("--check", dns_pxe_artifacts=artifacts).stdout
        assert mirror.requested == []
        site.done(dns_pxe_artifacts=artifacts)
        assert mirror.requested == ["", "bytes=700000-"]
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


def test_problems_of_the_server_and_of_the_segment_are_reported_at_once(
    site: Site, rig: BootRig, tmp_path: pathlib.Path
) -> None:
    before = site.state()
    other = rig.host("other")
    start_other_dhcp_server(other, tmp_path)
    site.server.sh("systemd-run --quiet --unit=squatter python3 -m http.server 9999")
    site.server.wait("the port is in use", lambda: ":9999" in site.server.sh("ss -ltn"))
    pool = {"network": "10.99.0.0/24", "pool": ["10.99.0.150", "10.99.0.160"]}
    why = site.refused(dns_pxe_skipped_checks=[], dns_pxe_http_port=9999, dns_pxe_networks=[pool])
    site.server.sh("systemctl stop squatter")
    other.stop()
    assert f"another DHCP server answers on eth0: {other.address}" in why
    assert "port 9999/tcp is in use by python3 (all addresses of squatter.service)" in why
    assert "is in the pool 10.99.0.150 to 10.99.0.160" in why
    assert site.state() == before


@pytest.mark.slow
def test_two_hundred_machines_behind_a_relay_need_little_more_time(site: Site) -> None:
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


def test_teardown_restores_the_server(site: Site, predicted: tuple[Run, str, str]) -> None:
    site.done("-e", "dns_pxe_entry=teardown")
    left = site.server.sh(
        f"ls -d {CONFIG} {STATE} /var/log/nginx/hwaccel* /etc/systemd/system/*.service.d /etc/systemd/system/hwaccel* "
        "/etc/systemd/system/*/hwaccel* 2>/dev/null; nft list tables; ss -Hlnu; pgrep --full once.py",
        check=False,
    )
    assert left.split() == []
    assert (
        site.server.sh(
            "dpkg-query -W -f='${db:Status-Abbrev} ${Package}\\n' dnsmasq nginx pxelinux | grep '^ii' || :", check=False
        )
        == ""
    )
    assert site.server.sh("systemctl is-enabled nginx || :", check=False).strip() != "enabled", (
        "the package with its unit, a dependency of nginx, remains"
    )
