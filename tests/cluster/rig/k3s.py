# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines for clusters of K3s: with a stand-in for its binary (tests/cluster/k3s), which is a front around real programs. Nothing of K3s is installed.

with contextlib.closing(K3sRig(say)) as rig:
    machine = rig.machine("s1")
    machine.sh(f"install {rig.k3s.inside} /usr/local/bin/k3s")

With real binaries (k3s_binaries.py) machines have these instead of the stand-in.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import os
import pathlib
import shutil

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder, locked
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import NodesRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.images import ensure_nft
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import REAL, VERSION
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import images as real_images
from ansible_collections.hwaccel.gpu.tests.cluster.rig.programs import Programs, ensure_programs
from ansible_collections.hwaccel.gpu.tests.node.rig import components
from ansible_collections.hwaccel.gpu.tests.node.rig import images as native
from ansible_collections.hwaccel.gpu.tests.node.rig.archive import Image, Layer
from ansible_collections.hwaccel.gpu.tests.node.rig.components import (
    Builder,
    Part,
    Say,
    digest_of,
    ensured,
    forget_unused,
    used,
)
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import FIRST_PROGRAMS, IN_CONTAINER
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

SOURCES = pathlib.Path(__file__).parents[1] / "k3s"
#: Folder on machines with binaries, parts and archives of each version.
INSIDE = "/opt/k3s"
ARCHIVE = "k3s-airgap-images-amd64.tar"
#: Units of machines that are containers cannot have the limits that K3s' units ask for, and the rig prepares the machine before them. Its substitute of runc
#: shows the modules of a simulated driver, where there is one.
_UNIT = f"""[Unit]
After=rig-prepare.service
[Service]
Environment=PATH={FIRST_PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
OOMScoreAdjust=
LimitNOFILE=20000
LimitNPROC=infinity
"""
#: The stand-in calls Debian's nft, which machines do not have, with the libraries beside it.
_NFT = """#!/bin/sh
root={inside}/{version}/nft-root
export LD_LIBRARY_PATH="$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu:$root/lib/aarch64-linux-gnu:$root/usr/lib/aarch64-linux-gnu"
exec "$root{program}" "$@"
"""


@dataclasses.dataclass(frozen=True)
class K3s:
    """binary: the executable of this version. parts: folder with the programs that it is a front for. images: folder with ARCHIVE."""

    version: str
    binary: pathlib.Path
    parts: pathlib.Path
    images: pathlib.Path

    @property
    def inside(self) -> str:
        """The binary on machines, which nothing has installed yet."""
        return f"{INSIDE}/k3s-{self.version}"

    @property
    def archive(self) -> str:
        """The archive of images on machines."""
        return f"{INSIDE}/images-{self.version}/{ARCHIVE}"

    def shares(self) -> dict[str, str]:
        """Mounts of a machine."""
        return {
            str(self.binary): self.inside,
            str(self.parts): f"{INSIDE}/{self.version}",
            str(self.images): f"{INSIDE}/images-{self.version}",
        }


def system_images() -> dict[str, str]:
    """The images that K3s needs, by component (scripts/airgap/image-list.txt). The stand-in runs no other than pause; the others have a shell or CoreDNS."""
    names = {
        "klipper-helm": "klipper-helm:v0.9.14-build20260309",
        "klipper-lb": "klipper-lb:v0.4.15",
        "local-path-provisioner": "local-path-provisioner:v0.0.34",
        "coredns": "mirrored-coredns-coredns:1.14.4",
        "busybox": "mirrored-library-busybox:1.37.0",
        "traefik": "mirrored-library-traefik:3.7.4",
        "metrics-server": "mirrored-metrics-server:v0.8.1",
        "pause": "mirrored-pause:3.6",
    }
    return {component: f"docker.io/rancher/{name}" for component, name in names.items()}


def binary_part(version: str) -> Part:
    """The stand-in itself."""
    files = sorted(path.name for path in SOURCES.glob("*.go") if not path.name.endswith("_test.go"))
    arguments = ("build", "-trimpath", f"-ldflags=-s -w -X main.version={version}", ".")
    return Part("cluster-k3s", ("k3s",), arguments, digest_of(SOURCES, ["go.mod", "go.sum", *files]))


def ensure_binary(
    say: Say, version: str = VERSION, environment: c.Mapping[str, str] | None = None
) -> tuple[pathlib.Path, str]:
    """The stand-in of a version, from the cache or built now, and a digest of its sources. Raises what ensure_programs does."""
    environment = os.environ if environment is None else environment
    built = ensured(Builder(cache_folder(environment) / "node", SOURCES, environment, say), [binary_part(version)])
    return built.program("k3s"), built.key


def ensure_kubectl(say: Say) -> tuple[pathlib.Path, str]:
    sources = SOURCES / "kubectl"
    arguments = ("build", "-trimpath", "-ldflags=-s -w", ".")
    part = Part("cluster-kubectl", ("kubectl",), arguments, digest_of(sources, ["go.mod", "go.sum", "main.go"]))
    built = ensured(Builder(cache_folder() / "node", sources, os.environ, say), [part])
    return built.program("kubectl"), built.key


