# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the manifests of other projects with ours, field by field. docs/upstream.md is made from it.

upstream.py CHECKOUT [NAME=FOLDER ...]    records in this checkout what our manifests have now, and of each named project what its repository has at the tag
                                          of sources.yml. Prints each difference that is new or has changed.
upstream.py CHECKOUT --page               writes the page.
"""

from __future__ import annotations

import argparse
import collections.abc as c
import fnmatch
import pathlib
import re
import sys

import yaml

from ansible_collections.hwaccel.gpu.tests.upstream import ours, page, records, theirs
from ansible_collections.hwaccel.gpu.tests.upstream.records import Compared, load, pairs
from ansible_collections.hwaccel.gpu.tests.upstream.repositories import Repository

#: A place in the source of a project, as reasons.yml has it.
PLACE = re.compile(r"^(?P<path>[^ :]+)(?::(?P<line>\d+)(?:-\d+)?)? \((?P<project>\S+) (?P<tag>\S+)\)$")


def refresh(folder: pathlib.Path, repositories: c.Mapping[str, Repository]) -> list[str]:
    """Records what is there now, theirs for the given projects only. Returns lines for who reads the differences again."""
    told = []
    for name, component in load("sources")["components"].items():
        known, repository = records.read(name, folder), repositories.get(component["source"])
        found = []
        for pair in pairs(component):
            before = known.get(pair["title"])
            if repository is None and before is None:
                raise LookupError(f"{name}: {pair['title']} was never read: name a checkout of {component['source']}")
            their_fields = theirs.of(pair, repository) if repository else before.theirs if before else {}
            one = records.compared(pair["title"], their_fields, ours.of(pair), before)
            told += _changes(name, before, one)
            found.append(one)
        (folder / "fields" / f"{name}.yml").write_text(records.written(found), encoding="utf-8")
    return told


def _changes(component: str, before: Compared | None, now: Compared) -> list[str]:
    told = []
    for path, values in now.different.items():
        old = before.different.get(path) if before else None
        if old != values:
            said = f"reason {now.reasons[path]}: does it still hold?" if now.reasons[path] else "no reason yet"
            told.append(f"{component}: {now.title}: {path}: theirs {values[0]}, ours {values[1]}: {said}")
    return told


def record_functions(folder: pathlib.Path, repository: Repository) -> list[str]:
    """Functions of the operator that have another text than when their effect was written down."""
    path = folder / "fields" / "functions.yml"
    known = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    all_pairs = [pair for component in load("sources")["components"].values() for pair in component["pairs"]]
    now = theirs.functions(all_pairs, repository)
    path.write_text(records.HEAD.partition("---")[0] + "---\n" + yaml.safe_dump(now), encoding="utf-8")
    return [
        f"{theirs.CODE}: {name} has changed: does sources.yml still say what it sets?"
        for name, digest in now.items()
        if known.get(name) not in (digest, None)
    ]


def unnamed(name: str, repository: Repository) -> list[str]:
    """Manifests of a project that sources.yml neither compares nor leaves out with a reason."""
    source = load("sources")["sources"][name]
    used = {
        path
        for component in load("sources")["components"].values()
        if component["source"] == name
        for pair in component["pairs"]
        for path in [pair["theirs"].get("file"), pair["theirs"].get("conf"), *pair["theirs"].get("rules", ())]
    }
    left_out = [pattern for one in source["left_out"] for pattern in one["files"]]
    return [
        f"{name}: {path} is neither compared nor left out"
        for folder in source["folders"]
        for path in repository.listing(folder)
        if path.endswith((".yaml", ".yml"))
        and path not in (*used, theirs.VALUES)
        and not any(fnmatch.fnmatchcase(path, pattern) for pattern in left_out)
    ]


def places(name: str, repository: Repository) -> list[str]:
    """Places in reasons.yml that this version of the project does not have."""
    found = []
    for reason, entry in load("reasons").items():
        for place in filter(None, map(PLACE.match, entry["at"])):
            if place["project"] == name and not _has(repository, place["path"], int(place["line"] or 0)):
                found.append(f"{name}: reason {reason}: {place[0]} is not there")
            elif place["project"] == name and place["tag"] != repository.tag:
                found.append(f"{name}: reason {reason}: {place[0]} is of another version")
    return found


def _has(repository: Repository, path: str, line: int) -> bool:
    return bool(repository.listing(path)) and (not line or line <= len(repository.text(path).splitlines()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares manifests of other projects with ours")
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("repositories", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        (given.checkout / "docs" / "upstream.md").write_text(page.page(), encoding="utf-8")
        return 0
    folder, sources = given.checkout / "tests" / "upstream", load("sources")["sources"]
    repositories = {
        name: Repository(pathlib.Path(place), sources[name]["tag"])
        for name, _equals, place in (argument.partition("=") for argument in given.repositories)
    }
    told = refresh(folder, repositories)
    if "gpu-operator" in repositories:
        told += record_functions(folder, repositories["gpu-operator"])
    for name, repository in repositories.items():
        told += unnamed(name, repository) + places(name, repository)
    print("\n".join(told) or "nothing has changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
