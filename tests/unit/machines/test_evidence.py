# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot servers, load balancers and hypervisors have answered, as openshift_wait takes it. Lines of logs are as dnsmasq and nginx write them."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_evidence import cluster_evidence
from ansible_collections.hwaccel.gpu.plugins.modules import openshift_wait
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.place import MEMORY, WISHES, WRITTEN

MAC = "52:54:00:77:00:21"
ADDRESS = "10.77.0.1"
#: 23 November 2026, 03:41:10 UTC.
AT = 1795405270.0
MACHINE = {
    "host": "w1",
    "name": "worker-1.ocp.example.com",
    "label": "worker-1",
    "role": "worker",
    "address": ADDRESS,
    "mac": MAC,
}
REQUEST = {"cluster": "ocp", "machines": [MACHINE], "witnesses": []}


def dhcp(said: str, at: float = AT) -> str:
    return f"{at:.6f} boot dnsmasq-dhcp[812]: 2773209571 {said}"


def http(path: str, status: int = 200, method: str = "GET", second: int = 10) -> str:
    return f'{ADDRESS} - - [23/Nov/2026:04:41:{second} +0100] "{method} {path} HTTP/1.1" {status} 1234 "-" "curl/8"'


LEASED = [dhcp(f"DHCPDISCOVER(eth0) {MAC}"), dhcp(f"DHCPACK(eth0) {ADDRESS} {MAC} worker-1")]
KERNEL = [*LEASED, http("/images/ocp/kernel"), http("/images/ocp/initramfs")]


def server(
    lines: list[str] | None = None,
    *,
    earlier: bool = False,
    host: str = "boot",
    why: str = "",
    wrong: t.Sequence[str] = (),
    **files: t.Any,
) -> dict[str, t.Any]:
    paths = {"joined": MEMORY, "wishes": WISHES, "written": WRITTEN}
    texts = {
        path: files[name] if isinstance(files.get(name), str) else json.dumps(files[name]) if name in files else ""
        for name, path in paths.items()
    }
    reads = {"now": AT + 60, "logs": {ADDRESS: {"earlier": earlier, "lines": lines or []}}, "files": texts}
    requests = json.dumps({"wrong": list(wrong), "notes": []}) if wrong else ""
    return {
        "host": host,
        "kind": "boot server",
        "reads": "" if why else json.dumps(reads),
        "requests": requests,
        "why": why,
    }


def balancer(host: str, **members: list[str]) -> dict[str, t.Any]:
    """members: by service, each with name, and state if it is not UP."""
    rows = ["# pxname,svname,scur,status"]
    for service, names in members.items():
        backend = f"ocp-{service.replace('_', '-')}"
        rows += [
            f"{backend},FRONTEND,0,OPEN",
            *(f"{backend},{name.partition(':')[0]},0,{name.partition(':')[2] or 'UP'}" for name in names),
        ]
        rows.append(f"{backend},BACKEND,0,UP")
    reads = json.dumps({"now": AT, "statistics": "\n".join(rows) + "\n"})
    return {"host": host, "kind": "load balancer", "reads": reads, "requests": "", "why": ""}


def judged(*told: dict[str, t.Any], **changed: t.Any) -> dict[str, t.Any]:
    return cluster_evidence({**REQUEST, "machines": [{**MACHINE, **changed}]}, "cluster_openshift", list(told))


def machine(*told: dict[str, t.Any], **changed: t.Any) -> dict[str, t.Any]:
    (row,) = judged(*told, **changed)["machines"]
    return row


@pytest.mark.parametrize(
    ("lines", "stage", "what", "refused"),
    [
        ([], "nothing", "", ""),
        ([dhcp(f"DHCPDISCOVER(eth0) {MAC} no address available")], "requested", "", "no address available"),
        (LEASED, "address", ADDRESS, ""),
        (KERNEL, "kernel", "/images/ocp/kernel", ""),
        (
            [*KERNEL, *[http("/images/ocp/rootfs", 404)] * 3],
            "kernel",
            "/images/ocp/kernel",
            "/images/ocp/rootfs was refused with status 404",
        ),
        ([*KERNEL, http("/ignition/ocp/worker.ign")], "ignition", "/ignition/ocp/worker.ign", ""),
        ([dhcp("DHCPDISCOVER(eth0) 52:54:00:77:00:22")], "nothing", "", ""),
    ],
)
def test_how_far_a_boot_is(lines: list[str], stage: str, what: str, refused: str) -> None:
    row = machine(server(lines))
    assert (row["name"], row["role"], row["stage"], row["what"], row["refused"]) == (
        "worker-1.ocp.example.com",
        "worker",
        stage,
        what,
        refused,
    )