def ensure_cri_dockerd(say: Say) -> pathlib.Path:
    """What a K3s on Docker needs in between, which K3s' binary contains. Raises what ensure_programs does."""
    sources = SOURCES / "cri-dockerd"
    arguments = ("build", "-trimpath", "-ldflags=-s -w", ".")
    part = Part("cluster-cri-dockerd", ("cri-dockerd",), arguments, digest_of(sources, ["go.mod", "go.sum", "main.go"]))
    return ensured(Builder(cache_folder() / "node", sources, os.environ, say), [part]).program("cri-dockerd")


def ensure_k3s(say: Say, version: str = VERSION) -> K3s:
    """Everything of a version, from the cache or made now. Raises what ensure_programs does."""
    busybox = shutil.which("busybox")
    assert busybox, "the rig requires busybox"
    binary, _key = ensure_binary(say, version)
    programs = ensure_programs(say, version)
    kubectl, kubectl_key = ensure_kubectl(say)
    parts = _ensure_parts(programs, kubectl, kubectl_key, ensure_nft(say), say)
    archives = real_images(version, os.environ) if REAL else _ensure_images(programs, pathlib.Path(busybox), say)
    return K3s(version, REAL.get(version, binary), parts, archives)


def _ensure_parts(
    programs: Programs, kubectl: pathlib.Path, kubectl_key: str, nft: pathlib.Path, say: Say
) -> pathlib.Path:
    """A folder with all parts of a version, which are links into the cache where that is possible."""
    files = {name: programs.packed[name] for name in ("kube-proxy", "etcd", "etcdutl", "control-plane")}
    files |= {"kubelet": programs.installed / "kubelet", "kubectl": kubectl}
    program = next(f"/{path.relative_to(nft)}" for path in nft.rglob("nft") if path.is_file())
    containerd = ensured(
        Builder(cache_folder() / "node", components.SOURCES, os.environ, say),
        [one for one in components.parts() if one.name == components.CONTAINERD],
    )
    files |= {name: containerd.program(name) for name in ("containerd", "containerd-shim-runc-v2", "ctr")}
    texts = {
        "nft": _NFT.format(inside=INSIDE, version=programs.version, program=program),
        "kubelet.yaml": yaml.safe_dump(IN_CONTAINER),
    }
    described = "".join((programs.key, kubectl_key, nft.name, containerd.key, *texts.values()))
    folder = cache_folder() / "node" / "k3s" / hashlib.sha256(described.encode()).hexdigest()[:24]
    with locked(folder.with_suffix(".making"), patience=900):
        if not folder.exists():
            shutil.rmtree(new := folder.with_suffix(".new"), ignore_errors=True)
            new.mkdir()
            for name, source in files.items():
                _link(source, new / name)
            shutil.copytree(nft, new / "nft-root")
            for name, text in texts.items():
                (new / name).write_text(text, encoding="utf-8")
            (new / "nft").chmod(0o755)
            new.replace(folder)
            forget_unused(folder.parent)
        folder.with_suffix(".making").rmdir()
    used(folder)
    return folder


def _link(source: pathlib.Path, target: pathlib.Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)


def _ensure_images(programs: Programs, busybox: pathlib.Path, say: Say) -> pathlib.Path:
    layers: dict[str, Layer] = {
        "pause": {"pause": programs.packed["pause"]},
        "coredns": {"coredns": programs.packed["coredns"]},
        "busybox": native.busybox_layer(busybox),
    }
    images = [
        Image(
            name,
            (component if component in layers else "busybox",),
            {"pause": ("/pause",), "coredns": ("/coredns",)}.get(component, ()),
        )
        for component, name in system_images().items()
    ]
    images.append(Image(native.BUSYBOX, ("busybox",), command=("sh",)))
    contents = (programs.key, hashlib.sha256(busybox.read_bytes()).hexdigest())
    return native.ensure_archives({ARCHIVE: images}, layers, contents, say)


class K3sRig(NodesRig):
    """rig.machine("s1"): a machine that can become a server or an agent. versions: more versions that machines have, for an upgrade."""

    def __init__(self, say: c.Callable[[str], None], *versions: str) -> None:
        self.k3s, *more = (ensure_k3s(say, version) for version in (VERSION, *versions))
        self.versions = {one.version: one for one in (self.k3s, *more)}
        super().__init__(say)

    def machine(self, name: str, shares: dict[str, str] | None = None) -> Machine:
        """Boots a machine without a containerd of its own, which K3s brings."""
        mounts: dict[str, str] = {}
        for one in self.versions.values():
            mounts |= one.shares()
        machine = super().machine(name, {**mounts, **(shares or {})})
        self.without_engine(machine)
        for unit in ("k3s", "k3s-agent"):
            machine.write(f"/etc/systemd/system/{unit}.service.d/rig.conf", _UNIT)
        # nft prints numbers without it, and a kube-proxy that starts again deletes all elements that it then does not recognize.
        machine.write("/etc/protocols", "tcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n")
        return machine

    def without_engine(self, machine: Machine) -> None:
        """Removes engines of the machine that K3s would not need."""
        machine.sh("systemctl mask --quiet --now containerd; rm -f /usr/bin/containerd* /usr/bin/ctr")
