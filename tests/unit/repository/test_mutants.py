# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutation testing: mutants of a source, the choice of mutants, the tests that run on them, and the comparison of two runs."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ansible_collections.hwaccel.gpu.tests.mutants import choice, results
from ansible_collections.hwaccel.gpu.tests.mutants import worker as worker_program
from ansible_collections.hwaccel.gpu.tests.mutants.mutations import Mutant, mutants


def changes(source: str) -> list[str]:
    found = mutants("plugins/one.py", source)
    for mutant in found:
        changed = mutant.applied(source)
        ast.parse(changed)
        assert changed != source
    return [mutant.change for mutant in found]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b == c", ["comparison: b == c -> (b != c)"]),
        ("a = b < c", ["comparison: b < c -> (b >= c)", "boundary: b < c -> (b <= c)"]),
        ("a = b and c", ["and/or: b and c -> (b or c)"]),
        ("a = not b", ["not removed: not b -> (b)"]),
        ("a = 3", ["constant: 3 -> (4)"]),
        ("a = True", ["constant: True -> (False)"]),
        ("a = b + c", ["arithmetic: b + c -> (b - c)"]),
        ("a = b if c else d", ["negation: b if c else d -> (b if not c else d)"]),
        ("a = [b for b in c if b]", ["negation: b -> (not b)"]),
        ("def f():\n    return a", ["return removed: return a -> pass"]),
        ("def f(a=1):\n    pass", ["constant: 1 -> (2)"]),
        ("if a:\n    raise b('c')", ["negation: a -> (not a)", "raise removed: raise b('c') -> pass"]),
        ("while f(a):\n    g(a)", ["negation: f(a) -> (not f(a))", "call removed: g(a) -> pass"]),
        ("a += 1", ["arithmetic: a += 1 -> a -= 1", "constant: 1 -> (2)"]),
        (
            "match a:\n    case b if c > d:\n        e()",
            ["comparison: c > d -> (c <= d)", "boundary: c > d -> (c >= d)", "call removed: e() -> pass"],
        ),
    ],
)
def test_each_operator(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""Text, 1 == 2."""',
        "a = 'text'",
        "a = f'{b + 1} of {c}'",
        "a = 'x' + b",
        "log.debug(a, 1)",
        "display.vvv(a + 1)",
        "a: t.Literal[1]",
        "@f(1)\ndef g(a: t.Literal[1]) -> t.Literal[2]:\n    pass",
        "import a",
        "assert a == 1",
        "def f():\n    return None",
        "raise NotImplementedError",
    ],
)
def test_no_mutant_in_texts_logs_and_annotations(source: str) -> None:
    assert not changes(source)


def test_a_mutant_keeps_its_identity_when_the_code_around_it_moves() -> None:
    source = "def f(a):\n    return a == 1\n"
    moved = f"def g(a):\n    return a == 1\n\n\n{source.replace('a == 1', 'a  ==  1')}"
    assert {one.identity for one in mutants("one.py", source)} < {one.identity for one in mutants("one.py", moved)}
    assert not {one.identity for one in mutants("other.py", source)} & {
        one.identity for one in mutants("one.py", source)
    }


def test_equal_statements_of_a_function_have_different_identities() -> None:
    source = "def f(a):\n    g(a)\n    g(a)\n"
    first, second = mutants("one.py", source)
    assert first.identity != second.identity
    assert (first.applied(source), second.applied(source)) == (
        "def f(a):\n    pass\n    g(a)\n",
        "def f(a):\n    g(a)\n    pass\n",
    )


def test_offsets_are_correct_after_multibyte_characters() -> None:
    source = "a = ('→', b == c)\n"
    (mutant,) = mutants("one.py", source)
    assert mutant.applied(source) == "a = ('→', (b != c))\n"


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    for area, (pattern, *_more) in choice.AREAS.items():
        path = tmp_path / pattern.replace("**", "part").replace("*", "one")
        path.parent.mkdir(parents=True)
        path.write_text(f"# {area}\n" + "".join(f"a{number} = b < c\n" for number in range(5)), encoding="utf-8")
    return tmp_path


def test_a_seed_chooses_the_same_mutants_from_each_area(tree: pathlib.Path) -> None:
    areas = len(choice.AREAS)
    twice = choice.seeded(tree, 1, 2 * areas)
    assert [area for area, _mutant in twice] == [*choice.AREAS] * 2
    assert choice.seeded(tree, 1, areas) == twice[:areas]
    assert {mutant.identity for _area, mutant in choice.seeded(tree, 2, 2 * areas)} != {
        mutant.identity for _area, mutant in twice
    }


def test_every_area_has_a_source() -> None:
    top = pathlib.Path(__file__).resolve().parents[3]
    assert {area for area, _mutant in choice.seeded(top, 1, 300)} == {*choice.AREAS}
    assert len(choice.seeded(top, 1, 300)) == 300


RECORD = choice.Record(
    seconds={"slow": 2.0, "fast": 0.1, "other": 0.2},
    lines={"one.py": {4: ("slow", "fast"), 9: ("other",)}},
    imported={"one.py": frozenset({1})},
    shared={"one.py": frozenset({7})},
)


def at(first: int, last: int, inside: bool = True, path: str = "one.py") -> Mutant:
    return Mutant(path, "f", "constant", "1", "(2)", "a = 1", 0, (first, last), inside, 0, 1)


@pytest.mark.parametrize(
    ("mutant", "expected"),
    [
        (at(4, 4), ["fast", "slow"]),
        (at(3, 9), ["fast", "other", "slow"]),
        (at(7, 7), ["fast", "other", "slow"]),
        (at(1, 1), ["fast", "other", "slow"]),
        (at(2, 2, inside=False), ["fast", "other", "slow"]),
        (at(8, 8), []),
        (at(4, 4, path="two.py"), []),
    ],
    ids=[
        "its line",
        "a statement of many lines",
        "a fixture of many tests",
        "at import, in a function",
        "at import",
        "no test",
        "another source",
    ],
)
def test_the_tests_of_a_mutant_run_its_lines_and_are_ordered_by_duration(mutant: Mutant, expected: list[str]) -> None:
    assert list(choice.chosen(mutant, [RECORD])) == expected


def result(identity: str, verdict: str, area: str = "state") -> results.Result:
    return results.Result(identity, area, "one.py:3", "f", "constant: 1 -> (2)", verdict, tests=2)


def test_the_summary_has_each_area_and_each_survivor() -> None:
    text = results.summary(
        [result("a", results.KILLED), result("b", results.SURVIVED), result("c", results.UNCOVERED, "chain")]
    )
    assert text.splitlines() == [
        "b one.py:3 f: constant: 1 -> (2) (survived 2 tests)",
        "c one.py:3 f: constant: 1 -> (2) (uncovered)",
        "state        1 of 2 killed (50.0%)",
        "chain        0 of 1 killed (0.0%)",
        "all          1 of 3 killed (33.3%)",
    ]


def test_an_area_in_which_no_test_runs_a_line_is_reported() -> None:
    assert results.unmeasured(
        [result("a", results.KILLED), result("b", results.UNCOVERED), result("c", results.UNCOVERED, "chain")]
    ) == ["chain"]


def test_the_lines_of_every_area_are_recorded() -> None:
    patterns = [pattern for area in choice.AREAS.values() for pattern in area]
    assert not [pattern for pattern in patterns if not pattern.startswith(f"{worker_program.SOURCE}/")]


@pytest.mark.parametrize(
    ("before", "after", "worse_expected"),
    [
        (results.KILLED, results.SURVIVED, True),
        (results.SURVIVED, results.KILLED, False),
        (results.SURVIVED, results.SURVIVED, False),
    ],
)
def test_two_runs_are_compared_by_their_common_mutants(
    tmp_path: pathlib.Path, before: str, after: str, worse_expected: bool
) -> None:
    paths = tmp_path / "before.json", tmp_path / "after.json"
    results.write_run(paths[0], 1, [result("a", before), result("only before", results.KILLED)])
    results.write_run(paths[1], 1, [result("a", after), result("only after", results.SURVIVED)])
    text, worse = results.compared(*map(results.read_run, paths))
    assert text.startswith("1 mutants in both runs, 1 only before, 1 only after")
    assert worse is worse_expected


def test_kept_results_are_complete(tmp_path: pathlib.Path) -> None:
    kept = results.Kept(tmp_path / "kept")
    assert kept.get("one") is None
    kept.put("one", {"failed": "test_it"})
    assert results.Kept(tmp_path / "kept").get("one") == {"failed": "test_it"}
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["one"]


SOURCE = "def f(a: int) -> int:\n    return a + 1\n"
TESTS = """
import subprocess, time
import one

def test_says_nothing() -> None:
    assert one.f(1)

def test_knows() -> None:
    assert one.f(1) == 2

def test_sleeps() -> None:
    time.sleep(600)

def test_leaves_a_process_behind() -> None:
    subprocess.run("setsid sleep 606 &", shell=True, check=True)
"""


@pytest.fixture
def worker(tmp_path: pathlib.Path) -> Iterator[subprocess.Popen[str]]:
    """worker.py over a tree of one source and its tests."""
    (tmp_path / "one.py").write_text(SOURCE)
    (tmp_path / "test_one.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:cacheprovider\nfilterwarnings = error\nmarkers =\n  slow: minutes\n"
    )
    script = pathlib.Path(results.__file__).with_name("worker.py")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "answer")],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.terminate()


def request(worker: subprocess.Popen[str], limit: float = 300.0, **limits: float) -> dict:
    assert worker.stdin and worker.stdout
    print(
        json.dumps(
            {"limits": {f"test_one.py::test_{name}": seconds for name, seconds in limits.items()}, "limit": limit}
        ),
        file=worker.stdin,
        flush=True,
    )
    return json.loads(worker.stdout.readline())


def test_a_worker_runs_the_chosen_tests_on_the_current_source(
    worker: subprocess.Popen[str], tmp_path: pathlib.Path
) -> None:
    assert request(worker, knows=300.0, says_nothing=300.0) == {"failed": ""}
    (tmp_path / "one.py").write_text(SOURCE.replace("a + 1", "(a - -2)"))
    assert request(worker, says_nothing=300.0) == {"failed": ""}
    assert request(worker, knows=300.0, says_nothing=300.0) == {"failed": "test_one.py::test_knows"}
    (tmp_path / "one.py").write_text("raise ValueError")
    assert request(worker, says_nothing=300.0) == {"failed": "test_one.py (import)"}


def test_a_worker_stops_a_test_after_its_time_limit(worker: subprocess.Popen[str]) -> None:
    assert request(worker, sleeps=0.1)["timeout"]
    assert request(worker, limit=0.1, sleeps=300.0)["timeout"]


def test_a_worker_leaves_no_process_behind(worker: subprocess.Popen[str]) -> None:
    assert request(worker, leaves_a_process_behind=300.0) == {"failed": ""}
    assert not pathlib.Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text()
