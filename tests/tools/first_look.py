# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the end of a real `make demo` to the README: first_look.py LOG, where LOG is the output."""

from __future__ import annotations

import pathlib
import re
import sys

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- first look: begin", "<!-- first look: end -->"


def table(log: str) -> str:
    """The lines of the demo's last task, from its verdict, with a replacement for the home folder."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines()
    first = next(
        number for number, line in enumerate(lines) if re.fullmatch(r"All \d+ nodes passed the gates; .*", line)
    )
    last = next(number for number, line in enumerate(lines) if number > first and line.startswith("ok: "))
    recap = [line for line in lines[last:] if re.search(r"\bok=\d+\s+changed=\d+", line)]
    return re.sub(
        r"=\S*/hwaccel-gpu/",
        "=~/.local/state/hwaccel-gpu/",
        "\n".join(line.rstrip() for line in [*lines[first:last], "", *recap]),
    )


def main() -> int:
    shown = table(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = README.read_text(encoding="utf-8")
    start = text.index("\n", text.index(BEGIN)) + 1
    README.write_text(f"{text[:start]}```\n{shown}\n```\n{text[text.index(END) :]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
