# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutants that are in every run."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.known import known

OBJECTS = rendered.everything()
MUTANTS = rendered.all_mutants(OBJECTS)


def test_the_manifests_still_have_what_these_mutants_change() -> None:
    found = known(MUTANTS, OBJECTS)
    assert len(found) == 23
    assert {mutant.role for mutant in found} == {"driver", "device_plugin", "monitoring"}


def test_one_that_is_gone_is_reported() -> None:
    with pytest.raises(LookupError, match="nvidia-container-toolkit has no runtime-config"):
        known([mutant for mutant in MUTANTS if mutant.role != "driver"], OBJECTS)
