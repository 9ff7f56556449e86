# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers whose datastore is that of others."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, external, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.leaving import restored
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.plan import plan
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_configuration import SETTINGS as CLUSTER
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_configuration import read
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_plan import SETTINGS, member

ENDPOINT = "postgres://k3s:planted@db.example.com:5432/k3s?sslmode=verify-full"
DATASTORE = {"datastore": "external", "datastore_endpoint": ENDPOINT}


def server(**changed: t.Any) -> Host:
    """A member without etcd."""
    host = member(**{**DATASTORE, **changed})
    present = host.fact("present").replace(f"{places.ETCD}\n", "")
    return dataclasses.replace(host, facts={**host.facts, "present": present})


def faults(host: Host, **changed: t.Any) -> list[str]:
    return [one["text"] for one in plan(host, {**SETTINGS, **DATASTORE, **changed})["faults"]]


def test_servers_have_the_endpoint_and_agents_have_not() -> None:
    assert read(**DATASTORE)["datastore-endpoint"] == ENDPOINT
    assert "datastore-endpoint" not in read(**DATASTORE, role="agent")
    assert not {name for name in read(**DATASTORE) if name.startswith("etcd-")}


@pytest.mark.parametrize("what", ["init", "join", "rejoin"])
def test_a_server_comes_to_its_cluster_by_the_datastore_and_its_token_alone(what: str) -> None:
    assert yaml.safe_load(configuration.entry({**CLUSTER, **DATASTORE}, what, token=True)) == {
        "token-file": places.TOKEN
    }
    agent = {**CLUSTER, **DATASTORE, "role": "agent"}
    assert yaml.safe_load(configuration.entry(agent, "join", token=True))["server"] == "https://10.0.0.1:6443"


def test_a_member_without_data_of_its_own_is_whole() -> None:
    made = plan(server(), {**SETTINGS, **DATASTORE})
    assert (made["faults"], made["found"]["state"], made["turn"]["reasons"]) == ([], "member", [])
    # With a datastore of its own it would be half made.
    assert (
        plan(
            dataclasses.replace(
                server(), files={**server().files, places.CONFIGURATION: File(places.CONFIGURATION, "")}
            ),
            SETTINGS,
        )["found"]["state"]
        == "half made"
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"datastore_endpoint": ""}, "the datastore has no endpoint (cluster_k3s_datastore_endpoint)"),
        ({"datastore_endpoint": "db.example.com"}, "is no address of one"),
        ({"datastore": ""}, "would not be used"),
        ({"has_token": False}, "needs a token that is known (cluster_k3s_token)"),
    ],
)
def test_what_is_missing_is_told_without_the_password(changed: dict[str, t.Any], told: str) -> None:
    (fault,) = external.faults({**CLUSTER, **DATASTORE, **changed})
    assert told in str(fault) and "planted" not in str(fault)


def test_another_datastore_is_refused_and_another_password_is_not() -> None:
    assert faults(server(), datastore_endpoint=ENDPOINT.replace("planted", "another")) == []
    (told,) = faults(server(), datastore_endpoint="postgres://k3s:planted@other.example.com/k3s")
    assert (
        "is postgres://db.example.com:5432/k3s, and postgres://other.example.com/k3s is set" in told
        and "planted" not in told
    )
    (told,) = faults(server(), datastore="", datastore_endpoint="")
    assert "and none is set" in told
    (told,) = faults(member())
    assert "the server has etcd, and another datastore is set" in told


def test_its_data_stay_when_a_machine_leaves() -> None:
    left = restored(server(), {**SETTINGS, **DATASTORE})
    assert "what the cluster has in its datastore stays there" in left["messages"]
    assert "what the cluster has in its datastore stays there" not in restored(member(), SETTINGS)["messages"]
