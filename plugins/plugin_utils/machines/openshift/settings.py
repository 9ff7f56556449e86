# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role, as their types require. One of a wrong type is reported, and has its default for what follows, so that all faults are reported at once.

Pure. Playbooks have validated variables of the inventory already: this is for what Ansible computes at last, and for callers without a playbook.
"""

from __future__ import annotations

import collections.abc as c
import copy
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines, openshift_inputs
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import rules
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.conversion import HOST_PREFIX, OVN
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import METHODS

#: By name, with the type of the value.
DEFAULTS: dict[str, t.Any] = {
    "method": METHODS[0],
    "domain": "",
    "machine_network": [],
    "cluster_network": [],
    "host_prefix": HOST_PREFIX,
    "service_network": [],
    "network_type": OVN,
    "internal_networks": {},
    "network_mtu": 0,
    "pull_secret": "",
    "ssh_keys": [],
    "trust_bundle": "",
    "trust_bundle_policy": "",
    "proxy": {},
    "mirrors": [],
    "fips": False,
    "capabilities": {},
    "rendezvous_address": "",
    "boot_artifacts_url": "",
    "static_networks": [],
    "time_servers": [],
    "kernel_arguments": {},
    "disks": {},
    "manifests": [],
    "machine_configs": [],
    "install_config": {},
    "agent_config": {},
    "skipped_checks": [],
}
#: What playbooks compute.
_COMPUTED: dict[str, t.Any] = {
    "machines": [],
    "balancers": {},
    "release": {},
    "fips_host": None,
    "clock_offset": None,
}
#: Of what is computed: templates return text before ansible-core 2.19.
_OF_TEXT: dict[str, t.Callable[[t.Any], t.Any]] = {"fips_host": machines.truth, "clock_offset": float}
_DOCUMENTS = ("install_config", "agent_config", "manifests", "machine_configs")
#: Keys with lists.
_PLURAL = ("no_proxy", "mirrors", "additional", "dns")
_CHOICES = {"method": METHODS, "skipped_checks": rules.SKIPPABLE}


def read(given: c.Mapping[str, t.Any]) -> tuple[dict[str, t.Any], list[Fault]]:
    """All settings, and what is wrong with those given. Lists may be one value, numbers and Booleans text."""
    computed = {name: given[name] for name in _COMPUTED if not values.unset(given.get(name))}
    computed |= {name: of_text(computed[name]) for name, of_text in _OF_TEXT.items() if name in computed}
    found = {**copy.deepcopy({**DEFAULTS, **_COMPUTED}), **computed}
    faults: list[Fault] = []
    for name, default in DEFAULTS.items():
        value = given.get(name)
        if values.unset(value) or value in ([], {}):
            continue
        if isinstance(default, list) and not isinstance(value, (list, tuple)):
            value = [value]
        where = f"cluster_openshift_{name}"
        wrong = _check(name, default)(value, where)
        faults += wrong
        if not wrong:
            # In a document null removes a key.
            found[name] = value if name in _DOCUMENTS else _typed(value, default)
    arguments = found["kernel_arguments"].items()
    found["kernel_arguments"] = {pool: one if isinstance(one, list) else [one] for pool, one in arguments}
    return found, faults


def _check(name: str, default: t.Any) -> values.Check:
    if name in openshift_inputs.CHECKS:
        return openshift_inputs.CHECKS[name]
    one = values.choice(*_CHOICES[name]) if name in _CHOICES else values.text
    if isinstance(default, list):
        return values.listed(one)
    return values.truth if isinstance(default, bool) else one


def _typed(value: t.Any, default: t.Any) -> t.Any:
    if isinstance(default, bool):
        return bool(machines.truth(value))
    if isinstance(default, int):
        return int(value)
    if isinstance(default, str):
        return value if isinstance(value, c.Mapping) else str(value).strip()
    return _lists(value)


def _lists(value: t.Any) -> t.Any:
    """Without keys that are not set, and with lists that were given as one value."""
    if isinstance(value, (list, tuple)):
        return [_lists(one) if isinstance(one, c.Mapping) else one for one in value]
    return {
        name: [one] if name in _PLURAL and not isinstance(one, (list, tuple)) else one
        for name, one in value.items()
        if not values.unset(one)
    }
