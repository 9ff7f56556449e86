# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that was made without encryption of Secrets gets it, and is restored from a snapshot, which needs the keys, for real.

Tests use the same machine, in their order.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.encryption import (
    CLEAR,
    ENTRY,
    kept,
    keys,
    password,
    plant,
    stored,
    stored_with,
)
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import ENTRY as RESTORE
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import take
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

pytestmark = pytest.mark.slow
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
SETTING = "cluster_kubeadm_secrets_encryption"


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = Site(rig, servers=("only",))
    site.done()
    plant(site)
    return site


def reasons(run: Run) -> str:
    assert run.rc != 0 and run.changed() == 0
    return json.dumps(run.summary)


def test_it_is_turned_on_in_two_steps(site: Site) -> None:
    server = site.machines["only"]
    assert "Secrets are not encrypted on only" in reasons(site.play("", *ENTRY))
    site.variables[SETTING] = True
    (first, turn) = site.done("--check").summary["one"]["changes"]
    assert (
        "ClusterConfiguration (apiServer.extraArgs)" in first and "its control plane has another configuration" in turn
    )
    assert kept(server) == ""
    run = site.done("-vvv")
    (key,) = keys(server).values()
    assert key not in run.stdout and kept(server) == "600 0"
    assert stored_with(server) == {""} and password(site) == CLEAR
    again = site.done()
    assert again.changed() == 0 and "Secrets are not encrypted yet" in again.stdout
    arguments = (*ENTRY, "-e", "hwaccel_confirm=identity")
    assert "-e hwaccel_confirm=identity" in site.done(*ENTRY).stdout
    site.done(*arguments)
    assert stored_with(server) == set(keys(server)) and password(site) == CLEAR
    assert not [value for value in stored(server).values() if CLEAR.encode() in value]
    assert site.done(*arguments).changed() == 0
    quiet = site.done()
    assert quiet.changed() == 0 and "Secrets are not encrypted yet" not in quiet.stdout


def test_it_is_not_turned_off(site: Site) -> None:
    site.variables[SETTING] = False
    assert "Secrets of the cluster are encrypted, and would not be any more" in reasons(site.play())
    site.variables[SETTING] = True


def test_a_snapshot_is_not_restored_without_the_keys(site: Site) -> None:
    server = site.machines["only"]
    snapshot = take(server)
    text = server.read(places.ENCRYPTION)
    server.sh(f"rm {places.ENCRYPTION}")
    mine = authority.fingerprint(server.read(places.AUTHORITY))
    arguments = (*RESTORE, "-e", f"cluster_kubeadm_snapshot=only:{snapshot}", "-e", f"hwaccel_confirm={mine}")
    told = reasons(site.play("", *arguments))
    assert f"{places.ENCRYPTION} is missing" in told and "put the file there that was kept beside the snapshot" in told
    assert "put the file there that was kept beside snapshots" in reasons(site.play())
    server.write(places.ENCRYPTION, text, "0600")
    plant(site, "later")
    assert site.done(*arguments).summary["one"]["changes"][0].startswith("restore etcd on only from")
    assert password(site) == CLEAR
    assert "/registry/secrets/default/later" not in stored(server)
    assert site.done().changed() == 0


def test_the_keys_go_with_the_cluster(site: Site) -> None:
    server = site.machines["only"]
    entry = ("-e", "cluster_kubeadm_entry=teardown")
    uid = site.client().get(_NAMESPACE, "kube-system")["metadata"]["uid"]
    site.done(*entry, "-e", f"hwaccel_confirm={uid}")
    assert kept(server) == ""
