# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutants of admission policies are asked: writes that the policy has to deny, and writes that it has to allow, as dry runs on the API server.

No program of the roles sends a write that a policy denies, so no gate shows that one denies less. The writes are those of somebody who has stolen the
token of an agent: with the agent's name, the node of the token, and all rights, so that only admission can refuse them.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import pathlib
import time
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.tests.live.mutations import lanes
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.support.stolen import FEATURES, NAMED, NODE, NODE_NAME

#: Nodes for controllers, which every sandbox of mutants has: nfd-gc deletes the NodeFeatures of others.
MINE, OTHER, TAKEN = "idle-0", "idle-1", "idle-2"
#: Extra attribute of the user of a token that is bound to a pod on a node (kubernetes v1.36.4, pkg/serviceaccount/util.go).
_OF_NODE = "authentication.kubernetes.io/node-name"
_DRIVER = "nvidia-driver"
#: As a gate: writes that a policy denies or allows.
GATE = "admission"
_KINDS = ("Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
#: Seconds between two attempts while the API server takes up a policy.
_PAUSE = 0.5


@dataclasses.dataclass(frozen=True)
class Ask:
    """what: the write, in words. node: in the token, "" if there is none. says: part of the message of the denial, "" if it is allowed."""

    what: str
    node: str
    says: str
    send: c.Callable[[Client], t.Any]


def of_features(account: str, namespace: str) -> list[Ask]:
    """Writes of NodeFeatures, for the policies by which an agent writes that of its own node. `prepare` has made those that exist."""

    def body(name: str, label: str) -> Obj:
        metadata = {"name": NAMED[account].format(name), "namespace": namespace, "labels": {NODE_NAME: label}}
        return {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": metadata, "spec": {}}

    def create(name: str, label: str) -> c.Callable[[Client], t.Any]:
        return lambda client: client.create(body(name, label), FEATURES, dry_run=True)

    def apply(name: str, label: str) -> c.Callable[[Client], t.Any]:
        return lambda client: client.apply(body(name, label), FEATURES, field_manager="thief", force=True, dry_run=True)

    def delete(name: str) -> c.Callable[[Client], t.Any]:
        return lambda client: client.delete(FEATURES, NAMED[account].format(name), namespace, dry_run=True)

    written, changed = (
        "may write the NodeFeature of no other node",
        "may change or delete the NodeFeature of no other node",
    )
    return [
        Ask("creates the NodeFeature of its node", "new-0", "", create("new-0", "new-0")),
        Ask("creates that of another node", MINE, written, create("new-0", MINE)),
        Ask("creates its own with the label of another node", "new-0", written, create("new-0", OTHER)),
        Ask("creates one with a token of no node", "", written, create("new-0", "")),
        Ask("changes that of its node", MINE, "", apply(MINE, MINE)),
        Ask("gives that of its node the label of another one", MINE, written, apply(MINE, OTHER)),
        Ask("changes that of another node", MINE, written, apply(OTHER, OTHER)),
        Ask("takes over one that another node has named like its own", TAKEN, changed, apply(TAKEN, TAKEN)),
        Ask("deletes that of its node", MINE, "", delete(MINE)),
        Ask("deletes that of another node", MINE, changed, delete(OTHER)),
        Ask("deletes one with a token of no node", "", changed, delete(MINE)),
    ]


def of_nodes(node: Obj) -> list[Ask]:
    """Writes of a Node, for the policy of the driver manager. node: as it is."""
    labels = node["metadata"]["labels"]
    kept = next(iter(sorted(labels)))

    def patch(body: Obj) -> c.Callable[[Client], t.Any]:
        return lambda client: client.patch(NODE, MINE, "", body, dry_run=True)

    def label(key: str, value: str | None) -> c.Callable[[Client], t.Any]:
        return patch({"metadata": {"labels": {key: value}}})

    switch = label("nvidia.com/gpu.deploy.device-plugin", "paused-for-driver-upgrade")
    nobody, labeled = "may write no other node", "may write no other labels"
    return [
        Ask("labels its node for other components", MINE, "", switch),
        Ask("labels another node", OTHER, nobody, switch),
        Ask("labels a node with a token of no node", "", nobody, switch),
        Ask("cordons its node", MINE, "may not cordon or taint", patch({"spec": {"unschedulable": True}})),
        Ask("adds another label", MINE, labeled, label("stolen", "true")),
        Ask("changes another label", MINE, labeled, label(kept, "stolen")),
        Ask("takes away another label", MINE, "may take away no other labels", label(kept, None)),
    ]


class Thief:
    """Asks as an account in a namespace of a lane. kubeconfig: of the sandbox's administrator, who may impersonate."""

    def __init__(self, kubeconfig: str, client: Client) -> None:
        self._config: Obj = yaml.safe_load(pathlib.Path(kubeconfig).read_text(encoding="utf-8"))
        self._client = client

    def prepare(self, account: str, namespace: str) -> list[Ask]:
        """The writes for an account's policy, and the objects that they change."""
        if account == _DRIVER:
            return of_nodes(self._client.get(NODE, MINE))
        for name, label in ((MINE, MINE), (OTHER, OTHER), (TAKEN, OTHER)):
            metadata = {"name": NAMED[account].format(name), "namespace": namespace, "labels": {NODE_NAME: label}}
            made = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": metadata, "spec": {}}
            self._client.apply(made, FEATURES, field_manager="lanes", force=True)
        return of_features(account, namespace)

    def wrong(self, asks: c.Iterable[Ask], account: str, namespace: str, policy: str) -> str:
        """The first write that is denied and should not be, or is not denied and should be; "" if there is none."""
        name = f'ValidatingAdmissionPolicy "{policy}"'
        for ask in asks:
            said = self._told(ask, f"system:serviceaccount:{namespace}:{account}")
            if ask.says and not said:
                return f'{name}: {account} {ask.what}, and neither its validations nor the operations of its matchConstraints deny it as one who "{ask.says}"'
            if not ask.says and said:
                return f"{name}: {account} {ask.what}, which its validations have to allow: {said}"
            if ask.says not in said:
                return f'{name}: {account} {ask.what}, and its validations do not deny it as one who "{ask.says}", but: {said}'
        another = next((ask for ask in asks if ask.says), None)
        if another and (said := self._told(another, f"system:serviceaccount:{namespace}:another")):
            return f"{name}: it is for every account, and not for {account} alone (matchConditions): {said}"
        return ""

    def _told(self, ask: Ask, user: str) -> str:
        client = self._as(user, ask.node)
        try:
            ask.send(client)
        except ApiError as refused:
            return str(refused)
        return ""

    def _as(self, user: str, node: str) -> Client:
        """With all rights, so that the API server's authorizer lets everything through to admission."""
        context = next(
            one["context"] for one in self._config["contexts"] if one["name"] == self._config["current-context"]
        )
        users = [
            {
                "name": one["name"],
                "user": one["user"]
                | {"as": user, "as-groups": ["system:masters"]}
                | ({"as-user-extra": {_OF_NODE: [node]}} if node else {}),
            }
            for one in self._config["users"]
            if one["name"] == context["user"]
        ]
        return connect({"kubeconfig": self._config | {"users": users}})


def waited(wrong: c.Callable[[], str], limit: float) -> str:
    """What is still wrong when the API server has had the time to take up a policy."""
    end = time.monotonic() + limit
    while said := wrong():
        if time.monotonic() > end:
            return said
        time.sleep(_PAUSE)
    return ""


def policy_of(item: Obj) -> str:
    """The name of the policy that an unmutated policy or binding is about."""
    return str(item["spec"].get("policyName") or item["metadata"]["name"])


def account_of(objects: c.Sequence[Obj], policy: str) -> str:
    """The account whose writes a policy judges, from the unmutated one."""
    item = next(one for one in objects if one["kind"] == "ValidatingAdmissionPolicy" and policy_of(one) == policy)
    return str(item["spec"]["matchConditions"][0]["expression"]).rpartition(":")[2].strip('"')


def objects_of(objects: c.Sequence[Obj], index: int, broken: Obj | None, lane: str) -> list[Obj]:
    """The policy and its binding, in a namespace of the lane, without programs. broken: the mutated object, None for a sound lane."""
    made = lanes.space(index, {} if broken is None else {index: broken}, objects, lane)
    return [item for item in made if item.get("kind") in _KINDS]
