# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request for a machine, which has a hundred templates, is what Ansible makes of them."""

from __future__ import annotations

import typing as t

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.lookup.evaluated import LookupModule
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._untemplated import template as trusted
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.test_evaluation import alike
from ansible_collections.hwaccel.gpu.tests.unit.roles.stack import TOP, load

REQUEST = "__machine_boot_request"
MACHINE = {
    "hwaccel_cluster": "ocp",
    "hwaccel_address": "10.0.0.11",
    "hwaccel_mac": "52-54-00-00-00-AA",
    "hwaccel_firmware": "uefi",
    "hwaccel_bmc_address": "10.0.9.11",
    "hwaccel_bmc_username": "admin",
    "hwaccel_bmc_password": "secret",
}
VIRTUAL = {
    **MACHINE,
    "hwaccel_power_provider": "libvirt",
    "hwaccel_hypervisor": "kvm",
    "hwaccel_vm_memory": "{{ 8 * 1024 }}",
    "hwaccel_vm_secure_boot": "yes",
    "machine_boot_power": False,
}


def trust(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: trust(item) for key, item in value.items()}
    if isinstance(value, list):
        return [trust(item) for item in value]
    # Filters of this collection are not known without a playbook, and all lists are lists here.
    return trusted(value.replace(" | hwaccel.gpu.as_list", "")) if isinstance(value, str) else value


def of_machine(given: dict[str, t.Any]) -> dict[str, t.Any]:
    """Variables of a machine in the role machine_boot."""
    role = TOP / "roles" / "machine_boot"
    known = {
        **load(role / "defaults" / "main.yml"),
        **given,
        **load(role / "vars" / "main.yml"),
        "inventory_hostname": "w0",
        "groups": {"hypervisors": ["kvm"], "gpu_clusters": ["ocp"]},
    }
    return {name: trust(value) for name, value in known.items()}


class Counting(Templar):
    """Counts what it is asked to evaluate."""

    asked = 0

    def template(self, *given: t.Any, **more: t.Any) -> t.Any:
        type(self).asked += isinstance(given[0], str)
        return super().template(*given, **more)


@pytest.mark.parametrize("given", [MACHINE, VIRTUAL])
def test_the_request_for_a_machine_is_that_of_ansible_with_few_templates(given: dict[str, t.Any]) -> None:
    variables = of_machine(given)
    expected = _variables.plain(Templar(loader=DataLoader(), variables=variables).template(variables[REQUEST]))
    Counting.asked = 0
    lookup = LookupModule(loader=DataLoader(), templar=Counting(loader=DataLoader(), variables=variables))
    (found,) = lookup.run([REQUEST], variables)
    assert alike(found) == alike(expected)
    assert found["mac"] == "52:54:00:00:00:aa" and found["bmc"]["has_password"] and "secret" not in str(found)
    # Core 2.16 also asks for each variable in a template.
    assert Counting.asked < 40, "each takes a millisecond, for each machine"
