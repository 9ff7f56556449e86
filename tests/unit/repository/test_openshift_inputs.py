# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad inputs of clusters of OpenShift in whole playbooks: all are told at once, each with its cluster, and nothing is created, started or connected to.

The tables of test_machine_inputs.py have each variable alone, and test_undefined.py has values that are undefined. Here is what different parts of a run
judge beside each other: values, documents, the rules of the installer, and the places of its files.
"""

from __future__ import annotations

import importlib.metadata
import json
import pathlib
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.inputs.bad_inputs import FORBIDDEN
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import run
from ansible_collections.hwaccel.gpu.tests.unit.roles.openshift_play import EXAMPLE

#: By the name of a cluster, its variables without cluster_openshift_, and what is told of it.
BAD: dict[str, tuple[dict[str, t.Any], tuple[str, ...]]] = {
    "values": (
        {
            # A type.
            "host_prefix": "/23",
            "fips": "perhaps",
            "ssh_keys": [{"a": 1}],
            # An unknown key.
            "proxy": {"httpProxy": "http://user:planted@proxy.example.com:3128"},
            "disks": {"master": [{"path": "/a"}]},
            # IPv6 in the place of IPv4.
            "static_networks": [{"network": "192.0.2.0/24", "router": "fd00::1"}],
            # A control character.
            "network_type": "OVN\aKubernetes",
            "time_servers": ["a\tb"],
            "kernel_arguments": {"worker": "a\nb"},
            # A text that is too long.
            "folder": f"/{'a' * 5000}",
            "installer": f"/{'a' * 5000}",
            # Capital letters.
            "method": "In_Place",
            "architecture": "X86_64",
            "skipped_checks": ["Clocks"],
        },
        (
            "'/23' is not a whole number",
            "'perhaps' is neither true nor false",
            "a dictionary is not a string (cluster_openshift_ssh_keys[0])",
            "unknown: httpProxy (cluster_openshift_proxy)",
            "unknown: path (cluster_openshift_disks.master[0])",
            "fd00::1 is not in 192.0.2.0/24 (cluster_openshift_static_networks[0].router)",
            "control character (cluster_openshift_network_type)",
            "neither an address nor a name (cluster_openshift_time_servers[0])",
            "control character (cluster_openshift_kernel_arguments.worker)",
            "is not an absolute path (cluster_openshift_folder)",
            "is neither an absolute path nor an archive (cluster_openshift_installer)",
            "'In_Place' is unknown (cluster_openshift_method): did you mean in_place?",
            "did you mean x86_64?",
            "did you mean clocks?",
        ),
    ),
    "empty": (
        {"domain": "", "pull_secret": "", "folder": "", "installer": {}},
        (
            "it is not set (metadata.name",
            "there is no pull secret",
            "no absolute path (cluster_openshift_folder)",
            "no address or no checksum (cluster_openshift_installer)",
        ),
    ),
    "documents": (
        {
            # YAML that became a number, true or text, and keys that the installer ignores.
            "install_config": "metadata: {name: 1.5}\nfips: 'yes'\nnetworkng: {}\nnetworking: {encryption: true}\n",
            "manifests": ["kind: [", {"kind": "ConfigMap"}, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: on}"],
            "cluster_network": ["fd01::/48"],
            "internal_networks": {"join": "fd98::/64"},
            "machine_network": ["192.0.2.0/24"] * 2,
            "pull_secret": '{"auths": {"quay.io": {"auth": "planted"}',
            "trust_bundle": "planted",
        },
        (
            "1.5 is not text (metadata.name of install-config.yaml): YAML read it as another type",
            "'yes' is not true or false (fips",
            "did you mean networking?",
            "networking.encryption",
            "it is not valid YAML (cluster_openshift_manifests[0]",
            "cluster_openshift_manifests[1]",
            "metadata.name of a ConfigMap is invalid (cluster_openshift_manifests[2], document 1, line 1): it is true",
            "fd01::/48 is not a network of IPv4",
            "'fd98::/64' is not a network of IPv4",
            "192.0.2.0/24 overlaps with the machine network 192.0.2.0/24",
            "the pull secret (hash ",
            "is not a bundle of certificates (additionalTrustBundle",
        ),
    ),
    "twice": (
        {"install_config": "fips: false\nfips: true\n", "domain": f"{'a' * 300}.example.com"},
        ("key fips occurs twice", "has 300 characters (metadata.name", "at most 54"),
    ),
}
#: On the oldest and the newest core one run is enough.
ONE_CORE = importlib.metadata.version("ansible-core").startswith("2.19.")
RUNS = [
    ("cluster_openshift",),
    ("cluster_openshift", "-e", "cluster_openshift_entry=preflight"),
    ("preflight",),
]


def inventory(place: pathlib.Path) -> dict[str, t.Any]:
    """Clusters of one machine. Their installer and the ssh of machines would record that they were called."""
    program = place / "program"
    program.write_text(f"#!/bin/sh\necho called >> {place}/called\nexit 255\n", encoding="utf-8")
    program.chmod(0o755)
    example = EXAMPLE["gpu_clusters"]["hosts"]["edge"]
    clusters, machines = {}, {}
    for name, (bad, _says) in BAD.items():
        clusters[name] = {
            **example,
            "hwaccel_installer": "openshift",
            "hwaccel_domain": f"{name}.example.com",
            "cluster_openshift_folder": str(place / "installations" / name),
            "cluster_openshift_installer": str(program),
            **{f"cluster_openshift_{variable}": value for variable, value in bad.items()},
        }
        machine = EXAMPLE["control_plane"]["hosts"]["sno-0"]
        machine = {key: value for key, value in machine.items() if key != "hwaccel_bmc_address"}
        machines[f"of-{name}"] = {**machine, "hwaccel_cluster": name, "ansible_ssh_executable": str(program)}
    return {"gpu_clusters": {"hosts": clusters}, "control_plane": {"hosts": machines}}


def problems(summary: pathlib.Path) -> dict[str, list[str]]:
    """Of each cluster. The playbook of an installer has them as those of other machines, and preflight has clusters."""
    found = json.loads(summary.read_text(encoding="utf-8"))
    return {
        name: one.get("problems") or one["reasons"]
        for name, one in (found.get("clusters") or found["machines"]).items()
    }


@pytest.mark.parametrize("arguments", RUNS if ONE_CORE else RUNS[:1], ids=" ".join)
def test_each_kind_is_told_before_anything_is_touched(tmp_path: pathlib.Path, arguments: tuple[str, ...]) -> None:
    playbook, *more = arguments
    code, output = run(tmp_path, playbook, inventory(tmp_path), *more, "-e", "hwaccel_summary_file=summary.json")
    assert code == 2, output[-3000:]
    found = {name: "\n".join(texts) for name, texts in problems(tmp_path / "summary.json").items()}
    missing = [
        (name, one, found.get(name))
        for name, (_bad, says) in BAD.items()
        for one in says
        if one not in found.get(name, "")
    ]
    assert missing == []
    for text in found.values():
        assert not re.search(FORBIDDEN, text), text
        assert all("Next: " in line for line in text.splitlines()), text
    assert "planted" not in output and "Traceback" not in output
    assert not (tmp_path / "called").exists() and not (tmp_path / "installations").exists()
