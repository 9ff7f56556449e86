# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables in the rendered manifests are read by the programs of their containers: one that nobody reads looks like a setting and is none."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.manifests import UNREAD, rendered, unread


def test_every_variable_is_read_by_somebody():
    assert unread(rendered()) == UNREAD.keys()


def test_a_misspelt_variable_is_read_by_nobody():
    manifests = rendered()
    container = next(
        one
        for name, _spec, one in manifests.containers()
        if name == "nvidia-container-toolkit" and "ctr" in one["name"]
    )
    container["env"][0]["name"] = "ROTO"
    assert unread(manifests) == {*UNREAD, ("nvidia-container-toolkit", "ROTO")}
