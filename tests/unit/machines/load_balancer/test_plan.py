# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a load balancer from its observed state."""

from __future__ import annotations

import dataclasses
import json
import posixpath
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Listener, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import haproxy, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.machine import Machine, Server
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.plan import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.restored import restored
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import Record

NOW = 1000.0
SETTINGS: dict[str, t.Any] = {
    "name": "lb-0",
    "clusters": [],
    "machines": [],
    "extra": "",
    "maxconn": "",
    "tunnel_timeout": "4h",
    "hard_stop_after": "4h",
    "stats_address": "127.0.0.1",
    "stats_port": 8404,
    "stats_user": "",
    "stats_password": "",
    "health_port": 8405,
    "replace": False,
    "virtual_addresses": [],
    "router_id": 51,
    "unicast": True,
    "interface": "",
    "firewall": True,
    "selinux": True,
    "machine_config_clients": "machines",
    "collections": ["ansible.posix", "community.general"],
    "services": [
        {"name": "web", "port": 80, "members": [{"name": "m0", "address": "10.0.0.11"}], "sources": ["10.0.0.0/24"]}
    ],
    "peers": [{"name": "lb-0", "address": "10.0.0.3"}, {"name": "lb-1", "address": "10.0.0.4"}],
}
BARE = Machine(
    now=NOW,
    addresses={"10.0.0.3": "eth0"},
    facts={
        "os_release": "ID=debian\n",
        "limit": "Max open files  20000  20000  files",
        "memory": "MemTotal:  16777216 kB",
        "free_bytes": str(1 << 30),
    },
)
PAIR = {"virtual_addresses": ["10.0.0.5/24"]}


def running(description: str, *servers: Server) -> dict[str, dict[str, str]]:
    """Answers of a HAProxy that runs the configuration with this description; its worker is the process 7."""
    columns = ("pxname", "svname", "scur", "status")
    rows = [(server.backend, server.name, str(server.sessions), server.status) for server in servers]
    table = "".join(",".join(row) + "\n" for row in (columns, ("web", "FRONTEND", "3", "OPEN"), *rows))
    return {
        path: {"show info": f"Name: HAProxy\nPid: 7\ndescription: {description}\n", "show stat": f"# {table}\n"}
        for path in places.SOCKETS.values()
    }


def observed(machine: Machine, **changed: t.Any) -> Machine:
    """The machine with changes to fields, or to facts by their names."""
    fields = {field.name for field in dataclasses.fields(Machine)}
    facts = {name: value for name, value in changed.items() if name not in fields}
    attributes = {name: value for name, value in changed.items() if name in fields}
    return dataclasses.replace(machine, **{"facts": machine.facts | facts, **attributes})


def planned(machine: Machine, **settings: t.Any) -> dict[str, t.Any]:
    return plan(machine, {**SETTINGS, **settings})


def configured(machine: Machine = BARE, **settings: t.Any) -> Machine:
    """The machine after a run: all files were written at 900 and loaded at 950."""
    done = planned(machine, **settings)
    files = {
        file["path"]: File(file["path"], done["contents"][file["path"]], file["mode"], 0, 0, 900.0)
        for file in done["files"]
    }
    files[places.RECORD] = File(places.RECORD, done["record"], "0600", 0, 0, 900.0)
    mark = haproxy.mark(done["contents"].values())
    return observed(
        machine,
        files=files,
        programs="haproxy keepalived",
        answers=running(mark, Server("web", "m0", "UP", 3)),
        processes={"7": 950.0},
        units={name: Unit(True, True, True, 950.0, 950.0, 524288) for name in ("haproxy", "keepalived")},
        listeners=(Listener("tcp", "0.0.0.0", 80, "haproxy"),),
    )


def actions(done: dict[str, t.Any]) -> list[tuple[str, str]]:
    return [(action["unit"], action["state"]) for action in done["actions"]]


@pytest.mark.parametrize("settings", [{}, PAIR], ids=["one", "pair"])
def test_a_machine_in_the_desired_state_needs_no_changes(settings: dict[str, t.Any]) -> None:
    done = planned(configured(**settings), **settings)
    assert (done["faults"], done["files"], done["absent"], done["actions"], done["packages"], done["record"]) == (
        [],
        [],
        [],
        [],
        [],
        "",
    )