def test_rows_are_what_the_module_takes() -> None:
    found = judged(server(KERNEL), balancer("lb", api=["m0"], machine_config=["m0"]))
    spec = openshift_wait.ARGUMENT_SPEC
    assert {*found["machines"][0]} == {*spec["machines"]["options"]}
    assert {*found["surroundings"]} == {*spec["surroundings"]["options"]}


def test_each_complete_download_of_an_ignition_file_since_the_start_counts() -> None:
    path = "/ignition/ocp/worker.ign"
    lines = [
        http(path),
        http(path, 206),
        http(path, method="HEAD"),
        http(path, 403),
        http("/images/ocp/rootfs"),
        http(path),
    ]
    assert machine(server(lines))["fetches"] == 2
    assert machine(server(lines), server(lines, host="other"))["fetches"] == 4
    assert machine(server(lines, earlier=True))["fetches"] == 0


def test_starts_from_the_network_after_the_ignition_file_count() -> None:
    name = f"01-{MAC.replace(':', '-')}"
    tftp = f"{AT + 20:.6f} boot dnsmasq-tftp[812]: sent /var/lib/hwaccel-gpu/dns_pxe/files/pxelinux.cfg/{name} to {ADDRESS}"
    before = tftp.replace(f"{AT + 20:.6f}", f"{AT - 20:.6f}")
    other = tftp.replace("00-21", "00-22")
    ignition = http("/ignition/ocp/worker.ign")
    web = [http(f"/ipxe/{name}.ipxe", second=40), http(f"/grub/{name}", 404, second=50)]
    # Lines of DHCP and TFTP stand before those of the web server.
    lines = [before, tftp, tftp, other, *LEASED, ignition, *web]
    assert machine(server(lines))["restarts"] == 3
    assert machine(server([before, tftp, *web]))["restarts"] == 0
    assert machine(server(lines, earlier=True))["restarts"] == 0


@pytest.mark.parametrize(
    ("lines", "quiet"),
    [
        (LEASED, 60.0),
        ([dhcp(f"DHCPDISCOVER(eth0) {MAC}", AT - 30)], 90.0),
        ([http("/images/ocp/kernel", second=40)], 30.0),
        ([*LEASED, dhcp("DHCPDISCOVER(eth0) 52:54:00:77:00:22", AT + 50)], 60.0),
        ([f"Nov 23 03:41:10 dnsmasq-dhcp[812]: DHCPDISCOVER(eth0) {MAC}"], None),
        ([dhcp(f"DHCPDISCOVER(eth0) {MAC}", AT + 90)], 0.0),
        ([], None),
    ],
)
def test_seconds_since_the_last_request_by_the_clock_of_the_server(lines: list[str], quiet: float | None) -> None:
    assert machine(server(lines))["quiet"] == quiet


def test_the_boot_server_that_knows_more_counts() -> None:
    row = machine(server(LEASED), server([*KERNEL, http("/ignition/ocp/worker.ign")], host="other"))
    assert row["stage"] == "ignition"


@pytest.mark.parametrize(
    ("files", "joined", "written", "notes"),
    [
        ({}, False, False, 0),
        ({"joined": {"nodes": [{"cluster": "ocp", "name": "worker-1", "mac": MAC}], "again": []}}, True, False, 0),
        ({"joined": {"nodes": [{"cluster": "edge", "name": "worker-1", "mac": MAC}], "again": []}}, False, False, 0),
        (
            {
                "wishes": {
                    "wishes": [
                        {
                            "mac": MAC,
                            "cluster": "ocp",
                            "name": "worker-1",
                            "address": ADDRESS,
                            "paths": ["/x"],
                            "at": "7",
                        }
                    ]
                },
                "written": {"written": {MAC: "7"}},
            },
            False,
            True,
            0,
        ),
        (
            {
                "wishes": {
                    "wishes": [
                        {
                            "mac": MAC,
                            "cluster": "ocp",
                            "name": "worker-1",
                            "address": ADDRESS,
                            "paths": ["/x"],
                            "at": "8",
                        }
                    ]
                },
                "written": {"written": {MAC: "7"}},
            },
            False,
            False,
            0,
        ),
        ({"joined": "{", "wishes": "{"}, False, False, 2),
    ],
)
def test_what_the_memory_of_boot_servers_says(files: dict[str, t.Any], joined: bool, written: bool, notes: int) -> None:
    found = judged(server([], **files))
    (row,) = found["machines"]
    assert (row["joined"], row["written"], found["written"]) == (joined, written, ["w1"] if joined or written else [])
    assert len(found["notes"]) == notes and all(
        text.startswith("boot server boot: ") and "Next: " in text for text in found["notes"]
    )


