# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the project that no linter has, for every file of the collection."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.tools.leaks import LOCAL

TOP = pathlib.Path(__file__).resolve().parents[3]
OURS = ("plugins", "roles", "playbooks", "tests", "molecule", "examples", "docs", "meta", "changelogs", ".ci")
TEXT = (".py", ".yml", ".yaml", ".md", ".j2", ".txt", ".sh", ".toml", ".rst", ".cfg", "")
HEADER = (
    "# Copyright (c) 2026 hwaccel.gpu contributors\n"
    "# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)\n"
    "# SPDX-License-Identifier: GPL-3.0-or-later\n"
)
LONGEST_FILE, LONGEST_TEST_FILE, LONGEST_FUNCTION, LONGEST_MAIN = 440, 600, 50, 15


def files(*suffixes: str) -> list[pathlib.Path]:
    found = [
        path
        for folder in OURS
        for path in sorted((TOP / folder).rglob("*"))
        if path.is_file() and path.suffix in suffixes
    ]
    return [
        path
        for path in found
        if "__pycache__" not in path.parts and "output" not in path.parts and not path.is_symlink()
    ]


def name(path: pathlib.Path) -> str:
    return str(path.relative_to(TOP))


def python_files() -> list[pathlib.Path]:
    return [path for path in files(".py") if path.name != "__init__.py"]


def documentation_lines(tree: ast.Module) -> int:
    """Lines of docstrings and of a module's DOCUMENTATION, EXAMPLES and RETURN."""
    count = 0
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr | ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            count += (node.end_lineno or node.lineno) - node.lineno + 1
    return count


#: They run with the Python of machines, which can be 3.6 and does not have this import (tests/unit/machines/test_host.py).
OLD_PYTHONS = {
    "roles/cluster/files/member.py",
    "roles/cluster/files/network.py",
    "roles/cluster_k3s/files/datastore.py",
    "roles/cluster_k3s/files/k3s.py",
    "roles/cluster_k3s/files/restore.py",
    "roles/cluster_k3s/files/rotate.py",
    "roles/cluster_k3s/files/rotate_ca.py",
    "roles/cluster_kubeadm/files/control.py",
    "roles/cluster_kubeadm/files/encryption.py",
    "roles/cluster_kubeadm/files/unpack.py",
    "roles/cluster_openshift/files/witness.py",
    "roles/cluster/files/leftovers.py",
    "roles/cluster_kubeadm/files/restore.py",
    "roles/cluster_kubeadm/files/rotate.py",
    "roles/cluster_kubeadm/files/snapshot.py",
    "roles/machine/files/look.py",
    "roles/dns_pxe/files/once.py",
}


def test_python_files_begin_with_licence_and_docstring() -> None:
    faults = []
    for path in python_files():
        text = path.read_text(encoding="utf-8")
        body = text.split("\n", 1)[1] if text.startswith("#!") else text
        if not body.startswith(HEADER):
            faults.append(f"{name(path)}: licence header")
        if (
            "plugins/modules" not in name(path)
            and "doc_fragments" not in name(path)
            and not ast.get_docstring(ast.parse(text))
        ):
            faults.append(f"{name(path)}: docstring")
        if "from __future__ import annotations" not in text and name(path) not in OLD_PYTHONS:
            faults.append(f"{name(path)}: from __future__ import annotations")
    assert not faults


#: Which Ansible takes from any result, whoever has set it (lib/ansible/executor/task_executor.py and plugins/strategy of ansible-core).
TAKEN_BY_ANSIBLE = {
    "unreachable",
    "failed",
    "skipped",
    "include",
    "invocation",
    "results",
    "retries",
    "attempts",
    "async",
}


