# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a machine: provider, packages, files, restarts of services, and teardown."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import (
    containerd,
    docker,
    drop_ins,
    originals,
    plan,
)
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
    "programs": [],
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


def texts(result: dict[str, t.Any]) -> list[str]:
    return [fault["text"] for fault in result["faults"]]


def applied(host: Host, result: dict[str, t.Any], at: float = 300.0) -> Host:
    """The machine after the plan was applied."""
    files = {path: file for path, file in host.files.items() if path not in result["absent"]}
    for path in result["originals"]:
        files[originals.original(path)] = File(originals.original(path), host.text(path))
    for one in result["files"]:
        if host.text(one["path"]) != result["contents"][one["path"]]:
            files[one["path"]] = File(
                one["path"], result["contents"][one["path"]], one["mode"], one["uid"], one["gid"], at
            )
    if result["record"]:
        files[originals.RECORD] = File(originals.RECORD, result["record"])
    imports = [containerd.DROP_IN] if containerd.DROP_IN in files else []
    return Host(host.facts, files, host.commands, host.units, imports)


@pytest.mark.parametrize(
    ("facts", "files", "settings", "provider", "message"),
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
        # As site runs it: the toolkit of the role driver is there for machines that nobody has prepared.
        ({"runtime_binary": ""}, {}, {"optional": True}, "container", "node_runtime_toolkit_source is not set"),
        ({}, {}, {"optional": True}, "hwaccel", "this role"),
        # What containers with GPUs need does not matter without any.
        ({"gpus": "", "clock": "no"}, {}, {}, "none", "the machine has no NVIDIA GPU"),
    ],
)
def test_the_provider(
    facts: dict[str, str], files: dict[str, str], settings: dict[str, t.Any], provider: str, message: str
) -> None:
    result = planned(machine(files, **facts), **settings)
    assert result["provider"] == provider
    assert message in result["messages"][0]
    assert bool(result["files"]) == (provider == "hwaccel")
    assert result["faults"] == []


def test_an_engine_that_comes_with_the_cluster_is_no_problem_before() -> None:
    host = machine()
    host.units.clear()
    assert any("no container engine is installed" in text for text in texts(planned(host)))
    result = planned(host, follows="kubeadm")
    assert (result["faults"], result["ahead"]) == ([], False)
    assert "the container engine comes with the cluster, and is configured then" in result["messages"]


@pytest.mark.parametrize("engines", [[], ["k3s"], ["docker", "k3s"]])
def test_k3s_finds_the_toolkit_when_it_starts_first(engines: list[str]) -> None:
    host = machine({docker.CONFIG: "{}"}, package="", runtime_binary="")
    host.units.clear()
    if "docker" in engines:
        host.units["docker"] = Unit(loaded=True)
    given = {"engines": engines, "follows": "k3s", "toolkit_source": "archive", "archive": "/tmp/x"}
    result = planned(host, **given, default_runtime=True)
    assert (result["faults"], result["ahead"], result["toolkit"]["install"]) == ([], True, True)
    assert drop_ins.drop_in("k3s") in result["contents"]
    assert result["actions"] == []
    # There is no node yet that could be drained, or released.
    assert [
        planned(host, **{**given, "drain": value})[name]
        for value in ("always", "ends_pods")
        for name in ("drain", "releases")
    ] == ["", False] * 2
    assert "k3s comes with the cluster, and finds the runtime when it starts first" in result["messages"]
    # Nothing is predicted of a file that is not there.
    assert planned(host, **given)["absent"] == []
    host.units["k3s-agent"] = Unit(loaded=True, active=True)
    assert planned(host, **given)["ahead"] is False


def test_a_runtime_of_the_role_is_not_an_existing_one() -> None:
    host = machine({docker.CONFIG: "{}"})
    host.units["docker"] = Unit(loaded=True)
    assert planned(applied(host, planned(host)))["provider"] == "hwaccel"


@pytest.mark.parametrize(("facts", "files"), [({"ostree": "yes"}, {}), ({}, {containerd.OF_TOOLKIT_CONTAINER: ""})])
def test_an_impossible_provider_is_reported(facts: dict[str, str], files: dict[str, str]) -> None:
    result = planned(machine(files, **facts), provider="hwaccel")
    assert len(result["faults"]) == 1
    assert result["files"] == []


def test_the_second_run_changes_nothing_and_restarts_nothing() -> None:
    host = machine()
    first = planned(host)
    assert [one["unit"] for one in first["actions"]] == ["containerd"]
    assert first["originals"] == [containerd.CONFIG]
    second = applied(host, first, at=150.0)
    again = planned(second)
    assert (again["changes"], again["actions"], again["originals"]) == ([], [], [])
    assert (again["files"], again["record"]) == ([], "")


