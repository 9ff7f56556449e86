# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images of clusters that kubeadm makes, under the names that `kubeadm config images list` has, because there is no registry.

ensure_images(programs, nft, busybox, say) returns a folder with two archives, which `ctr --namespace k8s.io images import` reads: NODE for each node,
and CONTROL_PLANE for nodes of the control plane in addition. The kubelet pulls none of them, as kubeadm's manifests have IfNotPresent.
"""

from __future__ import annotations

import collections.abc as c
import hashlib
import pathlib
import shutil

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder, locked
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import REPOSITORY, ensure_packages
from ansible_collections.hwaccel.gpu.tests.cluster.rig.programs import Programs, tags
from ansible_collections.hwaccel.gpu.tests.node.rig import images as native
from ansible_collections.hwaccel.gpu.tests.node.rig import machine_image
from ansible_collections.hwaccel.gpu.tests.node.rig.archive import Image, Layer, Link
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Say, used
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import control_group, release_storage, remove_control_groups

REGISTRY = "registry.k8s.io"
NODE, CONTROL_PLANE = "node.tar", "control-plane.tar"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_BIN = "usr/local/bin"
#: The archive of CNI plugins, as a release of containernetworking/plugins has them: those of Debian's package.
CNI_PLUGINS = "cni-plugins.tgz"
_PLUGINS = f"tar -C /usr/lib/cni -czf /out/{CNI_PLUGINS} ."
#: Copies nft of Debian's package with the libraries that it loads. The base of kube-proxy's image has netbase's /etc/protocols: without it nft lists the
#: protocol of an element as a number, and a kube-proxy that starts again deletes all elements that it finds, those of its Services, too.
_COLLECT = r"""apt-get -qq update && apt-get -qq install --yes --no-install-recommends nftables >/dev/null
nft=$(command -v nft)
cp --parents --dereference --no-preserve=ownership "$nft" $(ldd "$nft" | grep -o '/[^ ]*') /out
mkdir /out/etc
printf '%s\n' 'tcp 6 TCP' 'udp 17 UDP' 'sctp 132 SCTP' >/out/etc/protocols"""


def cluster_images(
    programs: Programs, nft: Layer, busybox: pathlib.Path
) -> tuple[dict[str, list[Image]], dict[str, Layer]]:
    """The images by archive, and their layers."""
    version, files, tag = programs.version, programs.packed, tags()
    layers: dict[str, Layer] = {
        "pause": {"pause": files["pause"]},
        "busybox": native.busybox_layer(busybox),
        "nft": nft,
        # One binary, which is called by one of these names.
        "control-plane": {
            f"{_BIN}/control-plane": files["control-plane"],
            **{f"{_BIN}/{name}": Link("control-plane") for name in COMPONENTS},
        },
        "etcd": {f"{_BIN}/{name}": files[name] for name in ("etcd", "etcdutl")},
        "kube-proxy": {f"{_BIN}/kube-proxy": files["kube-proxy"]},
        "coredns": {"coredns": files["coredns"]},
    }
    node = [
        Image(native.PAUSE, ("pause",), entrypoint=("/pause",), user="65535:65535"),
        Image(f"{REGISTRY}/kube-proxy:{version}", ("nft", "kube-proxy")),
        Image(f"{REGISTRY}/coredns/coredns:{tag['coredns']}", ("coredns",), entrypoint=("/coredns",)),
        Image(native.BUSYBOX, ("busybox",), command=("sh",)),
    ]
    control_plane = [Image(f"{REGISTRY}/{name}:{version}", ("control-plane",)) for name in COMPONENTS]
    return {NODE: node, CONTROL_PLANE: [*control_plane, Image(f"{REGISTRY}/etcd:{tag['etcd']}", ("etcd",))]}, layers


def ensure_images(
    programs: Programs,
    nft: pathlib.Path,
    busybox: pathlib.Path,
    say: Say,
    environment: c.Mapping[str, str] | None = None,
) -> pathlib.Path:
    """The folder with the archives. nft: result of ensure_nft. busybox: a static busybox for this machine."""
    archives, layers = cluster_images(programs, files_below(nft), busybox)
    contents = (programs.key, nft.name, hashlib.sha256(busybox.read_bytes()).hexdigest())
    return native.ensure_archives(archives, layers, contents, say, environment)


def files_below(folder: pathlib.Path) -> Layer:
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def ensure_nft(say: Say) -> pathlib.Path:
    """A folder with nft and its libraries, which kube-proxy calls, in their places below the root. Requires what ensure_packages does."""
    return _ensure("nft", _COLLECT, say)


def ensure_plugins(say: Say) -> pathlib.Path:
    """The archive CNI_PLUGINS. Requires what ensure_packages does."""
    return _ensure("cni-plugins", _PLUGINS, say) / CNI_PLUGINS


def _ensure(name: str, script: str, say: Say) -> pathlib.Path:
    """A folder with what a script puts into /out on the machines' operating system."""
    packages = ensure_packages(say)
    recipe = f"{packages.name}{script}"
    folder = cache_folder() / "node" / name / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    with locked(folder.with_suffix(".making"), patience=900):
        if not folder.exists():
            shutil.rmtree(new := folder.with_suffix(".new"), ignore_errors=True)
            new.mkdir()
            _collect(packages, new, script)
            new.replace(folder)
        folder.with_suffix(".making").rmdir()
    used(folder)
    return folder


def _collect(packages: pathlib.Path, target: pathlib.Path, script: str) -> None:
    """Runs the machines' operating system once, which can install from the packages."""
    podman = machine_image.Podman(target.with_suffix(".podman"), machine_image.ensure_machine_image(lambda _line: None))
    podman.prepare()
    try:
        podman.run(
            "run",
            "--rm",
            "--network=none",
            f"--cgroup-parent=/{control_group()}",
            f"--volume={packages}:{REPOSITORY}:ro",
            f"--volume={target}:/out",
            machine_image.NAME,
            "sh",
            "-ec",
            script,
        )
    finally:
        release_storage(podman.folder)
        remove_control_groups()
        shutil.rmtree(podman.folder, ignore_errors=True)
