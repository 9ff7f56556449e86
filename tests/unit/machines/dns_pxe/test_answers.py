# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answer files: their texts, their validators, who gets them, and that none holds a secret in clear."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import answers, plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import predicted
from ansible_collections.hwaccel.gpu.tests.tools import environments
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import (
    SERVER,
    after,
    faults,
    findings,
    host,
    machine,
    settings,
)
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.test_plan import NGINX, WORKER, files

WEB = f"http://{SERVER}:8080"
FOLDER = f"{plan.STATE}/answers/52-54-00-77-00-21"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3xYk1s6m2Yc2l3 operator@example.com"
HASH = "$6$saltsalt$" + "Ab/.0" * 16
MAIN = {"kickstart": "ks.cfg", "autoinstall": "user-data", "preseed": "preseed.cfg"}
ANSWER: dict[str, t.Any] = {
    "kind": "kickstart",
    "user": "gpuadmin",
    "ssh_keys": [KEY],
    "source": "https://mirror.example.com/os/9",
    "packages": ["chrony", "lvm2"],
}
FULL = {**ANSWER, "password": HASH, "locale": "de_DE.UTF-8", "keyboard": "de", "timezone": "Europe/Berlin"}


def answered(**changed: t.Any) -> dict[str, t.Any]:
    """Settings with a worker that is installed by an answer file."""
    boots = {"role": "worker", "kernel": "os/kernel", "initramfs": "os/initramfs", "install_device": "/dev/sda"}
    profile = {**boots, "answer": {**ANSWER, **changed}}
    return settings(profiles=[*settings()["profiles"][:2], profile], ignitions=settings()["ignitions"][:2])


def text(kind: str, **changed: t.Any) -> str:
    return files(**answered(kind=kind, **changed))[f"{FOLDER}/{MAIN[kind]}"]


def test_a_kickstart_file_overwrites_one_disk_and_lets_keys_in() -> None:
    lines = text("kickstart").splitlines()
    assert {
        "# worker-0.ocp.example.com",
        "url --url=https://mirror.example.com/os/9",
        "network --bootproto=dhcp --device=52:54:00:77:00:21 --hostname=worker-0.ocp.example.com --activate",
        "rootpw --lock",
        "user --name=gpuadmin --groups=wheel",
        f'sshkey --username=gpuadmin "{KEY}"',
        "ignoredisk --only-use=sda",
        "clearpart --all --initlabel --drives=sda",
        "chrony",
    } <= set(lines)
    assert any(f"{WEB}/report/worker-0?host_key=" in line for line in lines)
    assert f"user --name=gpuadmin --groups=wheel --iscrypted --password={HASH}" in text("kickstart", password=HASH)


def test_an_autoinstall_file_is_a_cloud_config() -> None:
    for given in (ANSWER, FULL):
        content = text(**{**given, "kind": "autoinstall"})
        assert content.startswith("#cloud-config\n")
        found = yaml.safe_load(content)["autoinstall"]
        [user] = found["user-data"]["users"]
        assert user["ssh_authorized_keys"] == [KEY]
        assert (user["lock_passwd"], user.get("hashed_passwd")) == ("password" not in given, given.get("password"))
        assert found["storage"]["layout"]["match"] == {"path": "/dev/sda"}
        assert found["network"]["ethernets"]["boot"]["match"] == {"macaddress": "52:54:00:77:00:21"}
        assert found["packages"] == ["chrony", "lvm2"]
        assert found["user-data"]["ssh_deletekeys"] is False, "the reported host key stays"
        assert found["late-commands"][-1].startswith("wget ") and f"{WEB}/report/worker-0?host_key=" in content
    made = files(**answered(kind="autoinstall"))
    assert yaml.safe_load(made[f"{FOLDER}/meta-data"])["local-hostname"] == "worker-0.ocp.example.com"
    assert made[f"{FOLDER}/vendor-data"] == ""


