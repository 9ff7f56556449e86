# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Caches of the Python processes of tests do not change their results (tests/tools/quick)."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import types
import typing as t

import ansible.template
import pytest

QUICK = pathlib.Path(__file__).parents[2] / "tools" / "quick"
#: Jinja folds constants in older releases of ansible-core, so nothing is cached there.
FOLDS = importlib.util.find_spec("ansible._internal") is None


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[bytes, types.CodeType]:
    """Compiled code of templates by its key. During the test each template is compiled once."""
    compiled: dict[bytes, types.CodeType] = {}

    def keep(key: bytes, make: t.Callable[[], types.CodeType]) -> types.CodeType:
        if key not in compiled:
            compiled[key] = make()
        return compiled[key]

    if not FOLDS:
        bits = importlib.import_module("ansible._internal._templating._jinja_bits")
        monkeypatch.setattr(bits.AnsibleEnvironment, "compile", bits.AnsibleEnvironment.compile)
        runpy.run_path(str(QUICK / "quick_playbooks.py"))["templates"](bits, keep)
    return compiled


def _render(text: str, backslashes: bool = True, variables: dict[str, t.Any] | None = None, **overrides: str) -> t.Any:
    trusted = getattr(ansible.template, "trust_as_template", str)(text)
    return ansible.template.Templar(None, variables=variables or {}).template(
        trusted, escape_backslashes=backslashes, overrides=overrides or None
    )


def test_a_template_is_compiled_once_and_rendered_with_its_current_variables(kept) -> None:
    assert [_render("{{ one }} of {{ two | upper }}", variables={"one": number, "two": "a"}) for number in (1, 2)] == [
        "1 of A",
        "2 of A",
    ]
    assert len(kept) == (0 if FOLDS else 1)


def test_options_of_the_parser_are_part_of_the_cache_key(kept) -> None:
    assert _render(r"{{ 'a\tb' }}") == r"a\tb"
    assert _render(r"{{ 'a\tb' }}", backslashes=False) == "a\tb"
    assert _render("<< 1 }} {{ 2 }}") == "<< 1 }} 2"
    assert _render("<< 1 }} {{ 2 }}", variable_start_string="<<") == "1 {{ 2 }}"
    assert len(kept) == (0 if FOLDS else 4)


def test_an_error_in_a_template_is_raised_each_time(kept) -> None:
    for _try in range(2):
        with pytest.raises(Exception, match=r"(?i)syntax error|template error while templating"):
            _render("{{ one | }}")
    assert not kept


def test_cached_code_is_used_by_the_next_process_unless_it_is_damaged(tmp_path: pathlib.Path) -> None:
    """The module archive is imported like a module of Ansible: cached code runs, and unreadable code is compiled again."""
    shutil.copytree(QUICK, tmp_path / "quick")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "said.py").write_text("print('as written')\n")
    shutil.make_archive(str(tmp_path / "modules"), "zip", tmp_path / "modules")
    known = {"PYTHONPATH": str(tmp_path / "quick"), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'modules.zip')!r}); import said"]

    def output() -> str:
        return subprocess.run(command, env=known, capture_output=True, text=True, check=True).stdout

    assert output() == output() == "as written\n"
    (file,) = (tmp_path / "quick" / "compiled" / str(sys.implementation.cache_tag)).iterdir()
    file.write_bytes(b"no code")
    assert output() == "as written\n"
    assert file.read_bytes() != b"no code"


#: Imports like a playbook: prints which functions were replaced, and the content of a file that is read like a play's vars_files and then changes.
_PLAYBOOK = """
import sys
from ansible import template
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import lookup_loader
from ansible.utils.collection_loader import _collection_finder

print(template.Templar(None).environment.compile.__name__, getattr(_collection_finder, "compile", compile).__name__)
print(sys.modules[lookup_loader.get("template", class_only=True).__module__].deepcopy.__name__)
loader = DataLoader()
for text in ("a: 1", "a: 2"):
    open(sys.argv[1], "w").write(text)
    print(loader.load_from_file(sys.argv[1], cache="vaulted"))
"""


@pytest.mark.parametrize("name", ["ansible-playbook", "other"])
def test_only_playbooks_cache_compiled_code_and_files(tmp_path: pathlib.Path, name: str) -> None:
    shutil.copytree(QUICK, tmp_path / "quick")
    (tmp_path / name).write_text(_PLAYBOOK)
    known = {
        "PYTHONPATH": str(tmp_path / "quick"),
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    command = [sys.executable, str(tmp_path / name), str(tmp_path / "file.yml")]
    compiled, copies, *read = subprocess.run(
        command, env=known, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    keeps = name == "ansible-playbook"
    assert (
        compiled == f"{'compile_once' if keeps and not FOLDS else 'compile'} {'compile_once' if keeps else 'compile'}"
    )
    assert copies == ("dict" if keeps else "deepcopy")
    # Older releases of ansible-core read these files only once.
    assert read == ["{'a': 1}", "{'a': 1}" if keeps or FOLDS else "{'a': 2}"]
