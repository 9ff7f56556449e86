# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's verdicts on install-config.yaml: each case of install_config_cases.yml, and how errors are told."""

from __future__ import annotations

import collections.abc as c
import copy
import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import install_config
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import Refused

_CASES = support.cases()["cases"]
#: Verdicts that the installer's own code gave.
_LEAST = 70


def verdict(folder: pathlib.Path, case: dict[str, t.Any], **settings: str) -> support.Run:
    if "text" in case:
        (folder / support.INSTALL_CONFIG).write_text(case["text"], encoding="utf-8")
    else:
        support.configure(folder, case.get("set"))
    return support.run(folder, "create", "install-config", **settings)


def error(done: support.Run) -> str:
    """The last error, in one line."""
    return done.err[done.err.index("level=error msg=") :].removeprefix("level=error msg=").replace("\n  ", " ").rstrip()


def refused(folder: pathlib.Path, changes: dict[str, t.Any]) -> str:
    done = verdict(folder, {"set": changes})
    assert done.status == 3
    return error(done)


def test_there_are_all_cases() -> None:
    assert len(_CASES) >= _LEAST
    assert len({case["case"] for case in _CASES}) == len(_CASES)
    for case in _CASES:
        assert case.keys() <= {"case", "set", "text", "errors", "count", "warning"}, case


@pytest.mark.parametrize("case", _CASES, ids=[case["case"] for case in _CASES])
def test_case(case: dict[str, t.Any], tmp_path: pathlib.Path) -> None:
    done = verdict(tmp_path, case)
    if not case.get("errors"):
        assert done.status == 0, done.err
        assert "warning" not in case or any(case["warning"] in line for line in done.lines("warning"))
        return
    assert done.status == 3
    text = error(done)
    assert "failed to create install config: " in text
    for part in case["errors"]:
        assert part in text
    if "count" in case:
        found = re.findall(
            r"(?:^|[\[ ])([\w.\[\]]+): (?:Invalid value|Forbidden|Required value|Unsupported value|Duplicate value)",
            text,
        )
        assert len(found) == case["count"], text


def test_errors_come_together(tmp_path: pathlib.Path) -> None:
    text = refused(tmp_path, {"metadata.name": "DgxPod", "networking.clusterNetworkMTU": 8900})
    start = 'failed to fetch Install Config: failed to load asset "Install Config": failed to create install config: invalid "install-config.yaml" file: '
    assert text.startswith(f"{start}[metadata.name: ")
    assert text.endswith("]")
    assert ", networking.clusterNetworkMTU: " in text


def test_one_error_has_no_brackets(tmp_path: pathlib.Path) -> None:
    assert "file: networking.clusterNetworkMTU: Invalid" in refused(tmp_path, {"networking.clusterNetworkMTU": 8900})


def test_the_error_has_the_whole_pull_secret(tmp_path: pathlib.Path) -> None:
    secret = '{"auths":{"registry.example.com":{"token":"secret-4711"}}}'
    text = refused(tmp_path, {"pullSecret": secret})
    assert secret.replace('"', '\\"') in text
    assert "secret-4711" in (tmp_path / ".openshift_install.log").read_text(encoding="utf-8")


def test_another_type_is_an_error(tmp_path: pathlib.Path) -> None:
    text = refused(tmp_path, {"controlPlane.replicas": "three"})
    assert (
        "json: cannot unmarshal string into Go struct field InstallConfig.controlPlane.replicas of type int64" in text
    )
    assert "cannot unmarshal array into Go struct field" in refused(tmp_path, {"metadata": []})
    assert "cannot unmarshal number into Go struct field" in refused(tmp_path, {"metadata.name": 4})
    assert "cannot unmarshal string into Go struct field" in refused(tmp_path, {"platform": {"baremetal": "all"}})


def test_what_is_null_is_absent(tmp_path: pathlib.Path) -> None:
    assert "must specify one of the platforms" in refused(tmp_path, {"platform": {"none": None}})
    changes = {"compute": [None], "networking.serviceNetwork": [None], "networking.clusterNetwork": [None]}
    assert refused(tmp_path, changes).count("invalid CIDR address") == 2


def places(found: t.Any, above: tuple[str | int, ...] = ()) -> c.Iterator[tuple[str | int, ...]]:
    """Paths of all values."""
    if above:
        yield above
    entries = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in entries:
        yield from places(value, (*above, key))


