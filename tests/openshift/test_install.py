# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""openshift_install with the install tool's stand-in: each row of its table, by a shifted clock and never by times of files."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import file_digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import openshift_install
from ansible_collections.hwaccel.gpu.plugins.modules import openshift_install as module
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher
from ansible_collections.hwaccel.gpu.tests.unit.modules import documentation

CLUSTER = "dgxpod.example.com"
#: Contents of a manifest that the tool takes.
EXTRA = {
    "openshift/99-extra.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}}
}


@dataclasses.dataclass
class Installation:
    """A place for a folder, and the tool. Each call of it is a line of `calls`."""

    place: pathlib.Path
    keys: str
    settings: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def path(self) -> pathlib.Path:
        return self.place / "dgxpod"

    @property
    def calls(self) -> list[dict[str, t.Any]]:
        file = self.place / "calls"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    def processes(self) -> list[int]:
        return [call["process"] for call in self.calls]

    def created(self) -> int:
        """How often files were created."""
        return sum(any(word.startswith("ignition") for word in call["arguments"]) for call in self.calls)

    def options(self, **options: t.Any) -> dict[str, t.Any]:
        keys = {"keys": self.keys} if self.keys else {}
        program = launcher.write(self.place, calls=str(self.place / "calls"), **keys, **self.settings)
        defaults = {name: one.get("default") for name, one in module.ARGUMENT_SPEC.items()}
        given = {"path": str(self.path), "program": str(program), "files": {support.INSTALL_CONFIG: config()}}
        cluster = {"name": CLUSTER, **options.pop("cluster", {})}
        return {**defaults, **given, **options, "cluster": cluster}

    def run(
        self, check_mode: bool = False, later: datetime.timedelta = datetime.timedelta(), **options: t.Any
    ) -> Outcome:
        now = datetime.datetime.now(datetime.UTC) + later
        return openshift_install.run(self.options(**options), now, check_mode)

    def names(self) -> set[str]:
        return {entry.name for entry in self.place.iterdir()} - {"openshift-install", "calls"}

    def digests(self) -> dict[str, str]:
        return {name: file_digest(self.path / name) for name in support.names(self.path)}


def config(changes: c.Mapping[str, t.Any] | None = None) -> dict[str, t.Any]:
    return support.changed(support.cases()["base"], changes or {})


@pytest.fixture
def installation(tmp_path: pathlib.Path, keys: str) -> Installation:
    return Installation(tmp_path, keys)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, keys: str) -> Installation:
    """One that tests copy."""
    made = Installation(tmp_path_factory.mktemp("prepared"), keys)
    made.run()
    return made


@pytest.fixture
def ours(prepared: Installation, tmp_path: pathlib.Path) -> Installation:
    """An installation of half a minute ago at most. The record has no path, so that it can be copied."""
    shutil.copytree(prepared.place, tmp_path, dirs_exist_ok=True)
    (tmp_path / "calls").unlink()
    return Installation(tmp_path, prepared.keys)


def hours(number: float) -> datetime.timedelta:
    return datetime.timedelta(hours=number)


def refused(outcome: Outcome, row: int, *parts: str) -> None:
    assert (outcome.values["row"], outcome.values["action"], outcome.changed) == (row, "fail", False)
    told = str(outcome.failure)
    assert all(part in told for part in parts), told
    assert outcome.values["publishable"] == {}


def predicted(installation: Installation, outcome: Outcome, **options: t.Any) -> None:
    """Check mode named the same row, and touched nothing."""
    before = (installation.calls, installation.names(), installation.digests() if installation.path.exists() else {})
    check = installation.run(check_mode=True, **options)
    for key in ("row", "action"):
        assert check.values[key] == outcome.values[key]
    # Then it tells how much time is left.
    told = check.values["message"].partition("; without running openshift-install")[0]
    assert told.partition(", in ")[0] == outcome.values["message"].partition(", in ")[0]
    assert check.changed == outcome.changed
    after = (installation.calls, installation.names(), installation.digests() if installation.path.exists() else {})
    assert before == after


def test_options_and_values_are_as_documented(ours: Installation) -> None:
    documentation.options_match(module)
    returned = yaml.safe_load(module.RETURN).keys()
    assert ours.run().values.keys() == ours.run(check_mode=True).values.keys() == returned


