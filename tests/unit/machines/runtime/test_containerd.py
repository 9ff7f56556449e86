# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd: changes to its files, settings that are kept, and how the real program reads them."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import tomllib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import containerd
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import STAGING, RuntimeSettings
from ansible_collections.hwaccel.gpu.tests.unit.machines.runtime.machines import (
    CRI,
    DUMPS,
    EDITED,
    RUNTIME,
    after,
    host,
    lines_added,
    table,
    text,
)

CONFIG, DROP_IN = containerd.CONFIG, containerd.DROP_IN
BINARY = "/usr/bin/nvidia-container-runtime"
ADDITIONAL, DEFAULT = RuntimeSettings(), RuntimeSettings(default=True)


def drop_in(machine: Host, desired: RuntimeSettings = ADDITIONAL) -> dict[str, t.Any]:
    return tomllib.loads(text(containerd.render(machine, CONFIG, desired), DROP_IN))


def test_1_6_needs_the_whole_table_because_a_drop_in_replaces_that_of_the_main_file() -> None:
    found = table(drop_in(host("1.6.20", {CONFIG: EDITED})))
    assert found["sandbox_image"] == "mirror.example.com/pause:3.9"
    assert found["cni"] == {"bin_dir": "/usr/lib/cni", "conf_dir": "/etc/cni/net.d"}
    runc = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    assert found["containerd"]["runtimes"] == {
        "runc": runc,
        "nvidia": {**runc, "options": {"SystemdCgroup": True, "BinaryName": BINARY}},
    }
    assert "default_runtime_name" not in found["containerd"]


def test_1_6_keeps_its_default_runc_if_no_file_names_a_runtime() -> None:
    found = table(drop_in(host("1.6.20", {CONFIG: f'version = 2\n[plugins."{CRI}".cni]\nbin_dir = "/usr/lib/cni"\n'})))
    assert sorted(found["containerd"]["runtimes"]) == ["nvidia", "runc"]


@pytest.mark.parametrize(
    ("version", "plugin", "form"), [("2.0.5", RUNTIME, 3), ("2.4.2", RUNTIME, 4), ("2.4.2", CRI, 2)]
)
def test_2_needs_only_the_runtime(version: str, plugin: str, form: int) -> None:
    options = f'[plugins."{plugin}".containerd.runtimes.runc.options]\nSystemdCgroup = true\n'
    found = drop_in(
        host(version, {CONFIG: f'version = {form}\n[plugins."{plugin}"]\nmax_container_log_line_size = 7\n{options}'})
    )
    assert found["version"] == form
    assert table(found, plugin)["containerd"] == {
        "runtimes": {"nvidia": {"options": {"SystemdCgroup": True, "BinaryName": BINARY}}}
    }
    assert "max_container_log_line_size" not in table(found, plugin)


@pytest.mark.parametrize(("version", "known"), [("1.6.20", False), ("1.7.29", True), ("2.0.5", True), ("2.4.2", False)])
def test_cdi_is_set_if_the_version_has_the_option(version: str, known: bool) -> None:
    for desired in (ADDITIONAL, RuntimeSettings(cdi=False)):
        found = next(iter(drop_in(host(version, {}), desired)["plugins"].values()))
        assert found.get("enable_cdi") == (desired.cdi if known else None)


def test_one_line_is_added_to_the_main_file_and_everything_else_is_kept() -> None:
    machine = host("1.6.20", {})
    machine.files[CONFIG] = File(CONFIG, EDITED, "0600", 7, 8, 1.0)
    rendered = containerd.render(machine, CONFIG, ADDITIONAL)
    assert lines_added(EDITED, text(rendered, CONFIG)) == [f'imports = ["{DROP_IN}"]\n']
    # The drop-in has a copy of settings of the main file, which may be confidential.
    assert {(one.mode, one.uid, one.gid) for one in rendered.contents} == {("0600", 7, 8)}


def test_the_main_file_is_unchanged_if_a_pattern_imports_the_drop_in() -> None:
    main = 'version = 2\nimports = ["conf.d/*.toml"]\n'
    rendered = containerd.render(host("1.6.20", {CONFIG: main}), CONFIG, ADDITIONAL)
    assert text(rendered, CONFIG) == main
    assert f'imports = ["{STAGING}/containerd/drop-in.toml"]' in next(
        one.text for one in rendered.staged if one.path == containerd.AFTER
    )


