# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All problems of a boot server are reported at once, before anything is changed."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.findings import Findings, Source, read
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Unit
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import (
    faults,
    findings,
    host,
    machine,
    settings,
)

CLUSTER: dict[str, t.Any] = settings()["clusters"][0]
NETWORK: dict[str, t.Any] = settings()["networks"][0]
BUSY = "eth0: [Errno 98] Address already in use"


def test_valid_settings_have_no_faults() -> None:
    assert faults() == []


def changed_machine(**changed: t.Any) -> dict[str, t.Any]:
    first, *others = settings()["machines"]
    return {"machines": [{**first, **changed}, *others]}


def changed_cluster(**changed: t.Any) -> dict[str, t.Any]:
    return {"clusters": [{**CLUSTER, **changed}]}


def changed_network(**changed: t.Any) -> dict[str, t.Any]:
    return {"networks": [{**NETWORK, **changed}]}


def changed_profile(**changed: t.Any) -> dict[str, t.Any]:
    return {"profiles": [{**one, **changed} if one["role"] == "worker" else one for one in settings()["profiles"]]}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (changed_machine(mac="52:54:00:77:00:11"), "2 machines have the mac 52:54:00:77:00:11"),
        (changed_machine(address="10.77.0.11"), "2 machines have the address 10.77.0.11"),
        (changed_machine(name="master-0"), "2 machines have the name master-0 in cluster ocp"),
        (changed_machine(name="Boot_strap"), "its name Boot_strap is not a DNS label"),
        (changed_machine(name="api-int"), "machine api-int has a name that its cluster uses"),
        (
            changed_machine(address="10.78.0.10"),
            "address 10.78.0.10 of machine bootstrap is outside the machine network 10.77.0.0/24",
        ),
        (changed_machine(address="10.77.0.255"), "is the network or broadcast address of 10.77.0.0/24"),
        (
            changed_machine(address="10.77.0.1"),
            "address 10.77.0.1 of machine bootstrap is also that of the router of 10.77.0.0/24",
        ),
        (changed_machine(address="10.77.0.2"), "is also that of this boot server"),
        (changed_machine(firmware="openfirmware"), "its firmware openfirmware is unknown"),
        (changed_machine(architecture="riscv64"), "its architecture riscv64 is unknown"),
        (changed_machine(mac=""), "machine bootstrap has no mac"),
        (
            changed_machine(cluster="other"),
            "machine bootstrap belongs to no known cluster (dns_pxe_machines: bootstrap): its cluster is other",
        ),
        (changed_machine(role="storage"), "machine bootstrap has to be installed, but has no profile"),
        (changed_cluster(machine_networks=["10.77.1.0/24"]), "is outside the machine network 10.77.1.0/24"),
        (
            changed_cluster(cluster_networks=["10.0.0.0/8"]),
            "machine network 10.77.0.0/24 and cluster network 10.0.0.0/8 overlap",
        ),
        (
            changed_cluster(service_networks=["10.128.8.0/24"]),
            "cluster network 10.128.0.0/14 and service network 10.128.8.0/24 overlap",
        ),
        (changed_cluster(domain="Ocp.example.com"), "Ocp.example.com is not a DNS name"),
        (changed_cluster(api="10.77.0.500"), "10.77.0.500 is not an IP address"),
        (changed_cluster(api=""), "api is missing"),
        ({"clusters": [CLUSTER, {**CLUSTER, "name": "two"}]}, "2 clusters have the domain ocp.example.com"),
        (
            changed_network(pool=["10.77.0.5", "10.77.0.15"]),
            "address 10.77.0.11 of machine master-0 is in the pool 10.77.0.5 to 10.77.0.15",
        ),
        (changed_network(pool=["10.77.0.250", "10.77.0.200"]), "the pool ends before it begins"),
        (changed_network(pool=["10.78.0.200", "10.78.0.250"]), "end of the pool 10.78.0.200 is outside 10.77.0.0/24"),
        (changed_network(pool=["10.77.0.200"]), "the pool cannot be read"),
        (changed_network(router="10.78.0.1"), "router 10.78.0.1 is outside 10.77.0.0/24"),
        (changed_network(network="10.77.0.9/24"), "10.77.0.9/24 is not a network"),
        (changed_network(mtu=100), "100 is not an MTU"),
        ({"networks": [NETWORK, {"network": "10.77.0.0/16"}]}, "networks 10.77.0.0/24 and 10.77.0.0/16 overlap"),
        ({"networks": []}, "no network for DHCP is declared"),
        ({"address": ""}, "the boot server has no address"),
        ({"address": "10.77.0.3"}, "this server does not have the address 10.77.0.3"),
        ({"interfaces": ["eth7"]}, "this server has no interface eth7 with an address"),
        ({"interfaces": []}, "no interface to serve on is set"),
        ({"artifacts": settings()["artifacts"][1:]}, "kernel os/kernel of the profile of worker is missing"),
        (
            {"artifacts": [{**settings()["artifacts"][0], "checksum": "sha1:1"}, *settings()["artifacts"][1:]]},
            "os/kernel has no valid checksum",
        ),
        ({"artifacts": [*settings()["artifacts"], {**settings()["artifacts"][0]}]}, "os/kernel is declared 2 times"),
        (
            {"artifacts": [*settings()["artifacts"], {**settings()["artifacts"][0], "path": "../secret"}]},
            "../secret is not a path of a served file",
        ),
        ({"ignitions": []}, "ignition file worker.ign of the profile of worker is missing"),
        (
            changed_profile(arguments=["x={typo}"]),
            "kernel arguments of machine worker-0 cannot be completed (dns_pxe_profiles): 'typo'",
        ),
        (changed_machine(architecture="aarch64", firmware="bios"), "there is no BIOS on aarch64"),
        (changed_machine(architecture="aarch64"), "shimaa64.efi, which machines boot, is missing"),
        ({"artifacts": [{**settings()["artifacts"][0], "signature": "/files/kernel.sig"}]}, "os/kernel has no keyring"),
        ({"install_again": ["worker-9"]}, "worker-9 cannot be installed again"),
        (
            changed_machine(install="flase"),
            "machine bootstrap has to be installed (dns_pxe_machines: bootstrap): its hwaccel_install is flase",
        ),
        (changed_cluster(srv="nein"), "nein is neither true nor false (dns_pxe_clusters[0])"),
    ],
)
def test_a_problem_is_reported_with_the_next_step(changed: dict[str, t.Any], expected: str) -> None:
    found = [fault for fault in faults(settings(**changed)) if expected in fault]
    assert found, faults(settings(**changed))
    assert "Next: " in found[0]


