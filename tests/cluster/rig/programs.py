# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of clusters that kubeadm makes, built from Go modules at the versions of go.mod in tests/cluster/components.

ensure_programs(say) returns them, from the cache or built now. Their modules have the versions of the sandbox's control plane, which is built before
them, so that only a tenth of the packages remains to be compiled. For an upgrade, another version is stamped on the same sources: it is linked only.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import os
import pathlib

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import numbers
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import ALL_IN_ONE
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY, find_programs
from ansible_collections.hwaccel.gpu.tests.node.rig import components as native
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Builder, Part, Say, digest_of, ensured, version_of

SOURCES = pathlib.Path(__file__).parents[1] / "components"
CONTROL_PLANE = REPOSITORY / "roles" / "sandbox" / "files" / "control_plane"
#: Version of Kubernetes in go.mod, with the leading v.
VERSION = version_of(SOURCES, "k8s.io/kubernetes")
#: What kubeadm's packages contain, and what its images do.
INSTALLED, PACKED = ("kubeadm", "kubelet"), ("kube-proxy", "etcd", "etcdutl", "coredns")
_ETCD, _COREDNS = "go.etcd.io/etcd/server/v3", "github.com/coredns/coredns"


@dataclasses.dataclass(frozen=True)
class Programs:
    """installed: folder with kubeadm and kubelet, and their checksums in SHA256SUMS. packed: files of the images by program.

    version: of Kubernetes, with the leading v. key: a digest of all sources.
    """

    version: str
    installed: pathlib.Path
    packed: c.Mapping[str, pathlib.Path]
    key: str


def next_patch(version: str) -> str:
    minor, _dot, patch = version.rpartition(".")
    return f"{minor}.{int(patch) + 1}"


def tags() -> dict[str, str]:
    """Tags of the images whose version is not that of Kubernetes, as kubeadm has them (cmd/kubeadm/app/constants)."""
    return {
        "etcd": f"{version_of(SOURCES, _ETCD).removeprefix('v')}-0",
        "coredns": version_of(SOURCES, _COREDNS),
    }


def ensure_programs(say: Say, version: str = VERSION, environment: c.Mapping[str, str] | None = None) -> Programs:
    """The programs with this version of Kubernetes stamped on them. say: gets lines about the progress.

    Raises components.Unavailable if Go is missing, and HwaccelError with the end of the log if a build fails; the log is kept.
    """
    environment = os.environ if environment is None else environment
    cache = cache_folder(environment) / "node"
    control_plane, digest = _control_plane(say, version, cache, environment)
    installed, packed = (
        ensured(Builder(cache, SOURCES, environment, say), [part]) for part in (_installed(version), _packed(version))
    )
    pause = ensured(Builder(cache, native.SOURCES, environment, say), [_stand_ins()])
    files = {name: packed.program(name) for name in PACKED}
    files |= {"control-plane": control_plane, "pause": pause.program("pause")}
    key = hashlib.sha256("".join((digest, installed.key, packed.key, pause.key)).encode()).hexdigest()[:24]
    return Programs(version, installed.folder, files, key)


def _control_plane(
    say: Say, version: str, cache: pathlib.Path, environment: c.Mapping[str, str]
) -> tuple[pathlib.Path, str]:
    """The sandbox's binary, which is kube-apiserver, kube-controller-manager or kube-scheduler by the name that it is called with, and its digest."""
    if version == VERSION:
        found = find_programs()
        return found.paths()["kube-apiserver"], found.digests["kube-apiserver"]
    modules = digest_of(CONTROL_PLANE, ["go.mod", "go.sum", "main.go"])
    part = Part("cluster-control-plane", (ALL_IN_ONE,), ("build", "-trimpath", stamps(version), "."), modules)
    built = ensured(Builder(cache, CONTROL_PLANE, environment, say), [part])
    return built.program(ALL_IN_ONE), built.key


def _installed(version: str) -> Part:
    packages = tuple(f"k8s.io/kubernetes/cmd/{name}" for name in INSTALLED)
    return Part("cluster-kubeadm", INSTALLED, ("build", "-trimpath", stamps(version), *packages), _modules())


def _packed(version: str) -> Part:
    packages = ("k8s.io/kubernetes/cmd/kube-proxy", "./coredns", "./etcd", "go.etcd.io/etcd/etcdutl/v3")
    content = _modules() + digest_of(SOURCES, ["coredns/main.go", "etcd/main.go"])
    return Part("cluster-images", PACKED, ("build", "-trimpath", stamps(version), *packages), content)


def _stand_ins() -> Part:
    return next(part for part in native.parts() if part.name == native.STAND_INS)


def _modules() -> str:
    return digest_of(SOURCES, ["go.mod", "go.sum"])


def stamps(version: str) -> str:
    """Linker flags. Both packages have a version: client-go's is in the name that programs give themselves."""
    major, minor = numbers(version)[:2]
    values = {
        "gitVersion": version,
        "gitMajor": str(major),
        "gitMinor": str(minor),
        "gitTreeState": "clean",
        "gitCommit": version,
        "buildDate": "1970-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    variables = (f"-X {package}.{name}={value}" for package in packages for name, value in values.items())
    return f"-ldflags=-s -w {' '.join(variables)}"
