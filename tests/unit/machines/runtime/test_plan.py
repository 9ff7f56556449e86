# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole plan of a machine: who brings it, what is installed, which services run with what is on disk, and the way back."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import containerd, docker, originals, plan
from ansible_collections.hwaccel.gpu.tests.unit.machines.runtime import machines
from ansible_collections.hwaccel.gpu.tests.unit.machines.runtime.machines import CRI, EDITED

SETTINGS: dict[str, t.Any] = {
    "provider": "",
    "engines": [],
    "default_runtime": False,
    "cdi": True,
    "mode": "auto",
    "handler": "nvidia",
    "containerd_config": containerd.CONFIG,
    "without_gpu": False,
    "selinux": True,
    "min_disk_gib": 10,
    "skipped_checks": [],
    "toolkit_source": "",
    "toolkit_version": "1.20.1",
    "repository_key": "",
    "archive": "",
    "drain": "ends_pods",
}
FACTS = {
    "gpus": "0x030200\n0x030200\n",
    "usr_writable": "yes",
    "etc_writable": "yes",
    "managers": "apt-get\n",
    "package": "1.20.1-1",
    "runtime_binary": "/usr/bin/nvidia-container-runtime",
    "cgroup": "cgroup2fs",
}


def machine(files: dict[str, str] | None = None, **facts: str) -> Host:
    return machines.host("1.6.20", {containerd.CONFIG: EDITED, **(files or {})}, **{**FACTS, **facts})


def planned(host: Host, **settings: t.Any) -> dict[str, t.Any]:
    return plan.plan(host, {**SETTINGS, **settings})


def texts(made: dict[str, t.Any]) -> list[str]:
    return [fault["text"] for fault in made["faults"]]


def applied(host: Host, made: dict[str, t.Any], at: float = 300.0) -> Host:
    """The machine once the plan is carried out."""
    files = {path: file for path, file in host.files.items() if path not in made["absent"]}
    for path in made["originals"]:
        files[originals.original(path)] = File(originals.original(path), host.text(path))
    for one in made["files"]:
        if host.text(one["path"]) != made["contents"][one["path"]]:
            files[one["path"]] = File(
                one["path"], made["contents"][one["path"]], one["mode"], one["uid"], one["gid"], at
            )
    if made["record"]:
        files[originals.RECORD] = File(originals.RECORD, made["record"])
    imports = [containerd.DROP_IN] if containerd.DROP_IN in files else []
    return Host(host.facts, files, host.commands, host.units, imports)


@pytest.mark.parametrize(
    ("facts", "files", "settings", "provider", "told"),
    [
        ({}, {}, {}, "hwaccel", "this role provides it (there is no other provider)"),
        ({"gpus": ""}, {}, {}, "none", "the machine has no NVIDIA GPU"),
        ({"gpus": ""}, {}, {"without_gpu": True}, "hwaccel", "this role"),
        ({"gpus": "", "tegra": "# R36 (release), REVISION: 4.0"}, {}, {}, "hwaccel", "this role"),
        ({"ostree": "yes"}, {}, {}, "container", "its system is an image (ostree)); nothing is changed"),
        ({"usr_writable": ""}, {}, {}, "container", "its system is read-only"),
        ({}, {containerd.OF_TOOLKIT_CONTAINER: ""}, {}, "container", "it has configured containerd already"),
        (
            {},
            {docker.CONFIG: '{"runtimes": {"nvidia": {"path": "x"}}}'},
            {},
            "existing",
            "daemon.json has the runtime nvidia",
        ),
        (
            {},
            {containerd.CONFIG: f'version = 2\n[plugins."{CRI}".containerd.runtimes.nvidia]\n'},
            {},
            "existing",
            "config.toml has the runtime nvidia",
        ),
        ({}, {}, {"provider": "existing"}, "existing", "node_runtime_provider says so"),
    ],
)
def test_who_brings_it(
    facts: dict[str, str], files: dict[str, str], settings: dict[str, t.Any], provider: str, told: str
) -> None:
    made = planned(machine(files, **facts), **settings)
    assert made["provider"] == provider
    assert told in made["messages"][0]
    assert bool(made["files"]) == (provider == "hwaccel")
    assert made["faults"] == []


def test_what_the_role_has_brought_is_not_somebody_elses() -> None:
    host = machine({docker.CONFIG: "{}"})
    host.units["docker"] = Unit(loaded=True)
    assert planned(applied(host, planned(host)))["provider"] == "hwaccel"


