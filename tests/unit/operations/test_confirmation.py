# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of a teardown must be identified by the inventory, or confirmed by name."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Forbidden,
    HwaccelError,
    NotFound,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import confirmation, fleet
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request

UID = "2a62dddd-a928-4c56-bbe1-dfc0e441394a"
ENVIRONMENT = "K8S_AUTH_HOST of the environment"


def is_for(request: Request, expected: str) -> None:
    assert f"{request.kind} {request.name}".rstrip() == expected


def cluster_of(refused: type[HwaccelError] | None = None) -> Cluster:
    """A cluster with three nodes. `refused` is raised for objects that must not be read."""
    nodes = ({"kind": "Node", "metadata": {"name": name}} for name in "abc")
    cluster = Cluster({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": UID}}, *nodes)
    cluster.page_size = 2
    cluster.on("get", lambda request: is_for(request, "Namespace kube-system"))
    cluster.on("list", lambda request: is_for(request, "Node"))
    if refused:
        cluster.fail(refused("no"), "get", name="kube-system")
        cluster.fail(Forbidden("no"), "list", kind="Node")
    return cluster


def confirm(cluster: Cluster, *, check_mode: bool = False, **given: t.Any) -> tuple[dict[str, t.Any], list[str]]:
    """The result and warnings."""
    settings = {
        "name": "prod",
        "cluster_uid": "",
        "confirm": "",
        "command": "",
        "decided_by": "",
        "own": True,
        "where": "https://api:6443",
        "source": "here",
    }
    warnings: list[str] = []
    found = confirmation.confirmed(
        cluster, confirmation.Settings(**settings | given), check_mode=check_mode, warn=warnings.append
    )
    return found, warnings


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cluster_uid": UID},
        {"confirm": UID},
        {"decided_by": ENVIRONMENT, "own": False, "confirm": UID},
        {"decided_by": ENVIRONMENT, "own": False, "confirm": UID, "cluster_uid": UID},
        {"decided_by": "the default kubeconfig", "own": True, "cluster_uid": UID},
    ],
    ids=str,
)
def test_a_cluster_of_the_inventory_or_a_confirmed_one_is_accepted(given: dict[str, t.Any]) -> None:
    found, warnings = confirm(cluster_of(), **given)
    assert (
        found["text"]
        == f"prod is the cluster with uid {UID}, kubernetes v1.36.4, 3 nodes, API server https://api:6443, connected with here"
    )
    assert warnings == []


@pytest.mark.parametrize(
    "given",
    [
        {"decided_by": ENVIRONMENT, "own": False},
        {"decided_by": ENVIRONMENT, "own": False, "cluster_uid": UID},
        {"decided_by": "the default kubeconfig"},
    ],
    ids=str,
)
def test_an_unconfirmed_cluster_fails_with_the_command_and_warns_in_check_mode(given: dict[str, t.Any]) -> None:
    with pytest.raises(HwaccelError) as refused:
        confirm(cluster_of(), command="ansible-playbook -i here hwaccel.gpu.teardown", **given)
    assert str(refused.value) == (
        f"this cluster was selected by {given['decided_by']}, not by the inventory, so nothing was deleted (prod): "
        f"it is the cluster with uid {UID}, kubernetes v1.36.4, 3 nodes, API server https://api:6443, connected with here. "
        f"Next: if this is the intended cluster, run ansible-playbook -i here hwaccel.gpu.teardown -e hwaccel_confirm={UID}"
    )
    _found, warnings = confirm(cluster_of(), check_mode=True, **given)
    assert warnings == [
        str(refused.value)
        .replace("run ansible-playbook -i here hwaccel.gpu.teardown", "run again with")
        .replace("this cluster was", "Outside of check mode this will be refused: this cluster was", 1)
    ]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"confirm": "another"}, "hwaccel_confirm names another cluster, so nothing was deleted"),
        ({"confirm": "prod"}, "it is prod, and this is"),
        ({"decided_by": ENVIRONMENT, "own": False, "confirm": "another"}, f"run again with -e hwaccel_confirm={UID}"),
        ({"cluster_uid": "another"}, "this is not the cluster in the inventory"),
        (
            {"decided_by": ENVIRONMENT, "own": False, "cluster_uid": "another", "confirm": UID},
            "this is not the cluster in the inventory",
        ),
    ],
    ids=str,
)
def test_another_cluster_fails_in_check_mode_too(given: dict[str, t.Any], message: str, check_mode: bool) -> None:
    with pytest.raises(HwaccelError, match=message):
        confirm(cluster_of(), check_mode=check_mode, **given)


@pytest.mark.parametrize("refused", [Forbidden, NotFound])
def test_without_a_uid_only_the_name_can_confirm(refused: type[HwaccelError]) -> None:
    unreadable = cluster_of(refused)
    assert (
        "a cluster whose uid cannot be read, kubernetes v1.36.4, an unknown number of nodes"
        in confirm(unreadable)[0]["text"]
    )
    assert confirm(unreadable, decided_by=ENVIRONMENT, own=False, confirm="prod")[1] == []
    with pytest.raises(HwaccelError, match="hwaccel_confirm=prod"):
        confirm(unreadable, decided_by=ENVIRONMENT, own=False)
    with pytest.raises(
        HwaccelError, match=r"it cannot be verified that this is the cluster in the inventory.*cannot be read"
    ):
        confirm(unreadable, cluster_uid=UID)
    with pytest.raises(HwaccelError, match="it cannot be verified that this is the cluster in the inventory"):
        fleet.refuse_another(unreadable, UID)