def test_what_cannot_be_read_is_a_note_and_nothing_is_concluded_from_it() -> None:
    found = judged(server(why="Failed to connect to the host via ssh:\nConnection refused."))
    assert (found["machines"], found["written"]) == ([], [])
    assert found["notes"] == [
        "boot server boot could not be read, and what it knows is missing (Failed to connect to the host via ssh: Connection refused). "
        "Next: verify that it is on and that Ansible can connect to it"
    ]
    other = judged(server([], host="other"), server(why="away"))
    assert other["machines"][0]["what"] == "boot could not be read"


def test_an_answer_that_is_no_json_is_a_note() -> None:
    broken = {**server(), "reads": "Traceback"}
    assert "its answer cannot be read (JSONDecodeError" in judged(broken)["notes"][0]
    with pytest.raises(AnsibleFilterError, match="cannot read its input"):
        judged({"host": "boot"})


def test_a_machine_without_an_address_or_a_mac_has_no_logs() -> None:
    row = machine(server(KERNEL), address="w1.example.com", mac="")
    assert (row["stage"], row["written"], row["said"]) == ("nothing", False, "")


@pytest.mark.parametrize(
    ("balancers", "api", "config"),
    [
        ([balancer("lb", api=["boot", "m0:DOWN"], machine_config=["boot", "m0"])], ["boot", "m0"], ["boot", "m0"]),
        ([balancer("lb", api=["boot:MAINT", "m0"], machine_config=["boot:DRAIN", "m0"])], ["m0"], ["m0"]),
        ([balancer("a", api=["boot", "m0"]), balancer("b", api=["m0"])], ["m0"], None),
        ([balancer("lb", api=[])], [], None),
        ([balancer("lb")], None, None),
    ],
)
def test_members_are_those_of_all_load_balancers(
    balancers: list[dict[str, t.Any]], api: list[str] | None, config: list[str] | None
) -> None:
    around = judged(*balancers)["surroundings"]
    assert (around.get("api_members"), around.get("config_members")) == (api, config)


def test_names_and_ports_that_are_wrong() -> None:
    port = (
        "api-int.ocp.example.com cannot be reached at 10.0.0.5:22623, its load balancer: [Errno 111] Connection refused"
    )
    name = "A any.name.apps.ocp.example.com: 10.0.0.9 instead of 10.0.0.5"
    around = judged(server(wrong=[name, port]), server(wrong=[port], host="other"))["surroundings"]
    assert around == {"config_refused": port, "wildcard": name}
    assert judged(server())["surroundings"] == {"config_refused": "", "wildcard": ""}
    reset = port.replace("[Errno 111] Connection refused", "[Errno 104] Connection reset by peer")
    assert judged(server(wrong=[reset]))["surroundings"]["config_refused"] == ""


def test_the_last_errors_of_a_console_since_the_machine_was_started() -> None:
    text = (
        "[    0.000000] Linux version 5.14.0\nError: of an earlier boot\n"
        "[    0.000000] Linux version 5.14.0\nStarting CoreOS Installer...\n"
        "\x1b[0;31mcoreos-installer-service[900]: Error: opening /dev/sdx: No such file or directory\x1b[0m\r\n"
        + "".join(f"ignition[700]: GET error: {number}\n" for number in range(8))
        + "ignition[700]: GET error: 7\n"
    )
    console = {"host": "hv", "kind": "hypervisor", "requests": "", "why": ""}
    console["reads"] = json.dumps({"now": AT, "tails": {"/var/log/libvirt/qemu/w1-console.log": text}})
    assert machine(server(), console)["said"].splitlines() == [
        f"ignition[700]: GET error: {number}" for number in (3, 4, 5, 6, 7)
    ]
    console["reads"] = json.dumps(
        {"now": AT, "tails": {"/var/log/libvirt/qemu/w1-console.log": text.partition("ignition")[0]}}
    )
    said = machine(server(), console)["said"]
    assert said == "coreos-installer-service[900]: Error: opening /dev/sdx: No such file or directory"


def test_the_end_of_a_long_line_of_a_console_is_kept() -> None:
    line = (
        f"kubelet[2301]: Failed while requesting a signed certificate: Post {'x' * 400}: x509: certificate has expired"
    )
    console = {"host": "hv", "kind": "hypervisor", "requests": "", "why": ""}
    console["reads"] = json.dumps({"now": AT, "tails": {"/var/log/libvirt/qemu/w1-console.log": f"{line}\n"}})
    assert machine(server(), console)["said"] == line
