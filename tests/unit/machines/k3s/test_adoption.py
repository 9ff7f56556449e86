# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A K3s that its own script has installed: how its options are read, what is told of them, and what is not adopted."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import data
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import Answer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import options, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.leaving import restored
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.plan import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.request import request
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import certificate
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s import test_plan as machines

SECRET = "b3a1c0ffee"
FULL = f"K10{'a' * 64}::server:{SECRET}"
UNIT = """[Unit]
Description=Lightweight Kubernetes
[Service]
Type=notify
EnvironmentFile=-/etc/default/%N
EnvironmentFile=-/etc/sysconfig/%N
EnvironmentFile=-/etc/systemd/system/{unit}.service.env
KillMode=process
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/k3s \\
    {role} \\
{arguments}

"""
LONE = [one for one in machines.SETTINGS["machines"] if one["host"] in ("s1", "a1")]
SETTINGS: dict[str, t.Any] = {
    **machines.SETTINGS,
    "adopt": True,
    "machines": LONE,
    "endpoint": "10.0.0.11:6443",
    "registries": {},
    "configuration": {},
    "server_configuration": {},
    "disable": ["traefik"],
    "secrets_encryption": False,
    "names": [],
}


def installed(
    role: str = "server", arguments: tuple[str, ...] = (), environment: str = "", config: str = "", node: str = "s1"
) -> Host:
    """A member as the script leaves it. Only certificates, the program and the archive are as the role has them."""
    host = machines.member(role, **{name: value for name, value in SETTINGS.items() if name != "role"})
    unit = places.unit(role)
    quoted = "".join(f"\t'{one}' \\\n" for one in arguments)
    text = UNIT.format(unit=places.UNITS[role], role=role, arguments=quoted)
    own = (places.RECORD, places.CONFIGURATION, places.ENTRY)
    files = {path: one for path, one in host.files.items() if path not in own}
    files[unit] = File(unit, text)
    files[f"{unit}.env"] = File(f"{unit}.env", environment, "0600")
    files[places.NODE_CERTIFICATE] = File(places.NODE_CERTIFICATE, certificate(days=365, common=f"system:node:{node}"))
    present = [one for one in host.fact("present").split() if one not in (places.ETCD, places.TOKEN)]
    present += [f"{unit}.env", "/usr/local/bin/k3s-killall.sh"]
    if role == "server":
        present += [places.SQLITE, "/usr/local/bin/k3s-uninstall.sh"]
        files[places.OWN_AGENT_TOKEN] = File(places.OWN_AGENT_TOKEN, f"{FULL}\n", "0600")
    if config:
        files[places.FOREIGN_CONFIGURATION] = File(places.FOREIGN_CONFIGURATION, config, "0600")
        present.append(places.FOREIGN_CONFIGURATION)
    facts = {
        "present": "\n".join(present),
        "links": "/usr/local/bin/kubectl\n",
        "interfaces": "/sys/class/net/eth0\n/sys/class/net/cni0\n",
        "kubelet_files": "/var/lib/kubelet/pods\n",
        "foreign_options": places.FOREIGN_CONFIGURATION if "token" in config else "",
    }
    return dataclasses.replace(host, facts={**host.facts, **facts}, files=files)


def made(host: Host, **changed: t.Any) -> dict[str, t.Any]:
    return plan(host, {**SETTINGS, **changed})


def texts(found: dict[str, t.Any]) -> str:
    return "\n".join(str(fault["text"]) for fault in found["faults"])


