# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changes of the coming release are in the changelog's fragments, by names that exist.

Names of plugins, modules, roles, playbooks and variables are compared. A reviewer verifies that a fragment describes all that a user notices.
Documentation of plugins is read as text, because lint validates it.
"""

from __future__ import annotations

import functools
import pathlib
import re
import typing as t

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
#: Kinds of plugins as the changelog names them, and their folders.
PLUGINS = {"filter": "filter", "inventory": "inventory", "lookup": "lookup", "module": "modules"}
#: Playbooks that only other playbooks import.
PARTS = {
    "clusters",
    "installers",
    "installers_plan",
    "installers_alone",
    "installers_run",
    "machines_plan",
    "openshift_state",
    "phase",
    "plan",
    "stages",
    "stages_plan",
    "summary",
}
#: Accepted before the dash in place of a name: groups of names, and subjects that have none.
SUBJECTS = {
    "AWX project",
    "action plugins",
    "all modules and playbooks",
    "all playbooks and roles",
    "all roles on clusters",
    "documentation",
    "filters",
    "hwaccel_pools",
    "modules for clusters",
    "playbooks",
    "the playbook and the entry point of all roles on clusters",
}
VERSION = re.compile(r"^ *version_added: (\S+)$", re.MULTILINE)
CODE = re.compile(r"``([^`]+)``")
#: Names of options, variables and plugins in code: words with an underscore. Without one a word could mean anything.
IDENTIFIER = re.compile(r"^[a-z][a-z0-9]*_[a-z0-9_]+$")
QUALIFIED = re.compile(r"\bhwaccel\.gpu\.([a-z_]+)")
#: Sections whose entries may name what was removed.
OF_REMOVED = {"breaking_changes", "removed_features"}


class Entry(t.NamedTuple):
    fragment: str
    section: str
    text: str


def load(path: str) -> t.Any:
    return yaml.safe_load((TOP / path).read_text(encoding="utf-8"))


@functools.cache
def releases() -> dict[str, t.Any]:
    found: dict[str, t.Any] = load("changelogs/changelog.yaml")["releases"]
    return found


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@functools.cache
def fragments() -> dict[str, t.Any]:
    return {
        path.name: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted((TOP / "changelogs" / "fragments").glob("*.y*ml"))
    }


@functools.cache
def entries() -> tuple[Entry, ...]:
    return tuple(
        Entry(name, section, text)
        for name, content in fragments().items()
        for section, texts in content.items()
        for text in ([texts] if isinstance(texts, str) else texts)
    )


@functools.cache
def files() -> dict[str, dict[str, pathlib.Path]]:
    """Files with `version_added` of each plugin and role: {kind: {name: file}}."""
    return {
        **{
            kind: {path.stem: path for path in sorted((TOP / "plugins" / folder).glob("*.py"))}
            for kind, folder in PLUGINS.items()
        },
        "role": {path.parts[-3]: path for path in sorted(TOP.glob("roles/*/meta/argument_specs.yml"))},
    }


def playbooks() -> set[str]:
    return {path.stem for path in (TOP / "playbooks").glob("*.yml")} - PARTS


def public_names() -> set[str]:
    return {name for named in files().values() for name in named} | playbooks() | PARTS


def released() -> dict[tuple[str, str], str]:
    """Version in which each plugin and role was released first: {(kind, name): version}."""
    found: dict[tuple[str, str], str] = {}
    for version in sorted(releases(), key=number):
        release = releases()[version]
        named = {"module": release.get("modules", []), **release.get("plugins", {}), **release.get("objects", {})}
        for kind, objects in named.items():
            for each in objects:
                found.setdefault((kind, each["name"]), version)
    return found


@functools.cache
def code() -> frozenset[str]:
    """Words with an underscore of all plugins, roles, playbooks and pages."""
    texts = (
        path.read_text(encoding="utf-8")
        for folder, suffixes in (
            ("plugins", {".py"}),
            ("roles", {".yml", ".j2"}),
            ("playbooks", {".yml"}),
            ("docs", {".md"}),
        )
        for path in (TOP / folder).rglob("*")
        if path.suffix in suffixes
    )
    return frozenset(word for text in texts for word in re.findall(r"\b[a-z][a-z0-9]*_[a-z0-9_]+\b", text))


def subjects(text: str) -> list[str]:
    """Subjects of an entry: "driver, site - text" has driver and site. An entry without a dash is about the collection."""
    before, dash, _text = text.partition(" - ")
    return re.split(r", and |, | and ", before) if dash and before not in SUBJECTS and len(before) < 120 else []


def test_the_next_version_is_not_released_yet() -> None:
    next_version, last = load("galaxy.yml")["version"], max(releases(), key=number)
    if next_version == last:
        assert not fragments(), f"{next_version} is released: set the next version in galaxy.yml with the first change"
    else:
        assert number(next_version) > number(last)


@pytest.mark.parametrize("kind", [*PLUGINS, "role"])
def test_version_added_is_the_release_that_introduced_it(kind: str) -> None:
    """The release lists new plugins and roles by it, so one with an older version would be missing there."""
    next_version = load("galaxy.yml")["version"]
    expected, known = {}, {}
    for name, path in files()[kind].items():
        expected[name] = released().get((kind, name), next_version)
        known[name] = (VERSION.findall(path.read_text(encoding="utf-8")) or ["none"])[0]
    assert known == expected


def test_every_version_is_released_or_the_next_one() -> None:
    possible = {*releases(), load("galaxy.yml")["version"]}
    paths = {path for named in files().values() for path in named.values()}
    paths |= set((TOP / "plugins" / "doc_fragments").glob("*.py"))
    wrong = [
        f"{path.relative_to(TOP)}: {version}"
        for path in sorted(paths)
        for version in VERSION.findall(path.read_text(encoding="utf-8"))
        if version not in possible
    ]
    assert not wrong


def test_new_playbooks_and_removals_are_in_a_fragment() -> None:
    """antsibull-changelog lists neither by itself."""
    before = {
        word
        for release in releases().values()
        for texts in release["changes"].values()
        for text in texts
        for word in re.findall(r"[a-z_]+", str(text))
    }
    present = {(kind, name) for kind, named in files().items() for name in named}
    removed = {name for kind, name in set(released()) - present}
    expected = removed | {name for name in playbooks() if name not in before}
    mentioned = {word for entry in entries() for word in (*subjects(entry.text), *CODE.findall(entry.text))}
    reported_as_removed = {
        word for entry in entries() if entry.section in OF_REMOVED for word in CODE.findall(entry.text)
    }
    assert not expected - mentioned
    assert not removed - reported_as_removed


def test_fragments_have_known_sections_and_whole_sentences() -> None:
    config = load("changelogs/config.yaml")
    known = {section for section, _title in config["sections"]}
    known |= {config["prelude_section_name"], config["trivial_section_name"]}
    assert {entry.section for entry in entries()} <= known
    assert [entry for entry in entries() if not entry.text.strip().endswith(".")] == []
    # The changelog is reStructuredText, which does not have the markup of modules' documentation.
    assert [entry for entry in entries() if re.search(r"\b[BCEILMOUV]\(", entry.text)] == []


def test_entries_begin_with_names_that_exist() -> None:
    known = public_names() | SUBJECTS
    wrong = [
        (entry.fragment, subject)
        for entry in entries()
        for subject in subjects(entry.text)
        if subject.removeprefix("hwaccel.gpu.") not in known and re.fullmatch(r"[\w.]+", subject)
    ]
    assert not wrong


def test_entries_name_what_exists() -> None:
    """Modules, plugins, roles, playbooks, options and variables; entries about breaking changes and removals may name former ones."""
    former = {name for _kind, name in released()}
    wrong = []
    for entry in entries():
        if entry.section in OF_REMOVED:
            continue
        qualified = set(QUALIFIED.findall(entry.text)) - public_names() - former
        named = {word for word in CODE.findall(entry.text) if IDENTIFIER.match(word)} - code() - public_names()
        wrong += [(entry.fragment, word) for word in sorted(qualified | named)]
    assert not wrong