def test_a_file_of_the_role_with_another_mode_is_written_again() -> None:
    host = machine()
    second = applied(host, planned(host), at=150.0)
    kept = second.files[containerd.DROP_IN]
    second.files[containerd.DROP_IN] = File(kept.path, kept.text, "0666", kept.uid, kept.gid, kept.changed_at)
    assert [(one["path"], one["mode"]) for one in planned(second)["files"]] == [(containerd.DROP_IN, kept.mode)]


def test_a_running_service_that_is_older_than_its_files_is_restarted() -> None:
    host = machine()
    written = applied(host, planned(host), at=300.0)
    assert [one["why"] for one in planned(written)["actions"]] == [
        f"{containerd.DROP_IN} is newer than the running service"
    ]
    written.units["containerd"] = Unit(loaded=True, active=False)
    assert planned(written)["actions"] == []


@pytest.mark.parametrize(
    ("generated", "installed_at", "restarted"),
    [("0", "300", True), ("0", "", True), ("0", "100", False), ("4", "300", False), ("", "300", False)],
)
def test_k3s_is_restarted_once_after_the_runtime_is_installed(
    generated: str, installed_at: str, restarted: bool
) -> None:
    host = machine(k3s_generated=generated, runtime_since=installed_at)
    host.units.clear()
    host.units["k3s-agent"] = Unit(loaded=True, active=True, started_at=200.0)
    assert [one["unit"] for one in planned(host)["actions"]] == (["k3s-agent"] if restarted else [])


LIVE, NOT_LIVE = Command(0, "true\n"), Command(0, "false\n")


@pytest.mark.parametrize(
    ("drain", "live", "file", "drained", "checked"),
    [
        ("ends_pods", NOT_LIVE, "{}", "a restart of docker ends its containers", True),
        # The daemon does not answer.
        ("ends_pods", Command(1, "", "permission denied"), "{}", "a restart of docker ends its containers", True),
        ("ends_pods", None, "{}", "a restart of docker ends its containers", True),
        ("ends_pods", LIVE, '{"live-restore": true}', "", True),
        # The unit's command line enables it.
        ("ends_pods", LIVE, "{}", "", True),
        # Live restore must be enabled both in the running daemon and in the file of the next start.
        ("ends_pods", LIVE, '{"live-restore": false}', "a restart of docker ends its containers", True),
        ("ends_pods", NOT_LIVE, '{"live-restore": true}', "a restart of docker ends its containers", True),
        ("always", LIVE, "{}", "node_runtime_drain says so", True),
        ("never", NOT_LIVE, "{}", "", False),
    ],
)
def test_a_node_is_drained_before_a_restart_that_ends_pods(
    drain: str, live: Command | None, file: str, drained: str, checked: bool
) -> None:
    host = machine({docker.CONFIG: file})
    host.units["docker"] = Unit(loaded=True, active=True)
    host.commands.update({"docker_live_restore": live} if live else {})
    result = planned(host, drain=drain)
    assert (result["drain"], result["releases"]) == (drained, checked)
    assert [one for one in result["messages"] if "node is drained" in one] == (
        [f"the node is drained before: {drained}"] if drained else []
    )
    teardown = plan.restored(applied(host, result), {**SETTINGS, "drain": drain})
    assert (teardown["drain"], teardown["releases"]) == (drained, checked)


@pytest.mark.parametrize(
    ("drain", "drained", "checked"),
    [("ends_pods", "", False), ("always", "node_runtime_drain says so", True), ("never", "", False)],
)
def test_a_restart_of_containerd_ends_no_pods(drain: str, drained: str, checked: bool) -> None:
    result = planned(machine(), drain=drain)
    assert [one["unit"] for one in result["actions"]] == ["containerd"]
    assert (result["drain"], result["releases"]) == (drained, checked)


def test_without_a_restart_nothing_is_drained_and_an_earlier_cordon_is_checked() -> None:
    host = machine({docker.CONFIG: "{}"})
    host.units["docker"] = Unit(loaded=True, active=True, started_at=400.0)
    host.units["containerd"] = Unit(loaded=True, active=True, started_at=400.0)
    for drain in ("ends_pods", "always"):
        result = planned(applied(host, planned(host), at=300.0), drain=drain)
        assert (result["actions"], result["drain"], result["releases"]) == ([], "", True)


def test_installed_engines_are_configured() -> None:
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


def test_a_containerd_that_only_serves_docker_is_not_changed() -> None:
    host = machine({containerd.CONFIG: 'disabled_plugins = ["cri"]\n', docker.CONFIG: "{}"})
    host.units["docker"] = Unit(loaded=True)
    result = planned(host)
    assert list(result["contents"]) == [docker.CONFIG]
    assert "containerd serves no pods" in result["messages"][1]