def test_options_are_read_as_k3s_reads_them() -> None:
    unit = UNIT.format(
        unit="k3s", role="server", arguments="\t'--disable' \\\n\t'traefik,servicelb' \\\n\t'-t=it'\\''s' \\\n"
    )
    program, role, *arguments = options.command(unit)
    assert (program, role, arguments) == (places.PROGRAM, "server", ["--disable", "traefik,servicelb", "-t=it's"])
    environment = options.variables(
        "K3S_TOKEN='other one'\n# K3S_X=1\nK3S_URL=https://s1:6443\nK3S_KUBECONFIG_MODE=\"644\"\n"
    )
    files = ("disable: [coredns]\ncluster-init: true\nnode-name: a\n", "disable+: metrics-server\nnode-name: b\n")
    assert options.merged(arguments, environment, files) == {
        "disable": ["coredns", "metrics-server", "traefik", "servicelb"],
        "cluster-init": ["true"],
        "node-name": ["b"],
        "token": ["it's"],
        "server": ["https://s1:6443"],
        "write-kubeconfig-mode": ["644"],
    }


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (
            ("--docker", "--kubelet-arg", "max-pods=9,8", "--kubelet-arg=v=2"),
            {"docker": ["true"], "kubelet-arg": ["max-pods=9,8", "v=2"]},
        ),
        (("--secrets-encryption=false", "--debug"), {"secrets-encryption": ["false"], "debug": ["true"]}),
        # Of a release that is newer than the table.
        (("--new-switch", "--new-text", "x"), {"new-switch": ["true"], "new-text": ["x"]}),
        (
            ("--cluster-cidr", "10.1.0.0/16", "--cluster-cidr", "fd00::/56"),
            {"cluster-cidr": ["10.1.0.0/16", "fd00::/56"]},
        ),
    ],
)
def test_switches_lists_and_texts_are_told_apart(arguments: tuple[str, ...], found: dict[str, list[str]]) -> None:
    assert options.merged(arguments, {}, ()) == found


def test_without_consent_it_is_something_else() -> None:
    found = made(installed(), adopt=False)
    assert found["found"]["state"] == "foreign" and "cluster_k3s_adopt: true" in found["found"]["why"]
    assert found["adopts"] == [] and found["absent"] == []


def test_a_server_is_adopted_with_its_data_and_the_difference_is_told() -> None:
    arguments = ("--disable=traefik", "--node-label", "a=b", "--kubelet-arg=max-pods=50", "--write-kubeconfig-mode=644")
    found = made(installed("server", arguments, f"K3S_TOKEN='{SECRET}'\n"))
    assert texts(found) == "" and found["found"]["state"] == "member" and found["datastore"] == "SQLite"
    assert found["adopts"] == [
        "adopt K3s, as it runs",
        "kubelet-arg: max-pods=50 → not set",
        "node-ip: not set → 10.0.0.11",
        "node-label: a=b → not set",
        "tls-san: not set → 10.0.0.11",
        "write-kubeconfig-mode: 644 → 0600",
    ]
    written = {one["path"]: (one["mode"], one["sensitive"]) for one in found["files"]}
    assert written == {
        places.AGENT_TOKEN: ("0600", True),
        places.ENTRY: ("0600", True),
        places.CONFIGURATION: ("0600", True),
        places.unit("server"): ("0644", False),
    }
    assert found["contents"][places.AGENT_TOKEN] == f"{SECRET}\n"
    assert found["contents"][places.ENTRY].splitlines()[1:] == ["{}"]
    # It says that this is not complete, so it goes last.
    assert found["absent"] == [
        "/usr/local/bin/k3s-uninstall.sh",
        "/usr/local/bin/k3s-killall.sh",
        "/etc/systemd/system/k3s.service.env",
    ]
    assert found["turn"]["reasons"] == ["it is adopted"] and found["turn"]["restart"] and found["turn"]["stays"]
    shown = {name: value for name, value in found.items() if name != "contents"}
    assert SECRET not in str(shown)


