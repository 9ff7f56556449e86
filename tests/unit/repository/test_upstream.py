# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests of other projects compared with ours: the record is complete and current, and each difference has a reason."""

from __future__ import annotations

import collections
import fnmatch
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.roles import stack
from ansible_collections.hwaccel.gpu.tests.upstream import objects, ours, page, records, theirs, upstream
from ansible_collections.hwaccel.gpu.tests.upstream.repositories import Repository, patched

SOURCES = records.load("sources")
REASONS: dict[str, dict[str, t.Any]] = records.load("reasons")
PAIRS = [(name, pair) for name, component in SOURCES["components"].items() for pair in records.pairs(component)]
NEXT = "Next: `make upstream`, write the reasons that are missing in tests/upstream/fields, `make docs`"


@pytest.mark.parametrize(("name", "pair"), PAIRS, ids=[f"{name}-{pair['title']}" for name, pair in PAIRS])
def test_the_record_has_every_field_of_ours_as_it_is_rendered(name: str, pair: dict[str, t.Any]) -> None:
    recorded, rendered = records.read(name)[pair["title"]], ours.of(pair)
    changed = {
        path: f"recorded {recorded.ours.get(path)}, rendered {rendered.get(path)}"
        for path in sorted(recorded.ours.keys() | rendered.keys())
        if recorded.ours.get(path) != rendered.get(path)
    }
    assert changed == {}, NEXT


@pytest.mark.parametrize(("name", "pair"), PAIRS, ids=[f"{name}-{pair['title']}" for name, pair in PAIRS])
def test_the_record_has_every_field_of_theirs_as_it_was_read(name: str, pair: dict[str, t.Any]) -> None:
    """The digest is of all their fields, so that none can be removed or changed by hand."""
    recorded = records.read(name)[pair["title"]]
    assert recorded.theirs
    assert objects.digest(recorded.theirs) == recorded.digest
    assert [path for path, (their, our) in recorded.different.items() if their == our] == []


def test_the_record_has_the_pairs_of_the_sources() -> None:
    titles = collections.defaultdict(list)
    for name, pair in PAIRS:
        titles[name].append(pair["title"])
    assert {name: list(records.read(name)) for name in SOURCES["components"]} == titles
    files = {path.stem for path in (records.HERE / "fields").glob("*.yml")}
    assert files == {*SOURCES["components"], "functions"}
    named = {one["function"] for _name, pair in PAIRS for one in pair.get("code", ())}
    assert records.load("fields/functions").keys() == named


def test_every_difference_has_a_reason_and_every_reason_a_place() -> None:
    used = {
        reason
        for name in SOURCES["components"]
        for one in records.read(name).values()
        for reason in one.reasons.values()
    }
    assert "" not in used, NEXT
    assert used == REASONS.keys()
    assert [name for name, one in REASONS.items() if len(one["why"]) < 40 or not one["at"]] == []
    assert all(len(one["why"]) > 20 for source in SOURCES["sources"].values() for one in source["left_out"])
    assert all(len(why) > 15 for rows in SOURCES["ours_only"].values() for why in rows.values())


def test_places_in_this_repository_exist() -> None:
    """A place in another project names project and version; `make upstream` verifies those of the compared ones."""
    here = {
        place
        for one in REASONS.values()
        for place in one["at"]
        if not upstream.PLACE.match(place) and not place.startswith(("Kubernetes ", "Prometheus Operator "))
    }
    assert here
    assert [place for place in sorted(here) if not list(stack.TOP.glob(place))] == []


@pytest.mark.parametrize("role", stack.ROLES)
def test_objects_of_ours_that_are_not_compared_have_a_reason(role: str) -> None:
    unpaired, listed = ours.unpaired(role, [pair for _name, pair in PAIRS]), SOURCES["ours_only"].get(role, {})
    assert [one for one in unpaired if not any(fnmatch.fnmatchcase(one, pattern) for pattern in listed)] == []
    assert [pattern for pattern in listed if not fnmatch.filter(unpaired, pattern)] == []


def test_the_versions_are_those_of_our_images() -> None:
    """Another image has other manifests: read them again. The exporter's repository has no tag of the image that the GPU Operator has."""
    tags = {
        "gpu-operator": stack.defaults("driver")["driver_validator_image"],
        "k8s-device-plugin": stack.defaults("device_plugin")["device_plugin_image"],
        "node-feature-discovery": stack.defaults("feature_discovery")["feature_discovery_image"],
    }
    assert {name: image.rpartition(":")[2] for name, image in tags.items()} == {
        name: SOURCES["sources"][name]["tag"] for name in tags
    }