def test_a_preseed_file_names_the_mirror_in_parts() -> None:
    lines = text("preseed").splitlines()
    assert {
        "d-i mirror/protocol string https",
        "d-i mirror/https/hostname string mirror.example.com",
        "d-i mirror/https/directory string /os/9",
        "d-i partman-auto/disk string /dev/sda",
        "d-i passwd/user-password-crypted password *",
        "d-i pkgsel/include string openssh-server sudo chrony lvm2",
    } <= set(lines)
    assert f"d-i passwd/user-password-crypted password {HASH}" in text("preseed", password=HASH)


#: Debian's package cloud-init, unpacked by .ci/run: no registry has it.
CLOUD_INIT = environments.ROOT / ".build/cloud-init/usr/lib/python3/dist-packages"


def validator(kind: str) -> tuple[list[str], dict[str, str]]:
    """Its command, and the environment that this needs beside the test's own."""
    program, *arguments = answers.KINDS[kind].checker
    if shutil.which(program):
        return [program, *arguments], {}
    try:
        programs = environments.ensure("answers") / "bin"
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    if program == "cloud-init" and CLOUD_INIT.is_dir():
        return [str(programs / "python"), "-m", "cloudinit.cmd.main", *arguments], {"PYTHONPATH": str(CLOUD_INIT)}
    if not (programs / program).exists():
        pytest.skip(f"{program} is not installed")
    return [str(programs / program), *arguments], {}


def checked(kind: str, content: str, path: pathlib.Path) -> subprocess.CompletedProcess[str]:
    command, environment = validator(kind)
    path.write_text(content, encoding="utf-8")
    return subprocess.run(
        [*command, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("kind", answers.KINDS)
@pytest.mark.parametrize("given", [ANSWER, FULL], ids=["least", "full"])
def test_each_kind_is_accepted_by_its_own_validator(kind: str, given: dict[str, t.Any], tmp_path: pathlib.Path) -> None:
    done = checked(kind, text(**{**given, "kind": kind}), tmp_path / "answer")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "line"), [("kickstart", "clearpart --everything"), ("autoinstall", "users: 7"), ("preseed", "d-i alone")]
)
def test_its_validator_refuses_what_its_installer_does_not_know(kind: str, line: str, tmp_path: pathlib.Path) -> None:
    assert checked(kind, f"{text(**{**ANSWER, 'kind': kind})}\n{line}\n", tmp_path / "answer").returncode != 0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("kickstart", f"inst.ks={WEB}/answers/52-54-00-77-00-21/ks.cfg"),
        ("autoinstall", f"autoinstall ds=nocloud-net;s={WEB}/answers/52-54-00-77-00-21/"),
        ("preseed", f"auto=true priority=critical url={WEB}/answers/52-54-00-77-00-21/preseed.cfg"),
    ],
)
def test_kernel_arguments_name_the_file(kind: str, expected: str) -> None:
    made = files(**answered(kind=kind))
    assert f"  APPEND initrd=/images/os/initramfs {expected}\n" in made[f"pxelinux.cfg/{WORKER}"]
    words = shlex.split(next(line for line in made[f"grub/{WORKER}"].splitlines() if line.startswith("  linux ")))
    assert words[2:] == expected.split(" "), "a semicolon is quoted"


def test_a_file_is_served_to_its_own_machine_only_and_removed_when_it_is_not_needed() -> None:
    given = answered()
    location = f"location = /answers/52-54-00-77-00-21/ks.cfg {{\n      root {plan.STATE};\n"
    nginx = files(**given)[NGINX]
    assert location in nginx and "location /answers/ {\n      return 404;" in nginx
    own = nginx.partition(location)[2].partition("}")[0]
    assert [line.strip() for line in own.splitlines() if "allow" in line or "deny" in line] == [
        "allow 10.77.0.21;",
        "deny all;",
    ]
    observed, found = after(given)
    observed.checksums[f"{FOLDER}/ks.cfg"] = "old"
    joined = {**given, "joined": {"ocp": ["worker-0"]}}
    assert f"{FOLDER}/ks.cfg" in plan.plan(observed, joined, found)["absent"]
    assert "/answers/52" not in files(**joined)[NGINX]
    assert f"{WEB}/answers/52-54-00-77-00-21/ks.cfg" in plan.plan(host(), given, findings(given))["expected"]["refused"]


