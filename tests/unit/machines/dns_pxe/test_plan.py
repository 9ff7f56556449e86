# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a boot server from its settings, and the actions that it needs."""

from __future__ import annotations

import base64
import dataclasses
import json
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import inventory, model, plan, systems, units
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import predicted
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import (
    SERVER,
    after,
    digest,
    findings,
    host,
    machine,
    planned,
    settings,
)

CONF, NGINX = f"{plan.CONFIG}/dnsmasq.conf", f"{plan.CONFIG}/nginx.conf"
WEB = f"http://{SERVER}:8080"
MASTER, WORKER = "01-52-54-00-77-00-11", "01-52-54-00-77-00-21"


def files(os_id: str = "debian", **changed: t.Any) -> dict[str, str]:
    """Every file by its path; paths of boot files are relative to their folder."""
    given = settings(**changed)
    site, faults = model.read(given)
    family = systems.family({"ID": os_id, "ID_LIKE": "" if os_id == "debian" else "rhel centos fedora"})
    assert site and family and not faults
    return {path.removeprefix(f"{plan.FILES}/"): text for path, text in plan.rendered(site, given, family).items()}


def lines(path: str, **changed: t.Any) -> list[str]:
    return files(**changed)[path].splitlines()


def test_the_name_of_a_machine_precedes_cluster_names_of_the_same_address() -> None:
    """The first name of an address becomes its reverse record, which a node uses as its own name."""
    cluster = {**settings()["clusters"][0], "api": "10.77.0.11"}
    assert lines(f"{plan.CONFIG}/hosts", clusters=[cluster])[1:] == [
        "10.77.0.10 bootstrap.ocp.example.com",
        "10.77.0.11 master-0.ocp.example.com",
        "10.77.0.21 worker-0.ocp.example.com",
        "10.77.0.11 api.ocp.example.com api-int.ocp.example.com",
    ]


def test_the_internal_api_and_the_ingress_can_have_their_own_addresses() -> None:
    cluster = {**settings()["clusters"][0], "api_int": ["10.77.0.6"], "ingress": ["10.77.0.7", "10.77.0.8"]}
    result = files(clusters=[cluster])
    assert result[f"{plan.CONFIG}/hosts"].splitlines()[-2:] == [
        "10.77.0.5 api.ocp.example.com",
        "10.77.0.6 api-int.ocp.example.com",
    ]
    assert [line for line in result[CONF].splitlines() if "/apps." in line] == [
        "address=/apps.ocp.example.com/10.77.0.7",
        "address=/apps.ocp.example.com/10.77.0.8",
        "local=/apps.ocp.example.com/",
    ]


def test_address_and_name_of_a_machine_depend_on_its_mac_only() -> None:
    """Firmware and operating system can send different client identifiers."""
    result = [line.removeprefix("dhcp-host=").split(",") for line in lines(CONF) if line.startswith("dhcp-host=")]
    assert [(*entry[:3], *entry[-2:]) for entry in result] == [
        (f"52:54:00:77:00:{last}", "id:*", "set:machine", f"10.77.0.{last}", name)
        for last, name in (("10", "bootstrap"), ("11", "master-0"), ("21", "worker-0"))
    ]


def test_srv_records_are_optional() -> None:
    assert "srv-host" not in files()[CONF]
    with_srv = lines(CONF, clusters=[{**settings()["clusters"][0], "srv": True}])
    assert "srv-host=_etcd-server-ssl._tcp.ocp.example.com,master-0.ocp.example.com,2380,0,10" in with_srv
    assert not [
        line
        for line in lines(CONF, clusters=[{**settings()["clusters"][0], "srv": "false"}])
        if line.startswith("srv-host")
    ]


def test_dns_alone_and_dhcp_alone() -> None:
    alone = files(dhcp=False, pxe=False)
    assert NGINX not in alone
    assert not [line for line in alone[CONF].splitlines() if line.startswith(("dhcp", "enable-tftp"))]
    without = lines(CONF, dns=False)
    assert "port=0" in without
    assert not [line for line in without if line.startswith(("addn-hosts", "local=", "address="))]
    assert "dhcp-option=tag:net0,option:dns-server" in without, "otherwise dnsmasq would announce itself"