def test_the_page_is_up_to_date() -> None:
    assert (stack.TOP / "docs" / "upstream.md").read_text(encoding="utf-8") == page.page(), "run `make docs`"


POD: dict[str, t.Any] = {
    "kind": "DaemonSet",
    "spec": {
        "template": {
            "spec": {
                "initContainers": [{"name": "wait", "args": ["until\ntrue"]}],
                "containers": [
                    {
                        "name": "main",
                        "env": [
                            {"name": "A", "value": "1"},
                            {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                        ],
                        "volumeMounts": [{"name": "any-name", "mountPath": "/x/", "readOnly": True}],
                    }
                ],
                "tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Exists"}],
                "volumes": [{"name": "any-name", "hostPath": {"path": "/host", "type": "Directory"}}],
            }
        }
    },
}


def test_an_object_becomes_fields_that_do_not_depend_on_order_and_names_of_volumes() -> None:
    found = objects.fields(POD, {"main": "ours"})
    assert found == {
        "kind": "DaemonSet",
        "pod.initContainers.order": ["wait"],
        "pod.initContainers[wait].called": "wait",
        "pod.initContainers[wait].args": [f"text of 2 lines, {objects.digest('until' + chr(10) + 'true')}"],
        "pod.containers.order": ["ours"],
        "pod.containers[ours].called": "main",
        "pod.containers[ours].env[A]": "1",
        "pod.containers[ours].env[N]": "fieldRef spec.nodeName",
        "pod.containers[ours].volumeMounts[/x]": {"of": "hostPath /host", "readOnly": True},
        "pod.tolerations[*]": {"operator": "Exists"},
        "pod.tolerations[a]": {"operator": "Exists"},
        "pod.volumes[hostPath /host]": {"type": "Directory"},
    }


def test_a_difference_keeps_its_reason_and_a_new_one_has_none() -> None:
    first = records.compared("x", {"a": 1, "b": 2, "same": 0}, {"a": 2, "same": 0}, None)
    assert (first.same, first.different) == ({"same": 0}, {"a": (1, 2), "b": (2, None)})
    assert (first.theirs, first.ours) == ({"a": 1, "b": 2, "same": 0}, {"a": 2, "same": 0})
    first.reasons["a"] = "why"
    again = records.compared("x", {"a": 1, "same": 0}, {"a": 3, "same": 0, "c": 1}, first)
    assert again.reasons == {"a": "why", "c": ""}


@pytest.fixture
def repository(tmp_path: pathlib.Path) -> Repository:
    (tmp_path / "common").mkdir()
    (tmp_path / "master.yaml").write_text(
        "kind: Deployment\nmetadata: {name: nfd-master}\nspec: {env: [old], list: []}\n"
    )
    (tmp_path / "common" / "kustomization.yaml").write_text(
        "patches: [{path: env.yaml, target: {name: nfd.*}}, {path: no.yaml, target: {name: nfd-worker}}]\n"
    )
    (tmp_path / "common" / "env.yaml").write_text(
        "[{op: add, path: /spec/env, value: [new]}, {op: add, path: /spec/list/-, value: 1}]\n"
    )
    (tmp_path / "code.go").write_text("func (n X) Other() {\n}\n\nfunc set(a int) {\n\tif a {\n\t}\n}\n")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v1"]):
        subprocess.run([*git, *command], check=True)
    return Repository(tmp_path, "v1")


def test_manifests_are_read_from_a_tag_with_the_patches_that_select_them(repository: Repository) -> None:
    assert patched(repository, repository.one("master.yaml"), "common")["spec"] == {"env": ["new"], "list": [1]}
    assert repository.listing("common") == ["common/env.yaml", "common/kustomization.yaml"]
    assert repository.function("code.go", "set") == "func set(a int) {\n\tif a {\n\t}\n}"
    with pytest.raises(LookupError, match="no function gone at v1"):
        repository.function("code.go", "gone")
    with pytest.raises(LookupError):
        repository.text("missing.yaml")


def test_code_that_removes_what_is_not_there_is_an_error(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theirs, "CODE", "code.go")
    pair = {"theirs": {"file": "master.yaml"}, "code": [{"function": "set", "set": {"spec.list": ["x"]}}]}
    assert theirs.of(pair, repository)["spec.list"] == ["x"]
    pair["code"] = [{"function": "set", "removed": ["pod.containers[gone]"]}]
    with pytest.raises(LookupError, match="not in the manifest"):
        theirs.of(pair, repository)