def test_no_value_ends_it_without_an_error() -> None:
    base = {
        **support.cases()["base"],
        "proxy": {"httpProxy": "http://a:1", "noProxy": "a"},
        "imageDigestSources": [{"source": "a/b", "mirrors": ["c/d"]}],
        "capabilities": {"additionalEnabledCapabilities": ["Ingress"]},
    }
    verdicts = set()
    values: tuple[t.Any, ...] = (None, "", -1, True, [], {}, [None], 1.5, "fd00::/64", 2**70, "http://[")
    for path in places(base):
        for value in values:
            changed = copy.deepcopy(base)
            section: t.Any = changed
            for key in path[:-1]:
                section = section[key]
            section[path[-1]] = value
            try:
                install_config.load(yaml.safe_dump(changed))
                verdicts.add(True)
            except Refused as refusal:
                assert str(refusal).startswith("failed to create install config: ")
                verdicts.add(False)
    assert verdicts == {True, False}


def test_misspelled_sections_become_defaults(tmp_path: pathlib.Path) -> None:
    networking = support.cases()["base"]["networking"]
    done = verdict(tmp_path, {"set": {"networking": None, "networkng": {**networking, "networkType": "Calico"}}})
    assert done.status == 0
    found = yaml.safe_load((tmp_path / support.INSTALL_CONFIG).read_text(encoding="utf-8"))
    assert found["networking"]["networkType"] == "OVNKubernetes"
    assert found["networking"]["machineNetwork"] == [{"cidr": "10.0.0.0/16"}]
    assert "networkng" not in found


def test_defaults(tmp_path: pathlib.Path) -> None:
    assert verdict(tmp_path, {"set": {"networking": {}, "controlPlane": {"replicas": 3}}}).status == 0
    found = yaml.safe_load((tmp_path / support.INSTALL_CONFIG).read_text(encoding="utf-8"))
    assert found["additionalTrustBundlePolicy"] == "Proxyonly"
    assert found["publish"] == "External"
    assert found["controlPlane"] == {
        "architecture": "amd64",
        "hyperthreading": "Enabled",
        "name": "master",
        "replicas": 3,
    }
    assert found["networking"]["machineNetwork"] == [{"cidr": "10.0.0.0/16"}]


def test_names_of_old_releases_are_converted(tmp_path: pathlib.Path) -> None:
    old = {
        "type": "OVNKubernetes",
        "machineCIDR": "10.33.3.0/24",
        "clusterNetworks": [{"cidr": "10.128.0.0/14", "hostSubnetLength": 9}],
    }
    assert verdict(tmp_path, {"set": {"networking": old}}).status == 0
    found = yaml.safe_load((tmp_path / support.INSTALL_CONFIG).read_text(encoding="utf-8"))["networking"]
    assert found["machineNetwork"] == [{"cidr": "10.33.3.0/24"}]
    assert found["clusterNetwork"] == [{"cidr": "10.128.0.0/14", "hostPrefix": 23}]
    assert not found.keys() & set(old)


def test_two_masters_with_credentials(tmp_path: pathlib.Path) -> None:
    fencing = {"credentials": [{"hostname": "a"}, {"hostname": "b"}]}
    assert verdict(tmp_path, {"set": {"controlPlane": {"replicas": 2, "fencing": fencing}}}).status == 0


def test_fips_on_a_host_with_fips(tmp_path: pathlib.Path) -> None:
    done = verdict(tmp_path, {"set": {"fips": True, "sshKey": None}}, fips="yes")
    assert done.status == 0, done.err


def test_masters_are_schedulable_without_workers(tmp_path: pathlib.Path) -> None:
    text = "Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings"
    assert text in verdict(tmp_path, {}).lines("warning")
    two = {"set": {"compute": [{"name": "worker", "replicas": 2}]}}
    assert text not in verdict(tmp_path, two).lines("warning")


def test_without_a_file_it_would_ask(tmp_path: pathlib.Path) -> None:
    done = support.run(tmp_path, *support.IGNITION)
    assert done.status == 1
    assert done.lines("error")[0].startswith("failed to fetch Kubeconfig Admin Client: ")
    assert done.lines("error")[0].endswith("EOF")


@pytest.mark.parametrize("address", ["169.254.9.0/24", "100.64.0.0/10"])
def test_other_networks_of_ovn(address: str, tmp_path: pathlib.Path) -> None:
    assert "must not overlap with OVNKubernetes" in refused(
        tmp_path, {"networking.machineNetwork": [{"cidr": address}]}
    )