@pytest.mark.parametrize(("facts", "files"), [({"ostree": "yes"}, {}), ({}, {containerd.OF_TOOLKIT_CONTAINER: ""})])
def test_what_cannot_be_is_refused(facts: dict[str, str], files: dict[str, str]) -> None:
    made = planned(machine(files, **facts), provider="hwaccel")
    assert len(made["faults"]) == 1
    assert made["files"] == []


def test_the_second_run_changes_nothing_and_restarts_nothing() -> None:
    host = machine()
    first = planned(host)
    assert [one["unit"] for one in first["actions"]] == ["containerd"]
    assert first["originals"] == [containerd.CONFIG]
    second = applied(host, first, at=150.0)
    again = planned(second)
    assert (again["changes"], again["actions"], again["originals"]) == ([], [], [])
    assert (again["files"], again["record"]) == ([], "")


def test_a_file_of_the_role_that_others_may_write_is_written_again() -> None:
    host = machine()
    second = applied(host, planned(host), at=150.0)
    kept = second.files[containerd.DROP_IN]
    second.files[containerd.DROP_IN] = File(kept.path, kept.text, "0666", kept.uid, kept.gid, kept.changed_at)
    assert [(one["path"], one["mode"]) for one in planned(second)["files"]] == [(containerd.DROP_IN, kept.mode)]


def test_a_service_that_is_older_than_its_files_is_restarted_and_one_that_does_not_run_is_not() -> None:
    host = machine()
    written = applied(host, planned(host), at=300.0)
    assert [one["why"] for one in planned(written)["actions"]] == [
        f"{containerd.DROP_IN} is newer than the running service"
    ]
    written.units["containerd"] = Unit(loaded=True, active=False)
    assert planned(written)["actions"] == []


@pytest.mark.parametrize(
    ("generated", "since", "restarted"),
    [("0", "300", True), ("0", "", True), ("0", "100", False), ("4", "300", False), ("", "300", False)],
)
def test_k3s_is_restarted_once_the_runtime_is_there_and_not_again_and_again(
    generated: str, since: str, restarted: bool
) -> None:
    host = machine(k3s_generated=generated, runtime_since=since)
    host.units.clear()
    host.units["k3s-agent"] = Unit(loaded=True, active=True, started_at=200.0)
    assert [one["unit"] for one in planned(host)["actions"]] == (["k3s-agent"] if restarted else [])


LIVE, NOT_LIVE = Command(0, "true\n"), Command(0, "false\n")


@pytest.mark.parametrize(
    ("drain", "live", "file", "drained", "looked"),
    [
        ("ends_pods", NOT_LIVE, "{}", "a restart of docker ends its containers", True),
        # The daemon gives no answer.
        ("ends_pods", Command(1, "", "permission denied"), "{}", "a restart of docker ends its containers", True),
        ("ends_pods", None, "{}", "a restart of docker ends its containers", True),
        ("ends_pods", LIVE, '{"live-restore": true}', "", True),
        # By its unit's command line.
        ("ends_pods", LIVE, "{}", "", True),
        # As it is started, it does not know it any more; as it is stopped, it does not know it yet.
        ("ends_pods", LIVE, '{"live-restore": false}', "a restart of docker ends its containers", True),
        ("ends_pods", NOT_LIVE, '{"live-restore": true}', "a restart of docker ends its containers", True),
        ("always", LIVE, "{}", "node_runtime_drain says so", True),
        ("never", NOT_LIVE, "{}", "", False),
    ],
)
def test_pods_leave_before_a_restart_that_ends_them(
    drain: str, live: Command | None, file: str, drained: str, looked: bool
) -> None:
    host = machine({docker.CONFIG: file})
    host.units["docker"] = Unit(loaded=True, active=True)
    host.commands.update({"docker_live_restore": live} if live else {})
    made = planned(host, drain=drain)
    assert (made["drain"], made["drains"]) == (drained, looked)
    assert [one for one in made["messages"] if "node is drained" in one] == (
        [f"the node is drained before: {drained}"] if drained else []
    )
    back = plan.restored(applied(host, made), {**SETTINGS, "drain": drain})
    assert (back["drain"], back["drains"]) == (drained, looked)


@pytest.mark.parametrize(
    ("drain", "drained", "looked"),
    [("ends_pods", "", False), ("always", "node_runtime_drain says so", True), ("never", "", False)],
)
def test_a_restart_of_containerd_ends_no_pods(drain: str, drained: str, looked: bool) -> None:
    made = planned(machine(), drain=drain)
    assert [one["unit"] for one in made["actions"]] == ["containerd"]
    assert (made["drain"], made["drains"]) == (drained, looked)


