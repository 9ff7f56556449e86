# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host role changes on a machine, in lines, from its plan."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import predicted


def test_a_plan_without_changes_has_no_lines() -> None:
    settled: dict[str, t.Any] = {"files": [], "changes": [], "packages": [], "actions": [], "absent": [], "record": ""}
    # Ports of firewalls are in each plan, whether they are open or not.
    settled |= {
        "firewall": [{"firewall": "ufw", "open": True, "port": "6443"}],
        "toolkit": {"install": False, "names": ["x"]},
    }
    assert predicted(settled, absent=False) == []


def test_each_change_has_its_line() -> None:
    plan = {
        "packages": ["haproxy"],
        "toolkit": {"install": True, "names": ["nvidia-container-toolkit"]},
        "programs": [{"path": "/usr/bin/kubeadm"}],
        "images": [{"name": "images.tar"}],
        "kernel": True,
        "sysctls": ["kernel.panic=0"],
        "artifacts": [{"path": "rhcos/kernel"}, {"path": "ocp/rootfs", "assumed": True}],
        "loaders": [{"source": "/usr/lib/a", "path": "/srv/a"}],
        "protected": [{"source": "w.ign", "path": "ignition/ocp/worker.ign"}],
        "drains": [{"backend": "one-api", "server": "m0"}],
        "files": [{"path": "/etc/haproxy/a.cfg"}],
        "absent": ["/etc/old"],
        "stops": ["keepalived"],
        "actions": [{"unit": "haproxy", "state": "reloaded"}, {"unit": "dnsmasq", "state": "restarted"}],
        "released": [{"unit": "nginx", "active": False}],
    }
    assert predicted(plan, absent=False) == [
        "install the package haproxy",
        "install the package nvidia-container-toolkit",
        "install /usr/bin/kubeadm",
        "import the images in images.tar",
        "load settings of the kernel",
        "restore settings of the kernel",
        "download rhcos/kernel",
        "download ocp/rootfs (assumed: this run makes it first)",
        "copy /srv/a",
        "copy ignition/ocp/worker.ign",
        "drain one-api/m0",
        "write /etc/haproxy/a.cfg",
        "remove /etc/old",
        "stop keepalived",
        "reload haproxy",
        "restart dnsmasq",
        "stop nginx",
    ]


def test_packages_are_held_and_removed_with_their_hold() -> None:
    plan = {"packages": ["kubelet=1.36.4-*"], "held": ["kubelet"]}
    assert predicted(plan, absent=False) == ["install the package kubelet=1.36.4-*", "hold the package kubelet"]
    assert predicted({"packages": ["kubelet"], "held": ["kubelet"]}, absent=True) == ["remove the package kubelet"]


def test_a_teardown_removes_packages() -> None:
    assert predicted({"packages": ["haproxy"]}, absent=True) == ["remove the package haproxy"]


def test_restarts_that_the_run_leaves_to_others_are_not_predicted() -> None:
    plan = {"files": [{"path": "/etc/a"}], "actions": [{"unit": "containerd", "state": "restarted"}]}
    assert predicted(plan, absent=False, restarts=False) == ["write /etc/a"]


def test_many_files_of_one_folder_are_counted() -> None:
    paths = [f"/srv/boot/{number:03}" for number in range(204)]
    assert predicted({"changes": [*paths, "/etc/one"]}, absent=False) == [
        "write 204 files in /srv/boot: 000, 001, 002 and 201 more",
        "write /etc/one",
    ]
