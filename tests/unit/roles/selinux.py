# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compiled SELinux policy for queries: Debian's base, and the rules of container-selinux for containers (container.cil)."""

from __future__ import annotations

import bz2
import collections
import dataclasses
import os
import pathlib
import re
import subprocess
import typing as t

HERE = pathlib.Path(__file__).parent
#: Folder where .ci/run unpacks Debian's packages, and the root folder if they are installed.
PLACES = (HERE.parents[5] / "selinux", pathlib.Path("/"))
PACKAGES = "selinux-policy-default policycoreutils secilc setools python3-setools python3-networkx libsepol2"
_BASE, _TO_CIL, _COMPILER = "usr/share/selinux/default/base.pp.bz2", "usr/libexec/selinux/hll/pp", "usr/bin/secilc"
_NEEDED = (_BASE, _TO_CIL, _COMPILER, "usr/bin/sesearch", "usr/bin/seinfo")
#: Users of the base need modules that are not compiled here, and no decision depends on users.
_USERS = ("(selinuxuser ", "(userprefix ")
_RULE = re.compile(r"^allow (\S+) (\S+):(\S+) (?:\{ (.*?) \}|(\S+?));(?: \[ (.*) \]:(True|False))?$")


def place() -> pathlib.Path | None:
    """A folder with all files, None if there is none."""
    python = pathlib.Path("/usr/bin/python3").exists()
    return next((one for one in PLACES if python and all((one / path).exists() for path in _NEEDED)), None)


@dataclasses.dataclass(frozen=True)
class Rule:
    """`source`, `target`: types or attributes. `boolean`: the boolean that must be on, "" for none."""

    source: str
    target: str
    kind: str
    permissions: frozenset[str]
    boolean: str


class Policy:
    """`folder`: for created files. `over`: additional CIL, like that of a loaded module."""

    def __init__(self, root: pathlib.Path, folder: pathlib.Path, over: str = "") -> None:
        self.root, self._file, contexts = root, folder / "policy", folder / "file_contexts"
        package, base, more = folder / "base.pp", folder / "base.cil", folder / "more.cil"
        package.write_bytes(bz2.decompress((root / _BASE).read_bytes()))
        self._run(root / _TO_CIL, package, base)
        lines = base.read_text(encoding="utf-8").splitlines(keepends=True)
        base.write_text("".join(line for line in lines if not line.startswith(_USERS)), encoding="utf-8")
        more.write_text(over, encoding="utf-8")
        self._run(
            root / _COMPILER,
            "-N",
            "-M",
            "1",
            "-c",
            "33",
            "-o",
            self._file,
            "-f",
            contexts,
            base,
            HERE / "container.cil",
            more,
        )
        self._patterns = [
            (re.compile(words[0]), words[-1])
            for line in contexts.read_text(encoding="utf-8").splitlines()
            if (words := line.split())
        ]
        self._groups = self._read_groups()
        self._rules = self._read_rules()

    def context(self, path: str) -> str:
        """The type of a path in file_contexts, "" for none. The last matching line counts, because the compiler has put the most specific ones there."""
        found = [context for pattern, context in self._patterns if pattern.fullmatch(path)]
        return found[-1].split(":")[2] if found and ":" in found[-1] else ""

    def missing_permissions(
        self, source: str, target: str, kind: str, required: t.Iterable[str], booleans: t.Collection[str] = ()
    ) -> set[str]:
        """Permissions that a domain does not have on objects of this type and class. `booleans`: additional enabled booleans."""
        sources, targets = ({name, *self._groups[name]} for name in (source, target))
        return set(required) - {
            one
            for rule in self._rules
            if rule.kind == kind
            and rule.source in sources
            and rule.target in targets
            and (not rule.boolean or rule.boolean in booleans)
            for one in rule.permissions
        }

    def _read_groups(self) -> dict[str, set[str]]:
        """Attributes by type."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        attribute = ""
        for line in self._run("/usr/bin/python3", self.root / "usr/bin/seinfo", "-a", "-x", self._file).splitlines():
            if line.startswith("   attribute "):
                attribute = line.split()[1].rstrip(";")
            elif line.startswith("\t"):
                found[line.strip()].add(attribute)
        return found

    def _read_rules(self) -> list[Rule]:
        output = self._run("/usr/bin/python3", self.root / "usr/bin/sesearch", "-A", self._file)
        found = [match for line in output.splitlines() if (match := _RULE.match(line.strip()))]
        # Rules that hold only while a boolean is off are ignored.
        return [
            Rule(
                one[1],
                one[2],
                one[3],
                frozenset((one[4] or one[5]).split()),
                (one[6] or "").strip() if one[7] != "False" else "never",
            )
            for one in found
        ]

    def _run(self, *command: str | os.PathLike[str]) -> str:
        libraries = ":".join(
            str(self.root / path)
            for path in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")
        )
        own = (
            {}
            if self.root == pathlib.Path("/")
            else {
                "LD_LIBRARY_PATH": libraries,
                "PYTHONPATH": str(self.root / "usr/lib/python3/dist-packages"),
            }
        )
        done = subprocess.run(
            [str(part) for part in command],
            env={"PATH": "/usr/bin:/bin"} | own,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{pathlib.Path(str(command[0])).name}: {done.stderr[-600:]}")
        return done.stdout
