# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime with a company's mirror: a real apt, and a signed repository that requires a password and has a newer version than requested."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import pathlib
import tempfile

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.plan import PACKAGES
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig import repository
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Rig
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.runtime_site import VERSION, Site, packages, state

NEWER = "99.0.0"
USERNAME, PASSWORD = "mirror-reader", "planted-pa55word"


@dataclasses.dataclass(frozen=True)
class Mirrored:
    """A machine without the toolkit. other_key: a key that has signed nothing."""

    site: Site
    other_key: str

    @property
    def machine(self) -> Machine:
        return self.site.machine

    def installed(self) -> dict[str, str]:
        """Versions by package."""
        listed = self.machine.sh(
            f"dpkg-query --show --showformat '${{Package}} ${{Version}} ${{db:Status-Status}}\\n' {' '.join(PACKAGES)} 2>/dev/null || :"
        )
        rows = (line.split() for line in listed.splitlines())
        return {name: version for name, version, status in rows if status == "installed"}


@pytest.fixture(scope="module")
def mirrored(
    rig: Rig, components: programs.Components, tmp_path_factory: pytest.TempPathFactory
) -> c.Iterator[Mirrored]:
    machine = rig.machine("mirrored")
    machine.sh("systemctl start containerd; rm /etc/apt/sources.list")
    folder = tmp_path_factory.mktemp("repository")
    built = [
        package.rename(folder / package.name)
        for version in (VERSION, NEWER)
        for package in packages(components, tmp_path_factory.mktemp(version), version)
    ]
    with (
        tempfile.TemporaryDirectory(prefix="hwaccel-keys-") as keys,
        repository.Signer.made(pathlib.Path(keys, "ours")) as signer,
    ):
        repository.index(folder, built, signer)
        with (
            repository.Signer.made(pathlib.Path(keys, "other")) as other,
            repository.served(folder, USERNAME, PASSWORD) as url,
        ):
            site = Site.of(machine, tmp_path_factory.mktemp("mirrored"), components)
            site.variables |= {
                "node_runtime_toolkit_source": "repository",
                "node_runtime_repository_url": url,
                "node_runtime_repository_key": signer.key,
                "node_runtime_repository_username": USERNAME,
                "node_runtime_repository_password": PASSWORD,
                "node_runtime_without_gpu": True,
            }
            yield Mirrored(site, other.key)


@pytest.mark.slow
def test_a_repository_with_the_signature_of_another_key_is_refused(mirrored: Mirrored) -> None:
    """Ansible's module retries five times, for half a minute in all, and warns each time."""
    strict = dataclasses.replace(
        mirrored.site, warnings=("Failed to update cache", "before attempting to refresh the cache")
    )
    assert "is not signed" in strict.refused(node_runtime_repository_key=mirrored.other_key)
    assert mirrored.installed() == {}


def test_the_requested_version_is_installed_and_the_password_is_not_disclosed(mirrored: Mirrored) -> None:
    run = mirrored.site.done("-vvv", "--diff")
    assert mirrored.installed() == dict.fromkeys(PACKAGES, f"{VERSION}-1")
    assert PASSWORD not in run.stdout + str(run.tasks)
    assert mirrored.machine.sh(
        f"grep -rlF {PASSWORD} /etc /var/lib /var/log /run /root /tmp 2>/dev/null | xargs stat -c '%a %n'"
    ).splitlines() == ["600 /etc/apt/auth.conf.d/hwaccel-gpu.conf"]


def test_a_second_run_changes_nothing(mirrored: Mirrored) -> None:
    assert mirrored.site.changed() == 0


def test_teardown_removes_the_packages_and_their_repository(mirrored: Mirrored) -> None:
    mirrored.site.done(node_runtime_entry="teardown")
    assert mirrored.installed() == {}
    assert "hwaccel" not in state(mirrored.machine)
