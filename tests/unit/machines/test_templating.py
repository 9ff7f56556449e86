# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Templates of the host roles: each is rendered, and errors are reported with the template and the line."""

from __future__ import annotations

import collections.abc as c
import pathlib

import jinja2
import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _looking
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.plan import plan as load_balancer_plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import cdi, drop_ins
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import RuntimeSettings
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe import boot_server, test_answers
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s import test_plan as k3s
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm import test_plan as kubeadm
from ansible_collections.hwaccel.gpu.tests.unit.machines.load_balancer.test_plan import BARE, PAIR, SETTINGS

ROLES = pathlib.Path(__file__).resolve().parents[3] / "roles"
HOST_ROLES = tuple(_looking.PLANS)
LICENCE = "{#- Copyright (c) 2026 hwaccel.gpu contributors\n"


def templates() -> list[pathlib.Path]:
    return sorted(path for role in HOST_ROLES for path in (ROLES / role / "templates").rglob("*") if path.is_file())


@pytest.fixture
def fresh() -> c.Iterator[None]:
    """Starts and ends the test with an empty cache of compiled templates."""
    templating._environment.cache_clear()
    yield
    templating._environment.cache_clear()


def samples() -> None:
    """Renders everything that the host roles write from templates."""
    assert boot_server.planned()["faults"] == []
    for kind in test_answers.MAIN:
        test_answers.text(kind)
    assert load_balancer_plan(BARE, SETTINGS | PAIR | {"stats_user": "ops", "stats_password": "secret"})["faults"] == []
    assert kubeadm.plan(kubeadm.BARE, kubeadm.SETTINGS)["faults"] == []
    cdi.units(Host())
    drop_ins.render_crio(RuntimeSettings(default=True))
    drop_ins.render_rancher(Host(), "k3s", RuntimeSettings(default=True))
    assert k3s.plan(k3s.BARE, k3s.SETTINGS)["faults"] == []


@pytest.mark.usefixtures("fresh")
def test_each_template_of_a_host_role_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    served: set[pathlib.Path] = set()
    load = jinja2.FileSystemLoader.get_source

    def spy(
        loader: jinja2.FileSystemLoader, environment: jinja2.Environment, template: str
    ) -> tuple[str, str, c.Callable[[], bool]]:
        served.add(ROLES / template)
        return load(loader, environment, template)

    monkeypatch.setattr(jinja2.FileSystemLoader, "get_source", spy)
    samples()
    assert sorted(served) == templates()


def test_each_template_begins_with_its_licence() -> None:
    assert [path.name for path in templates() if not path.read_text(encoding="utf-8").startswith(LICENCE)] == []


def test_a_missing_value_is_reported_with_template_and_line() -> None:
    lines = (ROLES / "load_balancer/templates/haproxy-users.cfg.j2").read_text(encoding="utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if "{{ password }}" in line)
    with pytest.raises(HwaccelError) as raised:
        templating.render("load_balancer", "haproxy-users.cfg", user="ops")
    (fault,) = raised.value.faults
    assert fault.where == f"roles/load_balancer/templates/haproxy-users.cfg.j2, line {number}"
    assert fault.why == "'password' is undefined"


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("one\n{% if %}\n", "a.j2, line 2", "Expected an expression"),
        ("{% for one in number %}\n{{ one }}\n{% endfor %}\n", "a.j2, line 1", "not iterable"),
        ("one\n{% include 'role/templates/b.j2' %}\n", "b.j2, line 3", "'missing' is undefined"),
        ("one\n\n{{ object.missing }}\n", "a.j2, line 3", "has no attribute 'missing'"),
    ],
    ids=["syntax", "type", "included", "attribute"],
)
def test_an_error_in_a_template_is_reported_with_its_location(
    text: str, place: str, why: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "role" / "templates"
    folder.mkdir(parents=True)
    (folder / "a.j2").write_text(text)
    (folder / "b.j2").write_text("one\ntwo\n{{ missing }}\n")
    monkeypatch.setattr(templating, "_ROLES", tmp_path)
    with pytest.raises(HwaccelError) as raised:
        templating.render("role", "a", number=1, object=object())
    (fault,) = raised.value.faults
    assert fault.where == f"roles/role/templates/{place}"
    assert why in fault.why


def test_a_missing_template_is_named() -> None:
    with pytest.raises(HwaccelError, match=r"roles/load_balancer/templates/nothing\.j2"):
        templating.render("load_balancer", "nothing")


def test_only_ipv6_addresses_are_in_brackets() -> None:
    assert templating.bracketed("10.0.0.5") == "10.0.0.5"
    assert templating.bracketed("fd00::5") == "[fd00::5]"
    with pytest.raises(ValueError, match="lb-0"):
        templating.bracketed("lb-0")


def test_values_are_not_evaluated_as_templates() -> None:
    text = templating.render("node_runtime", "rancher.yaml", handler="{{ 1 }} <&> 'x'")
    assert text.endswith("\ndefault-runtime: {{ 1 }} <&> 'x'\n")
