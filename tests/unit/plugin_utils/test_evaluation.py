# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables are evaluated as Ansible does it, with fewer templates. Ansible's own engine is what they are compared with."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleUndefinedVariable
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._evaluation import Evaluation
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._untemplated import template as trusted

#: Values of users, each beside nothing.
GIVEN: tuple[t.Any, ...] = ("words", "", None, True, False, 0, 7, [], ["a"], {"a": "b"})


class Case:
    """Variables with Ansible's engine, which counts what it is asked to evaluate."""

    def __init__(self, **variables: t.Any) -> None:
        self.variables = {"inventory_hostname": "w0", **{name: _trusted(value) for name, value in variables.items()}}
        self.asked: list[t.Any] = []
        self._own = Templar(loader=DataLoader(), variables=self.variables).template
        self.evaluate = Evaluation(self.variables, self._count)

    def _count(self, value: t.Any) -> t.Any:
        self.asked += [value] if isinstance(value, str) else []
        return self._own(value)

    def ansible(self, value: t.Any) -> t.Any:
        return _variables.plain(self._own(value))

    def ours(self, value: t.Any) -> t.Any:
        return _variables.plain(self.evaluate(value))


def _trusted(value: t.Any) -> t.Any:
    return trusted(value) if isinstance(value, str) else value


def alike(value: t.Any) -> t.Any:
    """Core 2.16 makes texts of numbers, an empty one of null, and values of texts such as True."""
    if isinstance(value, list):
        return [alike(one) for one in value]
    if isinstance(value, dict):
        return {key: alike(one) for key, one in value.items()}
    return "" if value is None else str(value)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("default", ["''", "'redfish'", "true", "false"])
@pytest.mark.parametrize("falsy", ["", ", true"])
def test_a_default_counts_where_ansible_takes_it(given: t.Any, default: str, falsy: str) -> None:
    text = trusted(f"{{{{ hwaccel_one | default({default}{falsy}) }}}}")
    for case in (Case(hwaccel_one=given), Case()):
        assert alike(case.ours(text)) == alike(case.ansible(text))
        assert case.asked == [], "no template is compiled for it"


def test_a_default_also_counts_where_something_is_undefined_in_the_variable() -> None:
    case = Case(hwaccel_one="{{ nobody_has_this }}")
    text = trusted("{{ hwaccel_one | default('left', true) }}")
    assert case.ours(text) == case.ansible(text) == "left"


def test_a_variable_that_names_another_one_is_followed_without_a_template() -> None:
    case = Case(first="{{ second }}", second="{{ third | default('x', true) }}", third="value")
    assert case.ours(trusted("{{ first }}")) == case.ansible(trusted("{{ first }}")) == "value"
    assert case.asked == []


@pytest.mark.parametrize("text", ["{{ nobody }}", "{{ one }}", "{{ part }}"])
def test_what_is_undefined_is_undefined(text: str) -> None:
    case = Case(one="{{ nobody }}", part={"a": trusted("{{ nobody }}")})
    with pytest.raises(AnsibleUndefinedVariable):
        case.evaluate(trusted(text))


def test_each_text_is_evaluated_once() -> None:
    case = Case(a="{{ 1 + 1 }}")
    value = {"x": case.variables["a"], "y": [case.variables["a"], "plain", 3, None]}
    assert alike(case.ours(value)) == {"x": "2", "y": ["2", "plain", "3", ""]}
    assert len(case.asked) == 1


def test_a_text_that_is_not_trusted_is_no_template() -> None:
    from ansible.utils.unsafe_proxy import wrap_var

    case = Case(secret="s")
    # Equal to one that was evaluated before.
    assert case.ours(trusted("{{ secret }}")) == "s"
    assert case.ours(wrap_var("{{ secret }}")) == "{{ secret }}"
    case.variables["fact"] = wrap_var("{{ secret }}")
    assert case.ours(trusted("{{ fact }}")) == "{{ secret }}"
    assert case.ours(trusted("{{ fact | default('') }}")) == "{{ secret }}"


def test_defaults_of_all_roles_are_evaluated_alike() -> None:
    """Nothing is set, and then everything that a default mentions."""
    defaults = _variables._defaults()
    few = [
        name for name, value in defaults.items() if isinstance(value, str) and "{{" in value and "lookup" not in value
    ]
    assert len(few) > 90
    names = set().union(*(_variables.default_names()[name] for name in few))
    given = {name: "given" for name in names if name.startswith("hwaccel_")}
    for case in (Case(**defaults), Case(**{**defaults, **given})):
        compared = 0
        for name in few:
            try:
                expected = case.ansible(case.variables[name])
            except Exception:
                # One that needs what only a role or a play has.
                continue
            assert alike(case.ours(case.variables[name])) == alike(expected), name
            compared += 1
        assert compared > 60