def test_faults_of_all_engines_and_of_the_machine_are_reported_at_once() -> None:
    host = machine({docker.CONFIG: "{", containerd.CONFIG: "[plugins.cri]\n"}, modules="nouveau")
    host.units["docker"] = Unit(loaded=True)
    message = " ".join(texts(planned(host)))
    assert "nouveau" in message
    assert "not JSON" in message
    assert "no longer supported" in message


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
    result = planned(machine(**facts), **settings)
    assert result["toolkit"]["install"] == install
    assert fault in " ".join(texts(result)) if fault else result["faults"] == []


def test_packages_are_pinned_and_only_new_ones_are_recorded() -> None:
    options = {"toolkit_source": "repository", "repository_key": "k"}
    result = planned(machine(package=""), **options)
    assert result["toolkit"]["names"][-1] == "nvidia-container-toolkit=1.20.1-*"
    assert (
        planned(machine(managers="dnf\n", package=""), **options)["toolkit"]["names"][-1]
        == "nvidia-container-toolkit-1.20.1"
    )
    assert json.loads(result["record"])["packages"] == list(plan.PACKAGES)
    assert json.loads(planned(machine(package="1.19.0-1"), **options)["record"])["packages"] == []


def test_the_mode_of_the_runtime_is_set_if_requested_and_restored_otherwise() -> None:
    host = machine({plan.TOOLKIT_CONFIG: '[nvidia-container-runtime]\nmode = "auto" # by the package\n'})
    assert plan.TOOLKIT_CONFIG not in planned(host)["contents"]
    result = planned(host, mode="legacy")
    assert result["contents"][plan.TOOLKIT_CONFIG] == '[nvidia-container-runtime]\nmode = "legacy" # by the package\n'
    assert planned(applied(host, result))["contents"][plan.TOOLKIT_CONFIG] == host.text(plan.TOOLKIT_CONFIG)


@pytest.mark.parametrize(
    ("facts", "settings", "unit"),
    [
        ({"driver": "580.1"}, {}, "hwaccel-gpu-cdi.path"),
        ({}, {}, ""),
        ({"driver": "580.1"}, {"cdi": False}, ""),
        ({"driver": "580.1", "driver_in_container": "yes"}, {}, ""),
    ],
)
def test_cdi_is_generated_if_the_host_has_the_driver(
    facts: dict[str, str], settings: dict[str, t.Any], unit: str
) -> None:
    result = planned(machine(**facts), **settings)
    assert result["cdi"].get("unit", "") == unit
    assert any("hwaccel-gpu-cdi" in path for path in result["contents"]) == bool(unit)


def test_the_unit_of_the_toolkit_is_used_if_it_exists() -> None:
    host = machine(driver="580.1")
    host.units["nvidia-cdi-refresh.path"] = Unit(loaded=True)
    result = planned(host)
    assert result["cdi"]["unit"] == "nvidia-cdi-refresh.path"
    assert not any("hwaccel-gpu-cdi" in path for path in result["contents"])


def test_cdi_of_jetson_boards_is_generated_from_their_csv_files() -> None:
    result = planned(machine(gpus="", tegra="# R36 (release), REVISION: 4.0", csv="/e/devices.csv /e/drivers.csv"))
    assert result["cdi"]["generate"][3:6] == ["--mode=csv", "--csv.file=/e/devices.csv", "--csv.file=/e/drivers.csv"]
    assert "PathChanged=/e/drivers.csv\n" in result["contents"]["/etc/systemd/system/hwaccel-gpu-cdi.path"]


