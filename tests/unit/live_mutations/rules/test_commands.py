# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands, scripts and configuration."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import commands
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import container, put, without

SCRIPTS = "nvidia-validator-scripts"
PLUGIN = "nvidia-device-plugin"
ROWS: list[sets.Row] = [
    (
        commands.known,
        "DaemonSet",
        PLUGIN,
        container(put("env", 0, "name", "CONFIG")),
        "CONFIG in env is read by no program",
    ),
    (
        commands.asked,
        "DaemonSet",
        PLUGIN,
        container(put("startupProbe", "exec", "command", ["x"])),
        "startupProbe.exec.command ['x']",
    ),
    (
        commands.asked,
        "DaemonSet",
        PLUGIN,
        container(put("startupProbe", "exec", "command", 1, "/x")),
        "'/opt/hwaccel/gate.sh'",
    ),
    (
        commands.gated,
        "DaemonSet",
        PLUGIN,
        container(without("livenessProbe")),
        "livenessProbe does not run /opt/hwaccel/gate.sh",
    ),
    (commands.commanded, "DaemonSet", "nvidia-validator", container(without("command")), "command is missing"),
    (commands.shells, "DaemonSet", "nvidia-validator", container(put("command", ["sh"])), "starts sh without a script"),
    (
        commands.shells,
        "DaemonSet",
        "nvidia-validator",
        container(put("readinessProbe", "exec", "command", ["sh"])),
        "readinessProbe.exec",
    ),
    (commands.shells, "DaemonSet", "nvidia-driver", container(put("args", [" "])), "starts sh without a script"),
    (commands.scripts, "ConfigMap", SCRIPTS, put("data", "probe.sh", "#!/bin/sh\n"), "data.probe.sh has no command"),
    (
        commands.scripts,
        "DaemonSet",
        "nvidia-validator",
        container(without("readinessProbe")),
        "data.probe.sh is run by no command",
    ),
    (commands.read, "DaemonSet", "gpu-feature-discovery", container(without("env", 0)), "'/config/config.yaml'"),
    (
        commands.read,
        "DaemonSet",
        "nvidia-dcgm-exporter",
        container(put("volumeMounts", 0, "mountPath", "/x")),
        "'/x/counters.csv'",
    ),
    (
        commands.repeated,
        "DaemonSet",
        "nvidia-validator",
        container(without("env", 0)),
        "has not its env OPERATOR_NAMESPACE",
    ),
    (
        commands.repeated,
        "DaemonSet",
        "nvidia-validator",
        container(put("volumeMounts", 0, "mountPath", "/x")),
        "at mountPath /host",
    ),
]

test_what_is_wrong_is_said = sets.checked(ROWS)
