# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Definitions of OpenShift's kinds: which there are, and that the cache has no others than the pinned module's."""

from __future__ import annotations

import json
import pathlib

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say
from ansible_collections.hwaccel.gpu.tests.openshift.rig import definitions

_KINDS = {
    "ClusterOperator.config.openshift.io",
    "ClusterVersion.config.openshift.io",
    "ControllerConfig.machineconfiguration.openshift.io",
    "Etcd.operator.openshift.io",
    "Infrastructure.config.openshift.io",
    "KubeAPIServer.operator.openshift.io",
    "MachineConfig.machineconfiguration.openshift.io",
    "MachineConfigPool.machineconfiguration.openshift.io",
    "SecurityContextConstraints.security.openshift.io",
}
#: Stands in for Go: answers with its version, or with the text of the file beside it.
_GO = """#!/bin/sh
case "$1" in
env) echo go1.26.0 ;;
*) echo "$*" >>"$0.calls"; cat "$0.answer" ;;
esac
"""
_DEFINITION = """
metadata: {name: %(plural)s.example.com, annotations: {release.openshift.io/feature-set: "%(set)s"}}
spec: {group: example.com, names: {kind: %(kind)s}, note: "%(set)s"}
"""


class Module:
    """A module that Go would have downloaded, and the cache."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.go = folder / "bin" / "go"
        self.go.parent.mkdir()
        self.go.write_text(_GO, encoding="utf-8")
        self.go.chmod(0o755)
        self.files = folder / "module" / "example" / "v1" / "zz_generated.crd-manifests"
        self.files.mkdir(parents=True)
        self.answer(Dir=str(folder / "module"), Sum=definitions.SUM)
        self.environment = {"PATH": f"{self.go.parent}:/usr/bin:/bin", "XDG_CACHE_HOME": str(folder / "cache")}

    def add(self, kind: str, *sets: str) -> None:
        for one in sets or ("Default",):
            text = _DEFINITION % {"plural": f"{kind.lower()}s", "kind": kind, "set": one}
            (self.files / f"0000_{kind.lower()}s-{one}.crd.yaml").write_text(text, encoding="utf-8")

    def answer(self, **content: str) -> None:
        pathlib.Path(f"{self.go}.answer").write_text(json.dumps(content), encoding="utf-8")

    def ensure(self) -> pathlib.Path:
        return definitions.ensure_definitions(say, self.environment)

    @property
    def calls(self) -> int:
        return len(pathlib.Path(f"{self.go}.calls").read_text(encoding="utf-8").splitlines())


@pytest.fixture
def module(tmp_path: pathlib.Path) -> Module:
    made = Module(tmp_path)
    made.add("Robot")
    return made


def test_kinds() -> None:
    try:
        found = definitions.read(definitions.ensure_definitions(say))
    except Unavailable as missing:
        pytest.skip(str(missing))
    assert found.keys() >= _KINDS
    for name in _KINDS:
        assert found[name]["kind"] == "CustomResourceDefinition"
        kind, _dot, group = name.partition(".")
        assert found[name]["metadata"]["name"] == f"{found[name]['spec']['names']['plural']}.{group}", kind
        [version] = [one for one in found[name]["spec"]["versions"] if one["name"] == "v1"]
        assert version["served"]
        assert version["schema"]["openAPIV3Schema"]["type"] == "object"


def test_the_cache_is_filled_once(module: Module) -> None:
    assert module.ensure() == module.ensure()
    assert module.calls == 1
    assert definitions.read(module.ensure()).keys() == {"Robot.example.com"}


def test_an_altered_file_is_fetched_again(module: Module) -> None:
    folder = module.ensure()
    [path] = folder.glob("*.yaml")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Robot", "Rabbit"), encoding="utf-8")
    assert module.ensure() == folder
    assert path.read_text(encoding="utf-8") == text
    assert module.calls == 2


def test_of_several_feature_sets_the_default_one_counts(module: Module) -> None:
    module.add("Engine", "CustomNoUpgrade", "Default", "TechPreviewNoUpgrade")
    module.add("Both", "Default,TechPreviewNoUpgrade")
    module.add("Preview", "TechPreviewNoUpgrade")
    found = definitions.read(module.ensure())
    assert found["Engine.example.com"]["spec"]["note"] == "Default"
    assert "Both.example.com" in found
    assert "Preview.example.com" not in found


def test_another_module_is_refused(module: Module) -> None:
    module.answer(Dir=str(module.files), Sum="h1:other")
    with pytest.raises(HwaccelError, match=r"is another one.*h1:other"):
        module.ensure()
    with pytest.raises(HwaccelError):
        module.ensure()
    assert module.calls == 2, "nothing of it is in the cache"


def test_a_failed_download_says_why(module: Module) -> None:
    module.answer(Error="no such host")
    with pytest.raises(HwaccelError, match="no such host"):
        module.ensure()


def test_without_go_it_is_unavailable(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "find_go", lambda *_arguments: (None, "none was found"))
    with pytest.raises(Unavailable, match="none was found"):
        module.ensure()
