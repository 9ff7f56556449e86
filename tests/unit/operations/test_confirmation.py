# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cluster is about to lose something: proven by the inventory, or confirmed by name."""

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
    """With three nodes. refused: raised for what may not be read."""
    nodes = ({"kind": "Node", "metadata": {"name": name}} for name in "abc")
    made = Cluster({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": UID}}, *nodes)
    made.page_size = 2
    made.on("get", lambda request: is_for(request, "Namespace kube-system"))
    made.on("list", lambda request: is_for(request, "Node"))
    if refused:
        made.fail(refused("no"), "get", name="kube-system")
        made.fail(Forbidden("no"), "list", kind="Node")
    return made


def ask(cluster: Cluster, *, check_mode: bool = False, **given: t.Any) -> tuple[dict[str, t.Any], list[str]]:
    """What is found, and warnings."""
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
def test_what_proves_a_cluster(given: dict[str, t.Any]) -> None:
    found, warnings = ask(cluster_of(), **given)
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
def test_a_guess_is_refused_with_the_command_and_in_check_mode_told(given: dict[str, t.Any]) -> None:
    with pytest.raises(HwaccelError) as refused:
        ask(cluster_of(), command="ansible-playbook -i here hwaccel.gpu.teardown", **given)
    assert str(refused.value) == (
        f"this cluster was selected by {given['decided_by']}, not by the inventory, so nothing was deleted (prod): "
        f"it is the cluster with uid {UID}, kubernetes v1.36.4, 3 nodes, API server https://api:6443, connected with here. "
        f"Next: if this is the intended cluster, run ansible-playbook -i here hwaccel.gpu.teardown -e hwaccel_confirm={UID}"
    )
    _found, warnings = ask(cluster_of(), check_mode=True, **given)
    assert warnings == [
        str(refused.value)
        .replace("run ansible-playbook -i here hwaccel.gpu.teardown", "run again with")
        .replace("this cluster was", "Outside of check mode this will be refused: this cluster was", 1)
    ]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("given", "told"),
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
def test_another_cluster_is_refused_in_check_mode_too(given: dict[str, t.Any], told: str, check_mode: bool) -> None:
    with pytest.raises(HwaccelError, match=told):
        ask(cluster_of(), check_mode=check_mode, **given)


@pytest.mark.parametrize("refused", [Forbidden, NotFound])
def test_without_a_uid_the_name_confirms_and_nothing_proves(refused: type[HwaccelError]) -> None:
    unreadable = cluster_of(refused)
    assert (
        "a cluster whose uid cannot be read, kubernetes v1.36.4, an unknown number of nodes"
        in ask(unreadable)[0]["text"]
    )
    assert ask(unreadable, decided_by=ENVIRONMENT, own=False, confirm="prod")[1] == []
    with pytest.raises(HwaccelError, match="hwaccel_confirm=prod"):
        ask(unreadable, decided_by=ENVIRONMENT, own=False)
    with pytest.raises(
        HwaccelError, match=r"it cannot be verified that this is the cluster in the inventory.*cannot be read"
    ):
        ask(unreadable, cluster_uid=UID)
    with pytest.raises(HwaccelError, match="it cannot be verified that this is the cluster in the inventory"):
        fleet.refuse_another(unreadable, UID)