@pytest.mark.parametrize(
    ("generated", "listed", "fault", "messages"),
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
def test_an_incomplete_cdi_specification_is_a_fault(generated: Command, listed: str, fault: str, messages: int) -> None:
    found = plan.checked(machine(), SETTINGS, {"cdi_generate": generated, "cdi_list": Command(0, listed)})
    assert fault in " ".join(texts(found)) if fault else found["faults"] == []
    assert len(found["messages"]) == messages


def test_errors_of_other_validators_are_reported() -> None:
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
def test_containers_may_use_devices_where_selinux_is_enabled(selinux: str, boolean: str, switched: bool) -> None:
    result = planned(machine(selinux=selinux, container_use_devices=f"container_use_devices --> {boolean}"))
    assert result["selinux"] == switched
    assert bool(json.loads(result["record"])["settings"]) == switched
    assert not planned(
        machine(selinux="Enforcing", container_use_devices="container_use_devices --> off"), selinux=False
    )["selinux"]


def test_teardown_restores_existing_files_and_removes_others() -> None:
    host = machine({docker.CONFIG: '{"debug": true}'})
    host.units["docker"] = Unit(loaded=True, active=True)
    configured = applied(host, planned(host))
    teardown = plan.restored(configured, SETTINGS)
    assert teardown["contents"] == {containerd.CONFIG: EDITED, docker.CONFIG: '{"debug": true}'}
    assert teardown["absent"] == [containerd.DROP_IN]
    assert {one["unit"] for one in teardown["actions"]} == {"containerd", "docker"}
    assert teardown["messages"] == []


def ended_before_its_restart(host: Host, teardown: dict[str, t.Any]) -> Host:
    """The machine after a teardown that only restored its files."""
    files = {path: file for path, file in host.files.items() if path not in teardown["absent"]}
    files |= {path: dataclasses.replace(files[path], text=text) for path, text in teardown["contents"].items()}
    files[originals.RECORD] = File(originals.RECORD, teardown["record"])
    return dataclasses.replace(host, files=files, imports=[])


def test_a_teardown_that_was_interrupted_before_the_restart_is_completed_by_the_next() -> None:
    host = machine({docker.CONFIG: '{"debug": true}'})
    host.units["docker"] = Unit(loaded=True, active=True)
    configured = applied(host, planned(host))
    first = plan.restored(configured, SETTINGS)
    assert first["record"]
    configured = ended_before_its_restart(configured, first)
    again = plan.restored(configured, SETTINGS)
    assert (again["actions"], again["drain"], again["record"]) == (first["actions"], first["drain"], "")
    assert again["drain"] == "a restart of docker ends its containers"
    configured.units["docker"] = Unit(loaded=True, active=False)
    assert [one["unit"] for one in plan.restored(configured, SETTINGS)["actions"]] == ["containerd"], (
        "a stopped service reads its files when it starts"
    )
    configured.files[originals.RECORD] = File(originals.RECORD, again["restarted"])
    done = plan.restored(configured, SETTINGS)
    assert (done["actions"], done["record"]) == ([], "")


def test_a_run_after_an_interrupted_teardown_keeps_pending_restarts() -> None:
    host = machine()
    configured = applied(host, planned(host))
    configured = ended_before_its_restart(configured, plan.restored(configured, SETTINGS))
    configured = applied(configured, planned(configured))
    assert json.loads(configured.text(originals.RECORD))["due"] == ["containerd"]


def test_a_record_without_pending_restarts_is_read() -> None:
    host = machine()
    configured = applied(host, planned(host))
    old = {key: value for key, value in json.loads(configured.text(originals.RECORD)).items() if key != "due"}
    configured.files[originals.RECORD] = File(originals.RECORD, json.dumps(old))
    assert [one["unit"] for one in plan.restored(configured, SETTINGS)["actions"]] == ["containerd"]


def test_teardown_keeps_later_changes_of_other_users() -> None:
    host = machine({docker.CONFIG: '{"debug": true}'})
    host.units["docker"] = Unit(loaded=True, active=True)
    configured = applied(host, planned(host))
    for path in (containerd.CONFIG, docker.CONFIG):
        edited = configured.text(path).replace("4711", "4712").replace("true", "false")
        configured.files[path] = File(path, edited)
    teardown = plan.restored(configured, SETTINGS)
    assert teardown["contents"][containerd.CONFIG] == EDITED.replace("4711", "4712").replace("true", "false")
    assert json.loads(teardown["contents"][docker.CONFIG]) == {"debug": False}
    assert len(teardown["messages"]) == 2


@pytest.mark.parametrize("default", [False, True])
def test_teardown_keeps_changes_of_other_users_between_two_runs(default: bool) -> None:
    host = machine({docker.CONFIG: '{"debug": true}'})
    host.units["docker"] = Unit(loaded=True, active=True)
    configured = applied(host, planned(host))
    for path in (containerd.CONFIG, docker.CONFIG):
        configured.files[path] = File(path, configured.text(path).replace("4711", "4712").replace("true", "false"))
    configured = applied(configured, planned(configured, default_runtime=default))
    teardown = plan.restored(configured, SETTINGS)
    assert "4712" in teardown["contents"][containerd.CONFIG]
    assert json.loads(teardown["contents"][docker.CONFIG]) == {"debug": False}


def test_teardown_of_an_unchanged_machine_does_nothing() -> None:
    teardown = plan.restored(machine(), SETTINGS)
    assert (teardown["files"], teardown["absent"], teardown["actions"], teardown["packages"]) == ([], [], [], [])


def test_a_damaged_record_is_reported() -> None:
    with pytest.raises(HwaccelError, match=r"damaged \(/var/lib/hwaccel-gpu/node_runtime/record.json\)"):
        plan.restored(machine({originals.RECORD: "{"}), SETTINGS)
    assert "damaged" in texts(planned(machine({originals.RECORD: "{}"})))[0]
