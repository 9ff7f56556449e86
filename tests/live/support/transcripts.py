# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of runs in docs/running.md: it is that of the tests' runs.

With HWACCEL_TRANSCRIPTS, the path of a page, the tests write what they have seen into it, instead of comparing.
"""

from __future__ import annotations

import os
import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "running.md"
#: What differs between two runs: the ends of a pod's name, how often it has crashed meanwhile, the stars that fill a headline,
#: and where ansible-core 2.19 has found the task that failed.
_VARIES = (
    (re.compile(r"(?<=pod )([a-z0-9.-]+?)(-[0-9a-f]{6,10})?-[a-z0-9]{5}\b"), r"\1-x7k2p"),
    (re.compile(r"crashed \d+ times"), "crashed 3 times"),
    (re.compile(r" \*{3,}$", re.MULTILINE), " ***"),
    (re.compile(r"^\[ERROR\]:.*?(?=^fatal: )", re.MULTILINE | re.DOTALL), ""),
)


def check(name: str, output: str) -> None:
    """The page has this output between the marks of this name."""
    shown = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
    for pattern, replacement in _VARIES:
        shown = pattern.sub(replacement, shown)
    path = pathlib.Path(os.environ.get("HWACCEL_TRANSCRIPTS") or PAGE)
    text = path.read_text(encoding="utf-8")
    block = re.compile(rf"(<!-- {name}: begin.*? -->\n```\n)(.*?)(\n```\n<!-- {name}: end -->)", re.DOTALL)
    found = block.search(text)
    assert found is not None, f"{path.name} has no place for {name}"
    if "HWACCEL_TRANSCRIPTS" in os.environ:
        path.write_text(text[: found.start(2)] + shown + text[found.end(2) :], encoding="utf-8")
    else:
        assert found[2] == shown, (
            f"the run says something else than docs/running.md: run this test with HWACCEL_TRANSCRIPTS={PAGE}"
        )


def summary(output: str) -> str:
    """The lines of the block that ends a playbook on machines."""
    return output.partition("TASK [Summary | Show the result]")[2].partition("\n")[2].partition("\nok: [")[0]


def closing(output: str, host: str) -> str:
    """The lines from the closing block of a host to the end of the play."""
    return output[
        output.index(f"\n{host}:\n", output.index("TASK [Summary | Show the result]")) : output.index("\nPLAY RECAP")
    ]
