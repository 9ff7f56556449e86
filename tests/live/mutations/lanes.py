# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How mutants share a cluster: each has a lane, which is a node of its own and copies of what its mutation can affect.

The cluster runs all roles unmutated on every node (`shared`), but for components that a node's labels leave to its lane:

COPY   a DaemonSet: its mutated copy, beside the others
SPACE  an object that nodes need, such as a ConfigMap or a ClusterRole: copies of all objects that are connected with it, in namespaces of their own
ALONE  an object that exists once in a cluster, such as a CustomResourceDefinition or nfd-master: the mutated one takes its place, one at a time
ASKED  an admission policy or its binding: copies of both, and no programs, since only a write that no program sends shows what a policy denies (asked.py)
POD    the pod of gpu_validation, which changes nothing on its node
APART  what neither a node nor a gate reads, such as a dashboard or a description in a schema

A copy is the mutated object with another name, other namespaces, and its node. Nothing that the mutation has removed is added again.
"""

from __future__ import annotations

import collections.abc as c
import copy
import re
import typing as t

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Mutant, Obj, mutated

COPY, SPACE, ALONE, POD, APART, ASKED = "copy", "space", "alone", "pod", "apart", "asked"
#: Label of a node: its lane. Labels of a node with this prefix: whether a component is shared.
LANE, COMPONENT = "lane", "component."
SHARED, OWN = "shared", "own"
_CLUSTER_SCOPED = frozenset(
    (
        "ClusterRole",
        "ClusterRoleBinding",
        "RuntimeClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    )
)
#: Read by Prometheus, Grafana and users.
_APART = re.compile(r"monitoring/(ConfigMap/hwaccel-gpu-|Service/)")
#: nfd-master, which labels all nodes, and whatever it needs.
_OF_MASTER = re.compile(r"nfd-master")
_ONCE = frozenset(("CustomResourceDefinition", "NodeFeatureRule"))
_ACCOUNT = re.compile(r"system:serviceaccount:[^:\"]*:([-a-z0-9]+)")
_SPACES = re.compile(rf"\b(?:{rendered.AGENTS}|{rendered.CONTROLLERS})\b(?!-)")

#: Namespaces whose findings nfd-master takes, which those of lanes have to be.
_SELECTED = re.compile(r"operator: In(\s+)values: .*")

Key = tuple[str, str]


def key_of(item: Obj) -> Key:
    return item["kind"], item["metadata"]["name"]


def isolation(mutant: Mutant) -> str:
    """Which of the six ways is the cheapest that is true for this mutant."""
    if mutant.kind == "Pod":
        return POD
    if mutant.kind == "DaemonSet":
        return COPY
    if mutant.kind.startswith("ValidatingAdmissionPolicy"):
        return ASKED
    if (
        mutant.kind == "CustomResourceDefinition"
        and mutant.path[-1] == "description"
        and mutant.path[-2] != "properties"
    ):
        return APART
    if mutant.kind in _ONCE or _OF_MASTER.search(mutant.name):
        return ALONE
    return APART if _APART.match(mutant.leaf) else SPACE


def shared(objects: c.Sequence[Obj]) -> list[Obj]:
    """The unmutated objects of a role, for all nodes that do not leave a component to their lane."""
    made = copy.deepcopy(list(objects))
    for item in made:
        if item["kind"] == "DaemonSet":
            item["spec"]["template"]["spec"]["nodeSelector"] = {COMPONENT + rendered.component(item): SHARED}
        if key_of(item) == ("ConfigMap", "nfd-master-conf"):
            item["data"]["nfd-master.conf"] = _SELECTED.sub(
                r"operator: NotIn\g<1>values: [kube-system]", item["data"]["nfd-master.conf"]
            )
    return made


def on_board(mutant: Mutant) -> bool:
    """Whether only a node with an integrated GPU can show the mutation: the rule that labels such nodes, and the term that selects them by that."""
    of_rules = mutant.kind == "NodeFeatureRule" or mutant.name.startswith("nodefeaturerules.")
    return of_rules or ("nodeSelectorTerms", 1) in zip(mutant.path, mutant.path[1:], strict=False)


def node_labels(lane: str, components: c.Iterable[str], own: c.Collection[str], pool: str) -> dict[str, str]:
    """Labels of the lane's node."""
    return {"pool": pool, LANE: lane} | {COMPONENT + name: OWN if name in own else SHARED for name in components}


def connected(objects: c.Sequence[Obj], index: int) -> list[int]:
    """Places of the objects that refer to each other, directly or by others, with the one at this place."""
    known = {key_of(item): place for place, item in enumerate(objects)}
    links: dict[int, set[int]] = {place: set() for place in known.values()}
    for place, item in enumerate(objects):
        for found in _references(item, item["kind"]):
            if found in known and objects[known[found]]["kind"] != "Namespace":
                links[place].add(known[found])
                links[known[found]].add(place)
    todo, reached = [index], set[int]()
    while todo:
        place = todo.pop()
        if place not in reached:
            reached.add(place)
            todo += links[place]
    used = {objects[place]["metadata"].get("namespace") for place in reached}
    return sorted(reached | {place for (kind, name), place in known.items() if kind == "Namespace" and name in used})


def lane_objects(mutant: Mutant, objects: c.Sequence[Obj], lane: str) -> list[Obj]:
    """What the mutant's lane has beside the shared objects, the mutated one among them."""
    broken = mutated(objects[mutant.index], mutant)
    if isolation(mutant) == COPY:
        return [placed(renamed(broken, lane), lane)]
    return space(mutant.index, {mutant.index: broken}, objects, lane)


def sources(mutant: Mutant, objects: c.Sequence[Obj]) -> list[Obj]:
    """The unmutated objects that are copied for a mutant in a space."""
    return [objects[place] for place in _copied(mutant.index, objects)]


