# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of the stand-in for the install tool, in this process where nothing ends it, and the files that it is given and makes."""

from __future__ import annotations

import base64
import collections.abc as c
import contextlib
import copy
import dataclasses
import io
import json
import os
import pathlib
import subprocess
import typing as t

import yaml
from cryptography import x509

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher, openshift_install

HERE = pathlib.Path(__file__).parent
NAME = "/usr/local/bin/openshift-install"
INSTALL_CONFIG, AGENT_CONFIG, STATE = "install-config.yaml", "agent-config.yaml", ".openshift_install_state.json"
#: The home of the user who runs everything on CoreOS.
_HOME = "/root"
DOCKER_CONFIG = f"{_HOME}/.docker/config.json"
DATA_URL = "data:text/plain;charset=utf-8;base64,"
IGNITION = ("create", "ignition-configs")
HOUR = 3600
#: An agent-config.yaml of the base of install_config_cases.yml.
AGENT_BASE: dict[str, t.Any] = {
    "apiVersion": "v1beta1",
    "kind": "AgentConfig",
    "metadata": {"name": "dgxpod"},
    "rendezvousIP": "10.33.3.11",
    "hosts": [
        {
            "hostname": f"master-{number}",
            "role": "master",
            "interfaces": [{"name": "eno1", "macAddress": f"52:54:00:00:00:0{number}"}],
        }
        for number in range(3)
    ],
}


@dataclasses.dataclass(frozen=True)
class Run:
    """Status and output of a call."""

    status: int
    out: str
    err: str

    def lines(self, level: str) -> list[str]:
        """What it said on a level."""
        start = f"level={level} msg="
        return [line.removeprefix(start) for line in self.err.splitlines() if line.startswith(start)]


def run(folder: pathlib.Path | None, *words: str, **settings: str) -> Run:
    """A call in this process. settings: variables of settings.py without STAND_IN_."""
    place = ("--dir", str(folder)) if folder else ()
    environment = {f"STAND_IN_{name.upper()}": value for name, value in settings.items()}
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = openshift_install.main((NAME, *words, *place), environment)
    return Run(status, out.getvalue(), err.getvalue())


def start(folder: pathlib.Path, *words: str, **settings: str) -> subprocess.Popen[str]:
    """The program, in a process of its own."""
    program = launcher.write(folder.parent, **settings)
    return subprocess.Popen(
        [program, *words, f"--dir={folder}"],
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cases() -> dict[str, t.Any]:
    content: dict[str, t.Any] = yaml.safe_load((HERE / "install_config_cases.yml").read_text(encoding="utf-8"))
    return content


def changed(content: c.Mapping[str, t.Any], changes: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """changes: values by path, of which one that is None is removed."""
    made = copy.deepcopy(dict(content))
    for path, value in changes.items():
        *parents, last = path.split(".")
        section = made
        for name in parents:
            section = section[name]
        if value is None:
            del section[last]
        else:
            section[last] = value
    return made


def configure(folder: pathlib.Path, changes: c.Mapping[str, t.Any] | None = None) -> pathlib.Path:
    """An install-config.yaml in the folder, valid but for the changes."""
    folder.mkdir(exist_ok=True)
    content = changed(cases()["base"], changes or {})
    (folder / INSTALL_CONFIG).write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


def names(folder: pathlib.Path) -> set[str]:
    """Files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def ignition(path: pathlib.Path) -> dict[str, t.Any]:
    content: dict[str, t.Any] = json.loads(path.read_bytes())
    return content


def decoded(url: str) -> bytes:
    assert url.startswith(DATA_URL)
    return base64.b64decode(url.removeprefix(DATA_URL), validate=True)


def contents(found: c.Mapping[str, t.Any]) -> dict[str, bytes]:
    """Contents of an ignition file's files by path."""
    files = found["storage"]["files"]
    return {entry["path"]: decoded((entry.get("contents") or entry["append"][0])["source"]) for entry in files}


def certificates(found: c.Mapping[str, t.Any]) -> dict[str, list[x509.Certificate]]:
    """Certificates in an ignition file's *.crt files by name without suffix."""
    return {
        pathlib.PurePath(path).stem: x509.load_pem_x509_certificates(content)
        for path, content in contents(found).items()
        if path.endswith(".crt")
    }
