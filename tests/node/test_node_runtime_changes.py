# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime on machines whose settings or files change after its first run, with each available containerd. Each test restores everything."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import version_of
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Rig
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import PROGRAMS, use_containerd_2
from ansible_collections.hwaccel.gpu.tests.node.rig.runtime_site import CONFIG, DAEMON, Site, started, state
from ansible_collections.hwaccel.gpu.tests.node.test_node_runtime import EDITED, ENGINES, SETTINGS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[(1, 6), (2, 4)], ids=["1.6", "2.4"])
def engines(
    request: pytest.FixtureRequest,
    rig: Rig,
    components: programs.Components,
    tmp_path_factory: pytest.TempPathFactory,
) -> Site:
    """A machine without a GPU. The newer containerd has a configuration in the format of the older one, as after an update."""
    version: tuple[int, int] = request.param
    machine = rig.machine(f"engines-{version[0]}", {str(components.folder): PROGRAMS})
    machine.write(CONFIG, EDITED, "0640")
    machine.write(DAEMON, SETTINGS, "0600")
    if version > (2,):
        use_containerd_2(machine)
    machine.sh("systemctl daemon-reload; systemctl start containerd docker")
    assert version_of(machine.sh("containerd --version"))[:2] == version
    site = Site.of(machine, tmp_path_factory.mktemp("engines"), components)
    site.variables["node_runtime_without_gpu"] = True
    return site


def test_a_default_runtime_that_is_no_longer_requested_is_removed(engines: Site) -> None:
    machine = engines.machine
    engines.changed()
    done = state(machine)
    engines.changed(node_runtime_default_runtime=True)
    assert machine.sh("docker info --format '{{.DefaultRuntime}}'").strip() == "nvidia"
    read = machine.sh("containerd config dump")
    assert "default_runtime_name = 'nvidia'" in read.replace('"', "'")
    engines.changed()
    assert state(machine) == done
    assert engines.changed("--check", "--diff") == 0
    engines.changed(node_runtime_entry="teardown")


def test_the_next_run_restarts_a_service_that_has_not_loaded_its_files(engines: Site) -> None:
    machine, running = engines.machine, started(engines.machine, *ENGINES)
    engines.changed(node_runtime_restart=False)
    assert started(machine, *ENGINES) == running
    assert engines.changed() > 0
    assert started(machine, *ENGINES) != running
    running = started(machine, *ENGINES)
    assert engines.changed() == 0
    assert started(machine, *ENGINES) == running
    engines.changed(node_runtime_entry="teardown")


def test_later_changes_of_others_are_kept_by_a_teardown(engines: Site) -> None:
    machine = engines.machine
    engines.changed()
    machine.write(CONFIG, machine.read(CONFIG) + "# added later\n", "0640")
    machine.write(DAEMON, json.dumps({**json.loads(machine.read(DAEMON)), "debug": True}), "0600")
    engines.changed(node_runtime_entry="teardown")
    left: tuple[str, dict[str, t.Any]] = (machine.read(CONFIG), json.loads(machine.read(DAEMON)))
    machine.write(CONFIG, EDITED, "0640")
    machine.write(DAEMON, SETTINGS, "0600")
    assert left == (EDITED + "# added later\n", {**json.loads(SETTINGS), "debug": True})


def test_an_archive_with_another_checksum_is_refused(engines: Site) -> None:
    message = engines.refused(node_runtime_archive_checksum="sha256:" + "0" * 64)
    assert "does not match its checksum: it has sha256:" in message
    assert engines.machine.sh("dpkg -l | grep -c nvidia || :").strip() == "0"