def test_all_problems_are_reported_at_once() -> None:
    wrong = {
        **changed_machine(mac="52:54:00:77:00:11", address="10.78.0.10"),
        **changed_network(pool=["10.77.0.5", "10.77.0.15"]),
    }
    wrong |= {
        **changed_cluster(cluster_networks=["10.0.0.0/8"]),
        "artifacts": settings()["artifacts"][1:],
        "interfaces": ["eth7"],
    }
    assert len(faults(settings(**wrong))) == 8


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        ("udp 0.0.0.0:53 named named.service", "port 53/udp is in use by named (all addresses of named.service)"),
        ("tcp 10.77.0.2:53 unbound unbound.service", "port 53/tcp is in use by unbound (10.77.0.2 of unbound.service)"),
        ("udp [::]:69 in.tftpd tftpd-hpa.service", "port 69/udp is in use by in.tftpd"),
        ("udp *:67 dhcpd -", "port 67/udp is in use by dhcpd (all addresses)"),
        ("tcp 0.0.0.0:8080 java app.service", "port 8080/tcp is in use by java"),
        # Not in conflict: systemd-resolved, the dnsmasq of libvirt, the role's own service, and a port that is not needed.
        ("udp 127.0.0.53%lo:53 systemd-resolve systemd-resolved.service", ""),
        ("udp 192.168.122.1:53 dnsmasq libvirtd.service", ""),
        ("udp 0.0.0.0%virbr0:67 dnsmasq libvirtd.service", ""),
        ("udp 10.77.0.2:53 dnsmasq dnsmasq.service", ""),
        ("tcp 0.0.0.0:443 haproxy haproxy.service", ""),
    ],
)
def test_a_port_in_use_is_reported_with_its_program(listener: str, expected: str) -> None:
    found = faults(observed=host(listener))
    assert (expected in found[0] and len(found) == 1) if expected else not found