def test_an_existing_file_that_would_override_the_drop_in_is_a_fault() -> None:
    later = "/etc/containerd/conf.d/zz.toml"
    files = {
        CONFIG: 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n',
        later: f'version = 2\n[plugins."{CRI}"]\nsandbox_image = "x"\n',
    }
    rendered = containerd.render(host("1.6.20", files, (later,)), CONFIG, ADDITIONAL)
    assert [fault.where for fault in rendered.faults] == [later]
    assert containerd.render(host("2.4.2", files, (later,)), CONFIG, ADDITIONAL).faults == []


def test_the_copy_includes_other_drop_ins_and_the_last_one_has_precedence() -> None:
    first, last = "/etc/containerd/a.toml", "/etc/containerd/b.toml"
    files = {
        CONFIG: EDITED,
        **{path: f'version = 2\n[plugins."{CRI}"]\nsandbox_image = "{path}"\n' for path in (first, last)},
    }
    found = table(drop_in(host("1.6.20", files, (first, last))))
    assert found["sandbox_image"] == last
    assert "cni" not in found


@pytest.mark.parametrize("version", sorted(DUMPS))
@pytest.mark.parametrize("desired", [ADDITIONAL, DEFAULT])
def test_rendering_again_changes_nothing(version: str, desired: RuntimeSettings) -> None:
    machine = host(version, {CONFIG: EDITED})
    rendered = containerd.render(machine, CONFIG, desired)
    again = containerd.render(after(machine, rendered), CONFIG, desired)
    assert [(one.path, one.text) for one in again.contents] == [(one.path, one.text) for one in rendered.contents]


def test_a_later_change_of_the_main_file_is_copied() -> None:
    machine = host("1.6.20", {CONFIG: EDITED})
    second = after(machine, containerd.render(machine, CONFIG, ADDITIONAL))
    second.files[CONFIG] = File(CONFIG, second.text(CONFIG).replace("pause:3.9", "pause:3.10"))
    assert table(drop_in(second))["sandbox_image"] == "mirror.example.com/pause:3.10"


def test_the_default_is_removed_when_it_is_no_longer_desired() -> None:
    machine = host("1.6.20", {CONFIG: EDITED})
    second = after(machine, containerd.render(machine, CONFIG, DEFAULT))
    assert table(drop_in(machine, DEFAULT))["containerd"]["default_runtime_name"] == "nvidia"
    assert "default_runtime_name" not in table(drop_in(second))["containerd"]
    by_hand = EDITED + f'[plugins."{CRI}".containerd]\ndefault_runtime_name = "nvidia"\n'
    assert table(drop_in(host("1.6.20", {CONFIG: by_hand})))["containerd"]["default_runtime_name"] == "runc"


@pytest.mark.parametrize(
    ("main", "dump", "message"),
    [
        ("[plugins.cri]\n", Command(0, ""), "no longer supported .*containerd config migrate"),
        ("version = 1\n", Command(0, ""), "no longer supported"),
        (
            "a = [",
            Command(1, "", "toml: line 1: unexpected end"),
            "does not accept its present configuration .*unexpected end",
        ),
    ],
)
def test_a_configuration_that_cannot_be_extended_is_reported(main: str, dump: Command, message: str) -> None:
    machine = host("1.6.20", {CONFIG: main})
    machine.commands["containerd_dump"] = dump
    with pytest.raises(HwaccelError, match=message):
        containerd.render(machine, CONFIG, ADDITIONAL)


def test_credentials_of_registries_are_not_shown() -> None:
    secret = f'version = 2\n[plugins."{CRI}".registry.configs."r.example.com".auth]\npassword = "p"\n'
    assert all(
        one.sensitive for one in containerd.render(host("1.6.20", {CONFIG: secret}), CONFIG, ADDITIONAL).contents
    )
    assert not any(
        one.sensitive for one in containerd.render(host("1.6.20", {CONFIG: EDITED}), CONFIG, ADDITIONAL).contents
    )


