# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of a role's defaults are evaluated for a machine: with many machines, that is most of what a preflight costs."""

from __future__ import annotations

import typing as t

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._untemplated import template as trusted

#: Of every machine.
HOST = {
    "inventory_hostname": "w0",
    "hwaccel_mac": "52:54:00:00:00:01",
    "hwaccel_address": "10.0.0.11",
    "hwaccel_power_provider": "redfish",
    "hwaccel_bmc_address": "10.0.9.11",
}


def of_role(**more: t.Any) -> dict[str, t.Any]:
    """Variables of a machine in the role machine_boot."""
    defaults = {name: value for name, value in _variables._defaults().items() if name.startswith("machine_boot_")}
    found = {**defaults, **HOST, **more}
    return {name: trusted(value) if isinstance(value, str) else value for name, value in found.items()}


@pytest.mark.parametrize(
    ("more", "looked_at"),
    [
        ({}, {"machine_boot_mac": True, "machine_boot_host_key": False, "machine_boot_vm_memory": False}),
        ({"hwaccel_host_key": "ssh-ed25519 AAAA"}, {"machine_boot_host_key": True}),
        # What is set for the role itself is always looked at.
        ({"machine_boot_vm_memory": "{{ nobody_has_this }}"}, {"machine_boot_vm_memory": True}),
        # A default may mention variables of Ansible.
        ({"ansible_host": "{{ nobody_has_this }}"}, {"machine_boot_address": True}),
    ],
)
def test_a_default_is_evaluated_where_something_that_it_mentions_is_set(
    more: dict[str, t.Any], looked_at: dict[str, bool]
) -> None:
    found = _variables.without_idle_defaults(of_role(**more))
    assert {name: name in found for name in looked_at} == looked_at
    assert found.items() >= {**HOST, **more}.items()


def test_a_default_without_a_template_stays() -> None:
    assert _variables.without_idle_defaults(of_role())["machine_boot_interval"] == 15


def test_defaults_that_nothing_is_set_for_are_no_fault_and_are_not_evaluated() -> None:
    variables = of_role()
    evaluated: list[t.Any] = []
    template = Templar(loader=DataLoader(), variables=variables).template

    def counted(value: t.Any) -> t.Any:
        evaluated.append(value)
        return template(value)

    assert _variables.of_machines("machine_boot", variables, counted) == []
    templates = [value for value in evaluated if "{{" in str(value)]
    idle = variables.keys() - _variables.without_idle_defaults(variables).keys()
    assert len(idle) > 10 and not [variables[name] for name in idle if variables[name] in templates]


def test_a_wrong_value_that_a_default_takes_over_is_a_fault() -> None:
    variables = of_role(hwaccel_bmc_ca="not-a-path")
    template = Templar(loader=DataLoader(), variables=variables).template
    (fault,) = _variables.of_machines("machine_boot", variables, template)
    assert "machine_boot_bmc_ca" in fault and "not an absolute path" in fault