def test_a_new_machine_needs_packages_files_and_a_drop_in() -> None:
    done = planned(BARE, **PAIR)
    assert done["packages"] == ["haproxy", "keepalived"]
    assert done["contents"][places.DROP_IN].endswith(f"[Service]\nEnvironmentFile={places.SETTINGS}\n")
    assert f"CONFIG={places.CONFIG}\n" in done["contents"][places.SETTINGS]
    assert actions(done) == [("haproxy", "started"), ("keepalived", "started")]
    assert done["reload_units"]


def changed(machine: Machine, path: str, **attributes: t.Any) -> Machine:
    return observed(machine, files={**machine.files, path: dataclasses.replace(machine.files[path], **attributes)})


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        # Files were written, and the run was killed before the reload.
        (observed(configured(), answers=running(f"{haproxy.MARK} other")), ("haproxy", "reloaded")),
        # The file was changed manually, loaded, and restored.
        (changed(configured(), places.MAIN, changed_at=960.0), ("haproxy", "reloaded")),
        (observed(configured(), answers={}), ("haproxy", "restarted")),
        (observed(configured(), units={}), ("haproxy", "started")),
        # An interrupted run drained the member, which is desired again.
        (
            observed(configured(), answers=running(configured().description, Server("web", "m0", "DRAIN", 0))),
            ("haproxy", "reloaded"),
        ),
    ],
    ids=["killed", "changed back", "another file", "stopped", "drained"],
)
def test_a_service_that_has_not_loaded_its_files_is_reloaded_or_restarted(
    machine: Machine, expected: tuple[str, str]
) -> None:
    assert actions(planned(machine)) == [expected]


def test_a_file_time_in_the_future_causes_no_reload() -> None:
    assert planned(changed(configured(), places.MAIN, changed_at=NOW + 60))["actions"] == []


def test_keepalived_is_reloaded_for_newer_files_and_stopped_without_addresses() -> None:
    pair = configured(**PAIR)
    assert actions(planned(changed(pair, places.KEEPALIVED, changed_at=960.0), **PAIR)) == [("keepalived", "reloaded")]
    assert actions(planned(changed(pair, places.KEEPALIVED_DROP_IN, changed_at=960.0), **PAIR)) == [
        ("keepalived", "restarted")
    ]
    alone = planned(pair)
    assert (alone["stops"], actions(alone)) == (["keepalived"], [])
    assert places.KEEPALIVED_DROP_IN in alone["absent"]


def test_only_removed_members_that_serve_are_drained() -> None:
    servers = (
        Server("web", "m0", "UP", 0),
        Server("web", "m1", "UP", 5),
        Server("web", "m2", "DOWN", 0),
        Server("gone", "m9", "UP", 0),
    )
    machine = observed(configured(), answers=running(configured().description, *servers))
    assert planned(machine)["drains"] == [{"backend": "web", "server": "m1"}]
    (fault,) = planned(machine, collections=[])["faults"]
    assert (
        "collection community.general): it is not installed on the controller, and a serving member has to be drained"
        in fault["text"]
    )
    assert planned(configured(), collections=[])["faults"] == []
    # Members of an existing HAProxy configuration are unknown.
    assert planned(observed(machine, answers={}))["drains"] == []