def test_results_of_modules_have_no_key_that_ansible_takes() -> None:
    """With `unreachable: true` a host leaves the play, although its task has succeeded."""
    faults = []
    for path in sorted((TOP / "plugins" / "modules").glob("*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "RETURN":
                documented = yaml.safe_load(ast.literal_eval(statement.value)) or {}
                faults += [f"{name(path)}: {key}" for key in sorted(documented.keys() & TAKEN_BY_ANSIBLE)]
    assert not faults


def test_init_files_have_only_a_docstring() -> None:
    """Where ansible-test of core 2.16 requires empty files (its test empty-init), they have no docstring either."""
    faults = []
    for path in files(".py"):
        if path.name == "__init__.py" and path.stat().st_size:
            statements = ast.parse(path.read_text(encoding="utf-8")).body
            if name(path).startswith(("plugins/modules/", "plugins/module_utils/", "tests/unit/")) or [
                type(one) for one in statements
            ] != [ast.Expr]:
                faults.append(name(path))
    assert not faults


def test_files_are_short() -> None:
    faults = []
    for path in python_files():
        text = path.read_text(encoding="utf-8")
        length = len(text.splitlines()) - documentation_lines(ast.parse(text))
        limit = LONGEST_TEST_FILE if path.name.startswith("test_") else LONGEST_FILE
        if length > limit:
            faults.append(f"{name(path)}: {length} lines without documentation, more than {limit}")
    assert not faults


def test_functions_fit_on_a_screen() -> None:
    faults = []
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            limit = LONGEST_MAIN if node.name == "main" and "plugins/modules" in name(path) else LONGEST_FUNCTION
            if length > limit:
                faults.append(f"{name(path)}:{node.lineno} {node.name}: {length} lines, more than {limit}")
    assert not faults


def test_resource_names_come_from_gpu() -> None:
    """Gates, roles and messages take the resources of a node from `_gpu`; MIG and DRA depend on that."""
    literal = re.compile(r"nvidia\.com/(gpu|mig-[0-9a-z.]+)(?![\w./-])")
    searched = [
        *(TOP / "plugins").rglob("*.py"),
        *(TOP / "roles").glob("*/tasks/**/*.yml"),
        *(TOP / "playbooks").glob("**/*.yml"),
    ]
    faults = []
    for path in searched:
        if "_gpu" in path.parts or "doc_fragments" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            tree = ast.parse(text)
            text = without_documentation(tree)
        faults += [
            f"{name(path)}: {line.strip()}"
            for line in text.splitlines()
            if literal.search(line.split("#", maxsplit=1)[0])
        ]
    assert not faults


def without_documentation(tree: ast.Module) -> str:
    """The code without docstrings and documentation blocks, which may name a resource."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr | ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            node.value = ast.Constant("")
    return ast.unparse(tree)


def test_no_local_path_or_address_is_in_the_project() -> None:
    """No home directory and no address of a machine, except for loopback addresses: the collection must work on every machine."""
    faults = []
    for path in [*files(*TEXT), *(entry for entry in TOP.iterdir() if entry.is_file() and entry.suffix in TEXT)]:
        if path == TOP / "tests" / "tools" / "leaks.py" or (not path.suffix and path.read_bytes()[:2] != b"#!"):
            continue
        text = path.read_text(encoding="utf-8")
        faults += [
            f"{name(path)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(text.splitlines(), 1)
            if LOCAL.search(line)
        ]
    assert not faults


def test_no_failure_is_hidden() -> None:
    hidden = re.compile(r"^\s*ignore_errors\s*:\s*(true|yes)|^\s*failed_when\s*:\s*(false|no)\s*$", re.IGNORECASE)
    faults = []
    for path in files(".yml"):
        text = path.read_text(encoding="utf-8")
        faults += [f"{name(path)}: {line.strip()}" for line in text.splitlines() if hidden.match(line)]
        # A rescue does not catch an unreachable machine, so a play that continues must evaluate the result.
        tasks = [(task, rest) for task, rest in tasks_of(yaml.safe_load(text)) if "ignore_unreachable" in task]
        faults += [f"{name(path)}: {task['name']}" for task, rest in tasks if not evaluated(task, rest)]
    assert not faults


def tasks_of(found: object) -> Iterator[tuple[dict[str, object], list[object]]]:
    """Each task of a file, and those after it."""
    entries = found if isinstance(found, list) else []
    for number, entry in enumerate(entries):
        if isinstance(entry, dict):
            yield entry, entries[number + 1 :]
            for part in ("tasks", "block", "rescue", "always", "pre_tasks", "post_tasks"):
                yield from tasks_of(entry.get(part))


def evaluated(task: dict[str, object], rest: list[object]) -> bool:
    return bool(task.get("register")) and str(task["register"]) in yaml.safe_dump(rest)


def test_sanity_ignores_nothing() -> None:
    assert not list((TOP / "tests").glob("sanity/ignore*"))


def test_execution_environment_has_the_same_requirements() -> None:
    def entries(path: str) -> set[str]:
        lines = (
            line.split("#", maxsplit=1)[0].strip() for line in (TOP / path).read_text(encoding="utf-8").splitlines()
        )
        return {line for line in lines if line}

    assert entries("meta/ee-requirements.txt") == entries("requirements.txt")


def test_every_requirement_has_its_reason() -> None:
    faults = []
    for path in TOP.glob("requirements*.txt"):
        commented = False
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "types-")) and not commented:
                faults.append(f"{path.name}: {line}")
            commented = line.startswith("#")
    assert not faults


@pytest.mark.parametrize("group", ["cluster"])
def test_action_group_names_the_modules_that_take_a_connection(group: str) -> None:
    runtime = yaml.safe_load((TOP / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    documented = {
        path.stem
        for path in (TOP / "plugins" / "modules").glob("*.py")
        if f"  - hwaccel.gpu.{group}\n" in path.read_text(encoding="utf-8")
    }
    assert documented, "no module uses the fragment: the comparison would prove nothing"
    assert set(runtime["action_groups"][group]) == documented
