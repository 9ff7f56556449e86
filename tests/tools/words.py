# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelled words, and phrases that our style page (docs/contributing.md, "How we write") replaces.

words.py    reports each with file, line and replacement, and fails if there is any

codespell finds single words only, so it gets a pattern that matches each phrase of words.txt. A phrase with a line end in it is not found.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Each line is "phrase->replacement", the format of codespell's dictionary.
PHRASES = ROOT / "tests" / "tools" / "words.txt"
#: Paths whose spelling is checked. Tests contain misspelled words on purpose.
SPELLED = ("changelogs", "docs", "examples", "galaxy.yml", "meta", "molecule", "playbooks", "plugins", "roles")
#: Paths that are searched for the phrases. A folder is added when it contains none.
WORDED = ("changelogs/fragments", "docs", "examples", "meta", "molecule", "playbooks", "plugins", "roles")
#: The table of replaced words.
TABLE = r"(?s)\n## How we write\n.*?\n- \*\*Sentences"
#: Generated from the argument specs of the roles.
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
    options = ("--dictionary", str(PHRASES), "--regex", f"(?i:{pattern})", "--ignore-multiline-regex", TABLE)
    worded = codespell(*options, "--skip", GENERATED, *WORDED, *pages)
    return 0 if spelled and worded else 1


if __name__ == "__main__":
    sys.exit(main())
