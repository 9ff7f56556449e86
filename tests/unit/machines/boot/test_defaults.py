# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the role machine_boot that follow from those of a machine."""

from __future__ import annotations

import typing as t

import jinja2
import pytest

from ansible_collections.hwaccel.gpu.tests.unit.roles.stack import TOP, load


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "True"), ({"hwaccel_bmc_verify": False}, "False"), ({"hwaccel_bmc_verify": True}, "True")],
)
def test_a_certificate_is_not_verified_where_the_inventory_says_so(given: dict[str, t.Any], expected: str) -> None:
    default = load(TOP / "roles" / "machine_boot" / "defaults" / "main.yml")["machine_boot_bmc_verify"]
    assert jinja2.Environment(autoescape=False).from_string(default).render(given) == expected
