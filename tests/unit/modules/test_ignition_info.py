# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's documentation, argument spec and returned values agree, and it changes nothing."""

from __future__ import annotations

import pathlib
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import ignition_files
from ansible_collections.hwaccel.gpu.plugins.modules import ignition_info as module
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i


def test_documented_options_match_the_spec() -> None:
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    assert set(documented) == set(module.ARGUMENT_SPEC)
    for name, spec in module.ARGUMENT_SPEC.items():
        for key in ("type", "elements", "default", "choices", "required", "aliases"):
            assert documented[name].get(key) == spec.get(key), (name, key)


def test_returned_and_documented_values_are_the_same(tmp_path: pathlib.Path) -> None:
    documented: dict[str, t.Any] = yaml.safe_load(module.RETURN)
    config = i.Installation().bootstrap()
    config["ignition"] |= i.Installation().pointer("master")["ignition"]
    path = tmp_path / "bootstrap.ign"
    path.write_bytes(i.written(config))
    values = ignition_files.run([str(path)], i.NOW).values
    assert set(values) == set(documented)
    fields = documented["files"]["contains"]
    (found,) = values["files"]
    assert set(found) == set(fields)
    for name in ("certificates", "sources", "users", "units", "contents"):
        assert set(found[name][0]) == set(fields[name]["contains"]), name
    assert set(found["clock"]) == set(fields["clock"]["contains"])
    assert set(found["clock"]["first"]) == set(fields["certificates"]["contains"])