def test_options_of_local_and_relayed_networks() -> None:
    networks = [
        {
            "network": "10.77.0.0/24",
            "router": "10.77.0.1",
            "dns": ["10.77.0.3"],
            "ntp": ["10.77.0.4", "10.77.0.5"],
            "mtu": 9000,
            "lease": "1h",
        },
        {"network": "10.88.0.0/16", "pool": ["10.88.1.0", "10.88.1.255"]},
    ]
    result = lines(CONF, networks=networks)
    assert [line.partition("=")[2] for line in result if line.startswith(("dhcp-range", "dhcp-option="))] == [
        "set:net0,10.77.0.0,static,255.255.255.0,1h",
        "tag:net0,option:router,10.77.0.1",
        "tag:net0,option:dns-server,10.77.0.3",
        "tag:net0,option:ntp-server,10.77.0.4,10.77.0.5",
        "tag:net0,option:mtu,9000",
        "set:net1,10.88.0.0,static,255.255.0.0,12h",
        "set:net1,10.88.1.0,10.88.1.255,255.255.0.0,12h",
        "tag:net1,option:router",
        "tag:net1,option:dns-server,10.77.0.2",
    ]
    assert "dhcp-ignore=tag:!known" not in result
    assert "dhcp-ignore=tag:!known" in lines(CONF)


def test_with_two_clusters_in_a_network_each_machine_has_the_domain_of_its_cluster() -> None:
    other = {**settings()["clusters"][0], "name": "two", "domain": "two.example.com"}
    machines = [machine("worker-0", "worker", 21), machine("worker-0", "worker", 31, cluster="two", install=False)]
    result = lines(CONF, clusters=[*settings()["clusters"], other], machines=machines)
    assert "domain=ocp.example.com,10.77.0.21,10.77.0.21" in result
    assert "domain=two.example.com,10.77.0.31,10.77.0.31" in result
    assert "domain=ocp.example.com,10.77.0.0/24" in lines(CONF)


def test_only_clients_are_served() -> None:
    assert "ip saddr { 10.77.0.0/24 } accept" in files()[f"{plan.CONFIG}/clients.nft"]
    result = files(clients=["10.0.0.0/8", "fd77::/64"])
    assert "ip saddr { 10.0.0.0/8 } accept" in result[f"{plan.CONFIG}/clients.nft"]
    assert "ip6 saddr { fd77::/64 } accept" in result[f"{plan.CONFIG}/clients.nft"]
    assert "allow 10.0.0.0/8;" in result[NGINX]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ['iifname { "eth0" } udp dport 53', 'iifname { "eth0" } tcp dport 53', 'iifname { "eth0" } udp dport 69']),
        ({"dns": False, "interfaces": ["eth0", "br1"]}, ['iifname { "eth0", "br1" } udp dport 69']),
        ({"pxe": False}, ['iifname { "eth0" } udp dport 53', 'iifname { "eth0" } tcp dport 53']),
        ({"dns": False, "pxe": False}, []),
    ],
)
def test_other_services_on_this_server_are_not_filtered(changed: dict[str, t.Any], expected: list[str]) -> None:
    rules = files(**changed)[f"{plan.CONFIG}/clients.nft"].partition("chain input")[2]
    assert [line.strip() for line in rules.splitlines() if "jump" in line] == [f"{rule} jump who" for rule in expected]
    assert "drop" not in rules


def test_a_boot_entry_has_the_kernel_arguments_of_its_profile() -> None:
    profiles = [
        {**settings()["profiles"][2], "arguments": ["ip=dhcp", "name={fqdn}", "ifname=net0:{mac}"]},
        {"role": "worker", "cluster": "two", "kernel": "os/initramfs", "initramfs": "os/kernel"},
        {"role": "worker", "architecture": "aarch64", "kernel": "os/initramfs", "initramfs": "os/kernel"},
    ]
    result = files(
        profiles=profiles,
        machines=[machine("worker-0", "worker", 21, install_device="/dev/nvme0n1", arguments=["console=ttyS1;115200"])],
    )
    arguments = (
        f"coreos.live.rootfs_url={WEB}/images/os/rootfs coreos.inst.install_dev=/dev/nvme0n1 "
        f"coreos.inst.ignition_url={WEB}/ignition/worker.ign ip=dhcp name=worker-0.ocp.example.com ifname=net0:52:54:00:77:00:21"
    )
    assert (
        f"  APPEND initrd=/images/os/initramfs {arguments} console=ttyS1;115200\n" in result[f"pxelinux.cfg/{WORKER}"]
    )
    assert (
        f"  linux /images/os/kernel {arguments} 'console=ttyS1;115200'\n  initrd /images/os/initramfs\n  boot\n"
        in result[f"grub/{WORKER}"]
    )
    assert f"kernel {WEB}/images/os/kernel initrd=main {arguments} console" in result[f"ipxe/{WORKER}.ipxe"]