def test_an_agent_keeps_its_token_in_a_file_of_its_own() -> None:
    host = installed("agent", (), f"K3S_TOKEN='{FULL}'\nK3S_URL='https://s1:6443'\n")
    found = made(host, role="agent", node="s1", address="10.0.0.21")
    assert texts(found) == ""
    assert found["adopts"] == [
        "adopt K3s, as it runs",
        "node-ip: not set → 10.0.0.21",
        "server: https://s1:6443 → https://10.0.0.11:6443",
    ]
    assert found["contents"][places.TOKEN] == f"{FULL}\n"
    assert yaml.safe_load(found["contents"][places.ENTRY]) == {
        "server": "https://10.0.0.11:6443",
        "token-file": places.TOKEN,
    }
    elsewhere = installed("agent", ("--token-file=/srv/token",))
    assert "the token of the agent is in none of its files" in texts(made(elsewhere, role="agent", node="s1"))
    copied = dataclasses.replace(
        elsewhere, files={**elsewhere.files, places.TOKEN: File(places.TOKEN, f"{FULL}\n", "0600")}
    )
    found = made(copied, role="agent", node="s1")
    assert texts(found) == "" and found["contents"][places.TOKEN] == f"{FULL}\n"
    without = made(installed("agent"), role="agent", node="s1")
    assert "the token of the agent is in none of its files" in texts(without)


def test_one_of_several_servers_joins_the_others_with_its_own_token() -> None:
    three = machines.SETTINGS["machines"]
    host = machines.changed(
        installed("server", ("--cluster-init",)), present="\n".join([*installed().fact("present").split(), places.ETCD])
    )
    found = made(host, machines=three, endpoint="10.0.0.1:6443")
    assert texts(found) == ""
    assert yaml.safe_load(found["contents"][places.ENTRY]) == {
        "server": "https://10.0.0.1:6443",
        "token-file": places.OWN_TOKEN,
    }


def test_servers_that_are_adopted_are_restarted_one_at_a_time() -> None:
    endpoint = "10.0.0.1:6443"
    present = "\n".join([*installed().fact("present").split(), places.ETCD])
    plans, pem = {}, certificate(days=3650)
    for one in machines.SETTINGS["machines"]:
        arguments = ("--disable=traefik",) if one["serves"] else ("--token", FULL)
        host = installed(one["role"], arguments, node=one["node"])
        host = machines.changed(host, present=present) if one["serves"] else host
        authorities = {
            path: File(path, pem) for path in (places.AUTHORITY, places.SERVER_AUTHORITY) if path in host.files
        }
        host = dataclasses.replace(host, files={**host.files, **authorities})
        plans[one["host"]] = plan(
            host, {**SETTINGS, **one, "machines": machines.SETTINGS["machines"], "endpoint": endpoint}
        )
        assert texts(plans[one["host"]]) == ""
    inventory = [{**one, "labels": {}, "taints": []} for one in machines.SETTINGS["machines"]]
    wish = {"version": "1.36.4", "endpoint": endpoint, "even_servers": False, "at_a_time": "1"}
    planned = data.planned(inventory, plans, wish, Answer())
    assert planned["faults"] == []
    assert [one["text"] for one in planned["steps"]] == [
        *(f"update the server {name}: it is adopted" for name in ("s1", "s2", "s3")),
        "update a1: it is adopted",
    ]


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (("--cluster-cidr=10.50.0.0/16",), "", ("cluster_k3s_pod_network", "set 10.50.0.0/16")),
        (("--service-cidr=10.60.0.0/16",), "", ("cluster_k3s_service_network", "set 10.60.0.0/16")),
        (("--cluster-domain=example.org",), "", ("cluster_k3s_dns_domain", "set example.org")),
        (("--flannel-backend=host-gw",), "", ("cluster_k3s_flannel_backend", "set host-gw")),
        (("--secrets-encryption",), "", ("cluster_k3s_secrets_encryption", "set true")),
        (("--disable=traefik,servicelb",), "", ("cluster_k3s_disable", "set servicelb,traefik")),
        (("--disable-network-policy",), "", ("cluster_k3s_server_configuration", "set disable-network-policy: true")),
        (("--snapshotter=native",), "", ("cluster_k3s_configuration", "set snapshotter: native")),
        (("--docker",), "", ("cluster_k3s_engine",)),
        (("--data-dir=/data",), "", ("data-dir of the K3s that is adopted is /data", "keep this cluster as it is")),
        (
            ("--datastore-endpoint=mysql://u:p4ss@tcp(db)/k3s",),
            "",
            ("the datastore of the K3s that is adopted is mysql://tcp(db)/k3s, and none is set", "external"),
        ),
        (
            ("--cluster-dns=10.43.0.99",),
            "",
            ("cluster-dns of the K3s that is adopted is 10.43.0.99", "the role decides it"),
        ),
        (("--vpn-auth=name=tailscale,joinKey=p4ss",), "", ("vpn-auth of the K3s that is adopted is (not shown)",)),
        (("-c", "/srv/k3s.yaml"), "", ("the configuration of K3s is /srv/k3s.yaml",)),
        ((), "HTTPS_PROXY='http://u:p4ss@proxy:3128'\n", ("K3s has HTTPS_PROXY in its environment", "proxy.conf")),
        ((), "K3S_DATASTORE_ENDPOINT='postgres://u:p4ss@db'\n", ("is postgres://db, and none is set",)),
    ],
)
def test_what_the_cluster_keeps_must_be_set(
    arguments: tuple[str, ...], environment: str, told: tuple[str, ...]
) -> None:
    found = made(
        installed(
            "server",
            ("--disable=traefik", *arguments) if "--disable=traefik,servicelb" not in arguments else arguments,
            environment,
        )
    )
    assert [part for part in told if part not in texts(found)] == []
    assert found["files"] == found["absent"] == [] and "p4ss" not in str(found)


