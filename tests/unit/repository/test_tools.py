# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools of the Makefile: the copy of the tree, names of environments, and counts of tests."""

from __future__ import annotations

import importlib
import os
import pathlib
import subprocess
import sys
from types import ModuleType

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.pruning import limit_fault

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(TOOLS))

    def one(name: str) -> ModuleType:
        return importlib.import_module(name)

    return one


@pytest.fixture
def tree(load, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> ModuleType:
    """tree.py over a checkout of one role, with a folder that git ignores."""
    module = load("tree")
    checkout = tmp_path / "any name"
    (checkout / "roles" / "one").mkdir(parents=True)
    (checkout / "roles" / "one" / "main.yml").write_text("---\n")
    (checkout / ".gitignore").write_text("*.pyc\n/collections/\n.build/\n")
    (checkout / "collections").mkdir()
    (checkout / "collections" / "foreign").write_text("not ours")
    (checkout / "roles" / "one" / "old.pyc").write_text("")
    (checkout / "examples" / "collections").mkdir(parents=True)
    (checkout / "examples" / "collections" / "requirements.yml").write_text("---\n")
    monkeypatch.setattr(module, "ROOT", checkout)
    monkeypatch.setattr(module, "TARGET", checkout / ".build" / "tree")
    return module


def test_tree_skips_files_that_git_ignores(tree: ModuleType) -> None:
    tree.synchronise()
    found = sorted(str(path.relative_to(tree.TARGET)) for path in tree.TARGET.rglob("*") if path.is_file())
    assert found == [".gitignore", "examples/collections/requirements.yml", "roles/one/main.yml"]


def test_tree_copies_only_changed_files_and_removes_deleted_ones(tree: ModuleType) -> None:
    assert tree.synchronise() == (3, 0)
    assert tree.synchronise() == (0, 0)
    (tree.ROOT / "roles" / "one" / "main.yml").write_text("---\nchanged: true\n")
    (tree.ROOT / "examples" / "collections" / "requirements.yml").unlink()
    assert tree.synchronise() == (1, 1)
    assert not (tree.TARGET / "examples").exists()
    assert "changed" in (tree.TARGET / "roles" / "one" / "main.yml").read_text()


def test_the_name_of_an_environment_depends_on_its_content(
    load, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    environments = load("environments")
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    python = environments.Interpreter("/usr/bin/python3", 11, "3.11.2 /usr", True)
    profile = environments.Profile("some.txt")
    names = []
    for text in ("# reason\none>=1\n", "# another reason\none>=1\n", "one>=2\n"):
        (tmp_path / "some.txt").write_text(text)
        names.append(environments.folder_of("demo", profile, python))
    assert names[0] == names[1] != names[2]
    assert names[0].is_relative_to(tmp_path / "cache" / "hwaccel-gpu" / "venv")


def test_a_python_without_venv_is_reported_with_its_package(load, monkeypatch: pytest.MonkeyPatch) -> None:
    environments = load("environments")
    monkeypatch.setattr(
        environments, "probe", lambda path: environments.Interpreter("/usr/bin/python3", 11, "3.11.2 /usr", False)
    )
    with pytest.raises(environments.Unavailable, match=r"apt-get install python3\.11-venv"):
        environments.find_python(environments.Profile("some.txt", pythons=(11, 11)))


def test_a_shim_without_its_python_is_skipped(load, tmp_path: pathlib.Path) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\necho 'not installed' >&2\nexit 127\n")
    shim.chmod(0o755)
    assert load("environments").probe(str(shim)) is None


def test_an_old_python_is_reported(tmp_path: pathlib.Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2"\nexit 1\n')
    old.chmod(0o755)
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        (tmp_path / name).symlink_to(old)
    script = (TOOLS / "python").read_text().replace("/usr/bin/python3", str(old))
    (tmp_path / "wrapper").write_text(script)
    done = subprocess.run(
        ["/bin/sh", str(tmp_path / "wrapper"), "x.py"],
        env={"PATH": f"{tmp_path}{os.pathsep}/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; found: Python 3.9.2" in done.stderr


@pytest.mark.parametrize(
    ("incomplete", "given", "expected"),
    [("", "", "distribution"), ("distribution", "", "manager"), ("manager", "manager", "manager")],
)
def test_the_python_of_the_distribution_is_preferred(
    tmp_path: pathlib.Path, incomplete: str, given: str, expected: str
) -> None:
    """It is faster. A Python that cannot create environments is only used if it was named."""
    for name in ("distribution", "manager"):
        refuse = 'case "$2" in *venv*) exit 1;; esac\n' if name == incomplete else ""
        (tmp_path / name).write_text(f'#!/bin/sh\n{refuse}[ "$1" = -c ] || echo {name}\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / "python3").symlink_to(tmp_path / "manager")
    script = (TOOLS / "python").read_text().replace("/usr/bin/python3", str(tmp_path / "distribution"))
    known = {"PATH": str(tmp_path)} | ({"PYTHON": str(tmp_path / given)} if given else {})
    done = subprocess.run(
        ["/bin/sh", "-c", script, "python", "x.py"], env=known, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{expected}\n"


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("....\n12 passed, 2 skipped in 3.10s\n", 0, {"passed": 12, "skipped": 2}),
        ("1 failed, 11 passed in 3.10s\n", 1, {"passed": 11, "failed": 1}),
        ("3 passed, 1 error in 3.10s\n", 1, {"passed": 3, "failed": 1}),
        ("2 passed in 61.00s (0:01:01)\n", 0, {"passed": 2}),
        ("2 passed in 1.00s\nkilled", 137, {"passed": 2, "failed": 1}),
        ("nothing at all", 2, {"failed": 1}),
    ],
)
def test_counts_of_a_pytest_run(load, text: str, status: int, expected: dict[str, int]) -> None:
    jobs = load("jobs")
    assert load("check").count(jobs.Job("unit", "demo", jobs.pytest("tests/unit")), text, status) == expected


def test_figures_of_a_soak_are_in_its_log_also_if_it_passes(load, tmp_path: pathlib.Path) -> None:
    (job,) = [job for job in load("jobs").SOAK if job.name == "live faults"]
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra\nmarkers =\n  slow: minutes\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.slow\ndef test_it():\n    print('site on 1,000 nodes: 300 s')\n"
    )
    command = [
        sys.executable,
        *("test_it.py" if part == "tests/live/test_disturbed.py" else part for part in job.command[1:]),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "site on 1,000 nodes: 300 s" in done.stdout.splitlines()
    assert load("check").count(job, done.stdout, done.returncode) == {"passed": 1}


def test_other_jobs_count_as_one(load) -> None:
    job = load("jobs").Job("ruff", "dev", ("ruff", "check"))
    assert load("check").count(job, "12 passed in 3 s", 0) == {"passed": 1}
    assert load("check").count(job, "12 passed in 3 s", 1) == {"failed": 1}


def test_a_job_that_this_machine_cannot_run_is_skipped_with_the_reason_and_never_passed(
    load, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    check, jobs = load("check"), load("jobs")
    monkeypatch.setattr(check, "LOGS", tmp_path)
    monkeypatch.setattr(check.environments, "TREE", tmp_path)
    monkeypatch.setattr(check.environments, "ensure", lambda profile: tmp_path)
    done = check.run(jobs.Job("rig", "metal", ("/bin/sh", "-c", f"echo needs root; exit {jobs.CANNOT_RUN}")))
    assert (done.counts, done.reason, done.ran, done.failed) == ({"skipped": 1}, "needs root", False, False)


FLEET = [{"count": 8, "kernel": "6.8.0-134-generic", "gpu": {"count": 8}}, {"count": 4, "kernel": "6.8.0-134-generic"}]


@pytest.fixture
def demo_lines(tmp_path: pathlib.Path) -> list[str]:
    """The last lines of a run on FLEET."""
    (tmp_path / "audit.log").touch()
    (tmp_path / "kubeconfig").touch(mode=0o600)
    return [
        "pool      nodes  kernel             driver     GPUs expected  GPUs seen  gates passed                                      proofs    time  remark",
        "--------  -----  -----------------  ---------  -------------  ---------  ------------------------------------------------  --------  ----  ---------",
        "cpu       4      6.8.0-134-generic             0              0          features                                                    9 s   simulated",
        "training  8      6.8.0-134-generic  595.91.07  64             64         features, driver, devices, exporters, validation  8 proven  16 s  simulated",
        "",
        f"KUBECONFIG={tmp_path}/kubeconfig",
        f"AUDIT_LOG={tmp_path}/audit.log",
    ]


def as_ansible_shows(lines: list[str]) -> str:
    return "\n".join(
        ["TASK [Summary | Show the fleet] ***", "sandbox:", *lines, "ok: [sandbox]", "", "PLAY RECAP ***", ""]
    )


def test_the_output_of_the_demo_is_compared_with_its_fleet(load, demo_lines: list[str]) -> None:
    assert load("demo_output").faults(as_ansible_shows(demo_lines), FLEET, {"training"}) == []


@pytest.mark.parametrize(
    ("line", "old", "new", "fault"),
    [
        (0, "GPUs seen", "GPUs felt", "the table's columns are"),
        (0, "pool ", "-", "the table's columns are missing"),
        (2, "cpu ", "cpus", ""),
        (3, "training", "teaching", "the table has no pool training"),
        (3, "  8  ", "  7  ", "nodes, kernels and GPUs of the pools are"),
        (3, "64             64", "0              0 ", "nodes, kernels and GPUs of the pools are"),
        (3, "64         features", "63         features", "GPUs seen of pool training is '63', not '64'"),
        (
            3,
            ", validation",
            "            ",
            "gates passed of pool training is 'features, driver, devices, exporters', not",
        ),
        (3, "8 proven", "7 proven", "proofs of pool training is '7 proven', not '8 proven'"),
        (3, "16 s", "    ", "time of pool training is ''"),
        (3, "simulated", "", "remark of pool training is '', not 'simulated'"),
        (5, "KUBECONFIG=", "", "KUBECONFIG names nothing"),
        (6, "audit.log", "other.log", "AUDIT_LOG names"),
    ],
)
def test_wrong_output_of_the_demo_is_a_fault(
    load, demo_lines: list[str], line: int, old: str, new: str, fault: str
) -> None:
    assert old in demo_lines[line]
    demo_lines[line] = demo_lines[line].replace(old, new)
    found = load("demo_output").faults(as_ansible_shows(demo_lines), FLEET, {"training"})
    assert [text for text in found if text.startswith(fault)] if fault else found == []


def test_a_pool_missing_in_the_table_and_a_readable_kubeconfig_are_faults(
    load, demo_lines: list[str], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "kubeconfig").chmod(0o644)
    del demo_lines[2]
    shown, mode = load("demo_output").faults(as_ansible_shows(demo_lines), FLEET, {"training"})
    assert shown.startswith("nodes, kernels and GPUs of the pools are")
    assert mode == f"{tmp_path}/kubeconfig has the mode 644, not 600"


def test_pools_of_a_fleet_file_are_declared_by_labels_or_nodes_that_distinguish_them(load) -> None:
    gpu = {"product": "NVIDIA-L40S", "count": 4, "memory_mib": 46068, "ecc": True, "mig_capable": False}
    pools = [
        {"name": "a", "count": 2, "gpu": gpu, "labels": {"zone": "x", "pool": "a"}},
        {"name": "b", "count": 2, "gpu": gpu, "labels": {"zone": "x"}, "host_driver": "550.54.15"},
        {"name": "c", "gpu": {"product": "NVIDIA-L40S", "count": 4}},
        {"name": "d", "count": 3, "labels": {"zone": "x"}},
    ]
    kept = {"product": "NVIDIA-L40S", "count": 4, "memory_mib": 46068}
    declared = load("demo").declared_pools(pools)
    assert declared == [
        {"name": "a", "selector": "zone=x,pool=a", "gpu": kept},
        {"name": "b", "nodes": ["b-0", "b-1"], "gpu": kept, "driver": {"provider": "host"}},
        {"name": "c", "nodes": ["c-0"], "gpu": {"product": "NVIDIA-L40S", "count": 4}},
    ]
    assert [pool.name for pool in parse_pools(declared)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("path", "declared", "command"),
    [
        ("", False, "make demo ARGS='-e driver_max_prune=5'"),
        ("/f.yml", False, "make demo FLEET=/f.yml ARGS='-e driver_max_prune=5'"),
        ("/f.yml", True, "make demo FLEET=/f.yml POOLS=declared ARGS='-e driver_max_prune=5'"),
    ],
)
def test_the_demo_reports_its_own_command_to_consent(load, path: str, declared: bool, command: str) -> None:
    """The input is the message that the engine creates."""
    demo = load("demo")
    fault = limit_fault(10, 5, "20%", 5, "driver_max_prune")
    assert fault
    assert demo.consent(str(fault), demo.Fleet(path, declared)) == f"Next, where this is meant: {command}"
    assert demo.consent("failed for another reason", demo.Fleet(path, declared)) == ""


def test_every_job_waits_for_jobs_of_its_suite(load) -> None:
    for name, suite in load("jobs").SUITES.items():
        names = [job.name for job in suite]
        assert len(names) == len(set(names)), name
        assert {before for job in suite for before in job.after} <= set(names), name
        assert {job.profile for job in suite} <= set(load("environments").PROFILES), name


def test_the_control_plane_is_not_built_while_another_process_namespace_needs_it(load) -> None:
    """A build in progress is identified by its process. The rig of real nodes builds missing parts, and does not see processes outside of its namespace."""
    jobs = load("jobs")
    assert [
        name for name, suite in jobs.SUITES.items() if jobs.NODE_PARTS in suite and jobs.CONTROL_PLANE not in suite
    ] == []
    assert jobs.NODE_PARTS.after == (jobs.CONTROL_PLANE.name,)
    alone = jobs.with_needed([job for job in jobs.NODE if job.name == "real node"], "node")
    assert [job.name for job in alone] == ["control plane", "parts of real nodes", "real node"]


def test_in_a_whole_run_unit_tests_have_the_rigs_containerd(load) -> None:
    jobs, runs = load("jobs"), load("changed").runs
    found = [job for job in jobs.SUITES["all"] if runs(job, "tests/unit/machines/runtime/test_containerd.py")]
    assert found
    assert [job.name for job in found if jobs.NODE_PARTS.name not in job.after] == []


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Loading role driver\nImporter processing completed successfully\n", []),
        (
            "WARNING: No changelog found.\nImporter processing completed successfully\n",
            ["WARNING: No changelog found."],
        ),
        ("ERROR: The import failed: No role readme.\n", ["ERROR: The import failed: No role readme."]),
        ("Importing with galaxy-importer 0.4.44\n", ["galaxy-importer has not come to its end"]),
    ],
)
def test_warnings_of_galaxy_importer_are_faults(load, output: str, expected: list[str]) -> None:
    assert load("importer").faults(output) == expected


def test_a_collection_is_imported_as_it_is_published(
    load, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "galaxy.yml").write_text('name: gpu\nrepository: ""\n')
    monkeypatch.chdir(tmp_path / "here")
    copy = load("dist").published(tmp_path, "https://example.com/hwaccel/gpu")
    assert (copy / "galaxy.yml").read_text() == "name: gpu\nrepository: https://example.com/hwaccel/gpu\n"
    assert pathlib.Path("galaxy.yml").read_text().endswith('repository: ""\n')


def test_a_stopped_runner_stops_its_processes(load, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Otherwise control planes of live tests would never stop."""
    check, jobs = load("check"), load("jobs")
    cleaned = tmp_path / "cleaned"
    program = f"trap 'touch {cleaned}; exit 1' TERM; touch {cleaned}.ready; while :; do sleep 0.1; done"
    monkeypatch.setattr(check, "LOGS", tmp_path)
    (tmp_path / "one.log").write_text("")
    process = subprocess.Popen(["/bin/sh", "-c", program], start_new_session=True)
    while not pathlib.Path(f"{cleaned}.ready").exists():
        assert process.poll() is None
    check.STOPPED.set()
    try:
        assert check.wait(jobs.Job("one", "demo", ("true",)), process) == (1, "stopped")
        runner = check.Runner((jobs.Job("two", "demo", ("true",)),), 1)
        assert runner.run()["two"].failed
    finally:
        check.STOPPED.clear()
    assert cleaned.exists()