def test_1_files_are_created_where_there_are_none(installation: Installation) -> None:
    check = installation.run(check_mode=True)
    assert (check.values["row"], check.changed, installation.names()) == (1, True, set())
    assert installation.calls == []
    made = installation.run()
    assert (made.values["row"], made.changed) == (1, True)
    assert check.values["message"] == made.values["message"]
    assert set(made.values["publishable"]) == {"bootstrap.ign", "master.ign", "worker.ign"}
    assert made.values["publishable"]["master.ign"] == file_digest(installation.path / "master.ign")
    assert made.values["secret"] == ["bootstrap.ign"]
    assert made.values["infrastructure"].startswith("dgxpod-")
    assert 23.9 * support.HOUR < made.values["seconds_left"] <= 24 * support.HOUR + 600
    assert made.values["release"]["architecture"] == "amd64"
    assert installation.names() == {"dgxpod", "dgxpod.hwaccel-gpu.json", "dgxpod.hwaccel-gpu.lock"}


def test_nobody_else_can_read_any_of_it(ours: Installation) -> None:
    found = [ours.path, *ours.path.rglob("*"), ours.place / "dgxpod.hwaccel-gpu.json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o700, 0o600}


def test_2_files_are_used_again(ours: Installation) -> None:
    before = ours.digests()
    again = ours.run()
    assert (again.values["row"], again.changed, again.warnings) == (2, False, [])
    assert ours.created() == 0 and ours.digests() == before
    predicted(ours, again)
    assert ours.run(later=hours(11)).values["row"] == 2


def test_3_less_time_than_the_margin(ours: Installation) -> None:
    late = ours.run(later=hours(13.5))
    refused(late, 3, "kubelet-signer", "in 10 h", "regenerate: true")
    predicted(ours, late, later=hours(13.5))
    assert ours.run(later=hours(13.5), margin=3600.0).values["row"] == 2


def test_4_expired(ours: Installation) -> None:
    late = ours.run(later=hours(25))
    refused(late, 4, "kubelet-signer", "expired", "regenerate: true")
    assert ours.created() == 0


def test_5_other_inputs_are_named_and_secrets_are_not_shown(ours: Installation) -> None:
    changes = {
        "networking.clusterNetwork": [{"cidr": "10.200.0.0/14", "hostPrefix": 23}],
        "pullSecret": '{"auths":{"r":{"auth":"c2VjcmV0LXdvcmQ6eA=="}}}',
    }
    other = ours.run(files={support.INSTALL_CONFIG: config(changes)})
    refused(other, 5, "networking.clusterNetwork[0].cidr", "10.200.0.0/14", "pullSecret (hash ")
    assert "c2VjcmV0LXdvcmQ6eA" not in str(other.failure)
    assert "c2VjcmV0" not in (ours.place / "dgxpod.hwaccel-gpu.json").read_text(encoding="utf-8")
    refused(ours.run(files={support.INSTALL_CONFIG: config(), **EXTRA}), 5, "openshift/99-extra.yaml: kind")
    refused(ours.run(own_approver=True), 5, "own_approver")


def test_a_secret_among_several_documents_is_recorded_by_its_hash(installation: Installation) -> None:
    several = (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: y}}\n---\n"
        "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: y}, stringData: {word: pl4nted}}\n"
    )
    installation.run(files={support.INSTALL_CONFIG: config(), "openshift/99-several.yaml": several})
    record = (installation.place / "dgxpod.hwaccel-gpu.json").read_text(encoding="utf-8")
    assert "openshift/99-several.yaml[1]: stringData.word" in record and "pl4nted" not in record


def test_6_another_release_of_the_tool(ours: Installation) -> None:
    ours.settings["release"] = "5.0"
    refused(ours.run(), 6, "release image", "version")


@pytest.mark.parametrize("name", ["bootstrap.ign", "worker.ign"])
def test_7_an_altered_file_is_not_published(ours: Installation, name: str) -> None:
    path = ours.path / name
    path.write_bytes(path.read_bytes() + b"\n")
    refused(ours.run(), 7, name, "SHA-256")


def test_8_only_the_state_of_the_tool_is_there(ours: Installation) -> None:
    for path in ours.path.glob("*.ign"):
        path.unlink()
    refused(ours.run(), 8, "previous certificates", "regenerate: true")
    assert ours.created() == 0


def test_9_the_state_of_the_tool_is_gone(ours: Installation) -> None:
    (ours.path / support.STATE).unlink()
    found = ours.run()
    assert (found.values["row"], found.changed) == (9, False)
    assert "wait-for and gather" in found.warnings[0]