def test_where_nothing_is_restarted_pods_stay_and_a_cordon_of_an_earlier_run_is_looked_for() -> None:
    host = machine({docker.CONFIG: "{}"})
    host.units["docker"] = Unit(loaded=True, active=True, started_at=400.0)
    host.units["containerd"] = Unit(loaded=True, active=True, started_at=400.0)
    for drain in ("ends_pods", "always"):
        made = planned(applied(host, planned(host), at=300.0), drain=drain)
        assert (made["actions"], made["drain"], made["drains"]) == ([], "", True)


def test_engines_are_those_that_are_there() -> None:
    host = machine({docker.CONFIG: "{}", "/etc/crio/x": ""})
    host.facts["k3s_generated"] = "0"
    for unit in ("docker", "crio", "k3s-agent"):
        host.units[unit] = Unit(loaded=True, active=True)
    assert set(planned(host)["contents"]) == {
        containerd.CONFIG,
        containerd.DROP_IN,
        docker.CONFIG,
        "/etc/crio/crio.conf.d/99-hwaccel-gpu.conf",
    }
    assert {one["unit"] for one in planned(host)["actions"]} == {"containerd", "docker", "crio", "k3s-agent"}
    assert set(planned(host, engines=["docker"])["contents"]) == {docker.CONFIG}
    assert "rke2 is not installed on the machine" in texts(planned(host, engines=["rke2"]))[0]


def test_containerd_that_serves_docker_alone_is_left_as_it_is() -> None:
    host = machine({containerd.CONFIG: 'disabled_plugins = ["cri"]\n', docker.CONFIG: "{}"})
    host.units["docker"] = Unit(loaded=True)
    made = planned(host)
    assert list(made["contents"]) == [docker.CONFIG]
    assert "containerd serves no pods" in made["messages"][1]


def test_faults_of_all_engines_and_of_the_machine_are_told_at_once() -> None:
    host = machine({docker.CONFIG: "{", containerd.CONFIG: "[plugins.cri]\n"}, modules="nouveau")
    host.units["docker"] = Unit(loaded=True)
    told = " ".join(texts(planned(host)))
    assert "nouveau" in told
    assert "not JSON" in told
    assert "no longer supported" in told


@pytest.mark.parametrize(
    ("facts", "settings", "install", "fault"),
    [
        ({}, {}, False, ""),
        ({"runtime_binary": "", "package": ""}, {}, False, "toolkit is not installed"),
        ({"package": ""}, {"toolkit_source": "archive", "archive": "/a"}, True, ""),
        ({"package": "1.19.0-1"}, {"toolkit_source": "archive", "archive": "/a"}, True, ""),
        ({"package": "1.19.0-1"}, {"toolkit_source": "archive", "archive": "/a", "toolkit_version": ""}, False, ""),
        ({"package": "1.20.10-1"}, {"toolkit_source": "repository", "repository_key": "k"}, True, ""),
        ({}, {"toolkit_source": "repository", "repository_key": "k"}, False, ""),
        ({"package": ""}, {"toolkit_source": "repository"}, True, "node_runtime_repository_key"),
        ({"package": ""}, {"toolkit_source": "archive"}, True, "node_runtime_archive"),
        (
            {"package": "", "managers": ""},
            {"toolkit_source": "archive", "archive": "/a"},
            True,
            "neither apt-get nor dnf",
        ),
    ],
)
def test_whether_the_toolkit_is_installed(
    facts: dict[str, str], settings: dict[str, t.Any], install: bool, fault: str
) -> None:
    made = planned(machine(**facts), **settings)
    assert made["toolkit"]["install"] == install
    assert fault in " ".join(texts(made)) if fault else made["faults"] == []


def test_packages_are_pinned_and_only_new_ones_are_the_roles() -> None:
    asked = {"toolkit_source": "repository", "repository_key": "k"}
    made = planned(machine(package=""), **asked)
    assert made["toolkit"]["names"][-1] == "nvidia-container-toolkit=1.20.1-*"
    assert (
        planned(machine(managers="dnf\n", package=""), **asked)["toolkit"]["names"][-1]
        == "nvidia-container-toolkit-1.20.1"
    )
    assert json.loads(made["record"])["packages"] == list(plan.PACKAGES)
    assert json.loads(planned(machine(package="1.19.0-1"), **asked)["record"])["packages"] == []


