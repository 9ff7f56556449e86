# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutation tests of sources with decisions: the share of small faults that unit tests detect.

mutants.py run [--count N] [--seed N] [--workers N] TESTS...   runs the selected mutants, each with those tests (of files or folders) that run its lines
mutants.py compare BEFORE AFTER                                compares two runs for their common mutants (status 1: the share of killed ones has fallen)

An interrupted run can be continued: results are in the cache, with keys of the mutated file and its tests. mutmut requires the modules of a
package at the top level and copies them to another folder, where they have no names in ansible_collections; cosmic-ray changes the
checkout itself and runs one command, that is all tests, for each mutant. Neither identifies a mutant in another tree.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from ansible_collections.hwaccel.gpu.tests.mutants import choice, results
from ansible_collections.hwaccel.gpu.tests.mutants.mutations import Mutant
from ansible_collections.hwaccel.gpu.tests.tools import environments

SEED, COUNT, WORKERS = 15, 300, 2
#: A mutant is detected if it makes a test slower by this factor.
SLOWER = 10
#: Seconds: minimum limit of a test, which may be slow on a busy machine; and limit for pytest's start with imports.
SHORTEST, START = 10.0, 60.0
#: Number of tests in a first round, which detect most mutants, so that no other files of tests have to be imported.
FIRST = 30
#: Limit in seconds for one file of tests without a mutant.
RECORDING = 1800.0


class Worker:
    """A copy of the tree and the process that runs tests in it."""

    def __init__(self, number: int) -> None:
        home = environments.BUILD / "mutants" / str(number)
        shutil.rmtree(home, ignore_errors=True)
        self.tree = home.joinpath(*environments.PLACE)
        shutil.copytree(environments.TREE, self.tree, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        # Tools search for generated files, such as budgets and pages, in the checkout that contains the tree.
        for name in ("docs", "tests"):
            (home / name).symlink_to(self.tree / name)
        self.changes = 0
        # The name is short, because the length of socket paths is limited.
        self.temporary = tempfile.mkdtemp(prefix="mutants-")
        own = {
            "PYTHONPATH": str(home / ".build"),
            "ANSIBLE_COLLECTIONS_PATH": str(home / ".build"),
            "TMPDIR": self.temporary,
        }
        command = [sys.executable, "tests/mutants/worker.py", f"{self.temporary}/answer"]
        self.process = subprocess.Popen(
            command, cwd=self.tree, env=os.environ | own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **request: object) -> dict:
        assert self.process.stdin and self.process.stdout
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline() or '{"error": "the worker has ended"}')
        if "error" in answer:
            raise SystemExit(f"{request} got no answer: {answer['error']}Next: correct tests/mutants/worker.py.")
        return answer

    def meet(self, mutant: Mutant, tests: dict[str, float]) -> dict:
        """The answer of the first round of tests that detects the mutant, or of the last round."""
        path = self.tree / mutant.path
        source = path.read_text(encoding="utf-8")
        answer: dict = {}
        names = list(tests)
        try:
            self._write(path, mutant.applied(source))
            for part in filter(None, (names[:FIRST], names[FIRST:])):
                limits = {name: max(SHORTEST, SLOWER * tests[name]) for name in part}
                answer = self.ask(limits=limits, limit=START + SLOWER * sum(tests[name] for name in part))
                if answer.get("timeout") or answer["failed"]:
                    break
        finally:
            self._write(path, source)
        return answer

    def _write(self, path: pathlib.Path, source: str) -> None:
        """Writes the source with a unique modification time, because Python validates compiled files by seconds and size."""
        path.write_text(source, encoding="utf-8")
        self.changes += 1
        os.utime(path, (self.changes, self.changes))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.temporary, ignore_errors=True)


class Crew:
    """Workers, which process entries in parallel."""

    def __init__(self, count: int) -> None:
        self.free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self.workers: list[Worker] = []
        for number in range(count):
            self.workers.append(Worker(number))
            self.free.put(self.workers[-1])

    def each(self, work: Callable[[Worker, object], None], entries: Sequence, progress: Callable[[int], None]) -> None:
        def one(entry: object) -> None:
            worker = self.free.get()
            try:
                work(worker, entry)
            finally:
                self.free.put(worker)

        with concurrent.futures.ThreadPoolExecutor(len(self.workers)) as pool:
            try:
                for number, done in enumerate(
                    concurrent.futures.as_completed([pool.submit(one, entry) for entry in entries]), 1
                ):
                    done.result()
                    progress(number)
            except BaseException:
                # Entries that have not been started are cancelled.
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()


