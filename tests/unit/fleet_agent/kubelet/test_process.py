# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a container or a probe executes without a shell."""

from __future__ import annotations

import pytest

SCRIPT = "#!/bin/sh\necho run\nsleep 9999\n"


def pod(world, mode, command, **more):
    world.store.data[("configmap", "ns", "scripts")] = {"run.sh": SCRIPT, "probe.sh": "#!/bin/sh\nexit 0\n"}
    source = {"name": "scripts", **({} if mode is None else {"defaultMode": mode})}
    mount = {"name": "scripts", "mountPath": "/opt/scripts/"}
    container = {"name": "c", "image": "busybox:1.36", "command": command, "volumeMounts": [mount], **more}
    spec = {"containers": [container], "volumes": [{"name": "scripts", "configMap": source}]}
    return world.pod(world.node(), spec)


@pytest.mark.parametrize("mode", [None, 0o444])
def test_a_file_of_a_configmap_may_not_be_executed_by_default(world, mode):
    made = pod(world, mode, ["/opt/scripts/run.sh"])
    world.until(lambda: "terminated" in made.main[0].last_state or "terminated" in made.main[0].state)
    state = (made.main[0].last_state or made.main[0].state)["terminated"]
    assert state["exitCode"] == 128
    assert 'exec: "/opt/scripts/run.sh": permission denied' in state["message"]


@pytest.mark.parametrize(("mode", "command"), [(0o755, ["/opt/scripts/run.sh"]), (None, ["sh", "/opt/scripts/run.sh"])])
def test_it_is_run_where_its_mode_says_so_or_by_a_shell(world, mode, command):
    made = pod(world, mode, command)
    world.until(lambda: made.main[0].ready)


def test_a_probe_that_may_not_execute_its_file_fails(world):
    probe = {"exec": {"command": ["/opt/scripts/probe.sh"]}, "periodSeconds": 1}
    made = pod(world, None, ["sh", "/opt/scripts/run.sh"], readinessProbe=probe)
    world.until(lambda: world.warnings)
    assert "permission denied" in world.warnings[0][1]
    assert not made.main[0].ready