def test_10_files_without_a_record_are_adopted_only_on_request(ours: Installation) -> None:
    record = ours.place / "dgxpod.hwaccel-gpu.json"
    record.unlink()
    (ours.path / "auth").chmod(0o755)
    refused(ours.run(), 10, "adopt: true")
    assert not record.exists()
    taken = ours.run(adopt=True)
    assert (taken.values["row"], taken.values["action"], taken.changed) == (10, "adopt", True)
    assert stat.S_IMODE((ours.path / "auth").stat().st_mode) == 0o700
    assert ours.run().values["row"] == 2 and ours.created() == 0


def test_11_files_of_a_later_clock(installation: Installation) -> None:
    installation.settings["clock"] = str(2 * support.HOUR)
    installation.run()
    refused(installation.run(), 11, "not valid yet", "clock of this host")
    assert installation.run(later=hours(3)).values["row"] == 2


def test_12_after_the_bootstrap_the_clock_does_not_matter(ours: Installation) -> None:
    found = ours.run(later=hours(100), cluster={"answers": True, "bootstrapped": True})
    assert (found.values["row"], found.changed) == (12, False)
    assert set(found.values["publishable"]) == {"master.ign", "worker.ign"}
    assert found.values["secret"] == []


def test_13_inputs_of_an_installed_cluster_are_not_applied(ours: Installation) -> None:
    known = {"answers": True, "bootstrapped": True, "installed": True}
    first = ours.run(cluster=known)
    assert first.changed, "the record says from now on that it is installed"
    other = ours.run(
        cluster=known, files={support.INSTALL_CONFIG: config({"networking.serviceNetwork": ["172.31.0.0/16"]})}
    )
    assert (other.values["row"], other.changed) == (13, False)
    assert "not applied" in other.warnings[0] and "serviceNetwork" in other.warnings[0]


def test_14_another_cluster_answers(ours: Installation) -> None:
    refused(ours.run(cluster={"answers": True, "infrastructure": "dgxpod-zzzzz"}), 14, "dgxpod-zzzzz")


def test_15_machines_have_these_files(ours: Installation) -> None:
    written = {"written": ["worker-0", "worker-1"]}
    refused(ours.run(cluster=written, regenerate=True), 15, "worker-0", "regenerate_named")
    refused(ours.run(cluster=written, regenerate=True, regenerate_named=["worker-0"]), 15, "worker-1")
    made = ours.run(cluster=written, regenerate=True, regenerate_named=["worker-0", "worker-1"])
    assert made.values["action"] == "regenerate" and made.changed


def test_16_an_installed_cluster_that_is_silent_is_left_alone(ours: Installation) -> None:
    ours.run(cluster={"answers": True, "bootstrapped": True, "installed": True})
    shutil.rmtree(ours.path)
    silent = ours.run()
    assert (silent.values["row"], silent.values["action"], silent.changed) == (16, "nothing", False)
    assert silent.values["silent"] and ours.created() == 0 and not ours.path.exists()


def test_17_what_a_killed_run_has_left_is_removed(ours: Installation) -> None:
    staging = ours.place / "dgxpod.hwaccel-gpu.staging"
    staging.mkdir()
    (staging / "bootstrap.ign").write_text("half", encoding="utf-8")
    check = ours.run(check_mode=True)
    assert check.changed and staging.exists()
    found = ours.run()
    assert (found.values["row"], found.changed, staging.exists()) == (2, True, False)
    assert "interrupted" in found.warnings[0]


def test_regenerated_files_have_other_authorities_and_the_previous_ones_are_kept(ours: Installation) -> None:
    before = ours.digests()
    made = ours.run(regenerate=True)
    backup = pathlib.Path(made.values["backup"])
    assert made.changed and backup.parent == ours.place and backup.name.startswith("dgxpod.bak-")
    assert {name: file_digest(backup / name) for name in support.names(backup)} == before
    assert (ours.place / f"{backup.name}.hwaccel-gpu.json").exists()
    assert ours.digests()["master.ign"] != before["master.ign"]
    assert ours.run().values["row"] == 2