def test_grub_of_the_redhat_family_uses_linuxefi() -> None:
    assert "\n  linuxefi /images" in files("rocky")[f"grub/{WORKER}"]
    arm = [machine("worker-0", "worker", 21, architecture="aarch64")]
    assert "\n  linux /images" in files("rocky", machines=arm)[f"grub/{WORKER}"]


def installed(**changed: t.Any) -> list[str]:
    return sorted(
        path.removeprefix("pxelinux.cfg/")
        for path, text in files(**changed).items()
        if path.startswith("pxelinux.cfg/") and "DEFAULT install\n" in text
    )


def test_a_machine_is_installed_only_if_its_cluster_reports_that_it_is_no_node() -> None:
    bootstrap = "01-52-54-00-77-00-10"
    assert installed() == [bootstrap, MASTER, WORKER]
    assert installed(joined={"ocp": ["worker-0.ocp.example.com"]}) == [MASTER], "bootstrap is no longer needed"
    assert installed(joined={"ocp": ["master-0", "worker-0"]}) == []
    assert installed(joined={}) == [], "each of them may be a node"
    assert installed(joined={}, install_again=["worker-0"]) == [WORKER]
    assert installed(machines=[{**one, "install": False} for one in settings()["machines"]]) == []


@pytest.mark.parametrize("loader", ["pxelinux.cfg/{}", "grub/{}", "ipxe/{}.ipxe"])
def test_an_installed_machine_boots_its_disk_with_each_loader(loader: str) -> None:
    text = files(joined={"ocp": ["worker-0"]})[loader.format(WORKER)]
    assert "worker-0.ocp.example.com, worker" in text
    assert "images/" not in text and "boots" not in text.replace("sanboot", "")


@pytest.mark.parametrize(
    ("architecture", "last", "grub"),
    [("x86_64", "BOOT/BOOTX64.EFI", "grubx64.efi"), ("aarch64", "BOOT/BOOTAA64.EFI", "grubaa64.efi")],
)
def test_grub_boots_the_disk_of_a_uefi_machine_because_firmware_would_stop_at_its_menu(
    architecture: str, last: str, grub: str
) -> None:
    result = files(
        joined={"ocp": ["worker-0"]}, machines=[machine("worker-0", "worker", 21, architecture=architecture)]
    )
    begin, *loop = result[f"grub/{WORKER}"].splitlines()[2:]
    assert begin.startswith("for loader in redhat/shim") and begin.endswith(f" {last}; do"), (
        "the loader of removable media is the last"
    )
    assert loop == [
        '  if search --no-floppy --file --set=root "/EFI/$loader"; then',
        '    chainloader "/EFI/$loader"',
        "    boot",
        "  fi",
        "done",
        "exit 1",
    ]
    # iPXE of 2019 returns to the firmware without an error, also if an exit status is given.
    assert f"iseq ${{platform}} efi && chain {WEB}/{grub} ||\n" in result[f"ipxe/{WORKER}.ipxe"]
    assert result["grub/grub.cfg"].endswith("\nexit 1\n")


def test_secrets_are_served_only_to_machines_that_need_them_now() -> None:
    text = files()[NGINX]
    assert (
        "location = /ignition/bootstrap.ign {\n      root /var/lib/hwaccel-gpu/dns_pxe;\n      access_log /var/log/nginx/access.log;\n"
        "      access_log /var/log/nginx/hwaccel-gpu-fetched fetched if=$fetched;\n      allow 10.77.0.10;\n      deny all;"
    ) in text
    assert "bootstrap.ign" not in files(joined={"ocp": ["master-0"]})[NGINX]