def test_ports_of_disabled_services_are_not_checked() -> None:
    assert faults(settings(dns=False), host("udp 0.0.0.0:53 named named.service")) == []
    assert faults(settings(pxe=False), host("tcp 0.0.0.0:8080 java app.service\nudp 0.0.0.0:69 in.tftpd -")) == []


def test_another_dhcp_server_is_reported_unless_the_check_is_skipped() -> None:
    offers = [{"interface": "eth0", "server": "10.77.0.1", "offered": "10.77.0.77"}]
    (message,) = faults(dhcp_servers=offers)
    assert "another DHCP server answers on eth0: 10.77.0.1" in message
    assert faults(settings(skipped_checks=["other_dhcp"]), dhcp_servers=offers) == []


def test_a_failed_probe_is_reported_as_unknown() -> None:
    (message,) = faults(unasked=BUSY)
    assert message.startswith(f"it is unknown whether another DHCP server answers: {BUSY}. Next: ")
    assert faults(settings(skipped_checks=["other_dhcp"]), unasked=BUSY) == []
    (message,) = faults(settings(interfaces=["eth7"]), unasked="eth7: [Errno 19] No such device")
    assert "this server has no interface eth7" in message


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        ({"skipped": True}, Findings()),
        ({"rc": 0, "stdout": '[{"server": "10.0.0.1"}]\n'}, Findings(dhcp_servers=[{"server": "10.0.0.1"}])),
        (
            {"rc": 1, "stdout": "eth0: [Errno 98] Address already in use\r\n", "stderr": "Shared connection closed."},
            Findings(unasked=BUSY),
        ),
        (
            {"rc": 1, "stdout": "", "stderr": "Traceback:\nSyntaxError: invalid syntax\n"},
            Findings(unasked="SyntaxError: invalid syntax"),
        ),
        ({"rc": 127, "stdout": "", "stderr": ""}, Findings(unasked="exit status 127")),
    ],
)
def test_a_failed_probe_has_no_findings(probe: dict[str, t.Any], expected: Findings) -> None:
    found = read({"images": [], "local": [], "remote": [], "probe": probe})
    assert (list(found.dhcp_servers), found.unasked) == (list(expected.dhcp_servers), expected.unasked)


def test_a_service_with_an_existing_configuration_is_not_taken_over() -> None:
    observed = host(foreign_nginx="/etc/nginx/sites-enabled/shop\n", foreign_dnsmasq="/etc/dnsmasq.d/office\n")
    assert faults(observed=observed) == []
    observed.units.update({name: Unit(True, True, True, 1.0) for name in ("dnsmasq", "nginx")})
    first, second = faults(observed=observed)
    assert "dnsmasq has an existing configuration (/etc/dnsmasq.d/office)" in first
    assert "nginx has an existing configuration (/etc/nginx/sites-enabled/shop)" in second
    assert len(faults(settings(pxe=False), observed)) == 1
    assert faults(settings(skipped_checks=["foreign_configuration"]), observed) == []


def test_a_missing_source_is_reported_unless_the_file_is_already_fetched() -> None:
    given = settings()
    sources = {**findings(given).sources, "/files/os/kernel": Source("the file does not exist on the controller")}
    (message,) = faults(given, sources=sources)
    assert message.startswith(
        "os/kernel is missing (/files/os/kernel): the file does not exist on the controller. Next: "
    )
    kernel = given["artifacts"][0]
    assert faults(given, sources=sources, images={"os/kernel": kernel["checksum"].removeprefix("sha256:")}) == []
    (message,) = faults(given, sources={**sources, "/files/os/kernel": Source(checksum="0" * 64)})
    assert "os/kernel has another checksum than expected" in message


