# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role cluster_openshift as a playbook runs it: nothing is connected to, all problems are lines, and no secret is shown."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.roles.openshift_play import SECRET, played


@pytest.mark.parametrize(
    ("method", "shown"), [("agent", "rendezvousIP: 192.0.2.11"), ("in_place", "bootstrapInPlace:")]
)
def test_what_the_installer_would_get_is_shown_without_secrets(method: str, shown: str, tmp_path: pathlib.Path) -> None:
    code, output = played(tmp_path, "main", cluster_openshift_method=method)
    assert code == 0, output[-3000:]
    assert shown in output and "pullSecret: hash " in output and "99-hwaccel-gpu-master" in output
    assert SECRET not in output
    assert "changed=0" in output


def test_all_problems_are_told_before_anything_is_touched(tmp_path: pathlib.Path) -> None:
    given = {
        "cluster_openshift_network_type": "OpenShiftSDN",
        "cluster_openshift_service_network": ["172.30.0.5/16"],
        "cluster_openshift_manifests": ["kind: A\nkind: B\n"],
        "cluster_openshift_fips": True,
        "cluster_openshift_proxy": {"http": "http://user:pl4nted@proxy:3128", "no_proxy": ["*.example.com"]},
    }
    code, output = played(tmp_path, "main", **given)
    assert code == 2, output[-3000:]
    for says in (
        "OpenShiftSDN is not supported (networking.networkType of install-config.yaml)",
        "172.30.0.5/16 has host bits set",
        "key kind occurs twice (cluster_openshift_manifests[0], line 2)",
        "ssh-ed25519 is not available in FIPS mode",
        "wildcards are not supported",
        "Nothing was changed.",
    ):
        assert says in output, says
    assert "Traceback" not in output and SECRET not in output and "pl4nted" not in output


def test_who_cannot_be_read_while_it_waits_is_reported_and_stops_nothing(tmp_path: pathlib.Path) -> None:
    """Nobody listens at the port of the boot server, and no HAProxy runs at the load balancer, which is this host."""
    away = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    here = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    }
    code, output = played(tmp_path, "evidence", groups={"boot_servers": {"boot": away}, "load_balancers": {"lb": here}})
    assert code == 0, output[-4000:]
    assert "edge: boot server boot could not be read, and what it knows is missing (" in output
    assert "Connection refused" in output
    assert "load balancer lb could not be read, and what it knows is missing (no HAProxy answers (" in output
    assert "unreachable=0 failed=0" in output and "changed=0" in output