def test_how_the_runtime_works_is_written_where_it_is_asked_for_or_was() -> None:
    host = machine({plan.TOOLKIT_CONFIG: '[nvidia-container-runtime]\nmode = "auto" # by the package\n'})
    assert plan.TOOLKIT_CONFIG not in planned(host)["contents"]
    made = planned(host, mode="legacy")
    assert made["contents"][plan.TOOLKIT_CONFIG] == '[nvidia-container-runtime]\nmode = "legacy" # by the package\n'
    assert planned(applied(host, made))["contents"][plan.TOOLKIT_CONFIG] == host.text(plan.TOOLKIT_CONFIG)


@pytest.mark.parametrize(
    ("facts", "settings", "unit"),
    [
        ({"driver": "580.1"}, {}, "hwaccel-gpu-cdi.path"),
        ({}, {}, ""),
        ({"driver": "580.1"}, {"cdi": False}, ""),
        ({"driver": "580.1", "driver_in_container": "yes"}, {}, ""),
    ],
)
def test_gpus_are_described_where_the_driver_is_the_machines_own(
    facts: dict[str, str], settings: dict[str, t.Any], unit: str
) -> None:
    made = planned(machine(**facts), **settings)
    assert made["cdi"].get("unit", "") == unit
    assert any("hwaccel-gpu-cdi" in path for path in made["contents"]) == bool(unit)


def test_the_toolkits_own_unit_is_taken_where_it_is() -> None:
    host = machine(driver="580.1")
    host.units["nvidia-cdi-refresh.path"] = Unit(loaded=True)
    made = planned(host)
    assert made["cdi"]["unit"] == "nvidia-cdi-refresh.path"
    assert not any("hwaccel-gpu-cdi" in path for path in made["contents"])


def test_jetson_boards_are_described_by_their_csv_files() -> None:
    made = planned(machine(gpus="", tegra="# R36 (release), REVISION: 4.0", csv="/e/devices.csv /e/drivers.csv"))
    assert made["cdi"]["generate"][3:6] == ["--mode=csv", "--csv.file=/e/devices.csv", "--csv.file=/e/drivers.csv"]
    assert "PathChanged=/e/drivers.csv\n" in made["contents"]["/etc/systemd/system/hwaccel-gpu-cdi.path"]


@pytest.mark.parametrize(
    ("generated", "listed", "fault", "told"),
    [
        (Command(0, ""), "nvidia.com/gpu=0\nnvidia.com/gpu=1\nnvidia.com/gpu=all\n", "", 0),
        (Command(0, ""), "nvidia.com/gpu=0\nnvidia.com/gpu=1:0\nnvidia.com/gpu=1:1\n", "", 0),
        (Command(0, ""), "nvidia.com/gpu=0\nnvidia.com/gpu=all\n", "of 2 GPUs it lacks 1", 0),
        (Command(1, "", 'level=error msg="failed to initialize NVML"'), "", "failed to initialize NVML", 0),
        (
            Command(0, "", 'level=warning msg="Could not locate libx.so: not found"'),
            "nvidia.com/gpu=0\nnvidia.com/gpu=1\n",
            "",
            1,
        ),
    ],
)
def test_a_description_is_complete_or_refused(generated: Command, listed: str, fault: str, told: int) -> None:
    found = plan.checked(machine(), SETTINGS, {"cdi_generate": generated, "cdi_list": Command(0, listed)})
    assert fault in " ".join(texts(found)) if fault else found["faults"] == []
    assert len(found["messages"]) == told


def test_what_other_checkers_say_is_told() -> None:
    found = plan.checked(
        machine(), SETTINGS, {"docker": Command(1, "", "unable to configure the Docker daemon"), "crio": Command(0, "")}
    )
    assert len(found["faults"]) == 1
    assert "unable to configure" in texts(found)[0]


@pytest.mark.parametrize(
    ("selinux", "boolean", "switched"),
    [
        ("Enforcing", "off", True),
        ("Permissive", "off", True),
        ("Enforcing", "on", False),
        ("Disabled", "off", False),
        ("", "", False),
    ],
)
def test_selinux_lets_containers_use_devices_where_it_is_on(selinux: str, boolean: str, switched: bool) -> None:
    made = planned(machine(selinux=selinux, container_use_devices=f"container_use_devices --> {boolean}"))
    assert made["selinux"] == switched
    assert bool(json.loads(made["record"])["settings"]) == switched
    assert not planned(
        machine(selinux="Enforcing", container_use_devices="container_use_devices --> off"), selinux=False
    )["selinux"]