def external(endpoint: str) -> tuple[Host, dict[str, t.Any]]:
    """A server whose datastore is that of others, and what is set of it."""
    host = installed("server", ("--disable=traefik", "--datastore-endpoint=mysql://u:p4ss@tcp(db)/k3s"))
    present = host.fact("present").replace(places.SQLITE, "")
    files = {**host.files, places.OWN_TOKEN: File(places.OWN_TOKEN, f"{FULL}\n", "0600")}
    wish = {"datastore": "external", "datastore_endpoint": endpoint, "has_token": True}
    return dataclasses.replace(host, files=files, facts={**host.facts, "present": present}), wish


def test_a_server_with_a_datastore_of_others_is_adopted_with_its_token() -> None:
    host, wish = external("mysql://u:other@tcp(db)/k3s")
    found = made(host, **wish)
    assert texts(found) == "" and "datastore-endpoint: (not shown) → (not shown)" in found["adopts"]
    assert found["contents"][places.TOKEN] == f"{FULL}\n"
    modes = {one["path"]: one["mode"] for one in found["files"]}
    assert modes[places.TOKEN] == modes[places.ENTRY] == modes[places.CONFIGURATION] == "0600"
    assert yaml.safe_load(found["contents"][places.ENTRY]) == {"token-file": places.TOKEN}
    again = made(after(host, found), **wish, adopt=False)
    assert (texts(again), again["files"], again["turn"]["reasons"]) == ("", [], [])


def test_another_datastore_than_that_of_the_k3s_is_refused() -> None:
    host, wish = external("mysql://u:p4ss@tcp(other)/k3s")
    told = texts(made(host, **wish))
    assert "is mysql://tcp(db)/k3s, and mysql://tcp(other)/k3s is set" in told and "p4ss" not in told


def test_another_node_name_and_another_role_are_refused() -> None:
    assert "its node is s1, and gpu-1 is set" in texts(made(installed(), node="gpu-1"))
    unit = places.unit("server")
    host = installed()
    moved = dataclasses.replace(
        host, files={**host.files, unit: File(unit, "[Service]\nExecStart=/opt/bin/k3s server\n")}
    )
    assert "K3s is /opt/bin/k3s" in texts(made(moved))


