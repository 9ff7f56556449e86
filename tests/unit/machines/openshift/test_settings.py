# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a wrong type or form: all are told at once, none ends in an exception, and what else is wrong is told beside them."""

from __future__ import annotations

import copy
import json
import pathlib
import random
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import role, rules, settings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import METHODS
from ansible_collections.hwaccel.gpu.tests.unit.machines.openshift.sites import AGENT, BASE, IN_PLACE, MASTERS, SETTINGS

#: By the name of a setting, and what is told of it.
BROKEN: dict[str, tuple[t.Any, str]] = {
    "method": ("ipi", "'ipi' is unknown"),
    "domain": (["dgxpod"], "a list is not a string"),
    "machine_network": ({"cidr": "10.0.0.0/8"}, "a dictionary is not a string"),
    "host_prefix": ("/23", "'/23' is not a whole number"),
    "internal_networks": ({"join": "100.65.0.1/16"}, "host bits"),
    "network_mtu": ("jumbo", "'jumbo' is not the MTU of a network"),
    "pull_secret": (["{}"], "neither text nor a dictionary"),
    "ssh_keys": ([7], "7 is not a string"),
    "trust_bundle": (["a"], "a list is not a string"),
    "proxy": ("http://proxy:3128", "is not a dictionary"),
    "mirrors": ([{"source": "quay.io/a"}], "mirrors is missing"),
    "fips": ("perhaps", "neither true nor false"),
    "capabilities": ({"set": "None"}, "unknown: set"),
    "rendezvous_address": ("fd00::/64", "not an IP address"),
    "boot_artifacts_url": ([1], "a list is not a string"),
    "static_networks": ([{"network": "10.33.3.1/24", "gateway": "10.33.3.1"}], "unknown: gateway"),
    "time_servers": ([["a"]], "a list is neither an address nor a name"),
    "kernel_arguments": (["iommu=pt"], "is not a dictionary"),
    "disks": ({"Worker": []}, "not the name of a pool"),
    "manifests": ([7], "neither a dictionary nor YAML"),
    "machine_configs": ([["a"]], "neither a dictionary nor YAML"),
    "install_config": ("a: [", "not valid YAML"),
    "agent_config": (7, "neither a dictionary nor YAML"),
    "skipped_checks": (["everything"], "'everything' is unknown"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_is_told_by_its_variable(name: str) -> None:
    value, says = BROKEN[name]
    texts = [one["text"] for one in role.checked({**SETTINGS, name: value})["faults"]]
    assert any(says in one and f"cluster_openshift_{name}" in one for one in texts), texts


def test_more_than_twenty_are_told_at_once_beside_what_is_wrong_with_machines() -> None:
    broken = {**SETTINGS, **{name: value for name, (value, _says) in BROKEN.items()}}
    broken |= {
        "machines": [
            {**MASTERS[0], "name": "Master_0"},
            {**MASTERS[1], "address": "10.33.3.50/24"},
            MASTERS[2],
            {**MASTERS[2]},
            7,
            {**MASTERS[0], "mac": "ff:ff:ff:ff:ff:ff"},
        ],
        "balancers": {"hwaccel_load_balancer_address": "lb.example.com"},
    }
    faults = role.checked(broken)["faults"]
    texts = "\n".join(one["text"] for one in faults)
    assert all(says in texts for _value, says in BROKEN.values())
    for says in (
        "not a DNS label",
        "not an IP address",
        "2 machines have the name",
        "cannot be read",
        "MAC address",
        "lb.example.com",
    ):
        assert says in texts, says
    assert len(faults) >= 27
    assert all(one["next_step"] for one in faults), [one for one in faults if not one["next_step"]]
    with pytest.raises(ManyFaults):
        role.inputs(broken)


def test_answers_of_surveys_are_text_and_one_value_is_a_list() -> None:
    given = {
        "host_prefix": "24",
        "network_mtu": "8900",
        "fips": "true",
        "machine_network": "10.33.3.0/24",
        "ssh_keys": "ssh-ed25519 AAAA",
        "proxy": {"http": "http://p:1", "no_proxy": "example.com"},
        "mirrors": {"source": "quay.io/a", "mirrors": ["m.example.com/a"]},
        "domain": " dgxpod.example.com ",
        "cluster_network": "",
        "method": None,
        "fips_host": False,
    }
    found, faults = settings.read(given)
    assert faults == []
    assert {name: found[name] for name in given} == {
        "host_prefix": 24,
        "network_mtu": 8900,
        "fips": True,
        "machine_network": ["10.33.3.0/24"],
        "ssh_keys": ["ssh-ed25519 AAAA"],
        "proxy": {"http": "http://p:1", "no_proxy": ["example.com"]},
        "mirrors": [{"source": "quay.io/a", "mirrors": ["m.example.com/a"]}],
        "domain": "dgxpod.example.com",
        "cluster_network": [],
        "method": "upi",
        "fips_host": False,
    }


def test_a_domain_without_a_dot_has_no_base() -> None:
    keys = {one["key"] for one in role.checked({**SETTINGS, "domain": "dgxpod"})["faults"]}
    assert keys == {"baseDomain"}
    keys = {one["key"] for one in role.checked({**SETTINGS, "domain": ""})["faults"]}
    assert {"baseDomain", "metadata.name"} <= keys


def test_what_templates_compute_may_be_text() -> None:
    """As it is before ansible-core 2.19."""
    found, faults = settings.read({**SETTINGS, "fips_host": "False", "clock_offset": "61.5"})
    assert (found["fips_host"], found["clock_offset"], faults) == (False, 61.5, [])
    found, _faults = settings.read({**SETTINGS, "fips_host": "", "clock_offset": ""})
    assert (found["fips_host"], found["clock_offset"]) == (None, None)


#: What is observed, and what the entry point files does with the inputs.
_NOT_READ = {
    *("release", "inventory", "clock_offset", "known"),
    *("folder", "installer", "own_approver", "architecture", "stream", "artifacts_mirror", "timeout"),
    *("adopt", "regenerate", "regenerate_named", "margin"),
    *("api_timeout", "bootstrap_timeout", "nodes_timeout", "install_timeout", "allow_rejoin", "remove_kubeadmin"),
    *("second_opinion", "ssh_key_file"),
}


def test_the_role_has_each_setting_with_its_default_and_each_check_that_can_be_skipped() -> None:
    top = pathlib.Path(__file__).parents[4] / "roles" / "cluster_openshift"
    options = yaml.safe_load((top / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"][
        "main"
    ]["options"]
    own = {name.removeprefix("cluster_openshift_"): one for name, one in options.items()}
    assert own["skipped_checks"]["choices"] == list(rules.SKIPPABLE)
    assert own["method"]["choices"] == list(METHODS)
    assert own.keys() - _NOT_READ == settings.DEFAULTS.keys()
    defaults = {name: one["default"] for name, one in own.items() if "{{" not in str(one["default"])}
    assert {name: settings.DEFAULTS[name] for name in defaults.keys() & settings.DEFAULTS.keys()} == {
        name: value for name, value in defaults.items() if name in settings.DEFAULTS
    }
    variables = yaml.safe_load((top / "vars" / "main.yml").read_text(encoding="utf-8"))["__cluster_openshift_settings"]
    assert (
        variables.keys() - {"machines", "balancers", "release", "fips_host", "clock_offset"} == settings.DEFAULTS.keys()
    )


JUNK: tuple[t.Any, ...] = (
    *(None, True, -1, 0, 2**70, 1.5, "", " ", "x", "\x00", "10.0.0.0/8", "::/0", "a" * 5000, "ü.example.com", "1.10"),
    *([], {}, [None], [[]], {"a": None}, {"": ""}, {"cidr": 7}, [{"name": []}], {7: 8}),
)


def _places(value: t.Any, path: tuple[t.Any, ...] = ()) -> list[tuple[t.Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, one in below for place in _places(one, (*path, name)))]


def _mutated(given: dict[str, t.Any], draw: random.Random) -> dict[str, t.Any]:
    """With junk at one or two places."""
    found = copy.deepcopy(given)
    for _time in range(draw.randint(1, 2)):
        *above, last = draw.choice([place for place in _places(found) if place])
        place: t.Any = found
        for name in above:
            place = place[name]
        place[last] = copy.deepcopy(draw.choice(JUNK))
    return found


RICH = {
    "proxy": {"httpProxy": "http://p:1", "noProxy": "a.example.com,10.0.0.0/8"},
    "imageDigestSources": [{"source": "quay.io/a", "mirrors": ["m.example.com/a"]}],
    "capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Ingress"]},
    "additionalTrustBundle": "x",
    "fips": True,
    "featureGates": ["A=true"],
    "bootstrapInPlace": {"installationDisk": "/dev/disk/by-id/a"},
}
HOST = {
    "hostname": "a",
    "role": "master",
    "interfaces": [{"name": "a", "macAddress": "52:54:00:00:00:01"}],
    "rootDeviceHints": {"deviceName": "/dev/disk/by-path/a"},
    "networkConfig": {"interfaces": [{"name": "a"}]},
}
FULL: dict[str, t.Any] = {
    "kernel_arguments": {"worker": ["a=1"]},
    "disks": {"worker": [{"device": "/dev/disk/by-id/a", "mount": "/var"}]},
    "internal_networks": {"join": "100.65.0.0/16", "transit": "100.89.0.0/16"},
    "static_networks": [{"network": "10.33.3.0/24", "router": "10.33.3.1", "dns": ["10.33.3.1"], "mtu": 9000}],
    "time_servers": ["10.33.3.1"],
    "mirrors": [{"source": "quay.io/a", "mirrors": ["m.example.com/a"]}],
    "proxy": {"http": "http://p:1", "no_proxy": ["example.com"]},
    "capabilities": {"baseline": "None", "additional": ["Ingress"]},
    "machine_configs": [
        {
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": "a", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
            "spec": {
                "config": {
                    "ignition": {"version": "3.2.0"},
                    "storage": {"files": [{"path": "/etc/a", "mode": 420, "contents": {"source": "data:,a"}}]},
                    "systemd": {"units": [{"name": "a.service", "contents": "[Unit]"}]},
                },
                "kernelArguments": ["b=1"],
            },
        }
    ],
    "manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}],
}


@pytest.mark.parametrize("seed", range(20))
def test_junk_at_any_place_is_told_or_accepted_and_never_an_exception(seed: int) -> None:
    draw = random.Random(seed)
    for _time in range(5):
        given = _mutated({**draw.choice((SETTINGS, AGENT, IN_PLACE)), **FULL}, draw)
        given["install_config"] = _mutated({**BASE, **RICH}, draw)
        # Its form is that of inventory.read.
        given["balancers"] = {"hwaccel_load_balancer_address": str(draw.choice(JUNK))}
        given["agent_config"] = _mutated({"rendezvousIP": "10.33.3.50", "hosts": [HOST]}, draw)
        found = role.checked(given)
        json.dumps(found)
        assert all(one["what"] and one["next_step"] for one in found["faults"]), found["faults"]