def test_a_second_run_changes_nothing() -> None:
    given = answered(**FULL)
    observed, found = after(given)
    for path, content in files(**given).items():
        if path.startswith(FOLDER):
            del observed.files[path]
            observed.checksums[path] = plan.digest(content)
    assert predicted(plan.plan(observed, given, found), absent=False) == []


def test_neither_differences_nor_logged_lines_have_the_hash_of_the_password() -> None:
    given = answered(**FULL)
    result = plan.plan(host(), given, findings(given))
    assert f"{FOLDER}/ks.cfg" in result["changes"] and f"{FOLDER}/ks.cfg" in result["sealed"]
    assert f"{FOLDER}/ks.cfg" not in result["lines"]
    shown = {key: value for key, value in result.items() if key not in ("sealed", "staged")}
    assert HASH not in json.dumps(shown, default=str)


def test_the_validator_of_the_boot_server_reads_one_file_of_each_answer() -> None:
    given = answered()
    given["machines"].append(machine("worker-1", "worker", 22))
    result = plan.plan(host(ksvalidator="/usr/bin/ksvalidator"), given, findings(given))
    [check] = [one for one in result["checks"] if "ksvalidator" in one["name"]]
    assert check["argv"] == ["ksvalidator", f"{plan.STAGING}/kickstart-worker-1"]
    assert "ignoredisk" in result["staged"][check["argv"][1]]
    without = plan.plan(host(), given, findings(given))["messages"]
    assert "answer files are not validated by ksvalidator, which is not installed on this server" in without


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"kind": "ignition"}, "the kind of the answer is ignition"),
        ({"kind": ""}, "the kind of the answer is missing"),
        ({"user": "root"}, "the answer has no user"),
        ({"user": "x; rm"}, "the answer has no user"),
        ({"user": "operator"}, "the user of the answer cannot be operator"),
        ({"ssh_keys": []}, "the answer has no ssh_keys"),
        ({"ssh_keys": 'ssh-ed25519 AAAA "; reboot'}, "ssh_keys[0] is not a public key"),
        ({"ssh_keys": ["-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET"]}, "ssh_keys[0] is a private key"),
        ({"password": "SECRET"}, "the password of the answer is not a hash"),
        ({"password": "$1$SECRET$abcdefghijklmnopqrstuv"}, "the password of the answer is not a hash"),
        ({"source": ""}, "the source of the answer is missing"),
        ({"source": "/srv/os"}, "the source of the answer is /srv/os"),
        ({"locale": "de DE"}, "the locale of the answer cannot be used"),
        ({"timezone": "UTC\nreboot"}, "the timezone of the answer cannot be used"),
        ({"packages": ["a b"]}, "a b is not the name of a package"),
        ({"passwrd": "SECRET"}, "passwrd is no key of an answer"),
    ],
)
def test_problems_are_reported_before_anything_is_changed_and_show_no_secret(
    changed: dict[str, t.Any], expected: str
) -> None:
    told = faults(answered(**changed))
    assert any(expected in one for one in told), told
    assert "SECRET" not in "".join(told)


def test_a_profile_has_one_of_ignition_and_answer_and_a_disk() -> None:
    given = answered()
    given["profiles"][2] |= {"ignition": "master.ign", "install_device": "sda"}
    told = faults(given)
    assert any("the profile has ignition and an answer" in one for one in told)
    del given["profiles"][2]["ignition"]
    assert any("has no disk for this" in one and "it is sda" in one for one in faults(given))
    given["profiles"][2]["answer"] = "kickstart"
    assert any("the answer cannot be read" in one for one in faults(given))