def test_a_configuration_with_options_of_the_role_goes_and_another_one_stays() -> None:
    ours = made(installed("server", ("--disable=traefik",), "", f"token: {SECRET}\nkubelet-arg: [max-pods=50]\n"))
    assert texts(ours) == "" and places.FOREIGN_CONFIGURATION in ours["absent"]
    assert "kubelet-arg: max-pods=50 → not set" in ours["adopts"]
    stays = made(installed("server", ("--disable=traefik",), "", "kubelet-arg: [max-pods=50]\n"))
    assert places.FOREIGN_CONFIGURATION not in stays["absent"]
    assert [line for line in stays["adopts"] if "kubelet" in line] == []


def after(host: Host, found: dict[str, t.Any], *left: str) -> Host:
    """The machine once the plan was done, but for paths that are left as they are."""
    written = {one["path"]: one["mode"] for one in found["files"] if one["path"] not in left}
    files = {**host.files, **{path: File(path, found["contents"][path], mode) for path, mode in written.items()}}
    files[places.RECORD] = File(places.RECORD, found["record"], "0600")
    gone = [path for path in found["absent"] if path not in left]
    return dataclasses.replace(
        host,
        files={path: one for path, one in files.items() if path not in gone},
        facts={**host.facts, "present": "\n".join(one for one in host.fact("present").split() if one not in gone)},
    )


def test_afterwards_it_is_the_roles_own() -> None:
    host = installed("server", ("--disable=traefik",))
    done = after(host, made(host))
    for adopt in (True, False):
        again = made(done, adopt=adopt)
        assert (texts(again), again["adopts"], again["files"], again["absent"], again["record"]) == ("", [], [], [], "")
        assert again["turn"]["reasons"] == []
    left = restored(done, {**SETTINGS, "adopt": False})
    assert left["faults"] == left["before"] == left["keeps"] == [] and left["restores"] == {}
    assert {places.PROGRAM, places.unit("server"), "/usr/local/bin/kubectl", places.ENTRY} - set(left["absent"]) <= {
        places.ENTRY
    }


def test_an_adoption_that_was_interrupted_is_completed_with_the_same_consent() -> None:
    host = installed("server", ("--disable=traefik",))
    half = after(host, made(host), places.unit("server"), "/etc/systemd/system/k3s.service.env")
    again = made(half)
    assert [one["path"] for one in again["files"]] == [places.unit("server")]
    assert "its K3s was not adopted completely" in texts(made(half, adopt=False))


def test_a_restart_that_a_killed_run_has_left_drains_no_node() -> None:
    host = installed("server", ("--disable=traefik",))
    done = after(host, made(host))
    unit = done.unit("k3s")
    moment = {"entered": str(unit.started_at + 30)}
    left = made(dataclasses.replace(done, facts={**done.facts, **moment}), adopt=False)["turn"]
    assert (left["reasons"], left["restart"], left["stays"]) == (["it is adopted"], True, True)
    moment["entered"] = str(unit.started_at - 30)
    assert made(dataclasses.replace(done, facts={**done.facts, **moment}))["turn"]["reasons"] == []


def test_what_was_compared_is_not_compared_again() -> None:
    """A run that was killed has written everything, and only the file of the environment is left."""
    host = installed("server", ("--disable=traefik", "--secrets-encryption"))
    done = made(host, secrets_encryption=True)
    assert texts(done) == ""
    half = after(host, done, "/etc/systemd/system/k3s.service.env")
    again = made(half, secrets_encryption=True)
    assert (texts(again), again["files"]) == ("", [])
    assert again["absent"] == ["/etc/systemd/system/k3s.service.env"] and again["adopts"] == ["adopt K3s, as it runs"]


def test_secrets_are_read_only_where_it_is_asked_for() -> None:
    secret = {"/etc/systemd/system/k3s.service.env", places.FOREIGN_CONFIGURATION, places.OWN_AGENT_TOKEN}
    assert secret & set(request({**SETTINGS, "adopt": False}).files) == set()
    assert secret <= set(request(SETTINGS).files)
