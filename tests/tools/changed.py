# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of which a file is an input: for `make test-changed`, and for results of `make soak` that become stale.

A file of tests belongs to the jobs whose commands contain it or its folder, or a file that imports it. For all other files, the first matching
row of ROWS decides, and of those below tests also who imports them; a file without a row is an input of every job. This is for the inner loop
only: `.ci/run` runs all jobs.
"""

from __future__ import annotations

import fnmatch
import functools
import pathlib
import re
import subprocess

import environments
from jobs import (
    BOOT,
    BOOT_PARTS,
    CLUSTER,
    CLUSTER_PARTS,
    CONTROL_PLANE,
    FRESH,
    LINT,
    LIVE,
    LOADED,
    NODE,
    NODE_PARTS,
    OPENSHIFT,
    OPENSHIFT_METAL,
    OPENSHIFT_PARTS,
    ROUNDS,
    SOAK,
    SOAK_BOOT,
    SOAK_CLUSTER,
    SOAK_LIVE,
    SOAK_NODE,
    SOAK_OPENSHIFT,
    SUITES,
    UNIT,
    Job,
)

IMPORTED = re.compile(r"^from ansible_collections\.hwaccel\.gpu\.tests\.([\w.]+) import ([\w, ]*)", re.MULTILINE)


def names(*jobs: Job) -> tuple[str, ...]:
    return tuple(job.name for job in jobs)


JOBS = tuple({job.name: job for job in (*SUITES["all"], *SUITES["soak"])}.values())
ALL = names(*JOBS)
UNITS = names(*UNIT)
STATIC = (
    "mypy",
    "layers",
    "galaxy-importer",
    "mutants",
    *UNITS,
    *(job.name for job in SOAK if job.name.startswith("unit")),
)
ROUND = names(*ROUNDS)
REAL = names(*NODE, *SOAK_NODE)
SERVERS = (*names(*LIVE, *SOAK_LIVE), *ROUND, *REAL, "bench")
HOSTS = (*names(*BOOT, *SOAK_BOOT, *SOAK_OPENSHIFT), *OPENSHIFT_METAL)
CLUSTERS = names(*CLUSTER, *SOAK_CLUSTER)
SCENARIOS = ("molecule", "galaxy-importer")

#: Additional jobs by suffix.
BY_SUFFIX = {
    ".py": ("ruff", *(job.name for job in LINT if job.name.startswith("sanity"))),
    ".yml": ("ansible-lint", *(job.name for job in LINT if job.name.startswith("sanity"))),
}
#: Jobs whose input is the whole checkout or a package of it.
WHOLE = ("tarball", "words", *names(*FRESH, *LOADED))

#: The record of soak and the pages that show it are inputs of no job, because otherwise each record would make results stale.
RECORD = ("tests/tools/soak.json", "docs/soak.md", "docs/simulator.md")

ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("plugins/plugin_utils/machines/runtime/*", (*STATIC, *REAL)),
    ("plugins/plugin_utils/machines/cluster/*", (*STATIC, *CLUSTERS)),
    ("plugins/plugin_utils/machines/k3s/*", (*STATIC, *CLUSTERS)),
    ("plugins/plugin_utils/machines/kubeadm/*", (*STATIC, *CLUSTERS)),
    ("plugins/plugin_utils/machines/openshift/*", (*STATIC, *names(*OPENSHIFT, *SOAK_OPENSHIFT))),
    ("plugins/plugin_utils/machines/load_balancer/*", (*STATIC, *HOSTS, *CLUSTERS)),
    ("plugins/plugin_utils/machines/*/*", (*STATIC, *HOSTS)),
    ("plugins/plugin_utils/machines/*", (*STATIC, *HOSTS, *REAL, *CLUSTERS)),
    ("plugins/plugin_utils/inputs/*", (*STATIC, *SERVERS)),
    ("plugins/plugin_utils/monitoring/*", (*STATIC, *SERVERS)),
    ("plugins/plugin_utils/objects/*", (*STATIC, *SERVERS)),
    ("plugins/action/machine_*", (*STATIC, *HOSTS)),
    ("plugins/modules/machine_*", (*STATIC, *HOSTS)),
    ("plugins/modules/ignition_info.py", STATIC),
    ("plugins/filter/machine_boot.py", (*STATIC, *HOSTS)),
    ("plugins/filter/machine_*", (*STATIC, *HOSTS, *REAL, *CLUSTERS)),
    ("plugins/filter/cluster_*", (*STATIC, *CLUSTERS)),
    ("plugins/module_utils/_approval/*", (*STATIC, *SERVERS)),
    ("plugins/module_utils/_openshift/*", (*STATIC, *names(*OPENSHIFT, *SOAK_OPENSHIFT))),
    ("plugins/module_utils/_operations/openshift_*", (*STATIC, *names(*OPENSHIFT, *SOAK_OPENSHIFT))),
    ("plugins/modules/openshift_*", (*STATIC, *names(*OPENSHIFT, *SOAK_OPENSHIFT))),
    ("plugins/module_utils/_sandbox/*", (*STATIC, *SERVERS, CONTROL_PLANE.name)),
    ("plugins/module_utils/_manifest_set/*", (*STATIC, *SERVERS)),
    ("plugins/module_utils/_workloads/*", (*STATIC, *SERVERS)),
    ("plugins/module_utils/_gpu/*", (*STATIC, *SERVERS)),
    ("plugins/module_utils/_operations/*", (*STATIC, *SERVERS)),
    ("plugins/*", (*STATIC, *SERVERS, *HOSTS, *CLUSTERS)),
    ("roles/cluster/*", (*STATIC, *CLUSTERS)),
    ("roles/cluster_k3s/*", (*STATIC, *CLUSTERS)),
    ("roles/cluster_kubeadm/*", (*STATIC, *CLUSTERS)),
    ("roles/cluster_openshift/*", (*STATIC, *names(*OPENSHIFT, *SOAK_OPENSHIFT))),
    ("roles/dns_pxe/*", (*STATIC, *HOSTS)),
    ("roles/load_balancer/*", (*STATIC, *HOSTS, *CLUSTERS)),
    ("roles/machine/*", (*STATIC, *HOSTS, *REAL, *CLUSTERS)),
    ("roles/machine_boot/*", (*STATIC, *HOSTS)),
    ("roles/node_runtime/*", (*STATIC, *REAL)),
    ("roles/sandbox/*", (*STATIC, *SERVERS, "mypy fleet agent", CONTROL_PLANE.name)),
    ("roles/variables/*", (*STATIC, *SERVERS, *HOSTS, *CLUSTERS)),
    ("roles/*", (*STATIC, *SERVERS)),
    ("playbooks/*", (*STATIC, *SERVERS, *HOSTS, *CLUSTERS)),
    ("molecule/metal/*", ("molecule metal", *SCENARIOS)),
    ("molecule/*", ("molecule metal", "demo twice", "site core-2.16", *SCENARIOS)),
    ("examples/awx-project/*", (*UNITS, "execution environment", *names(*LIVE))),
    ("examples/*", (*UNITS, *names(*LIVE))),
    ("tests/live/mutations/*", (*names(*LIVE, *SOAK_LIVE), *UNITS)),
    ("tests/live/*", (*names(*LIVE, *SOAK_LIVE), *REAL, *HOSTS, *CLUSTERS, "bench")),
    ("tests/node/components/*", ("stand-ins", NODE_PARTS.name, CLUSTER_PARTS.name, *REAL, *CLUSTERS)),
    ("tests/node/rig/*", (NODE_PARTS.name, BOOT_PARTS.name, CLUSTER_PARTS.name, *REAL, *HOSTS, *CLUSTERS, *UNITS)),
    ("tests/node/real_programs.yml", (*REAL, *HOSTS, *UNITS)),
    ("tests/node/*", (*REAL, *HOSTS)),
    ("tests/boot/rig/*", (BOOT_PARTS.name, CLUSTER_PARTS.name, *HOSTS, *CLUSTERS)),
    ("tests/boot/*", (BOOT_PARTS.name, *HOSTS)),
    ("tests/cluster/*", (CLUSTER_PARTS.name, *CLUSTERS)),
    ("tests/openshift/*", names(OPENSHIFT_PARTS, *OPENSHIFT, *SOAK_OPENSHIFT)),
    ("tests/unit/fleet_agent/machine/nvidia_smi.yml", ("mutants", "stand-ins", *UNITS, *HOSTS, *REAL)),
    ("tests/unit/*", ("mutants", *UNITS, *HOSTS, *REAL)),
    ("tests/mutants/*", ("mutants", *UNITS)),
    ("tests/upstream/*", UNITS),
    ("tests/bench/*", ("bench", *UNITS)),
    ("tests/tools/isolated", (*HOSTS, *REAL, *CLUSTERS, NODE_PARTS.name, BOOT_PARTS.name, CLUSTER_PARTS.name)),
    ("tests/tools/control_plane.py", (CONTROL_PLANE.name,)),
    ("tests/tools/demo*.py", (*UNITS, *ROUND)),
    ("tests/tools/two_runtimes.yml", ("site core-newest",)),
    ("tests/tools/sanity.py", BY_SUFFIX[".py"]),
    ("tests/tools/tarball.py", ()),
    ("tests/tools/importer.py", (*UNITS, "galaxy-importer")),
    ("tests/tools/fresh_machine", ()),
    ("tests/tools/loaded", ()),
    ("tests/tools/quick/*", (*names(*LIVE, *SOAK_LIVE), *REAL, *HOSTS, *CLUSTERS, *UNITS)),
    # These are verified by unit tests of the runner.
    ("tests/tools/*", UNITS),
    ("tests/config.yml", BY_SUFFIX[".py"]),
    ("changelogs/*", ("changelog", "galaxy-importer")),
    ("CHANGELOG.rst", ("changelog", "galaxy-importer")),
    ("docs/*", UNITS),
    ("*.md", (*UNITS, "galaxy-importer")),
    ("meta/*", (*UNITS, "galaxy-importer", *BY_SUFFIX[".yml"])),
    ("galaxy.yml", ("galaxy-importer", "site core-newest", "changelog")),
    (".importlinter", ("layers",)),
    (".ansible-lint.yml", ("ansible-lint",)),
    (".yamllint", ("ansible-lint",)),
    ("pyproject.toml", ALL),
    ("requirements*", ALL),
    (".ci/run", UNITS),
    ("Makefile", UNITS),
    (".gitignore", UNITS),
    ("LICENSE", ("galaxy-importer",)),
)


def runs(job: Job, path: str) -> bool:
    """Whether the command of the job contains the file or a parent folder, and does not ignore it."""
    words = " ".join(job.command).split()
    ignored = [word.removeprefix("--ignore=") for word in words if word.startswith("--ignore=")]

    def below(folder: str) -> bool:
        return path == folder or path.startswith(f"{folder}/")

    return any(map(below, words)) and not any(map(below, ignored))


def row(path: str) -> tuple[str, ...] | None:
    return next((jobs for pattern, jobs in ROWS if fnmatch.fnmatchcase(path, pattern)), None)


@functools.cache
def importers() -> dict[str, list[str]]:
    """Paths of files that import a file of tests, by path of the latter."""
    paths: dict[str, list[str]] = {}
    top = pathlib.Path(__file__).resolve().parents[2]
    for path in (top / "tests").rglob("*.py"):
        for module, names_in_it in IMPORTED.findall(path.read_text(encoding="utf-8")):
            place = f"tests/{module.replace('.', '/')}"
            # Of a package, what is imported is a module.
            for file in (place, *(f"{place}/{name}" for name in re.findall(r"\w+", names_in_it))):
                paths.setdefault(f"{file}.py", []).append(str(path.relative_to(top)))
    return paths


def named(path: str) -> set[str]:
    """Jobs whose commands contain the file, or a file that imports it."""
    users = [path, *importers().get(path, ())]
    return {job.name for job in JOBS if any(runs(job, user) for user in users)}


def touched(path: str) -> set[str]:
    """Names of the jobs of which the file is an input."""
    if path in RECORD:
        return set()
    found, of_row = named(path) if path.startswith("tests/") else set(), row(path)
    if found and pathlib.PurePath(path).name.startswith("test_"):
        known: set[str] | None = found
    else:
        known = None if of_row is None else {*of_row, *found}
    return set(ALL) if known is None else {*known, *BY_SUFFIX.get(pathlib.PurePath(path).suffix, ()), *WHOLE}


def git(*arguments: str) -> list[str]:
    return subprocess.run(
        ["git", *arguments], cwd=environments.ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def files(base: str) -> list[str]:
    """Files that differ from a base, committed or not. base: "" means origin/main if it exists and differs from HEAD, otherwise the previous commit."""
    here = git("rev-parse", "HEAD")
    if not base:
        known = git("for-each-ref", "--format=%(objectname)", "refs/remotes/origin/main")
        base = "origin/main" if known and known != here else "HEAD~1"
    since = git("merge-base", base, "HEAD")[0]
    return sorted({*git("diff", "--name-only", since), *git("ls-files", "--others", "--exclude-standard")})


def select(base: str) -> set[str]:
    return {name for path in files(base) for name in touched(path)}
