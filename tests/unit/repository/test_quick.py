# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes Pythons of tests cheaper changes nothing of what they say (tests/tools/quick)."""

from __future__ import annotations

import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import types
import typing as t

import pytest

QUICK = pathlib.Path(__file__).parents[2] / "tools" / "quick"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[bytes, types.CodeType]:
    """Code of templates that was made, by its key: as long as the test lasts Ansible makes none a second time."""
    bits = pytest.importorskip("ansible._internal._templating._jinja_bits", reason="keeps templates of ansible-core 2.19 and newer only")
    monkeypatch.setattr(bits.AnsibleEnvironment, "compile", bits.AnsibleEnvironment.compile)
    made: dict[bytes, types.CodeType] = {}

    def keep(key: bytes, make: t.Callable[[], types.CodeType]) -> types.CodeType:
        if key not in made:
            made[key] = make()
        return made[key]

    runpy.run_path(str(QUICK / "quick_playbooks.py"))["templates"](bits, keep)
    return made


def _say(template: str, backslashes: bool = True, variables: dict[str, t.Any] | None = None, **overrides: str) -> t.Any:
    engine = pytest.importorskip("ansible._internal._templating._engine")
    from ansible.template import trust_as_template

    options = engine.TemplateOptions(escape_backslashes=backslashes, overrides=engine.TemplateOverrides(**overrides))
    return engine.TemplateEngine(None, variables or {}).template(trust_as_template(template), options=options)


def test_a_template_is_compiled_once_and_says_what_its_variables_are(kept) -> None:
    assert [_say("{{ one | int + 1 }}", variables={"one": number}) for number in (1, "5")] == [2, 6]
    assert len(kept) == 1


def test_what_changes_how_a_template_is_read_makes_another(kept) -> None:
    assert _say(r"{{ 'a\tb' }}") == r"a\tb"
    assert _say(r"{{ 'a\tb' }}", backslashes=False) == "a\tb"
    assert _say("[[ 1 }} {{ 2 }}") == "[[ 1 }} 2"
    assert _say("[[ 1 }} {{ 2 }}", variable_start_string="[[") == "1 {{ 2 }}"
    assert len(kept) == 4


def test_an_error_in_a_template_is_told_each_time(kept) -> None:
    for _try in range(2):
        with pytest.raises(Exception, match="Syntax error in template"):
            _say("{{ one | }}")
    assert not kept


def test_code_that_was_kept_is_taken_by_the_next_process_and_none_that_is_broken(tmp_path: pathlib.Path) -> None:
    """The module archive's way: what was kept is what runs, and whatever cannot be read is made anew."""
    shutil.copytree(QUICK, tmp_path / "quick")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "said.py").write_text("print('as written')\n")
    shutil.make_archive(str(tmp_path / "modules"), "zip", tmp_path / "modules")
    known = {"PYTHONPATH": str(tmp_path / "quick"), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'modules.zip')!r}); import said"]

    def says() -> str:
        return subprocess.run(command, env=known, capture_output=True, text=True, check=True).stdout

    assert says() == says() == "as written\n"
    (file,) = (tmp_path / "quick" / "compiled" / str(sys.implementation.cache_tag)).iterdir()
    file.write_bytes(b"no code")
    assert says() == "as written\n"
    assert file.read_bytes() != b"no code"


#: As far as a playbook imports things: which of them were changed, and what a file says that is read as a play's vars_files are, and changes.
_PLAYBOOK = """
import sys
from ansible._internal._templating._jinja_bits import AnsibleEnvironment
from ansible.parsing.dataloader import DataLoader
from ansible.utils.collection_loader import _collection_finder

print(AnsibleEnvironment.compile.__name__, getattr(_collection_finder, "compile", compile).__name__)
loader = DataLoader()
for text in ("a: 1", "a: 2"):
    open(sys.argv[1], "w").write(text)
    print(loader.load_from_file(sys.argv[1], cache="vaulted"))
"""


@pytest.mark.parametrize(
    ("name", "says"), [("ansible-playbook", "compile_once compile_once\n{'a': 1}\n{'a': 1}\n"), ("other", "compile compile\n{'a': 1}\n{'a': 2}\n")]
)
def test_only_playbooks_keep_what_they_compile_and_read(tmp_path: pathlib.Path, name: str, says: str) -> None:
    shutil.copytree(QUICK, tmp_path / "quick")
    (tmp_path / name).write_text(_PLAYBOOK)
    known = {"PYTHONPATH": str(tmp_path / "quick"), "PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    command = [sys.executable, str(tmp_path / name), str(tmp_path / "file.yml")]
    assert subprocess.run(command, env=known, capture_output=True, text=True, check=True).stdout == says
