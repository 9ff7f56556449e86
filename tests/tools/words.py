# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelled words, and words of our own style page (docs/contributing.md, "How we write") that have another in their place.

words.py    reports each with file, line and replacement, and ends with a failure where there is one

codespell finds single words only, so it is given a pattern that takes each phrase of words.txt as one. A phrase that a line end breaks is not found.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Each line is "phrase->replacement", as codespell's own dictionary has it.
PHRASES = ROOT / "tests" / "tools" / "words.txt"
#: Spelling: not of tests, whose misspelled words show that a user's are noticed.
SPELLED = ("changelogs", "docs", "examples", "galaxy.yml", "meta", "molecule", "playbooks", "plugins", "roles")
#: Where the phrases are looked for. A folder is added when it has none.
WORDED = ("changelogs/fragments", "docs", "examples", "meta", "molecule", "playbooks", "plugins", "roles")
#: The table that says which words are replaced.
TABLE = r"(?s)\n## How we write\n.*?\n- \*\*Sentences"
#: Made from the argument specs of the roles.
GENERATED = "docs/roles/*"


def codespell(*arguments: str) -> bool:
    return subprocess.run(["codespell", *arguments], cwd=ROOT, check=False).returncode == 0


def phrases() -> list[str]:
    lines = PHRASES.read_text(encoding="utf-8").splitlines()
    return [phrase for phrase, arrow, _replacement in (line.partition("->") for line in lines) if arrow]


def main() -> int:
    pages = [path.name for path in sorted(ROOT.glob("*.md"))]
    pattern = "|".join(rf"\b{re.escape(phrase)}\b" for phrase in phrases())
    spelled = codespell(*SPELLED, *pages)
    how = ("--dictionary", str(PHRASES), "--regex", f"(?i:{pattern})", "--ignore-multiline-regex", TABLE)
    worded = codespell(*how, "--skip", GENERATED, *WORDED, *pages)
    return 0 if spelled and worded else 1


if __name__ == "__main__":
    sys.exit(main())
