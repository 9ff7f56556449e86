# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubeadm and the machines of its cluster need from elsewhere. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import bundle

_REPOSITORY = "registry.k8s.io"
#: Images with the version of Kubernetes (cmd/kubeadm/app/images/images.go). Tags of the others change with patch releases, so only kubeadm itself knows them.
_VERSIONED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
_UNKNOWN = "tag: see `kubeadm config images list`"
Data = c.Mapping[str, t.Any]


def needs(settings: Data, network: t.Any, listed: c.Iterable[str], sizes: c.Mapping[str, int]) -> list[bundle.Need]:
    """All that is needed. settings: of the cluster. network: manifests of the network plugin, as `definition` of manifest_set takes them.

    listed: images that kubeadm has named, empty if it could not be asked. sizes: in bytes, by source, of files that are known. Images that archives may have
    are listed too: what an archive has is not read. Raises HwaccelError if the manifests cannot be read.
    """
    return [
        *bundle.files(settings, sizes),
        *_images(settings, network, list(listed)),
        *(bundle.Need("package", name, "repositories of the machines") for name in _packages(settings)),
    ]


def _packages(settings: Data) -> list[str]:
    return [*(f"{name} {settings['version']}" for name in settings["packages"]), *settings["runtime_packages"]]


def _images(settings: Data, network: t.Any, listed: list[str]) -> list[bundle.Need]:
    """Without those of phases that are skipped, and each of them once."""
    repository = settings["image_repository"] or _REPOSITORY
    others = ("etcd", "coredns/coredns" if repository == _REPOSITORY else "coredns")
    pause = str(settings["pause_image"]).replace(f"{_REPOSITORY}/", f"{repository}/", 1)
    named = listed or [
        *(f"{repository}/{name}:v{settings['version']}" for name in _VERSIONED),
        *(f"{repository}/{name}" for name in others),
    ]
    skipped = [*settings["skipped_phases"], *(["addon/kube-proxy"] if settings["proxy_mode"] == "none" else [])]
    without = [name for name in ("kube-proxy", "coredns") if {"addon", f"addon/{name}"} & set(skipped)]
    kept = [image for image in named if image.rpartition("/")[2].partition(":")[0] not in without]
    # kubeadm wants its own pause image on machines, whatever their runtime is set to.
    every = dict.fromkeys([*kept, pause, *bundle.of_manifests("cluster_kubeadm", network)])
    return [
        bundle.Need("image", image, image.partition("/")[0], note="" if ":" in image.rpartition("/")[2] else _UNKNOWN)
        for image in every
    ]
