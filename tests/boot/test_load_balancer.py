# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role load_balancer on a machine with Debian's HAProxy: what it deploys, what it does not change, and what it refuses."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import json
import subprocess
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.haproxy import MARK
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import DROP_IN
from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import MACHINE_NETWORK, MEMBERS, Balanced
from ansible_collections.hwaccel.gpu.tests.live.support import transcripts

FOLDER = "/etc/hwaccel-gpu/load_balancer"
CONFIG = f"{FOLDER}/haproxy/50-services.cfg"
INVALID = "frontend mine\n    bnd *:7000\n"
UNKNOWN_KEYWORD = "line: bnd *:7000): unknown keyword 'bnd' in 'frontend' section"


@dataclasses.dataclass(frozen=True)
class Configured:
    """State before all runs, after one in check mode, and after a refused one; and the numbers of predicted and of real changes."""

    before: str
    checked: str
    refused: str
    after_refusal: str
    predicted: int
    changed: int
    blocks: dict[str, str]


def state(balanced: Balanced) -> str:
    folders = "/etc/haproxy /etc/hwaccel-gpu /etc/systemd/system /var/lib/hwaccel-gpu"
    return balanced.machine.sh(
        f"for f in {folders}; do find $f -type f -printf '%p %m %U:%G ' -exec sha256sum {{}} \\; 2>/dev/null || :; done | sort"
    )


@pytest.fixture(scope="module")
def configured(balanced: Balanced) -> Configured:
    before = state(balanced)
    predicted = balanced.done("--check", "--diff").changed("lb")
    checked = state(balanced)
    refused = balanced.play(load_balancer_extra=INVALID)
    assert refused.rc == 2, refused.stdout
    after, done = state(balanced), balanced.done()
    blocks = {"refused": transcripts.summary(refused.stdout), "machines": transcripts.summary(done.stdout)}
    return Configured(before, checked, refused.failures[-1], after, predicted, done.changed("lb"), blocks)


@pytest.mark.parametrize("name", ["refused", "machines"])
def test_the_block_at_the_end_is_that_of_the_documentation(configured: Configured, name: str) -> None:
    transcripts.check(name, configured.blocks[name])


def test_every_file_that_was_written_is_among_the_changes(balanced: Balanced, configured: Configured) -> None:
    paths = {line.split()[0] for line in state(balanced).splitlines()} - {
        line.split()[0] for line in configured.before.splitlines()
    }
    # What the role keeps for itself, and what belongs to packages.
    own = {path for path in paths if path.startswith(("/etc/hwaccel-gpu/", "/etc/systemd/system/haproxy.service.d/"))}
    assert own
    assert all(f"write {path}" in configured.blocks["machines"] for path in own)


def test_check_mode_predicts_changes_and_makes_none(configured: Configured) -> None:
    assert configured.predicted > 0
    assert configured.checked == configured.before


def test_the_run_that_installs_haproxy_validates_with_it_before_it_writes_its_files(configured: Configured) -> None:
    assert UNKNOWN_KEYWORD in configured.refused
    assert "/etc/hwaccel-gpu/" not in configured.after_refusal


def test_the_health_of_every_member_is_checked(balanced: Balanced, configured: Configured) -> None:
    everywhere = {name: "UP" for name in MEMBERS if not name.startswith("worker")}
    balanced.machine.wait("all members are UP", lambda: balanced.servers("ocp-api") == everywhere)
    assert balanced.servers("ocp-machine-config") == everywhere
    assert balanced.servers("ocp-ingress-https") == {"worker-0": "UP", "worker-1": "UP"}


#: In the machine network, and of no machine of the inventory.
STRANGER = "10.99.0.9"


def request(balanced: Balanced, client: str, port: int, *options: str) -> subprocess.CompletedProcess[str]:
    url = f"https://{balanced.machine.address}:{port}/"
    return balanced.hosts[client].run("curl", "--silent", "--insecure", "--max-time", "10", *options, url, check=False)


@pytest.fixture
def stranger(balanced: Balanced) -> c.Iterator[c.Callable[[int], subprocess.CompletedProcess[str]]]:
    """Sends a request to a port from another address of the machine network. Where it is sent from has no other program."""
    host = balanced.hosts["master-0"]
    assert ipaddress.ip_address(STRANGER) in ipaddress.ip_network(MACHINE_NETWORK)
    assert STRANGER not in {one.address for one in (*balanced.hosts.values(), balanced.machine)}
    device = json.loads(host.run("ip", "-json", "route", "get", balanced.machine.address).stdout)[0]["dev"]
    host.run("ip", "address", "add", f"{STRANGER}/24", "dev", device)
    yield lambda port: request(balanced, "master-0", port, "--interface", STRANGER)
    host.run("ip", "address", "delete", f"{STRANGER}/24", "dev", device)


