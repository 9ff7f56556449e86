# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of other projects, as sources.yml names them, read from repositories."""

from __future__ import annotations

import collections.abc as c
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.upstream import objects
from ansible_collections.hwaccel.gpu.tests.upstream.objects import ABSENT, Fields, Object
from ansible_collections.hwaccel.gpu.tests.upstream.ours import part
from ansible_collections.hwaccel.gpu.tests.upstream.repositories import Repository, patched

#: The chart and the controller of the GPU Operator.
VALUES = "deployments/gpu-operator/values.yaml"
CODE = "controllers/object_controls.go"


def of(pair: t.Mapping[str, t.Any], repository: Repository) -> Fields:
    theirs = pair["theirs"]
    if "account" in theirs:
        return _account(theirs, repository)
    if "images" in theirs or "values" in theirs:
        return _values(theirs, repository)
    if "conf" in theirs:
        text = repository.text(theirs["conf"])
        data = {f"{theirs['name']}": yaml.safe_load(text) or {}}
        made: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": theirs["name"]}}
        made["data"] = {theirs["name"].replace("-conf", ".conf"): yaml.safe_dump(data[theirs["name"]])}
        return objects.fields(made)
    found = repository.one(theirs["file"], theirs.get("kind", ""), theirs.get("name", ""))
    if "component" in theirs:
        found = patched(repository, found, theirs["component"])
    return _coded(objects.fields(found, pair.get("containers")), pair.get("code", ()), repository)


def _account(theirs: t.Mapping[str, t.Any], repository: Repository) -> Fields:
    rules = []
    for path in theirs["rules"]:
        for one in repository.objects(path):
            kept = [rule for index, rule in enumerate(one["rules"]) if index not in theirs.get("without", ())]
            rules += [(one["kind"] == "ClusterRole", rule) for rule in kept]
    return {"name": theirs["account"], **objects.rights(rules)}


def _values(theirs: t.Mapping[str, t.Any], repository: Repository) -> Fields:
    """images: of components of the chart; the driver's tag gets the kernel or the operating system. values: single ones, or folders of them."""
    values = yaml.safe_load(repository.text(VALUES))
    found: Fields = {}
    for name in theirs.get("images", ()):
        image = _at(values, name)
        path = f"{image['repository']}/{image['image']}"
        if name == "driver":
            found |= {name: path, "driver.version": image["version"]}
        else:
            found[name] = f"{path}:{image.get('version') or repository.tag}"
    for name in theirs.get("values", ()):
        found |= {
            f"{name}.{path}".rstrip("."): value
            for path, value in objects.fields({"": _at(values, name)}).items()
            for path in [path.lstrip(".")]
        }
    return part(found, theirs["part"]) if "part" in theirs else found


def _at(values: t.Any, name: str) -> t.Any:
    for key in name.split("."):
        values = values[key]
    return values


def _coded(found: Fields, code: c.Iterable[t.Mapping[str, t.Any]], repository: Repository) -> Fields:
    """What functions of the operator set or remove in the manifest. Raises LookupError where one is gone."""
    for one in code:
        repository.function(CODE, one["function"])
        for prefix in one.get("removed", ()):
            gone = [path for path in found if path.startswith(prefix)]
            if not gone:
                raise LookupError(f"{one['function']} removes {prefix}, which is not in the manifest")
            found = {path: value for path, value in found.items() if path not in gone}
        found |= one.get("set", {})
    assert ABSENT not in found.values(), found
    return found


def functions(pairs: c.Iterable[t.Mapping[str, t.Any]], repository: Repository) -> dict[str, str]:
    """Digest of each function of the operator that sources.yml names."""
    names = {one["function"] for pair in pairs for one in pair.get("code", ())}
    return {name: objects.digest(repository.function(CODE, name)) for name in sorted(names)}
