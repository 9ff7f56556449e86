# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every single mutation of every leaf of our manifests is refused, breaks a rule of manifests, fails at a gate, or is on a list with the reason.

tests/live/mutations generates the mutants, has the rules and the list, and runs many mutants at once in one sandbox. `make test` tries 100 of them, drawn by
a seed, with those of known.py; `make soak` tries all, and goes on where an interrupted run has ended.

test_mutations.py tries chosen ones through the playbooks.
"""

from __future__ import annotations

import collections
import collections.abc as c
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered, survivors
from ansible_collections.hwaccel.gpu.tests.live.mutations.bench import RULES, Bench
from ansible_collections.hwaccel.gpu.tests.live.mutations.kept import Kept
from ansible_collections.hwaccel.gpu.tests.live.mutations.known import known
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import sample
from ansible_collections.hwaccel.gpu.tests.live.mutations.outcomes import REFUSED, SURVIVES, Outcome

COUNT, SEED = 100, 17
OBJECTS = rendered.everything()
MUTANTS = rendered.all_mutants(OBJECTS)
LISTED = survivors.read(survivors.LIST.read_text(encoding="utf-8"))
#: Those that the gates have to find, whatever the rules say of them.
KNOWN = frozenset(known(MUTANTS, OBJECTS))


@pytest.fixture(scope="module")
def bench(make_sandbox: c.Callable[..., t.Any]) -> Bench:
    return Bench(make_sandbox, OBJECTS)


def test_lanes_without_a_mutation_pass(bench: Bench) -> None:
    assert bench.together([], bench.sound_lanes()) == []


def test_a_sample_is_caught_or_listed(bench: Bench) -> None:
    began = time.monotonic()
    chosen = {*sample(MUTANTS, COUNT, SEED), *KNOWN}
    found = patient(bench, list(bench.run([mutant for mutant in MUTANTS if mutant in chosen], KNOWN)))
    print("\n".join(figure(found, time.monotonic() - began)))
    assert wrong(found) == []


@pytest.mark.slow
def test_every_mutant_is_caught_or_listed(bench: Bench) -> None:
    kept, began = Kept(), time.monotonic()
    found = kept.read(MUTANTS)
    before = {one.mutant.id for one in found}
    for one in bench.run([mutant for mutant in MUTANTS if mutant.id not in before], KNOWN):
        kept.add(one)
        found.append(one)
    found = patient(bench, found)
    print("\n".join(figure(found, time.monotonic() - began)))
    assert wrong(found) == []


def patient(bench: Bench, found: c.Sequence[Outcome]) -> list[Outcome]:
    """With those tried once more, with ten times the time, that are listed as survivors: on a busy machine a node that passes may be late."""
    late = [one.mutant for one in found if one.state != SURVIVES and one.mutant.id in LISTED.leaves]
    bench.patience = 10
    again = {one.mutant: one for one in bench.run(late, KNOWN)} if late else {}
    bench.patience = 1
    return [again.get(one.mutant, one) for one in found]


def wrong(found: c.Sequence[Outcome]) -> list[str]:
    """Survivors that are not listed, listed ones that are caught, and caught ones whose cause no message names."""
    unlisted, mistaken = survivors.unlisted(found, LISTED), survivors.mistaken(found, LISTED)
    return [*(f"survives: {one}" for one in unlisted), *(f"listed, but caught: {one}" for one in mistaken)]


def figure(found: c.Sequence[Outcome], seconds: float) -> list[str]:
    """Numbers by role, for the record of make soak."""
    by_role: dict[str, list[Outcome]] = collections.defaultdict(list)
    for one in found:
        by_role[one.mutant.role].append(one)
    lines = [f"{'role':<18}{'mutants':>8}{'refused':>8}{'rules':>8}{'gates':>8}{'named':>8}{'survive':>8}"]
    lines += [f"{role:<18}" + numbers(by_role[role]) for role in rendered.ROLES if role in by_role]
    share = 100 * sum(one.state == SURVIVES for one in found) / len(found)
    return [
        *lines,
        f"{'all':<18}" + numbers(found),
        f"{share:.1f} % survive; {seconds / len(found):.2f} s for each mutant",
    ]


def numbers(found: c.Sequence[Outcome]) -> str:
    refused = sum(one.state == REFUSED for one in found)
    ruled = sum(one.gate == RULES for one in found)
    alive = sum(one.state == SURVIVES for one in found)
    counts = (len(found), refused, ruled, len(found) - refused - ruled - alive, sum(one.named for one in found), alive)
    return "".join(f"{count:>8}" for count in counts)