def test_machine_configs_are_for_the_machines_of_the_inventory_and_on_wish_for_their_network(
    balanced: Balanced, configured: Configured, stranger: c.Callable[[int], subprocess.CompletedProcess[str]]
) -> None:
    assert request(balanced, "master-0", 22623).stdout.strip() in MEMBERS
    assert request(balanced, "worker-1", 22623).stdout.strip() in MEMBERS
    assert stranger(6443).stdout.strip() in MEMBERS
    assert stranger(22623).returncode != 0
    assert "haproxy is reloaded" in balanced.done(load_balancer_machine_config_clients="machine_network").stdout
    assert stranger(22623).stdout.strip() in MEMBERS
    assert request(balanced, "worker-1", 22623).returncode != 0, "worker-1 is outside of the machine network"
    assert balanced.done().changed() > 0
    assert stranger(22623).returncode != 0
    worker = balanced.worker()
    assert balanced.done().changed() == 0
    assert balanced.worker() == worker


def test_haproxy_accepts_hundreds_of_machines_that_are_not_beside_each_other(
    balanced: Balanced, configured: Configured
) -> None:
    """The real run is only checked by HAProxy: a line with more than 64 words is an error."""
    groups = balanced.groups()
    groups["workers"] = {f"node-{number}": {"ansible_host": f"10.98.{number}.1"} for number in range(200)}
    run = balanced.rig.play("load_balancer", groups, "--check", "--diff", clusters=balanced.clusters)
    assert run.rc == 0, run.stdout
    assert "10.98.199.1/32" in run.stdout


def test_statistics_and_metrics_are_available_on_the_machine_only(balanced: Balanced, configured: Configured) -> None:
    script = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8404/metrics').read().decode())"
    assert (
        'haproxy_server_status{proxy="ocp-api",server="master-0",state="UP"} 1'
        in balanced.machine.execute("python3", "-c", script).stdout
    )
    refused = balanced.hosts["master-0"].run(
        "curl", "--silent", "--show-error", f"http://{balanced.machine.address}:8404/metrics", check=False
    )
    assert "curl: (7)" in refused.stderr


def test_the_record_is_readable_by_root_only_in_a_folder_that_other_roles_can_share(
    balanced: Balanced, configured: Configured
) -> None:
    folders = "/var/lib/hwaccel-gpu /var/lib/hwaccel-gpu/load_balancer"
    modes = balanced.machine.sh(f"stat -c %a {folders} /var/lib/hwaccel-gpu/load_balancer/record.json")
    assert modes.split() == ["755", "700", "600"]


def test_a_second_run_changes_nothing(balanced: Balanced, configured: Configured) -> None:
    before = unchanged(balanced)
    assert balanced.done().changed() == 0
    assert unchanged(balanced) == before


def unchanged(balanced: Balanced) -> tuple[str, str]:
    return state(balanced), balanced.worker()


def test_an_invalid_configuration_is_reported_with_the_message_of_haproxy_and_changes_nothing(
    balanced: Balanced, configured: Configured
) -> None:
    before = unchanged(balanced)
    assert UNKNOWN_KEYWORD in balanced.refused(load_balancer_extra=INVALID)
    assert unchanged(balanced) == before


def test_haproxy_accepts_every_option_and_no_password_is_shown(balanced: Balanced, configured: Configured) -> None:
    members = [{"name": "four", "address": "10.99.0.12"}, {"name": "six", "address": "fd00::12", "port": 81}]
    services = [
        {
            "name": "behind",
            "port": 7001,
            "address": "::",
            "accept_proxy": True,
            "send_proxy": True,
            "members": members,
            "sources": ["10.0.0.0/8", "fd00::/8"],
        },
        {
            "name": "web",
            "port": 7002,
            "mode": "http",
            "balance": "leastconn",
            "members": members,
            "check": {"type": "http", "status": "200|401", "port": 82},
        },
        {
            "name": "sticky",
            "port": 7003,
            "address": "10.99.0.17",
            "balance": "source",
            "members": members,
            "sources": ["10.0.0.0/8"],
        },
    ]
    before = unchanged(balanced)
    statistics = {
        "load_balancer_stats_address": "10.99.0.17",
        "load_balancer_stats_user": "ops",
        "load_balancer_stats_password": 's3 c\\r$e"t#',
    }
    run = balanced.done("--check", "--diff", load_balancer_services=services, **statistics)
    assert run.changed() > 0
    assert "bind [::]:7001 v4v6 accept-proxy" in run.stdout
    assert "s3 c" not in run.stdout
    assert unchanged(balanced) == before


