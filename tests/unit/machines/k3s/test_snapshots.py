# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of K3s go to S3 by a Secret, so that credentials are in no file of a server."""

from __future__ import annotations

import base64
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, role, snapshots
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_configuration import SETTINGS, read

S3 = {"bucket": "snapshots", "endpoint": "s3.example.com:9000", "folder": "edge", "skip_ssl_verify": True, "region": ""}
KEYS = {"access_key": "AKIA", "secret_key": "planted"}
_ONE = [one for one in SETTINGS["machines"] if one["host"] in ("s1", "a1")]


def test_a_server_has_the_name_of_the_secret_only() -> None:
    before, after = read(), read(snapshot_s3=S3)
    assert {name: after[name] for name in after.keys() - before.keys()} == {
        "etcd-s3": True,
        "etcd-s3-config-secret": "hwaccel-gpu-etcd-s3",
    }
    assert read(snapshot_s3={"secret": "mine"})["etcd-s3-config-secret"] == "mine"
    assert "etcd-s3" not in read(snapshot_s3=S3, role="agent")


def test_the_secret_has_everything_else() -> None:
    made = yaml.safe_load(role.configured({**SETTINGS, "snapshot_s3": S3}, {}, KEYS, "snapshots"))
    assert made["metadata"] == {"name": "hwaccel-gpu-etcd-s3", "namespace": "kube-system"}
    assert {name: base64.b64decode(value).decode() for name, value in made["data"].items()} == {
        "etcd-s3-bucket": "snapshots",
        "etcd-s3-endpoint": "s3.example.com:9000",
        "etcd-s3-folder": "edge",
        "etcd-s3-skip-ssl-verify": "true",
        "etcd-s3-access-key": "AKIA",
        "etcd-s3-secret-key": "planted",
    }
    # Machines may have credentials by their role in a cloud.
    assert "access-key" not in snapshots.secret({"snapshot_s3": S3}, "", "")
    assert (
        snapshots.secret({"snapshot_s3": {"secret": "mine"}}, "", "")
        == snapshots.secret({"snapshot_s3": {}}, "", "")
        == ""
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"machines": _ONE}, "snapshots cannot go to S3 (cluster_k3s_snapshot_s3): only etcd has snapshots"),
        ({"snapshot_s3": {"folder": "edge"}}, "neither or both of bucket and secret are set"),
        ({"snapshot_s3": {**S3, "secret": "mine"}}, "neither or both of bucket and secret are set"),
        ({"snapshot_s3": {"secret": "mine", "folder": "x"}}, "folder would not be used"),
        (
            {"server_configuration": {"etcd-s3-bucket": "x"}},
            "options of S3 are set twice (cluster_k3s_server_configuration)",
        ),
    ],
)
def test_what_cannot_be_is_told(changed: dict[str, t.Any], told: str) -> None:
    (fault,) = configuration.faults({**SETTINGS, "snapshot_s3": S3, **changed})
    assert told in str(fault)


def test_etcd_of_a_lone_server_has_snapshots() -> None:
    assert configuration.faults({**SETTINGS, "snapshot_s3": S3, "machines": _ONE, "datastore": "etcd"}) == []
