# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What machines are installed with that are added to a cluster, from the answers of the cluster and the folder of its installation."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import pointers
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.pointers import Pointer
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import machine_config_server
from ansible_collections.hwaccel.gpu.plugins.modules import machine_config_server_info as module
from ansible_collections.hwaccel.gpu.tests.unit.approval.signing import Authority
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster

ROOT, ROTATED = Authority("root-ca").pem, Authority("machine-config-server-ca").pem
DOMAIN = "ocp.example.com"
OPERATOR = ("openshift-machine-config-operator", "machine-config-server-ca", "ca-bundle.crt")
INSTALLER = ("kube-system", "root-ca", "ca.crt")


def cluster(authorities: dict[tuple[str, str, str], str]) -> Cluster:
    """authorities: texts by namespace, name and key of a ConfigMap."""
    result = Cluster()
    for (namespace, name, key), text in authorities.items():
        result.put({"kind": "Namespace", "metadata": {"name": namespace}})
        result.put({"kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {key: text}})
    return result


def found(client: Cluster, folder: str = "") -> dict[str, t.Any]:
    return machine_config_server.found(client, DOMAIN, ["master", "worker"], folder)


@pytest.mark.parametrize(
    ("given", "authority", "config_map"),
    [
        ({OPERATOR: ROTATED, INSTALLER: ROOT}, ROTATED, "openshift-machine-config-operator/machine-config-server-ca"),
        ({INSTALLER: ROOT}, ROOT, "kube-system/root-ca"),
    ],
)
def test_the_cluster_names_the_authority(
    given: dict[tuple[str, str, str], str], authority: str, config_map: str
) -> None:
    result = found(cluster(given))
    assert result["config_map"] == config_map
    assert (result["ignition_version"], result["rotated"]) == (pointers.VERSION, False)
    for pool in ("master", "worker"):
        assert result["pointers"][pool] == Pointer(pointers.VERSION, authority).of(DOMAIN, pool)


def test_one_request_is_enough_where_the_first_place_has_it() -> None:
    client = cluster({OPERATOR: ROTATED, INSTALLER: ROOT})
    found(client)
    assert [(one.verb, one.name) for one in client.requests] == [("get", "machine-config-server-ca")]


@pytest.mark.parametrize(("authority", "rotated"), [(ROOT, False), (ROTATED, True)])
def test_of_the_files_of_the_installation_only_the_version_is_taken(
    authority: str, rotated: bool, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "worker.ign").write_text(Pointer("3.6.0", ROOT).of(DOMAIN, "worker"), encoding="utf-8")
    result = found(cluster({OPERATOR: authority}), str(tmp_path))
    assert (result["ignition_version"], result["rotated"]) == ("3.6.0", rotated)
    assert result["pointers"]["worker"] == Pointer("3.6.0", authority).of(DOMAIN, "worker")


@pytest.mark.parametrize("text", [None, "damaged"])
def test_a_folder_that_is_lost_is_not_needed(text: str | None, tmp_path: pathlib.Path) -> None:
    if text:
        (tmp_path / "worker.ign").write_text(text, encoding="utf-8")
    result = found(cluster({OPERATOR: ROOT}), str(tmp_path if text else tmp_path / "lost"))
    assert (result["ignition_version"], result["rotated"]) == (pointers.VERSION, False)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "worker.ign").mkdir()
    with pytest.raises(HwaccelError, match=r"worker\.ign cannot be read"):
        found(cluster({OPERATOR: ROOT}), str(tmp_path))


def test_without_a_certificate_nothing_is_made() -> None:
    with pytest.raises(HwaccelError, match=r"neither ConfigMap .*server-ca nor kube-system/root-ca"):
        found(cluster({}))
    with pytest.raises(HwaccelError, match=r"machine-config-server-ca\): it holds no complete certificate"):
        found(cluster({OPERATOR: "", INSTALLER: ROOT}))


def test_a_missing_permission_is_no_missing_config_map() -> None:
    client = cluster({INSTALLER: ROOT})
    client.fail(Forbidden("reading a ConfigMap"), "get", kind="ConfigMap")
    with pytest.raises(Forbidden):
        found(client)


def test_what_is_returned_is_documented() -> None:
    assert set(found(cluster({INSTALLER: ROOT}))) == set(yaml.safe_load(module.RETURN))
