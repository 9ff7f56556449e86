# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages that name the cause."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.live.mutations import outcomes, rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.outcomes import CAUGHT, SURVIVES

OBJECTS = rendered.everything()
MUTANTS = {mutant.id: mutant for mutant in rendered.all_mutants(OBJECTS)}
MAIN = "/spec/template/spec/containers/0"
PLUGIN = f"device_plugin/DaemonSet/nvidia-device-plugin{MAIN}"


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        (f"{PLUGIN}/env/1/value changed", "unknown option: cdi-crix", True),
        (f"{PLUGIN}/env/1/value dropped", "DEVICE_LIST_STRATEGY is empty", True),
        (
            f"{PLUGIN}/env/1/value changed",
            "container nvidia-device-plugin of pod nvidia-device-plugin-m7 crashed",
            False,
        ),
        (
            f"{PLUGIN}/volumeMounts/0/name emptied",
            "spec.template.spec.containers[0].volumeMounts[0].name: Required value",
            True,
        ),
        (f"{PLUGIN}/securityContext/privileged changed", "operation not permitted", True),
        (f"{PLUGIN}/image changed", "the image cannot be pulled", True),
        (f"{PLUGIN}/livenessProbe/periodSeconds changed", "no GPU is allocatable", False),
        (
            "device_plugin/ConfigMap/nvidia-device-plugin-entrypoint/metadata/name changed",
            'configmap "nvidia-device-plugin-entrypoint" not found',
            True,
        ),
    ],
)
def test_a_message_names_the_cause_or_does_not(name: str, text: str, named: bool) -> None:
    mutant = MUTANTS[name]
    assert outcomes.names_cause(mutant, OBJECTS[mutant.role][mutant.index], text) is named


def test_what_survives_has_no_cause() -> None:
    mutant = MUTANTS[f"{PLUGIN}/image changed"]
    source = OBJECTS[mutant.role][mutant.index]
    assert not outcomes.outcome(mutant, source, SURVIVES).named
    assert outcomes.outcome(mutant, source, CAUGHT, "devices", "the image cannot be pulled").named
