# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the manifests of other projects from git repositories, at a tag: plain YAML, a kustomization's patches, a function of Go."""

from __future__ import annotations

import pathlib
import re
import subprocess
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.upstream.objects import Object


class Repository:
    """folder: a checkout or a bare repository."""

    def __init__(self, folder: pathlib.Path, tag: str) -> None:
        self.folder, self.tag = folder, tag
        self._texts: dict[str, str] = {}

    def text(self, path: str) -> str:
        if path not in self._texts:
            self._texts[path] = self._git("show", f"{self.tag}:{path}")
        return self._texts[path]

    def listing(self, folder: str) -> list[str]:
        return self._git("ls-tree", "-r", "--name-only", self.tag, folder).splitlines()

    def objects(self, path: str) -> list[Object]:
        return [one for one in yaml.safe_load_all(self.text(path)) if one]

    def one(self, path: str, kind: str = "", name: str = "") -> Object:
        (found,) = [
            one for one in self.objects(path) if kind in ("", one["kind"]) and name in ("", one["metadata"]["name"])
        ]
        return found

    def function(self, path: str, name: str) -> str:
        """The text of a function of Go. Raises LookupError where it is gone."""
        found = re.search(rf"^func (?:\([^)]*\) )?{re.escape(name)}\(.*?^}}", self.text(path), re.MULTILINE | re.DOTALL)
        if not found:
            raise LookupError(f"{path} has no function {name} at {self.tag}")
        return found[0]

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(self.folder), *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise LookupError(f"{self.folder}: {done.stderr.strip()}")
        return done.stdout


def patched(repository: Repository, obj: Object, component: str) -> Object:
    """The object with the patches of a kustomize component that select it. Only operation add is known, which is all that these components use."""
    for patch in yaml.safe_load(repository.text(f"{component}/kustomization.yaml")).get("patches", ()):
        target = patch.get("target", {})
        if not re.fullmatch(target.get("name", ".*"), obj["metadata"]["name"]):
            continue
        for step in yaml.safe_load(repository.text(f"{component}/{patch['path']}")):
            if step["op"] != "add":
                raise ValueError(f"{component}/{patch['path']}: unknown operation {step['op']}")
            _add(obj, [part.replace("~1", "/") for part in step["path"].strip("/").split("/")], step["value"])
    return obj


def _add(node: t.Any, parts: list[str], value: t.Any) -> None:
    """RFC 6902: what is there at the path is replaced."""
    *way, last = parts
    for part in way:
        node = node[int(part)] if isinstance(node, list) else node[part]
    if isinstance(node, list):
        node.append(value)
    else:
        node[last] = value