def test_all_machines_load_ipxe_first_if_requested() -> None:
    always, never = lines(CONF, ipxe="always"), lines(CONF, ipxe="never")
    assert "dhcp-boot=tag:machine,tag:bios,tag:client-bios,tag:!ipxe,undionly.kpxe,,10.77.0.2" in always
    assert "dhcp-boot=tag:machine,tag:bios,tag:client-bios,pxelinux.0,,10.77.0.2" in never
    assert not [line for line in never if "boot.ipxe" in line]
    site, _faults = model.read(given := settings(ipxe="always"))
    assert site
    assert systems.needed(site, given) == ("undionly.kpxe", "snponly.efi", "grubx64.efi"), (
        "GRUB boots disks for iPXE of UEFI"
    )


def test_a_second_run_changes_nothing() -> None:
    given = settings()
    first = planned(given)
    assert (len(first["loaders"]), len(first["artifacts"]), len(first["protected"])) == (4, 3, 3)
    assert [one["state"] for one in first["actions"]] == ["restarted"] * 3
    observed, found = after(given)
    assert predicted(plan.plan(observed, given, found), absent=False) == []


@pytest.mark.parametrize(
    ("path", "unit", "state"),
    [
        (f"{plan.CONFIG}/hosts", "dnsmasq", "reloaded"),
        (f"{plan.CONFIG}/extra-hosts", "dnsmasq", "reloaded"),
        (CONF, "dnsmasq", "restarted"),
        ("/etc/systemd/system/dnsmasq.service.d/hwaccel-gpu.conf", "dnsmasq", "restarted"),
        (NGINX, "nginx", "reloaded"),
    ],
)
def test_a_service_is_reloaded_if_a_file_is_newer_than_its_last_reload(path: str, unit: str, state: str) -> None:
    """This holds also after a run that was killed: then only the times differ."""
    given = settings()
    observed, found = after(given)
    observed.files[path] = dataclasses.replace(observed.files[path], changed_at=300.0)
    result = plan.plan(observed, given, found)
    assert result["changes"] == []
    assert {one["unit"]: one["state"] for one in result["actions"]} == {unit: state}
    observed.facts[f"{unit}_loaded"] = "301.0"
    again = plan.plan(observed, given, found)["actions"]
    assert [one["state"] for one in again if one["state"]] == (["restarted"] if state == "restarted" else [])


def test_files_of_an_earlier_inventory_are_removed() -> None:
    observed, found = after(settings())
    given = settings(machines=settings()["machines"][:1], joined={"ocp": []})
    result = plan.plan(observed, given, found)
    entries = [
        f"{plan.FILES}/{folder}/{name}{end}"
        for folder, end in (("grub", ""), ("ipxe", ".ipxe"), ("pxelinux.cfg", ""))
        for name in (MASTER, WORKER)
    ]
    assert result["absent"] == sorted([*entries, f"{plan.IGNITION}/master.ign", f"{plan.IGNITION}/worker.ign"])


def test_a_changed_file_is_written_again_with_a_diff() -> None:
    observed, found = after(settings())
    observed.files[CONF] = File(CONF, observed.files[CONF].text + "log-queries\n", changed_at=300.0)
    result = plan.plan(observed, settings(), found)
    assert result["changes"] == [CONF]
    assert "-log-queries" in result["diff"]
    text, path = result["lines"].split()
    assert (path, "log-queries" in base64.b64decode(text[1:]).decode()) == (CONF, False)


@pytest.mark.parametrize(
    ("signature", "gpgv", "expected"),
    [
        ("https://mirror/kernel.sig", "/usr/bin/gpgv", ["the keyring of os/kernel is missing"]),
        (
            "/files/kernel.sig",
            "",
            [
                "the keyring of os/kernel is missing",
                "the signature of os/kernel is missing",
                "the signature of os/kernel cannot be verified",
            ],
        ),
    ],
)
def test_missing_keyring_and_gpgv_are_reported_before_anything_is_changed(
    signature: str, gpgv: str, expected: list[str]
) -> None:
    given = settings()
    signed = [{**given["artifacts"][0], "signature": signature, "keyring": "/files/keyring"}, *given["artifacts"][1:]]
    result = plan.plan(host(gpgv=gpgv), {**given, "artifacts": signed}, findings(given))
    assert [fault["what"] for fault in result["faults"]] == expected
    observed, found = after({**given, "artifacts": signed})
    assert plan.plan(observed, {**given, "artifacts": signed}, found)["faults"] == [], (
        "it was verified when it was fetched"
    )