def test_teardown_puts_back_what_was_there_and_removes_the_rest() -> None:
    host = machine({docker.CONFIG: '{"debug": true}'})
    host.units["docker"] = Unit(loaded=True, active=True)
    there = applied(host, planned(host))
    back = plan.restored(there, SETTINGS)
    assert back["contents"] == {containerd.CONFIG: EDITED, docker.CONFIG: '{"debug": true}'}
    assert back["absent"] == [containerd.DROP_IN]
    assert {one["unit"] for one in back["actions"]} == {"containerd", "docker"}
    assert back["messages"] == []


def ended_before_its_restart(host: Host, back: dict[str, t.Any]) -> Host:
    """The machine once teardown has put its files back and done no more."""
    files = {path: file for path, file in host.files.items() if path not in back["absent"]}
    files |= {path: dataclasses.replace(files[path], text=text) for path, text in back["contents"].items()}
    files[originals.RECORD] = File(originals.RECORD, back["record"])
    return dataclasses.replace(host, files=files, imports=[])


def test_a_teardown_that_ended_between_files_and_restart_is_made_up_for_by_the_next() -> None:
    host = machine({docker.CONFIG: '{"debug": true}'})
    host.units["docker"] = Unit(loaded=True, active=True)
    there = applied(host, planned(host))
    first = plan.restored(there, SETTINGS)
    assert first["record"]
    there = ended_before_its_restart(there, first)
    again = plan.restored(there, SETTINGS)
    assert (again["actions"], again["drain"], again["record"]) == (first["actions"], first["drain"], "")
    assert again["drain"] == "a restart of docker ends its containers"
    there.units["docker"] = Unit(loaded=True, active=False)
    assert [one["unit"] for one in plan.restored(there, SETTINGS)["actions"]] == ["containerd"], (
        "who does not run reads its files when it starts"
    )
    there.files[originals.RECORD] = File(originals.RECORD, again["restarted"])
    done = plan.restored(there, SETTINGS)
    assert (done["actions"], done["record"]) == ([], "")


def test_a_run_after_such_a_teardown_forgets_no_restart() -> None:
    host = machine()
    there = applied(host, planned(host))
    there = ended_before_its_restart(there, plan.restored(there, SETTINGS))
    there = applied(there, planned(there))
    assert json.loads(there.text(originals.RECORD))["due"] == ["containerd"]


def test_a_record_of_before_restarts_were_recorded_is_read() -> None:
    host = machine()
    there = applied(host, planned(host))
    old = {key: value for key, value in json.loads(there.text(originals.RECORD)).items() if key != "due"}
    there.files[originals.RECORD] = File(originals.RECORD, json.dumps(old))
    assert [one["unit"] for one in plan.restored(there, SETTINGS)["actions"]] == ["containerd"]


def test_teardown_leaves_what_others_have_changed_since() -> None:
    host = machine({docker.CONFIG: '{"debug": true}'})
    host.units["docker"] = Unit(loaded=True, active=True)
    there = applied(host, planned(host))
    for path in (containerd.CONFIG, docker.CONFIG):
        edited = there.text(path).replace("4711", "4712").replace("true", "false")
        there.files[path] = File(path, edited)
    back = plan.restored(there, SETTINGS)
    assert back["contents"][containerd.CONFIG] == EDITED.replace("4711", "4712").replace("true", "false")
    assert json.loads(back["contents"][docker.CONFIG]) == {"debug": False}
    assert len(back["messages"]) == 2


@pytest.mark.parametrize("default", [False, True])
def test_teardown_leaves_what_others_have_changed_between_two_runs(default: bool) -> None:
    host = machine({docker.CONFIG: '{"debug": true}'})
    host.units["docker"] = Unit(loaded=True, active=True)
    there = applied(host, planned(host))
    for path in (containerd.CONFIG, docker.CONFIG):
        there.files[path] = File(path, there.text(path).replace("4711", "4712").replace("true", "false"))
    there = applied(there, planned(there, default_runtime=default))
    back = plan.restored(there, SETTINGS)
    assert "4712" in back["contents"][containerd.CONFIG]
    assert json.loads(back["contents"][docker.CONFIG]) == {"debug": False}


def test_teardown_where_nothing_was_done_does_nothing() -> None:
    back = plan.restored(machine(), SETTINGS)
    assert (back["files"], back["absent"], back["actions"], back["packages"]) == ([], [], [], [])


def test_a_damaged_record_is_told() -> None:
    with pytest.raises(HwaccelError, match=r"damaged \(/var/lib/hwaccel-gpu/node_runtime/record.json\)"):
        plan.restored(machine({originals.RECORD: "{"}), SETTINGS)
    assert "damaged" in texts(planned(machine({originals.RECORD: "{}"})))[0]