def space(index: int, replaced: c.Mapping[int, Obj], objects: c.Sequence[Obj], lane: str) -> list[Obj]:
    """Copies of what is connected with one object, in namespaces of the lane. replaced: mutated objects by their place."""
    places = _copied(index, objects)
    classes = any(objects[place]["kind"] == "RuntimeClass" for place in places)
    made = [_in_space(copy.deepcopy(replaced.get(place, objects[place])), lane, classes) for place in places]
    if any(objects[place]["kind"] == "Namespace" for place in places):
        return made
    used = {namespace for place in places if (namespace := objects[place]["metadata"].get("namespace"))}
    return [_namespace(f"{name}-{lane}") for name in sorted(used)] + made


def _copied(index: int, objects: c.Sequence[Obj]) -> list[int]:
    """Of a Namespace, what is connected with the first workload in it, but not with nfd-master."""
    if objects[index]["kind"] == "Namespace":
        index = next(
            place
            for place, item in enumerate(objects)
            if item["kind"] in ("DaemonSet", "Deployment")
            and item["metadata"]["namespace"] == objects[index]["metadata"]["name"]
            and not _OF_MASTER.search(item["metadata"]["name"])
        )
    return connected(objects, index)


def own_components(objects: c.Iterable[Obj]) -> set[str]:
    """Components that the lane runs itself, by the objects before they were renamed."""
    return {rendered.component(item) for item in objects if item["kind"] == "DaemonSet"}


def renamed(item: Obj, lane: str) -> Obj:
    """With the lane in its name. A name that the mutation has emptied or dropped remains so."""
    metadata = item.get("metadata")
    if isinstance(metadata, dict) and metadata.get("name"):
        metadata["name"] = f"{metadata['name'][:52]}-{lane}"
    return item


def placed(item: Obj, lane: str) -> Obj:
    """On the node of its lane only."""
    spec = (((item.get("spec") or {}).get("template") or {}).get("spec")) or None
    if isinstance(spec, dict):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), LANE: lane}
    return item


def renewed(item: Obj, lane: str) -> Obj:
    """What a new cluster would get after the mutated object: nfd-master, which reads its configuration and its rights once, and a rule of the mutated kind."""
    made = copy.deepcopy(item)
    if item["kind"] == "Deployment" and _OF_MASTER.search(item["metadata"]["name"]):
        made["spec"]["template"]["metadata"].setdefault("annotations", {})[LANE] = lane
    elif item["kind"] == "NodeFeatureRule":
        made["metadata"].setdefault("annotations", {})[LANE] = lane
    return made


def _in_space(item: Obj, lane: str, classes: bool) -> Obj:
    made: Obj = _map(item, lambda text: _SPACES.sub(lambda found: f"{found[0]}-{lane}", text))
    kind = made.get("kind")
    if kind in _CLUSTER_SCOPED:
        renamed(made, lane)
    if kind == "ClusterRoleBinding" and (made.get("roleRef") or {}).get("name"):
        made["roleRef"]["name"] += f"-{lane}"
    spec = made.get("spec")
    if kind == "ValidatingAdmissionPolicyBinding" and isinstance(spec, dict) and spec.get("policyName"):
        spec["policyName"] += f"-{lane}"
    if kind == "ValidatingAdmissionPolicy" and isinstance(spec, dict):
        spec["matchConditions"] = [*(spec.get("matchConditions") or []), _only(lane)]
    if kind == "DaemonSet":
        placed(made, lane)
        pod = made["spec"]["template"]["spec"]
        if classes and pod.get("runtimeClassName"):
            pod["runtimeClassName"] += f"-{lane}"
    if kind == "Deployment":
        _apart(made, lane)
    return made


def _only(lane: str) -> Obj:
    """What keeps a policy without its own conditions from the other lanes."""
    users = (f'startsWith("system:serviceaccount:{rendered.AGENTS}-{lane}:")', f'startsWith("system:node:{lane}-")')
    return {"name": "lane", "expression": " || ".join(f"request.userInfo.username.{one}" for one in users)}


def _apart(item: Obj, lane: str) -> None:
    """With a label of its own, since a gate finds the pods of a Deployment by their labels."""
    selector = ((item.get("spec") or {}).get("selector") or {}).get("matchLabels")
    labels = (((item.get("spec") or {}).get("template") or {}).get("metadata") or {}).get("labels")
    if isinstance(selector, dict) and isinstance(labels, dict):
        selector[LANE] = labels[LANE] = lane


def _namespace(name: str) -> Obj:
    level = "restricted" if name.startswith(rendered.CONTROLLERS) else "privileged"
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _map(value: t.Any, change: c.Callable[[str], str]) -> t.Any:
    if isinstance(value, dict):
        return {key: _map(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [_map(one, change) for one in value]
    return change(value) if isinstance(value, str) else value


def _references(value: t.Any, kind: str) -> c.Iterator[Key]:
    """Objects that the fields of an object name."""
    if isinstance(value, list):
        for one in value:
            yield from _references(one, kind)
    elif isinstance(value, dict):
        for field, one in value.items():
            if field == "serviceAccountName":
                yield "ServiceAccount", one
            elif field == "runtimeClassName":
                yield "RuntimeClass", one
            elif field == "policyName":
                yield "ValidatingAdmissionPolicy", one
            elif field == "configMap" and isinstance(one, dict):
                yield "ConfigMap", one.get("name", "")
            elif field == "roleRef":
                yield one["kind"], one["name"]
            elif field == "subjects":
                yield from ((subject["kind"], subject["name"]) for subject in one)
            elif field == "expression" and (found := _ACCOUNT.search(one)):
                yield "ServiceAccount", found[1]
            else:
                yield from _references(one, kind)