def test_a_cluster_that_did_not_answer_is_reported() -> None:
    assert any("nodes of cluster ocp are unknown" in line for line in planned(settings(joined={}))["messages"])


def test_the_self_test_includes_empty_answers_and_denied_files() -> None:
    expected = planned()["expected"]
    assert ("any.name.apps.ocp.example.com", "AAAA", []) in expected["names"]
    assert ("11.0.77.10.in-addr.arpa", "PTR", ["master-0.ocp.example.com"]) in expected["names"]
    assert f"{WEB}/ignition/bootstrap.ign" in expected["refused"]
    assert expected["apis"] == [{"name": "api.ocp.example.com", "address": "10.77.0.5", "port": 6443, "there": False}]
    assert (
        planned(settings(joined={"ocp": ["master-0"]}, dhcp=False, pxe=False))["expected"]["apis"][0]["there"] is True
    )
    assert len(expected["http"]) == 3 + 9 + 3, "dispatchers, entries, artifacts; loaders once they exist"


def test_nginx_is_restored_when_pxe_is_disabled() -> None:
    observed, found = after(settings())
    observed.files[record.path(plan.ROLE)] = File(
        record.path(plan.ROLE), '{"services": {"nginx": {"active": true, "enabled": true}}, "packages": []}'
    )
    result = plan.plan(observed, settings(pxe=False), found)
    assert NGINX in result["absent"]
    released = [{"unit": "nginx", "drop_in": units.path("nginx"), "active": True, "enabled": True}]
    assert result["released"] == released
    assert plan.plan(observed, settings(), found)["released"] == []
    del observed.files[units.path("nginx")]
    assert plan.plan(observed, settings(pxe=False), found)["released"] == released, (
        "a run was interrupted before the service was restored"
    )
    assert [one["unit"] for one in plan.restored(observed)["actions"]] == ["dnsmasq", "nginx"]
    del observed.files[NGINX]
    assert plan.plan(observed, settings(pxe=False), found)["released"] == []


def test_packages_that_the_server_itself_may_boot_with_stay_after_teardown() -> None:
    kept = json.loads(planned(observed=host(packages=""))["record"])
    assert kept["packages"] == ["dnsmasq", "nginx", "pxelinux", "syslinux-common"]


def test_plans_contain_no_secrets() -> None:
    assert "keys" not in json.dumps(planned(), default=str)