@pytest.mark.parametrize("fault", ["kill@3", "exit=1@2", "torn@1"])
def test_a_tool_that_fails_leaves_the_previous_folder(ours: Installation, fault: str) -> None:
    before = ours.digests()
    ours.settings["fault"] = fault
    with pytest.raises(HwaccelError, match="openshift-install"):
        ours.run(regenerate=True)
    assert ours.digests() == before
    assert ours.names() == {"dgxpod", "dgxpod.hwaccel-gpu.json", "dgxpod.hwaccel-gpu.lock"}
    ours.settings.clear()
    assert ours.run().values["row"] == 2


def test_a_tool_that_hangs_is_ended_with_all_that_it_has_started(installation: Installation) -> None:
    installation.settings["fault"] = "hang@1"
    with pytest.raises(HwaccelError, match="did not end within 3 seconds"):
        installation.run(timeout=3.0)
    assert installation.names() == {"dgxpod.hwaccel-gpu.lock"}
    assert not any(pathlib.Path("/proc", str(process)).exists() for process in installation.processes())


#: Runs the operation in a process that can be killed.
_CHILD = """
import datetime, json, sys
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import openshift_install
openshift_install.run(json.load(sys.stdin), datetime.datetime.now(datetime.UTC), False)
"""


def test_while_a_killed_run_s_tool_still_works_the_folder_is_in_use(ours: Installation) -> None:
    ours.settings["fault"] = "hang@1"
    child = subprocess.Popen([sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, text=True)
    assert child.stdin
    child.stdin.write(json.dumps(ours.options(regenerate=True)))
    child.stdin.close()
    staging, limit = ours.place / "dgxpod.hwaccel-gpu.staging", time.monotonic() + 60
    while not (staging / "manifests").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    child.kill()
    child.wait()
    ours.settings.clear()
    working = ours.processes()[-1]
    try:
        with pytest.raises(HwaccelError, match="the folder is in use"):
            ours.run()
    finally:
        os.kill(working, signal.SIGKILL)
    while pathlib.Path("/proc", str(working)).exists() and time.monotonic() < limit:
        time.sleep(0.05)
    found = ours.run()
    assert (found.values["row"], found.changed) == (2, True)


def test_the_tool_s_error_is_shown_without_the_pull_secret(installation: Installation) -> None:
    secret = '{"auths":{"quay.io":{"auth":"c2VjcmV0LXdvcmQ6eA=="}}'
    with pytest.raises(HwaccelError) as told:
        installation.run(files={support.INSTALL_CONFIG: config({"pullSecret": secret})})
    text = str(told.value)
    assert "exit code 3 (the install-config is invalid)" in text and "pullSecret: Invalid value" in text
    assert "c2VjcmV0" not in text and "(hidden)" in text
    assert installation.names() == {"dgxpod.hwaccel-gpu.lock"}


def test_own_approver_masks_the_bootstrap_machine_s_own(installation: Installation) -> None:
    made = installation.run(own_approver=True)
    found = support.ignition(installation.path / "bootstrap.ign")
    (unit,) = [one for one in found["systemd"]["units"] if one["name"] == "approve-csr.service"]
    assert unit["mask"] is True
    assert made.values["publishable"]["bootstrap.ign"] == file_digest(installation.path / "bootstrap.ign")
    assert installation.run(own_approver=True).values["row"] == 2


def test_a_manifest_takes_the_place_of_the_tool_s_own(installation: Installation) -> None:
    scheduler = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": {"name": "cluster"},
        "spec": {"mastersSchedulable": False, "policy": {"name": ""}},
    }
    name = "manifests/cluster-scheduler-02-config.yml"
    installation.run(files={support.INSTALL_CONFIG: config(), name: scheduler, **EXTRA})
    found = support.contents(support.ignition(installation.path / "bootstrap.ign"))
    assert b"mastersSchedulable: false" in found["/opt/openshift/manifests/cluster-scheduler-02-config.yml"]
    assert b"ConfigMap" in found["/opt/openshift/openshift/99-extra.yaml"]


def test_in_place(installation: Installation) -> None:
    changes = {
        "controlPlane.replicas": 1,
        "bootstrapInPlace": {"installationDisk": "/dev/disk/by-id/nvme-1"},
    }
    options = {"method": "in_place", "files": {support.INSTALL_CONFIG: config(changes)}}
    made = installation.run(**options)
    assert set(made.values["publishable"]) == {"bootstrap-in-place-for-live-iso.ign", "worker.ign"}
    assert made.values["secret"] == ["bootstrap-in-place-for-live-iso.ign"]
    assert made.values["seconds_left"] > 23 * support.HOUR
    assert installation.run(**options).values["row"] == 2