def test_an_existing_runtime_and_serving_of_pods_are_detected() -> None:
    existing = f'version = 2\n[plugins."{CRI}".containerd.runtimes.nvidia]\nruntime_type = "x"\n'
    assert containerd.handler_of_others(host("1.6.20", {CONFIG: existing}), CONFIG, "nvidia") == CONFIG
    machine = host("1.6.20", {CONFIG: EDITED})
    assert (
        containerd.handler_of_others(after(machine, containerd.render(machine, CONFIG, ADDITIONAL)), CONFIG, "nvidia")
        == ""
    )
    assert containerd.serves_pods(host("1.6.20", {CONFIG: EDITED}), CONFIG)
    assert not containerd.serves_pods(host("1.6.20", {CONFIG: 'disabled_plugins = ["cri"]\n'}), CONFIG)


@pytest.mark.parametrize(
    ("after_dump", "message"),
    [
        (Command(1, "", "containerd: boom"), "boom"),
        (Command(0, DUMPS["1.6.20"], 'level=warning msg="Ignoring unknown key in TOML: row 3"\n'), "unknown key"),
        (Command(0, DUMPS["1.6.20"]), "not in the configuration that containerd has read"),
        (
            Command(0, f'version = 2\n[plugins."{CRI}".containerd.runtimes.nvidia]\nruntime_type = "x"\n'),
            "would change .*runtimes.runc as well",
        ),
        (Command(0, DUMPS["1.6.20"] + f'[plugins."{CRI}".containerd.runtimes.nvidia]\nruntime_type = "x"\n'), ""),
    ],
)
def test_the_configuration_that_containerd_reads_is_validated(after_dump: Command, message: str) -> None:
    found = containerd.staged_faults(Command(0, DUMPS["1.6.20"]), after_dump, ADDITIONAL)
    assert re.search(message, " ".join(map(str, found))) if message else found == []


def programs() -> list[pathlib.Path]:
    """Real programs: those in HWACCEL_CONTAINERDS, the one of this machine, and one that the rig of real nodes has built."""
    named = [pathlib.Path(path) for path in os.environ.get("HWACCEL_CONTAINERDS", "").split(":") if path]
    here = [pathlib.Path(path) for path in (shutil.which("containerd"),) if path]
    return [*named, *here, *sorted(cache_folder().glob("node/parts/containerd-*/containerd"))[-1:]]


@pytest.mark.skipif(
    not programs(),
    reason="no containerd: neither installed, nor built by the rig of real nodes, nor named by HWACCEL_CONTAINERDS",
)
@pytest.mark.parametrize("program", programs(), ids=str)
@pytest.mark.parametrize("desired", [ADDITIONAL, DEFAULT], ids=["additional", "default"])
@pytest.mark.parametrize(
    "main",
    [
        "",
        EDITED,
        "all defaults",
        f'version = 2\nimports = ["/nowhere/*.toml"]\n[plugins."{CRI}".cni]\nbin_dir = "/usr/lib/cni"\n',
    ],
)
def test_the_real_program_reads_the_runtime_and_no_other_change(
    tmp_path: pathlib.Path, program: pathlib.Path, desired: RuntimeSettings, main: str
) -> None:
    def execute(*arguments: str) -> Command:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)
        return Command(done.returncode, done.stdout, done.stderr)

    main = execute("config", "default").output if main == "all defaults" else main
    machine = Host(commands={"containerd": execute("--version"), "containerd_dump": execute("config", "default")})
    if main:
        (tmp_path / "config.toml").write_text(main, encoding="utf-8")
        machine.files[CONFIG] = File(CONFIG, main)
        machine.commands["containerd_dump"] = execute("-c", str(tmp_path / "config.toml"), "config", "dump")
    for staged in (rendered := containerd.render(machine, CONFIG, desired)).staged:
        (tmp_path / pathlib.Path(staged.path).name).write_text(
            staged.text.replace(f"{STAGING}/containerd", str(tmp_path)), encoding="utf-8"
        )
    before, after_it = (
        execute("-c", str(tmp_path / pathlib.Path(path).name), "config", "dump")
        for path in (containerd.BEFORE, containerd.AFTER)
    )
    assert containerd.staged_faults(before, after_it, desired) == []
    assert BINARY in after_it.output
    if main:
        assert len(set(text(rendered, CONFIG).splitlines(keepends=True)) - set(main.splitlines(keepends=True))) <= 1