class Progress:
    """Prints a progress line every few seconds, and the last one."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.started, self.printed = what, total, time.monotonic(), 0.0

    def __call__(self, done: int, more: str = "") -> None:
        now = time.monotonic()
        if now - self.printed > 10 or done == self.total:
            left = (now - self.started) / done * (self.total - done)
            print(f"{self.what}: {done} of {self.total}{more}, about {left / 60:.1f} minutes left", flush=True)
            self.printed = now


def test_files(tree: pathlib.Path, places: Sequence[str]) -> list[str]:
    paths = {
        path
        for place in places
        for path in ([tree / place] if place.endswith(".py") else (tree / place).rglob("test_*.py"))
    }
    return sorted(path.relative_to(tree).as_posix() for path in paths)


def helpers_of(tree: pathlib.Path) -> list[pathlib.Path]:
    """Files that unit tests may import."""
    return [path for path in (tree / "tests" / "unit").rglob("*.py") if not path.name.startswith("test_")]


def records(tree: pathlib.Path, files: Sequence[str], crew: Crew, kept: results.Kept) -> dict[str, choice.Record]:
    """Records of files of tests without a mutant, from the cache if neither the file nor any file that it may import has changed."""
    common = results.digest_of(tree, [*helpers_of(tree), *(tree / "plugins").rglob("*.py")])
    keys = {
        file: results.digest("record", sys.version, common, results.digest_of(tree, [tree / file])) for file in files
    }

    def record(worker: Worker, file: str) -> None:
        answer = worker.ask(record=file, limit=RECORDING)
        if answer.get("timeout") or "lines" not in answer:
            raise SystemExit(
                f"{file} did not end without a mutant: {answer}. Next: run it by itself (make test-unit ARGS={file})."
            )
        if not answer["failed"]:
            kept.put(keys[file], answer)
        failed.extend(answer["failed"])

    failed: list[str] = []
    missing = [file for file in files if kept.get(keys[file]) is None]
    crew.each(record, missing, Progress("tests without a mutant", len(missing)))
    if failed:
        raise SystemExit(
            "These tests fail with no mutant in the source:\n  "
            + "\n  ".join(failed)
            + "\nNext: see why (make test-unit), then run this again."
        )
    return {file: choice.record_of(kept.get(key) or {}) for file, key in keys.items()}


def judge(
    tree: pathlib.Path, files: Sequence[str], selected: list[tuple[str, Mutant]], crew: Crew, kept: results.Kept
) -> list[results.Result]:
    known = records(tree, files, crew, kept)
    tests = {mutant.identity: choice.chosen(mutant, known.values()) for _area, mutant in selected}
    helpers = results.digest_of(tree, helpers_of(tree))
    # The present contents, which are those in the workers' copies, because the tree may change during the run.
    contents = {file: results.digest_of(tree, [tree / file]) for file in files}
    sources = {path: (tree / path).read_text(encoding="utf-8") for path in {mutant.path for _area, mutant in selected}}
    judged: dict[str, results.Result] = {}

    def meet(worker: Worker, entry: tuple[str, Mutant]) -> None:
        area, mutant = entry
        names = tests[mutant.identity]
        met_contents = (contents[file] for file in sorted({name.split("::", 1)[0] for name in names}))
        key = results.digest(
            "mutant",
            sys.version,
            mutant.path,
            mutant.applied(sources[mutant.path]),
            helpers,
            *met_contents,
            *sorted(names),
        )
        answer, started = kept.get(key), time.monotonic()
        if answer is None:
            answer = worker.meet(mutant, names) if names else {"failed": ""}
            answer |= {"seconds": round(time.monotonic() - started, 1)}
            kept.put(key, answer)
        by = "the clock" if answer.get("timeout") else answer["failed"]
        verdict = results.KILLED if by else results.SURVIVED if names else results.UNCOVERED
        place = f"{mutant.path}:{mutant.lines[0]}"
        judged[mutant.identity] = results.Result(
            mutant.identity, area, place, mutant.function, mutant.change, verdict, by, len(names), answer["seconds"]
        )

    progress = Progress("mutants", len(selected))

    def report(done: int) -> None:
        survived = sum(one.verdict != results.KILLED for one in list(judged.values()))
        progress(done, f", {done - survived} killed, {survived} not")

    crew.each(meet, selected, report)
    return [judged[mutant.identity] for _area, mutant in selected]


def run(places: Sequence[str], seed: int, count: int, workers: int) -> int:
    """Returns 1 if fewer mutants are killed than in the previous run with the same seed."""
    tree, cache = environments.TREE, environments.cache_folder() / "mutants"
    selected = choice.seeded(tree, seed, count)
    crew = Crew(workers)
    try:
        result = judge(tree, test_files(tree, places), selected, crew, results.Kept(cache / "kept"))
    finally:
        crew.stop()
    path = cache / "runs" / f"seed-{seed}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.json"
    earlier = sorted(path.parent.glob(f"seed-{seed}-*.json"))
    results.write_run(path, seed, result)
    print(f"{results.summary(result)}\nwritten to {path}")
    if areas := results.unmeasured(result):
        raise SystemExit(
            f"No test runs a line of {', '.join(areas)}. Next: see which sources tests/mutants/worker.py records."
        )
    return compare(earlier[-1], path) if earlier else 0


def compare(before: pathlib.Path, after: pathlib.Path) -> int:
    text, fallen = results.compared(results.read_run(before), results.read_run(after))
    print(f"{before.name} and {after.name}: {text}")
    return int(fallen)


def main() -> int:
    parser = argparse.ArgumentParser(description="mutation tests of sources with decisions")
    actions = parser.add_subparsers(dest="action", required=True)
    runs = actions.add_parser("run")
    for option, default in (("--seed", SEED), ("--count", COUNT), ("--workers", WORKERS)):
        runs.add_argument(option, type=int, default=default)
    runs.add_argument("tests", nargs="+")
    compares = actions.add_parser("compare")
    for option in ("before", "after"):
        compares.add_argument(option, type=pathlib.Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if arguments.action == "run":
        return run(arguments.tests, arguments.seed, arguments.count, arguments.workers)
    return compare(arguments.before, arguments.after)


if __name__ == "__main__":
    sys.exit(main())