def test_all_problems_are_reported_at_once_and_change_nothing(balanced: Balanced, configured: Configured) -> None:
    services = [
        {"name": "login", "port": 22, "members": [{"name": "m", "address": "10.99.0.12"}]},
        {"name": "twice", "port": 6443, "members": [{"name": "m", "address": "10.99.0.12"}]},
        {"name": "bare", "port": 7001, "cluster": "ocp", "roles": ["storage"]},
    ]
    unreached = [*services, {"name": "named", "port": 7002, "members": [{"name": "m", "address": "master-0"}]}]
    before = unchanged(balanced)
    assert "'master-0' is not an IP address" in balanced.refused(load_balancer_services=unreached)
    balanced.machine.write(f"{FOLDER}/haproxy/99-mine.cfg", "bogus\n")
    try:
        message = balanced.refused(
            load_balancer_services=services, load_balancer_maxconn=2000000, load_balancer_stats_address="0.0.0.0"
        )
    finally:
        balanced.machine.sh(f"rm {FOLDER}/haproxy/99-mine.cfg")
    for fault in (
        "its port 22 is in use by sshd",
        "its port 6443 is also that of service twice",
        "no machine has the role storage",
        "2000000 connections need",
        "statistics at 0.0.0.0 would be readable without authentication",
        "99-mine.cfg): HAProxy would read it",
    ):
        assert fault in message
    assert unchanged(balanced) == before


def test_an_invalid_file_is_corrected_and_the_service_keeps_running_meanwhile(
    balanced: Balanced, configured: Configured
) -> None:
    worker, right = balanced.worker(), balanced.machine.read(CONFIG)
    balanced.machine.write(CONFIG, right + "bogus\n", "0644")
    assert "failed" in balanced.machine.sh("systemctl reload haproxy 2>&1 || :")
    assert balanced.worker() == worker
    assert balanced.done().changed() > 0
    assert balanced.machine.read(CONFIG) == right
    assert balanced.worker() != worker


def test_a_full_disk_is_reported_before_anything_is_written(balanced: Balanced, configured: Configured) -> None:
    machine = balanced.machine
    before = unchanged(balanced)
    machine.sh(
        f"cp -a {FOLDER} /tmp/kept; mount -t tmpfs -o size=256k tmpfs {FOLDER}; cp -a /tmp/kept/. {FOLDER}; cat /dev/zero >{FOLDER}/filled || :"
    )
    try:
        assert f"({FOLDER}): 0 bytes are free there" in balanced.refused(load_balancer_maxconn=300)
        machine.sh(f"rm {FOLDER}/filled")
        assert unchanged(balanced) == before
    finally:
        machine.sh(f"umount {FOLDER}; rm -r /tmp/kept")


def test_the_next_run_reloads_after_one_that_was_killed_before_the_reload(
    balanced: Balanced, configured: Configured
) -> None:
    worker = balanced.worker()
    balanced.killed_before("reload", load_balancer_maxconn=400)
    assert "maxconn 400\n" in balanced.machine.read(CONFIG)
    assert balanced.worker() == worker
    run = balanced.done(load_balancer_maxconn=400)
    assert "haproxy is reloaded: its configuration differs from the loaded one" in run.stdout
    assert "Maxconn: 400\n" in balanced.runtime_api("show info")


def test_the_next_run_loads_units_after_one_that_was_killed_before_systemd_did(
    balanced: Balanced, configured: Configured
) -> None:
    kept = "/tmp/kept.conf"
    balanced.machine.sh(f"mv {DROP_IN} {kept}; systemctl daemon-reload; systemctl restart haproxy; mv {kept} {DROP_IN}")
    assert MARK not in balanced.runtime_api("show info")
    assert "haproxy is restarted: it runs with another configuration file" in balanced.done().stdout
    assert MARK in balanced.runtime_api("show info")


@pytest.mark.slow
def test_eight_times_as_many_machines_need_less_than_eight_times_as_long(
    balanced: Balanced, configured: Configured
) -> None:
    seconds = {}
    for count in (50, 400):
        groups = balanced.groups()
        groups["workers"] = {
            f"node-{number}": {"ansible_host": f"10.98.{number // 200}.{number % 200 + 1}"} for number in range(count)
        }
        start = time.monotonic()
        run = balanced.rig.play("load_balancer", groups, "--check", clusters=balanced.clusters)
        seconds[count] = time.monotonic() - start
        assert run.rc == 0, run.stdout
    print(f"seconds by workers: {seconds}")
    assert seconds[400] < 3 * seconds[50]