@pytest.mark.parametrize(
    ("machine", "settings", "message"),
    [
        (
            observed(BARE, listeners=(Listener("tcp", "0.0.0.0", 80, "nginx"),)),
            {},
            "service web): its port 80 is in use by nginx",
        ),
        (
            observed(BARE, listeners=(Listener("tcp", "127.0.0.1", 8404, "java"),)),
            {},
            "load_balancer_stats_port): its port 8404 is in use by java",
        ),
        (BARE, {"stats_port": 80}, "its port 80 is also that of load_balancer_stats_port"),
        (BARE, {"stats_address": "0.0.0.0"}, "would be readable without authentication"),
        (BARE, {"maxconn": 20000}, "20000 connections need"),
        (BARE, {"maxconn": "many"}, "'many' is not a number"),
        (observed(BARE, free_bytes="4096"), {}, "4096 bytes are free there"),
        (
            observed(BARE, files={places.RECORD: File(places.RECORD, "{", "0600", 0, 0, 1.0)}),
            {},
            "the record of the role's changes is damaged",
        ),
        (
            observed(
                BARE, files={f"{places.CONFIG}/mine.cfg": File(f"{places.CONFIG}/mine.cfg", "", "0600", 0, 0, 1.0)}
            ),
            {},
            "HAProxy would read it",
        ),
        (
            observed(BARE, firewalls=("firewalld",)),
            {"collections": []},
            "collection ansible.posix): it is not installed",
        ),
        (BARE, {**PAIR, "router_id": 300}, "'300' is not a number from 1 to 255"),
        (BARE, {**PAIR, "name": "lb-9"}, "lb-9 is not among them"),
        (BARE, {"virtual_addresses": ["10.0.0.3/24"]}, "10.0.0.3 is a load balancer's own address"),
        (BARE, {"virtual_addresses": ["10.0.0.500"]}, "load_balancer_virtual_addresses, 10.0.0.500"),
        (BARE, {**PAIR, "interface": "eth9"}, "the interface eth9 does not exist"),
        # The fault is reported although another peer has this name and an address.
        (
            BARE,
            {**PAIR, "peers": [{"name": "lb-1", "address": "lb-1"}, *SETTINGS["peers"]]},
            "'lb-1' is not an IP address",
        ),
        (
            BARE,
            {"services": [{**SETTINGS["services"][0], "address": "10.0.0.5"}]},
            "its address 10.0.0.5 is not an address of this machine",
        ),
    ],
)
def test_a_problem_is_reported_with_the_next_step(machine: Machine, settings: dict[str, t.Any], message: str) -> None:
    (fault,) = planned(machine, **settings)["faults"]
    assert message in fault["text"]
    assert ". Next: " in fault["text"]


def test_ports_of_haproxy_itself_and_on_other_addresses_are_free() -> None:
    assert planned(observed(BARE, listeners=(Listener("tcp", "0.0.0.0", 80, "haproxy"),)))["faults"] == []
    service = {**SETTINGS["services"][0], "address": "10.0.0.5"}
    beside = observed(BARE, listeners=(Listener("tcp", "10.0.0.6", 80, "nginx"),))
    assert planned(beside, services=[service], **PAIR)["faults"] == []
    assert planned(observed(beside, addresses={"10.0.0.5": "eth1"}), services=[service])["faults"] == []
    other_notation = planned(
        BARE, services=[{**service, "address": "2001:db8::5"}], virtual_addresses=["2001:DB8:0::5/64"]
    )
    assert "bind [2001:db8::5]:80 transparent\n" in other_notation["contents"][places.MAIN]


def test_an_existing_haproxy_configuration_is_only_replaced_if_requested() -> None:
    existing = {places.FOREIGN: File(places.FOREIGN, "frontend a\n    bind *:81\n", "0644", 0, 0, 1.0)}
    machine = observed(BARE, files=existing, units={"haproxy": Unit(True, True, True, 1.0)}, programs="haproxy")
    assert "existing configuration" in planned(machine)["faults"][0]["text"]
    done = planned(machine, replace=True)
    assert (done["faults"], actions(done)) == ([], [("haproxy", "restarted")])
    back = restored(
        observed(
            configured(),
            files={**configured().files, places.RECORD: File(places.RECORD, done["record"], "0600", 0, 0, 1.0)},
        )
    )
    assert [(one["unit"], one["state"], one["enabled"]) for one in back["actions"]] == [("haproxy", "restarted", True)]
    assert back["packages"] == []


