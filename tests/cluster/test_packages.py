# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster from packages of a repository, in one version and the next, for real: they are held, and go again with the machine."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig import packages, programs
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig, ensure_parts
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(rig: ClusterRig, tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder: pathlib.Path = tmp_path_factory.mktemp("packages")
    versions = (programs.VERSION, programs.next_patch(programs.VERSION))
    packages.write_repository(folder, [ensure_parts(say, version).programs for version in versions])
    site = Site(rig, servers=("cp1",), agents=("w1",), shares={str(folder): packages.MOUNT})
    for machine in site.machines.values():
        packages.use_repository(machine)
    site.variables |= {"cluster_kubeadm_programs": [], "cluster_kubeadm_packages": ["kubeadm", "kubelet"]}
    return site


def installed(machine: Machine) -> dict[str, str]:
    """Status and version by name, such as hi for one that is installed and held."""
    shown = machine.sh(
        "dpkg-query --show --showformat='${Package} ${db:Status-Abbrev}${Version}\\n' kubeadm kubelet || :"
    )
    return dict(line.split(" ", 1) for line in shown.splitlines())


def test_packages_are_installed_in_the_version_that_is_set_and_held(site: Site) -> None:
    site.done("--check")
    assert installed(site.machines["cp1"]) == {}
    site.done()
    version = programs.VERSION.removeprefix("v")
    for name in ("cp1", "w1"):
        assert installed(site.machines[name]) == dict.fromkeys(("kubeadm", "kubelet"), f"hi {version}-1.1")
        assert site.machines[name].sh("ls /etc/systemd/system/kubelet.service 2>/dev/null || :") == ""
    assert set(site.versions().values()) == {programs.VERSION}
    assert site.done().changed() == 0


def test_an_upgrade_replaces_them_in_the_turns_of_their_machines(site: Site) -> None:
    new = site.parts = ensure_parts(say, programs.next_patch(programs.VERSION))
    run = site.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "upgrade the server cp1",
        "upgrade w1",
    ]
    version = new.programs.version
    assert set(site.versions().values()) == {version}
    for name in ("cp1", "w1"):
        assert set(installed(site.machines[name]).values()) == {f"hi {version.removeprefix('v')}-1.1"}
    assert site.done().changed() == 0


def test_a_machine_that_leaves_has_none_of_them(site: Site) -> None:
    site.retired = {"w1"}
    site.done()
    assert installed(site.machines["w1"]) == {}
    assert site.done().changed() == 0