def test_planning_time_grows_linearly_with_machines() -> None:
    def seconds(count: int) -> float:
        positions = [(number // 200, number % 200 + 20) for number in range(count)]
        machines = [
            {
                **machine(f"worker-{high}-{low}", "worker", 0),
                "address": f"10.77.{high}.{low}",
                "mac": f"52:54:00:77:{high:02x}:{low:02x}",
            }
            for high, low in positions
        ]
        cluster = {**settings()["clusters"][0], "machine_networks": ["10.77.0.0/16"]}
        given = settings(machines=machines, clusters=[cluster], networks=[{"network": "10.77.0.0/16"}])
        started = time.process_time()
        assert plan.plan(host(), given, findings(given))["faults"] == []
        return time.process_time() - started

    few, many = min(seconds(100) for _try in range(3)), seconds(1000)
    assert many < 40 * few, f"{few:.3f} s for 100 machines, {many:.3f} s for 1000"


def test_lists_are_read_from_an_inventory() -> None:
    variables: dict[str, dict[str, t.Any]] = {
        "ocp": {
            "hwaccel_domain": "ocp.example.com",
            "hwaccel_load_balancer_address": "10.77.0.5",
            "hwaccel_machine_network": "10.77.0.0/24",
            "hwaccel_asked_nodes": {"nodes": [{"name": "m0", "boot_id": "1"}]},
        },
        "edge": {"hwaccel_domain": "edge.example.com", "hwaccel_new_cluster": "yes"},
        "failed": {"hwaccel_asked_nodes": {"msg": "no answer"}},
        "boot": {"hwaccel_cluster": ""},
        "own": {"hwaccel_cluster": "edge"},
        "m0": {
            "hwaccel_cluster": "ocp",
            "ansible_host": "10.77.0.11",
            "hwaccel_mac": "52:54:00:77:00:11",
            "hwaccel_install": True,
        },
        "w0": {"hwaccel_cluster": "edge", "hwaccel_address": "10.78.0.21", "hwaccel_role": "storage"},
    }
    groups = {"gpu_clusters": ["ocp", "edge", "failed"], "control_plane": ["m0"], "workers": ["w0"]}
    result = inventory.read(groups, variables, "boot")
    assert [one["name"] for one in result["clusters"]] == ["ocp", "edge", "failed"]
    assert result["joined"] == {"ocp": [{"name": "m0", "boot": "1"}], "edge": []}
    assert result["machines"][0] == {
        "name": "m0",
        "cluster": "ocp",
        "role": "master",
        "address": "10.77.0.11",
        "mac": "52:54:00:77:00:11",
        "install": True,
    }
    assert [(one["name"], one["role"]) for one in inventory.read(groups, variables, "own")["machines"]] == [
        ("w0", "storage")
    ]


@pytest.mark.parametrize(
    ("changed", "api"),
    [
        ({"hwaccel_installer": "kubeadm"}, "10.77.0.11"),
        ({"hwaccel_installer": "kubeadm", "hwaccel_load_balancer_address": "10.77.0.5"}, "10.77.0.5"),
        ({}, None),
    ],
)
def test_without_a_load_balancer_the_api_of_a_cluster_that_is_installed_is_its_only_server(
    changed: dict[str, str], api: str | None
) -> None:
    variables: dict[str, dict[str, t.Any]] = {
        "one": changed,
        "boot": {},
        "cp1": {"ansible_host": "10.77.0.11"},
        "w0": {},
    }
    groups = {"gpu_clusters": ["one"], "control_plane": ["cp1"], "workers": ["w0"]}
    assert inventory.read(groups, variables, "boot")["clusters"][0].get("api") == api


POINTER = '{"ignition":{"version":"3.2.0"}}'


def pointed(content: str = POINTER, **changed: t.Any) -> dict[str, t.Any]:
    """Workers are installed with an ignition file that is given itself."""
    ignitions = [one for one in settings()["ignitions"] if one["path"] != "worker.ign"]
    return settings(ignitions=[*ignitions, {"path": "worker.ign", "content": content}], **changed)


def test_an_ignition_file_that_is_given_itself_is_written_once() -> None:
    given = pointed()
    path = f"{plan.IGNITION}/worker.ign"
    first = plan.plan(host(), given, findings(settings()))
    assert first["faults"] == [] and path in first["changes"]
    assert "ignition/worker.ign" not in [one["path"] for one in first["protected"]]
    assert f"={base64.b64encode(POINTER.encode()).decode()} {path}\n" in first["sealed"]
    assert POINTER not in "".join(first["diff"]), "those of others may have the hash of a password"
    observed, found = after(settings())
    again = dataclasses.replace(observed, checksums={**observed.checksums, path: digest(POINTER)})
    assert plan.plan(again, given, found)["changes"] == []
    assert plan.plan(again, pointed("{}"), found)["changes"] == [path]
    joined = plan.plan(again, pointed(joined={"ocp": ["worker-0"]}), found)
    assert path in joined["absent"] and path not in joined["changes"]


def test_machines_that_have_to_be_installed_are_told() -> None:
    assert planned()["installs"] == ["ocp/bootstrap", "ocp/master-0", "ocp/worker-0"]
    assert planned(settings(joined={"ocp": ["master-0"]}))["installs"] == ["ocp/worker-0"]
    assert planned(settings(joined={}))["installs"] == []


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"hwaccel_installer": "openshift"}, []),
        ({"hwaccel_installer": "openshift", "cluster_openshift_allow_rejoin": "w0, w1.ocp"}, ["w0", "w1.ocp"]),
        ({"hwaccel_installer": "openshift", "cluster_openshift_allow_rejoin": ["w0"]}, ["w0"]),
        # Others let a machine in by a token, and a cluster of somebody else by whom it has.
        ({"hwaccel_installer": "k3s"}, None),
        ({"hwaccel_distribution": "openshift"}, None),
    ],
)
def test_who_may_join_again_is_known_of_clusters_of_the_installer(
    variables: dict[str, t.Any], expected: list[str] | None
) -> None:
    hostvars: dict[str, dict[str, t.Any]] = {"boot": {}, "ocp": variables}
    (cluster,) = inventory.read({"gpu_clusters": ["ocp"], "boot_servers": ["boot"]}, hostvars, "boot")["clusters"]
    assert cluster.get("rejoins") == expected
