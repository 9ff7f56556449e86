# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of mutants that survive (survivors.txt), one leaf a line, each with its reason.

A reason says why a real cluster would not fail either, and where its source shows that. The reason `simulator` says the opposite: a real cluster would
fail, and the simulated programs do not notice yet.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import pathlib

from ansible_collections.hwaccel.gpu.tests.live.mutations.outcomes import SURVIVES, Outcome

LIST = pathlib.Path(__file__).with_name("survivors.txt")
#: The reason of leaves that the simulator ought to notice.
SIMULATOR = "simulator"


@dataclasses.dataclass(frozen=True)
class Listed:
    """reasons: sentences by name. leaves: the reason by leaf and change."""

    reasons: dict[str, str]
    leaves: dict[str, str]


def read(text: str) -> Listed:
    """Lines are `reason NAME SENTENCE`, or a leaf, its changes with commas between them, and the name of the reason."""
    reasons, leaves = dict[str, str](), dict[str, str]()
    for line in text.splitlines():
        if line.startswith("reason "):
            _word, name, sentence = line.split(None, 2)
            reasons[name] = sentence
        elif line and not line.startswith("#"):
            leaf, changes, reason = line.rsplit(None, 2)
            if reason not in reasons:
                raise ValueError(f"{leaf}: the reason {reason} is unknown")
            leaves |= {f"{leaf} {change}": reason for change in changes.split(",")}
    return Listed(reasons, leaves)


def unlisted(found: c.Iterable[Outcome], listed: Listed) -> list[str]:
    """Survivors that are on no list."""
    return [one.mutant.id for one in found if one.state == SURVIVES and one.mutant.id not in listed.leaves]


def mistaken(found: c.Iterable[Outcome], listed: Listed) -> list[str]:
    """Mutants that are on the list, and are caught."""
    return [one.mutant.id for one in found if one.state != SURVIVES and one.mutant.id in listed.leaves]
