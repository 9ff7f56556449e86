# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on machines that boot, and on the services that they boot from: make test-boot runs them in namespaces of their own.

rig       machines and hosts on one bridge: rig.machine("lb"), rig.host("w1"), rig.play("load_balancer", {"load_balancers": {"lb": {...}}})
balanced  a load balancer of a cluster with bootstrap, three masters and two workers; the role has not run on it yet
booting   a boot server with files that can be booted; the role has not run on it yet
computers a machine that runs computers without an operating system
unused_bmcs  BMCs of Redfish that no test has used
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import os
import shutil
import subprocess

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import LOAD, MEMBERS, Balanced, Bootstrapping, certificate
from ansible_collections.hwaccel.gpu.tests.boot.rig.bmc import Bmc, opened
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import Site
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import ARM64, Computers
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import Installer
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import ensure_arm64
from ansible_collections.hwaccel.gpu.tests.boot.rig.redfish import PASSWORD
from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say


def pytest_sessionstart() -> None:
    interrupted_by_sigterm()


@pytest.fixture(scope="session")
def rig() -> c.Iterator[BootRig]:
    if reason := unmet_precondition() or (
        "" if shutil.which("curl") else "the rig of machines that boot requires curl"
    ):
        pytest.skip(reason)
    with contextlib.closing(BootRig(say)) as rig:
        yield rig


@pytest.fixture(scope="session")
def balanced(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Balanced]:
    hosts = {name: rig.host(name) for name in MEMBERS}
    with Bootstrapping() as api:
        balanced = Balanced(
            rig,
            rig.machine("lb"),
            hosts,
            api,
            certificate(tmp_path_factory.mktemp("members") / "member.pem"),
            {"load_balancer_services": [LOAD]},
        )
        for name in MEMBERS:
            balanced.serve(name)
        yield balanced


@pytest.fixture(scope="session")
def computers(rig: BootRig) -> Computers:
    return Computers(rig, "hypervisor")


@pytest.fixture(scope="session")
def installer(tmp_path_factory: pytest.TempPathFactory) -> Installer:
    return Installer.of(tmp_path_factory.mktemp("installer"))


@pytest.fixture(scope="module")
def booting(rig: BootRig, installer: Installer, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    site = Site.of(rig, rig.machine("boot", {str(ensure_arm64(say)): ARM64}), tmp_path_factory.mktemp("site"))
    installer.put_in(site)
    yield site
    rig.remove(site.server)


@pytest.fixture(scope="session")
def unused_bmcs(tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[c.Iterator[Bmc]]:
    """All are started at once, because emulators that share a process cost about as much as a single one."""
    if os.environ.get("HWACCEL_ISOLATED"):
        # A new namespace has no active loopback interface.
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=10)
    for bmcs in opened(tmp_path_factory.mktemp("bmcs"), 16, PASSWORD):
        yield iter(bmcs)