def test_artifacts_are_those_of_the_release_on_the_mirror(ours: Installation) -> None:
    found = ours.run(mirror="http://mirror.example.com/rhcos/").values["artifacts"]
    there = ours.run().values["artifacts"]
    assert found.keys() == {"kernel", "initramfs", "rootfs"}
    for name, one in found.items():
        file = there[name]["location"].rpartition("/")[2]
        assert one == {"location": f"http://mirror.example.com/rhcos/{file}", "sha256": there[name]["sha256"]}


def test_a_release_with_several_streams(installation: Installation) -> None:
    installation.settings["release"] = "5.0"
    first = installation.run(stream="rhel-9").values["artifacts"]["kernel"]["location"]
    assert first != installation.run(stream="rhel-10").values["artifacts"]["kernel"]["location"]


def test_short_rotation_halves_the_margin(installation: Installation) -> None:
    gates = {"featureSet": "CustomNoUpgrade", "featureGates": ["ShortCertRotation=true"]}
    options = {"files": {support.INSTALL_CONFIG: config(gates)}}
    assert installation.run(**options).values["seconds_left"] <= 2 * support.HOUR + 600
    assert installation.run(later=datetime.timedelta(minutes=50), **options).values["row"] == 2
    assert installation.run(later=datetime.timedelta(minutes=70), **options).values["row"] == 3


def test_keys_of_elliptic_curves(installation: Installation) -> None:
    installation.settings["pki"] = "P-256"
    gates = {"featureSet": "CustomNoUpgrade", "featureGates": ["ConfigurablePKI=true"]}
    made = installation.run(files={support.INSTALL_CONFIG: config(gates)})
    assert 23 * support.HOUR < made.values["seconds_left"] <= 24 * support.HOUR + 600


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"files": {}}, ["install-config.yaml is missing"]),
        ({"files": {"install-config.yaml": "a: b: c"}}, ["not valid YAML", "install-config.yaml, line 1"]),
        ({"files": {"install-config.yaml": "only text"}}, ["holds no object"]),
        ({"files": {"install-config.yaml": ""}}, ["holds no object"]),
        ({"files": {"install-config.yaml": {"a": 1}, "../x.yaml": {"a": 1}}}, ["does not read this file", "../x.yaml"]),
        ({"files": {"install-config.yaml": {"a": 1}, "auth/kubeconfig": {"a": 1}}}, ["does not read this file"]),
        ({"method": "agent"}, ["agent-config.yaml is missing"]),
        ({"method": "in_place", "own_approver": True}, ["own_approver cannot be set", "in_place"]),
        ({"margin": -1.0, "timeout": 0.0}, ["margin is not positive", "timeout is not positive"]),
        ({"program": "/nonexistent/openshift-install"}, ["cannot be started", "check the path"]),
        ({"program": "/bin/true"}, ["not openshift-install"]),
        ({"path": "/nonexistent/above/parent/folder"}, ["cannot be locked", "create the parent folder"]),
        ({"path": "/dev/null/folder"}, ["cannot be locked", "Not a directory"]),
        ({"margin": float("nan"), "timeout": float("inf")}, ["margin is not positive", "timeout is not positive"]),
        ({"stream": "rhel-11"}, ["unknown flag: --stream"]),
        ({"mirror": "mirror.example.com/rhcos"}, ["'mirror.example.com/rhcos' is not the address", "mirror"]),
        ({"mirror": "http://u:pl4nted@m.example.com/?x"}, ["'http://(redacted)@m.example.com/?x' is not the address"]),
        ({"architecture": "aarch64"}, ["the release is of amd64, and the machines are of arm64", "multi release"]),
        ({"path": "installations/dgxpod"}, ["'installations/dgxpod' is no absolute path"]),
    ],
)
def test_bad_input_is_refused_before_anything_is_touched(
    installation: Installation, options: dict[str, t.Any], parts: list[str]
) -> None:
    with pytest.raises(HwaccelError) as told:
        installation.run(**options)
    assert all(part in str(told.value) for part in parts), str(told.value)
    assert installation.names() == set() and installation.created() == 0


def test_a_file_in_the_place_of_the_folder(installation: Installation) -> None:
    installation.path.write_text("mine", encoding="utf-8")
    with pytest.raises(HwaccelError, match="cannot be read"):
        installation.run()
    assert installation.path.read_text(encoding="utf-8") == "mine"