def test_a_relative_path_is_reported() -> None:
    ignitions = [
        {**one, "source": "install/worker.ign"} if one["path"] == "worker.ign" else one
        for one in settings()["ignitions"]
    ]
    sources = {
        **findings(settings()).sources,
        "install/worker.ign": Source("the file does not exist on the controller"),
    }
    (message,) = faults(settings(ignitions=ignitions), sources=sources)
    assert message.endswith("Next: write it as an absolute path, with inventory_dir if it is beside the inventory")


def test_an_unsupported_system_is_reported() -> None:
    (message,) = faults(observed=host(os_release="ID=arch\nPRETTY_NAME=Arch\n"))
    assert message.startswith("this system is not supported (/etc/os-release): Arch")


def test_findings_are_read_from_task_results() -> None:
    kernel, rootfs, missing = (
        {"path": name, "source": source} for name, source in (("k", "/k"), ("r", "http://m/r"), ("g", "http://m/g"))
    )
    images = [
        {"item": kernel, "stat": {"exists": False}},
        {"item": rootfs, "stat": {"checksum": "1"}},
        {"item": missing, "stat": {}},
    ]
    local = [
        {"item": images[0], "stat": {"checksum": "2"}},
        {"item": images[1], "skipped": True},
        {"item": {"source": "/w.ign"}, "stat": {"exists": False}},
    ]
    remote = [
        {"item": images[0], "skipped": True},
        {"item": images[1], "status": 200},
        {"item": images[2], "status": 404, "msg": "Not Found"},
    ]
    found = read(
        {"images": images, "local": local, "remote": remote, "probe": {"rc": 0, "stdout": '[{"server": "10.0.0.1"}]'}}
    )
    assert found == Findings(
        {"k": "", "r": "1", "g": ""},
        {
            "/k": Source(checksum="2"),
            "/w.ign": Source("the file does not exist on the controller"),
            "http://m/r": Source(),
            "http://m/g": Source("Not Found"),
        },
        [{"server": "10.0.0.1"}],
    )


def test_machines_need_a_mac_only_for_dhcp_or_boot() -> None:
    without = [machine("worker-0", "worker", 21, mac="", install=False)]
    assert faults(settings(machines=without, dhcp=False, pxe=False)) == []
    assert len(faults(settings(machines=without))) == 1


@pytest.mark.parametrize(
    ("rejoins", "joined", "expected"),
    [
        (None, ["worker-0.ocp.example.com"], False),
        ([], ["worker-0.ocp.example.com"], True),
        ([], ["master-0"], False),
        (["worker-0.OCP.example.com"], ["worker-0"], False),
        ("worker-0", ["worker-0"], False),
        (["worker-1"], ["worker-0"], True),
    ],
)
def test_a_machine_is_not_wiped_if_its_cluster_would_not_let_it_in_again(
    rejoins: t.Any, joined: list[str], expected: bool
) -> None:
    cluster = {**settings()["clusters"][0], "rejoins": rejoins}
    messages = faults(settings(clusters=[cluster], joined={"ocp": joined}, install_again=["worker-0"]))
    assert bool(messages) == expected
    for message in messages:
        assert "worker-0 cannot be installed again (dns_pxe_install_again): Node worker-0." in message
        assert "to cluster_openshift_allow_rejoin of ocp until it has joined, or delete the Node" in message
    assert faults(settings(clusters=[cluster], joined={"ocp": joined})) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, "source is missing (dns_pxe_ignitions[0])"),
        ({"source": "/files/a", "content": "{}"}, "a.ign has source and content (dns_pxe_ignitions[0])"),
    ],
)
def test_an_ignition_file_has_a_source_or_content(changed: dict[str, str], message: str) -> None:
    given = settings(ignitions=[{"path": "a.ign", **changed}, *settings()["ignitions"]])
    assert message in faults(given)[0]