def test_redhat_has_another_socket_a_folder_for_fragments_and_selinux() -> None:
    machine = observed(
        BARE,
        os_release='ID="rhel"\n',
        selinux="enforcing",
        haproxy_connect_any="haproxy_connect_any --> off",
        firewalls=("firewalld",),
    )
    done = planned(machine, **PAIR)
    assert (done["faults"], done["apt"], done["selinux"]) == ([], False, True)
    # Booleans need a library that minimal installations do not have.
    assert done["packages"] == ["haproxy", "keepalived", "python3-libselinux", "python3-libsemanage"]
    assert planned(observed(machine, libraries="selinux semanage"))["packages"] == ["haproxy"]
    assert planned(observed(machine, selinux="disabled"))["packages"] == ["haproxy"]
    assert "stats socket /var/lib/haproxy/stats mode 600" in done["contents"][places.MAIN]
    assert f"CFGDIR={places.FRAGMENTS}\n" in done["contents"][places.SETTINGS]
    assert f'KEEPALIVED_OPTIONS="-D -f {places.KEEPALIVED}"' in done["contents"][places.KEEPALIVED_ENVIRONMENT]
    assert '    script "/usr/libexec/keepalived/hwaccel-gpu-check"\n' in done["contents"][places.KEEPALIVED]
    assert restored(configured(machine, **PAIR))["absent"] == [
        posixpath.dirname(places.KEEPALIVED_DROP_IN),
        posixpath.dirname(places.DROP_IN),
        places.CHECKS["redhat"],
    ]
    rule = 'rule family="ipv4" source address="10.0.0.0/24" port port="80" protocol="tcp" accept'
    assert done["firewall"] == [
        {"firewall": "firewalld", "open": True, "port": 80, "protocol": "tcp", "source": "10.0.0.0/24", "rule": rule}
    ]
    assert not planned(observed(machine, haproxy_connect_any="haproxy_connect_any --> on"))["selinux"]
    assert not planned(observed(machine, selinux="disabled"))["selinux"]


def test_openings_that_are_no_longer_needed_are_closed_and_teardown_closes_all() -> None:
    opened = Record(openings=({"port": 80, "source": "10.0.0.0/24"}, {"port": 81, "source": ""})).as_text()
    machine = observed(configured(), firewalls=("ufw",))
    machine = changed(machine, places.RECORD, text=opened)
    assert [(change["open"], change["port"]) for change in planned(machine)["firewall"]] == [(True, 80), (False, 81)]
    assert [(change["open"], change["port"]) for change in restored(machine)["firewall"]] == [(False, 80), (False, 81)]
    # A closed opening is removed from the record, so a port that another user opens later stays open.
    after = planned(machine)["record_after"]
    assert [
        (change["open"], change["port"]) for change in planned(changed(machine, places.RECORD, text=after))["firewall"]
    ] == [(True, 80)]
    # With load_balancer_firewall: false the firewall is not changed, and neither at teardown.
    existing = planned(observed(BARE, firewalls=("ufw",)), firewall=False)
    assert (existing["firewall"], json.loads(existing["record"])["openings"]) == ([], [])
    assert planned(observed(BARE, firewalls=("nftables",)))["messages"][-1].endswith("allow 80/tcp from 10.0.0.0/24")


def test_passwords_are_in_a_file_that_only_root_can_read_and_that_is_not_shown() -> None:
    done = planned(BARE, stats_address="10.0.0.3", stats_user="ops", stats_password="s3cret")
    assert [
        (file["mode"], file["sensitive"]) for file in done["files"] if "s3cret" in done["contents"][file["path"]]
    ] == [("0600", True)]


def test_sources_beside_each_other_need_one_rule_of_a_firewall() -> None:
    """With as many rules as machines, the first run would take minutes. The sources of HAProxy stay what they are."""
    sources = [*(f"10.0.0.{number}" for number in range(8, 16)), "10.0.1.1", "fd00::1", "fd00::0"]
    service = {**SETTINGS["services"][0], "sources": sources}
    done = planned(observed(BARE, firewalls=("firewalld",)), services=[service])
    assert [one["source"] for one in done["firewall"]] == ["10.0.0.8/29", "10.0.1.1/32", "fd00::/127"]
    assert " 10.0.0.8/32 10.0.0.9/32 " in done["contents"][places.MAIN]
